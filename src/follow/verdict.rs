//! The verdict on a `UnionDeclaration`: the content of its status.
//!
//! The condition `Accepted` tells whether every union is valid, and `InForce` whether one has an effect. Both follow from the
//! declaration, from the schema of its target and from nothing else, so that replicas agree.
//!
//! Knows nothing of the API server; [`status`](super::status) writes verdicts.

use super::raw::{ObjectParts, RawDeclaration};
use kube_unions_core::declaration::{Fault, FaultOfVersions, Severity};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;

/// Maximum length of a message, in bytes. The log and `lint` list every fault.
const MAX_MESSAGE: usize = 2048;

/// The reason of both conditions if the cluster does not have the target.
const TARGET_NOT_FOUND: &str = "TargetNotFound";

/// The types of conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConditionType {
    /// Every union of the declaration is valid.
    Accepted,
    /// At least one union of the declaration is in force.
    InForce,
}

/// The content of a status, without transition times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeclarationVerdict {
    accepted: JudgedCondition,
    in_force: JudgedCondition,
    /// The unions in force and the declared ones, for example `3/4`. `None` if the declaration cannot be read.
    pub(super) unions: Option<String>,
}

/// The content of a condition, without its type and transition time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JudgedCondition {
    kind: ConditionType,
    /// The generation of the declaration that was compiled.
    pub(super) generation: Option<i64>,
    /// `True`, `False` or `Unknown`.
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
}

/// Numbers of unions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnionCount {
    /// Those in force in some served version.
    pub(super) in_force: usize,
    pub(super) declared: usize,
}

/// The parts of a `UnionDeclaration` that no union follows from.
#[derive(Debug)]
pub(super) struct StoredDeclaration {
    pub(super) generation: Option<i64>,
    pub(super) status: StoredStatus,
}

/// The status that the API server stores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StoredStatus {
    conditions: Vec<StoredCondition>,
    unions: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct StoredCondition {
    content: JudgedCondition,
    /// RFC 3339; empty if missing.
    last_transition_time: String,
}

#[derive(Deserialize)]
struct WireStatus {
    #[serde(default)]
    conditions: Vec<Value>,
    unions: Option<String>,
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

impl ConditionType {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::InForce => "InForce",
        }
    }
}

impl DeclarationVerdict {
    /// Returns the verdict on a declaration that has these faults. `target_missing`: the cluster does not have its target.
    /// `unions` is `None` if the declaration cannot be read.
    pub(super) fn new(
        generation: Option<i64>,
        target_missing: bool,
        unions: Option<UnionCount>,
        faults: &[&Fault],
    ) -> Self {
        let of = |severity| faults.iter().copied().filter(move |fault: &&Fault| fault.severity() == severity);
        let condition = |kind, status: &str, reason: &str, message| JudgedCondition {
            kind,
            generation,
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
        };
        let errors = summary(of(Severity::Error));
        let (status, reason, message) = if !errors.is_empty() {
            ("False", "Invalid", errors)
        } else if target_missing {
            ("Unknown", TARGET_NOT_FOUND, summary(of(Severity::Note).filter(|fault| fault.left_out)))
        } else {
            let warnings = summary(of(Severity::Warning));
            let and = if warnings.is_empty() { "" } else { ", and may surprise: " };
            ("True", "Compiled", format!("every union is valid{and}{warnings}"))
        };
        let accepted = condition(ConditionType::Accepted, status, reason, message);

        let UnionCount { in_force, declared } = unions.unwrap_or(UnionCount { in_force: 0, declared: 0 });
        let (status, reason) = match (in_force, target_missing) {
            (0, true) => ("False", TARGET_NOT_FOUND),
            (0, false) => ("False", "NoUnionInForce"),
            _ => ("True", "UnionsInForce"),
        };
        // Notes about left-out parts come first, because a long message is cut.
        let (left_out, others): (Vec<_>, Vec<_>) = of(Severity::Note).partition(|fault| fault.left_out);
        let notes = summary(left_out.into_iter().chain(others));
        let and = if notes.is_empty() { "" } else { "; " };
        let verb = if declared == 1 { "union is" } else { "unions are" };
        let message = match unions {
            Some(_) => format!("{in_force} of {declared} {verb} in force{and}{notes}"),
            None => "no union is in force".to_owned(),
        };
        let in_force_condition = condition(ConditionType::InForce, status, reason, message);
        let unions = unions.map(|_| format!("{in_force}/{declared}"));
        Self { accepted, in_force: in_force_condition, unions }
    }

