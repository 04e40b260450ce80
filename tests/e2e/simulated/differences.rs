//! The differences between answers of the simulated and the real API server, each with its reason.

use serde_json::Value;

use super::player::Exchange;

/// A difference that stays.
pub(super) struct Difference {
    pub(super) reason: &'static str,
    /// Returns true if it explains that the answers are not equal.
    pub(super) explains: fn(&Exchange) -> bool,
}

pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        reason: "the words about an object that cannot be decoded are those of Go's decoder",
        explains: |it| is_same_refusal(it, &[400, 422]) && message(&it.real.body).contains("cannot be handled as"),
    },
    Difference {
        reason: "the words about a patch that cannot be applied are those of Go's library",
        explains: |it| {
            let is_patch = it.request.media_type.contains("patch");
            is_patch && is_same_refusal(it, &[400, 422, 500])
        },
    },
    Difference {
        reason: "the words about a patch of a webhook that cannot be applied are those of Go's library",
        explains: |it| is_same_refusal(it, &[500]) && message(&it.real.body).contains("error in remove for path"),
    },
    Difference {
        reason: "which manager of another version loses a field that a write of the status ignores follows the order of Go's maps",
        explains: |it| {
            let is_of_status = it.request.path.contains("/widgets/") && it.request.path.contains("/status");
            is_of_status && [&it.real, &it.simulated].iter().all(|answer| answer.code == 200) && differs_by_version(it)
        },
    },
    Difference {
        reason: "validating webhooks are asked at once, and the first refusal to arrive is the answer",
        explains: |it| {
            let entries = [&it.real, &it.simulated].map(|answer| validating_entry(message(&answer.body)));
            entries.iter().all(Option::is_some) && entries[0] != entries[1]
        },
    },
    Difference {
        reason: "the words about a condition that fails are those of cel-go",
        explains: |it| is_same_refusal(it, &[403]) && message(&it.real.body).contains("resulted in error"),
    },
];

/// Returns true if only one side has written something, which is no difference of the object.
fn differs_by_version(it: &Exchange) -> bool {
    let without_version = |body: &Value| {
        let mut body = body.clone();
        body["metadata"]["resourceVersion"] = Value::Null;
        body
    };
    it.real.warnings == it.simulated.warnings && without_version(&it.real.body) == without_version(&it.simulated.body)
}

/// Returns true if both refuse with this code and the same reason.
fn is_same_refusal(it: &Exchange, codes: &[u16]) -> bool {
    it.real.code == it.simulated.code
        && codes.contains(&it.real.code)
        && it.real.body.get("reason") == it.simulated.body.get("reason")
}

/// Returns the number of the validating webhook that a message names.
fn validating_entry(message: &str) -> Option<&str> {
    Some(message.split_once("\"validating-")?.1.split('.').next().unwrap_or_default())
}

fn message(body: &Value) -> &str {
    body["message"].as_str().unwrap_or_default()
}
