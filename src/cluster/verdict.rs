//! The verdict on a `UnionDeclaration`: the content of its condition `Accepted`.
//!
//! Knows nothing of the API server; [`status`](super::status) writes verdicts.

use super::raw::Parts;
use kube_unions_core::declaration::{Fault, Severity};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;

/// The type of the condition.
pub(super) const CONDITION: &str = "Accepted";

/// Maximum length of a message, in bytes. The log and `lint` list every fault.
const MAX_MESSAGE: usize = 2048;

/// The content of a condition, without its transition time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeclarationVerdict {
    /// The generation of the declaration that was compiled.
    pub(super) generation: Option<i64>,
    /// `True` if the declaration is in force, else `False`.
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
}

/// The condition that the API server stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredCondition {
    pub(super) verdict: DeclarationVerdict,
    /// RFC 3339; empty if missing.
    pub(super) last_transition_time: String,
}

#[derive(Deserialize)]
struct WireStatus {
    #[serde(default)]
    conditions: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCondition {
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    observed_generation: Option<i64>,
    #[serde(default)]
    last_transition_time: String,
}

impl DeclarationVerdict {
    /// Returns the verdict on a declaration that has these faults. `target_missing`: the cluster does not have its target.
    pub(super) fn new(generation: Option<i64>, target_missing: bool, faults: &[&Fault]) -> Self {
        let (errors, warnings): (Vec<_>, Vec<_>) = faults.iter().partition(|fault| fault.severity == Severity::Error);
        let (status, reason, message) = if target_missing {
            ("False", "TargetNotFound", summary(&errors))
        } else if !errors.is_empty() {
            ("False", "Invalid", summary(&errors))
        } else if warnings.is_empty() {
            ("True", "Compiled", "in force".to_owned())
        } else {
            ("True", "Compiled", format!("in force, and may surprise: {}", summary(&warnings)))
        };
        Self { generation, status: status.to_owned(), reason: reason.to_owned(), message }
    }
}

impl StoredCondition {
    /// Reads the condition from a declaration's status. Other conditions, and fields that cannot be read, do not matter.
    pub(super) fn read(parts: &Parts) -> Option<Self> {
        let status: WireStatus = serde_json::from_str(parts.status.as_ref()?.get()).ok()?;
        let found = status.conditions.into_iter().find(|condition| condition["type"] == CONDITION)?;
        let found: WireCondition = serde_json::from_value(found).ok()?;
        let WireCondition { status, reason, message, observed_generation, last_transition_time } = found;
        let verdict = DeclarationVerdict { generation: observed_generation, status, reason, message };
        Some(Self { verdict, last_transition_time })
    }
}

/// Joins the faults with their paths. Versions of a kind usually have equal faults; each is listed once.
fn summary(faults: &[&Fault]) -> String {
    let mut all = Vec::new();
    for fault in faults {
        let one = (fault.path.as_str(), fault.message.as_str());
        if !all.contains(&one) {
            all.push(one);
        }
    }
    let mut text = String::new();
    for (position, (path, message)) in all.iter().enumerate() {
        let (separator, colon) = (if position == 0 { "" } else { "; " }, if path.is_empty() { "" } else { ": " });
        if text.len() + path.len() + message.len() > MAX_MESSAGE {
            // Writing to a string can't fail.
            let _ = write!(text, "{separator}and {} more", all.len() - position);
            break;
        }
        let _ = write!(text, "{separator}{path}{colon}{message}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(severity: Severity, message: &str) -> Fault {
        Fault { severity, path: "spec".to_owned(), ..Fault::unreadable("things.example.com", message.to_owned()) }
    }

    #[test]
    fn a_missing_target_outranks_errors_and_errors_outrank_warnings() {
        let (error, warning) = (fault(Severity::Error, "wrong"), fault(Severity::Warning, "odd"));
        for (missing, faults, status, reason, message) in [
            (false, vec![], "True", "Compiled", "in force"),
            (false, vec![&warning], "True", "Compiled", "in force, and may surprise: spec: odd"),
            (false, vec![&warning, &error], "False", "Invalid", "spec: wrong"),
            (true, vec![&warning, &error], "False", "TargetNotFound", "spec: wrong"),
        ] {
            let verdict = DeclarationVerdict::new(Some(3), missing, &faults);
            assert_eq!((&*verdict.status, &*verdict.reason, &*verdict.message), (status, reason, message));
            assert_eq!(verdict.generation, Some(3));
        }
    }

    #[test]
    fn a_long_message_lists_each_fault_once_and_counts_the_rest() {
        let faults: Vec<Fault> = (0..100).map(|number| fault(Severity::Error, &format!("{number:030}"))).collect();
        let twice: Vec<&Fault> = faults.iter().chain(&faults).collect();
        let verdict = DeclarationVerdict::new(None, false, &twice);
        assert!(verdict.message.len() < MAX_MESSAGE + 100, "{}", verdict.message.len());
        let listed = verdict.message.matches("spec: ").count();
        assert!(verdict.message.ends_with(&format!("; and {} more", 100 - listed)), "{}", verdict.message);
    }
}