    /// Returns the conditions with their types.
    pub(super) fn conditions(&self) -> [(ConditionType, &JudgedCondition); 2] {
        [&self.accepted, &self.in_force].map(|condition| (condition.kind, condition))
    }
}

impl StoredDeclaration {
    pub(super) fn read(raw: &RawDeclaration) -> Self {
        Self { generation: raw.generation(), status: raw.parts().map(StoredStatus::read).unwrap_or_default() }
    }
}

impl StoredStatus {
    /// Reads a declaration's status. Other conditions, and fields that cannot be read, do not matter.
    pub(super) fn read(parts: &ObjectParts) -> Self {
        let status = parts.status.as_ref().and_then(|status| serde_json::from_str::<WireStatus>(status.get()).ok());
        let Some(WireStatus { conditions, unions }) = status else { return Self::default() };
        let stored = |kind: ConditionType| {
            let found = conditions.iter().find(|condition| condition["type"] == kind.name())?;
            let WireCondition { status, reason, message, observed_generation, last_transition_time } =
                serde_json::from_value(found.clone()).ok()?;
            let content = JudgedCondition { kind, generation: observed_generation, status, reason, message };
            Some(StoredCondition { content, last_transition_time })
        };
        let conditions = [ConditionType::Accepted, ConditionType::InForce].into_iter().filter_map(stored).collect();
        Self { conditions, unions }
    }

    /// Returns true if the status is this verdict.
    pub(super) fn says(&self, verdict: &DeclarationVerdict) -> bool {
        self.unions == verdict.unions
            && verdict
                .conditions()
                .into_iter()
                .all(|(kind, wanted)| self.condition(kind).is_some_and(|stored| stored.content == *wanted))
    }

    /// Returns true if somebody removed a condition or the count.
    pub(super) fn lacks_a_part_of(&self, verdict: &DeclarationVerdict) -> bool {
        self.unions.is_none() && verdict.unions.is_some()
            || verdict.conditions().into_iter().any(|(kind, _)| self.condition(kind).is_none())
    }

    /// Returns the time since when the condition has the same status, `None` if it has another one.
    pub(super) fn unchanged_since(&self, condition: &JudgedCondition) -> Option<&str> {
        let stored = self.condition(condition.kind)?;
        let same = stored.content.status == condition.status && !stored.last_transition_time.is_empty();
        same.then_some(&*stored.last_transition_time)
    }

    fn condition(&self, kind: ConditionType) -> Option<&StoredCondition> {
        self.conditions.iter().find(|stored| stored.content.kind == kind)
    }
}

