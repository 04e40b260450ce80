//! The answer to a question.

use crate::inputs::{PlaygroundInputs, PlaygroundProblem};
use crate::question::Question;
use crate::verdict::{ReviewVerdict, Reviewed};
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
    /// False if the text of an input cannot be read: perhaps a line is half written.
    pub is_readable: bool,
    /// The verdict.
    pub verdict: ReviewVerdict,
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
        let mut inputs = PlaygroundInputs::read(self);
        let mut problems = std::mem::take(&mut inputs.problems);
        let mut reviewed = match verdict::review(&inputs).transpose() {
            Ok(reviewed) => reviewed.unwrap_or_default(),
            Err(problem) => {
                problems.push(problem);
                Reviewed::default()
            }
        };
        problems.sort_by_key(|problem| (problem.input, problem.line, problem.column));
        let catalog = &inputs.kinds.catalog;
        Answer {
            verdict: ReviewVerdict::shown(reviewed.verdict.take(), &inputs, &problems),
            is_readable: inputs.is_readable,
            unions: unions::of_catalog(catalog),
            policies: policies::compiled(catalog),
            strategic_patch: patches::between(&inputs),
            reviewed,
            problems,
        }
    }
}

impl Answer {
    /// Returns an answer that is only a problem.
    pub fn of_problem(problem: PlaygroundProblem) -> Self {
        let message = Some(problem.to_string());
        let verdict = ReviewVerdict { message, ..ReviewVerdict::default() };
        Self { problems: vec![problem], verdict, ..Self::default() }
    }
}
