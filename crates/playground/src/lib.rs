//! The engine of the playground: what kube-unions does with an object, as one JSON text for another.
//!
//! [`answer()`] reads a [`Question`] and returns an [`Answer`]. The page `site/` calls it in a worker of the browser. It knows no
//! browser, and uses the code of the command line and of the webhook.
//!
//! `inputs` reads the texts, `kinds` has the unions of their kinds, and `write` predicts an apply. `server` judges as the API server does today,
//! with the `keywords` of a CRD, and `review` as a cluster with kube-unions does. `verdict` has the words, and `place` finds values in the texts.
//! `answer` puts everything together, with the patch, the unions and their policies.

mod answer;
mod described;
mod inputs;
mod keywords;
mod kinds;
mod place;
mod review;
mod server;
mod verdict;
mod write;

pub use answer::Answer;
pub use inputs::{InputName, LARGEST_INPUT, PlaygroundProblem, Question, WriteWay};
pub use place::InputPlace;
pub use review::Reviewed;
pub use verdict::{ObjectVerdict, PlaygroundOutcome, ReviewVerdict, ShownCause, VerdictLine, VerdictSummary};

/// Answers a question, both as JSON.
#[cfg_attr(target_family = "wasm", wasm_bindgen::prelude::wasm_bindgen)]
#[must_use]
pub fn answer(question: &str) -> String {
    let answer = match serde_json::from_str::<Question>(question) {
        Ok(question) => question.answer(),
        Err(error) => Answer::of_problem(PlaygroundProblem::error(InputName::Definitions, error.to_string())),
    };
    // An answer has only texts, numbers and lists.
    serde_json::to_string(&answer).unwrap_or_default()
}