/// Joins the faults with their paths. A fault of several versions is listed once with their names.
fn summary<'f>(faults: impl IntoIterator<Item = &'f Fault>) -> String {
    let all = FaultOfVersions::group(faults);
    let mut text = String::new();
    for (position, group) in all.iter().enumerate() {
        let (path, message) = (group.fault.path.as_str(), group.fault.message.as_str());
        let versions = group.versions_text();
        let place = match (path, versions.as_str()) {
            ("", "") => String::new(),
            (path, "") => format!("{path}: "),
            ("", versions) => format!("{versions}: "),
            (path, versions) => format!("{path} ({versions}): "),
        };
        let separator = if position == 0 { "" } else { "; " };
        if text.len() + place.len() + message.len() > MAX_MESSAGE {
            // Writing to a string can't fail.
            let _ = write!(text, "{separator}and {} more", all.len() - position);
            break;
        }
        let _ = write!(text, "{separator}{place}{message}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_unions_core::declaration::FaultKind;
    use serde_json::json;
    use serde_json::value::RawValue;
    use std::collections::BTreeMap;

    fn fault(kind: FaultKind, message: &str) -> Fault {
        Fault { path: "spec".to_owned(), ..Fault::new(kind, "things.example.com", message.to_owned()) }
    }

    fn left_out(version: &str, message: &str) -> Fault {
        Fault { version: Some(version.to_owned()), ..fault(FaultKind::MemberLeftOut, message) }
    }

    fn count(in_force: usize, declared: usize) -> UnionCount {
        UnionCount { in_force, declared }
    }

    #[test]
    fn errors_outrank_a_missing_target_which_outranks_warnings() {
        let (error, warning) =
            (fault(FaultKind::InvalidUnion, "wrong"), fault(FaultKind::DefaultedDiscriminator, "odd"));
        let missing = Fault { path: String::new(), version: None, ..left_out("", "no such kind") };
        for (is_missing, faults, status, reason, message) in [
            (false, vec![], "True", "Compiled", "every union is valid"),
            (false, vec![&warning], "True", "Compiled", "every union is valid, and may surprise: spec: odd"),
            (false, vec![&warning, &error], "False", "Invalid", "spec: wrong"),
            (true, vec![&warning, &missing], "Unknown", "TargetNotFound", "no such kind"),
            (true, vec![&error, &missing], "False", "Invalid", "spec: wrong"),
        ] {
            let verdict = DeclarationVerdict::new(Some(3), is_missing, Some(count(0, 2)), &faults);
            let accepted = &verdict.accepted;
            assert_eq!((&*accepted.status, &*accepted.reason, &*accepted.message), (status, reason, message));
            assert_eq!((accepted.generation, verdict.in_force.generation), (Some(3), Some(3)));
            assert_eq!(verdict.in_force.reason, if is_missing { "TargetNotFound" } else { "NoUnionInForce" });
        }
    }

    #[test]
    fn in_force_counts_the_unions_and_names_what_is_left_out_before_other_notes() {
        let notes = [
            fault(FaultKind::KeylessListOfTarget, "no keys"),
            left_out("v1", "no property `b`"),
            left_out("v1beta1", "no property `b`"),
        ];
        let verdict = DeclarationVerdict::new(None, false, Some(count(3, 4)), &notes.iter().collect::<Vec<_>>());
        assert_eq!((&*verdict.accepted.status, &*verdict.accepted.message), ("True", "every union is valid"));
        let JudgedCondition { status, reason, message, .. } = &verdict.in_force;
        assert_eq!((&**status, &**reason), ("True", "UnionsInForce"));
        assert_eq!(message, "3 of 4 unions are in force; spec (v1, v1beta1): no property `b`; spec: no keys");
        assert_eq!(verdict.unions.as_deref(), Some("3/4"));

        let verdict = DeclarationVerdict::new(None, false, Some(count(0, 1)), &[]);
        assert_eq!((&*verdict.in_force.status, &*verdict.in_force.message), ("False", "0 of 1 union is in force"));
        let unreadable = DeclarationVerdict::new(None, false, None, &[&fault(FaultKind::InvalidUnion, "unreadable")]);
        assert_eq!((&*unreadable.in_force.status, unreadable.unions), ("False", None));
    }

    #[test]
    fn a_long_message_lists_each_fault_once_and_counts_the_rest() {
        let faults: Vec<Fault> =
            (0..100).map(|number| fault(FaultKind::InvalidUnion, &format!("{number:030}"))).collect();
        let twice: Vec<&Fault> = faults.iter().chain(&faults).collect();
        let message = DeclarationVerdict::new(None, false, Some(count(0, 1)), &twice).accepted.message;
        assert!(message.len() < MAX_MESSAGE + 100, "{}", message.len());
        let listed = message.matches("spec: ").count();
        assert!(message.ends_with(&format!("; and {} more", 100 - listed)), "{message}");
    }

    #[test]
    fn a_stored_status_says_a_verdict_only_as_a_whole_and_keeps_its_times() {
        let verdict = DeclarationVerdict::new(Some(2), false, Some(count(1, 1)), &[]);
        let stored = |omit: &str| {
            let conditions: Vec<Value> = verdict
                .conditions()
                .into_iter()
                .filter(|(kind, _)| kind.name() != omit)
                .map(|(kind, condition)| {
                    json!({"type": kind.name(), "status": condition.status, "reason": condition.reason,
                        "message": condition.message, "observedGeneration": 2, "lastTransitionTime": "t"})
                })
                .collect();
            let unions = if omit == "unions" { Value::Null } else { verdict.unions.clone().into() };
            let status = json!({"conditions": conditions, "unions": unions}).to_string();
            let raw = |text: String| RawValue::from_string(text).unwrap();
            let (spec, status) = (raw("{}".to_owned()), Some(raw(status)));
            StoredStatus::read(&ObjectParts { annotations: BTreeMap::new(), spec, status })
        };
        assert!(stored("").says(&verdict) && !stored("").lacks_a_part_of(&verdict));
        for part in ["Accepted", "InForce", "unions"] {
            assert!(!stored(part).says(&verdict) && stored(part).lacks_a_part_of(&verdict), "{part}");
        }
        let worse = DeclarationVerdict::new(Some(2), false, Some(count(0, 1)), &[]);
        assert_eq!(stored("").unchanged_since(&worse.accepted), Some("t"));
        assert_eq!(stored("").unchanged_since(&worse.in_force), None, "the status differs");
    }
}
