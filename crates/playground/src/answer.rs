//! The answer to a question.

use crate::inputs::{PlaygroundInputs, PlaygroundProblem};
use crate::question::Question;
use crate::verdict::Reviewed;
use crate::{patches, policies, unions, verdict};
use serde::Serialize;
use serde_json::Value;

/// The results that the page shows, in the shape of the interface `Answer` in `site/src/answer.ts`. A part that cannot be computed
/// is missing, and a problem says why.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Problems with the inputs, sorted by input and position.
    pub problems: Vec<PlaygroundProblem>,
    /// The unions of each kind.
    pub unions: Vec<Value>,
    /// The review of the write.
    #[serde(flatten)]
    pub reviewed: Reviewed,
    /// The strategic merge patch from the old object to the new one, or the reason why there is none.
    pub strategic_patch: Option<Value>,
    /// The policies of all kinds.
    pub policies: Option<Value>,
}

impl Question {
    /// Answers the question.
    pub fn answer(&self) -> Answer {
        let inputs = PlaygroundInputs::read(self);
        let catalog = &inputs.kinds.catalog;
        let reviewed = verdict::review(&inputs);
        let mut answer = Answer {
            unions: unions::of_catalog(catalog),
            policies: policies::compiled(catalog),
            strategic_patch: patches::between(&inputs),
            problems: inputs.problems,
            ..Answer::default()
        };
        match reviewed.transpose() {
            Ok(reviewed) => answer.reviewed = reviewed.unwrap_or_default(),
            Err(problem) => answer.problems.push(problem),
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
