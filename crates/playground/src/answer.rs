//! The answer to a question.

use crate::inputs::{PlaygroundInputs, PlaygroundProblem};
use crate::patches::{self, StrategicPatch};
use crate::policies::{self, PoliciesOfKinds};
use crate::question::Question;
use crate::unions::{self, UnionsOfKind};
use crate::verdict::{self, NormalizedObject, PlaygroundVerdict};
use serde::Serialize;

/// The results that the page shows. A part that cannot be computed is missing, and a problem says why.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Problems with the inputs, sorted by input and position.
    pub problems: Vec<PlaygroundProblem>,
    /// The unions of each kind.
    pub unions: Vec<UnionsOfKind>,
    /// The object as the webhook normalises it.
    pub normalized: Option<NormalizedObject>,
    /// The verdict on the write.
    pub verdict: Option<PlaygroundVerdict>,
    /// The JSON Patch of the webhook, indented; empty without a change.
    pub json_patch: Option<String>,
    /// The strategic merge patch from the old object to the new one.
    pub strategic_patch: Option<StrategicPatch>,
    /// The policies of all kinds.
    pub policies: Option<PoliciesOfKinds>,
}

impl Question {
    /// Answers the question.
    pub fn answer(&self) -> Answer {
        let inputs = PlaygroundInputs::read(self);
        let catalog = &inputs.kinds.catalog;
        let reviewed = verdict::review(&inputs);
        let policies = policies::compiled(catalog);
        let mut answer = Answer {
            unions: unions::of_catalog(catalog),
            strategic_patch: patches::between(&inputs),
            problems: inputs.problems,
            ..Answer::default()
        };
        match policies {
            Some(Ok(policies)) => answer.policies = Some(policies),
            Some(Err(problem)) => answer.problems.push(problem),
            None => {}
        }
        match reviewed {
            Some(Ok(reviewed)) => {
                answer.json_patch = Some(reviewed.json_patch);
                answer.normalized = Some(reviewed.normalized);
                answer.verdict = Some(reviewed.verdict);
            }
            Some(Err(problem)) => answer.problems.push(problem),
            None => {}
        }
        answer.problems.sort_by_key(|problem| (problem.input, problem.line, problem.column));
        answer
    }
}

impl Answer {
    /// Returns an answer that is only a problem.
    pub fn of_problem(problem: PlaygroundProblem) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }
}
