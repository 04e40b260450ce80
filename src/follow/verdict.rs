//! The verdict on a `UnionDeclaration`: the content of its status.
//!
//! The condition `Accepted` tells whether every union is valid, and `InForce` whether one has an effect. Both follow from the
//! declaration, from the schema of its target and from nothing else, so that replicas agree.
//!
//! Knows nothing of the API server; [`status`](super::status) writes verdicts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube_unions_core::declaration::{Fault, FaultOfVersions, Severity, UnionDeclarationStatus};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum length of a message, in bytes. The log and `lint` list every fault.
const MAX_MESSAGE: usize = 2048;

/// The reason of both conditions if the cluster does not have the target.
const TARGET_NOT_FOUND: &str = "TargetNotFound";

/// The transition time of a condition that has none yet.
const UNDATED: Time = Time(Timestamp::UNIX_EPOCH);

/// Returns the verdict on a declaration that has these faults: a status without transition times.
///
/// `generation`: that of the declaration that was compiled. `target_missing`: the cluster does not have its target. `in_force`: the
/// number of its unions that are in force in some served version. `declared`: the number of all; `None` if it cannot be read.
pub(super) fn verdict(
    generation: Option<i64>,
    target_missing: bool,
    in_force: usize,
    declared: Option<usize>,
    faults: &[&Fault],
) -> UnionDeclarationStatus {
    let of = |severity| faults.iter().copied().filter(move |fault: &&Fault| fault.severity() == severity);
    let condition = |type_: &str, status: &str, reason: &str, message| Condition {
        last_transition_time: UNDATED,
        message,
        observed_generation: generation,
        reason: reason.to_owned(),
        status: status.to_owned(),
        type_: type_.to_owned(),
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
    let accepted = condition("Accepted", status, reason, message);

    let (status, reason) = match (declared.map_or(0, |_| in_force), target_missing) {
        (0, true) => ("False", TARGET_NOT_FOUND),
        (0, false) => ("False", "NoUnionInForce"),
        _ => ("True", "UnionsInForce"),
    };
    // Notes about left-out parts come first, because a long message is cut.
    let (left_out, others): (Vec<_>, Vec<_>) = of(Severity::Note).partition(|fault| fault.left_out);
    let notes = summary(left_out.into_iter().chain(others));
    let and = if notes.is_empty() { "" } else { "; " };
    let message = match declared {
        Some(1) => format!("{in_force} of 1 union is in force{and}{notes}"),
        Some(declared) => format!("{in_force} of {declared} unions are in force{and}{notes}"),
        None => "no union is in force".to_owned(),
    };
    let conditions = vec![accepted, condition("InForce", status, reason, message)];
    UnionDeclarationStatus { conditions, unions: declared.map(|declared| format!("{in_force}/{declared}")) }
}

/// Returns true if a status is this verdict. Other conditions do not matter.
pub(super) fn has_verdict(status: &UnionDeclarationStatus, verdict: &UnionDeclarationStatus) -> bool {
    let is_same = |wanted: &Condition, stored: &Condition| {
        Condition { last_transition_time: wanted.last_transition_time.clone(), ..stored.clone() } == *wanted
    };
    let mut wanted = verdict.conditions.iter();
    status.unions == verdict.unions
        && wanted.all(|wanted| find(status, &wanted.type_).is_some_and(|stored| is_same(wanted, stored)))
}

/// Returns a digest of a verdict without its times: two verdicts that say the same have the same digest.
pub(super) fn digest(verdict: &UnionDeclarationStatus) -> u64 {
    let mut hasher = DefaultHasher::new();
    for Condition { type_, status, reason, message, observed_generation, last_transition_time: _ } in
        &verdict.conditions
    {
        (type_, status, reason, message, observed_generation).hash(&mut hasher);
    }
    verdict.unions.hash(&mut hasher);
    hasher.finish()
}

/// Returns true if somebody removed a condition or the count.
pub(super) fn lacks_a_part_of(status: &UnionDeclarationStatus, verdict: &UnionDeclarationStatus) -> bool {
    status.unions.is_none() && verdict.unions.is_some()
        || verdict.conditions.iter().any(|wanted| find(status, &wanted.type_).is_none())
}

/// Returns the verdict with transition times: a condition has that of the stored one if its status is the same, else the time now.
pub(super) fn dated(mut verdict: UnionDeclarationStatus, stored: &UnionDeclarationStatus) -> UnionDeclarationStatus {
    for condition in &mut verdict.conditions {
        let unchanged = find(stored, &condition.type_).filter(|stored| stored.status == condition.status);
        condition.last_transition_time =
            unchanged.map_or_else(|| Timestamp::now().into(), |stored| stored.last_transition_time.clone());
    }
    verdict
}

fn find<'s>(status: &'s UnionDeclarationStatus, type_: &str) -> Option<&'s Condition> {
    status.conditions.iter().find(|condition| condition.type_ == type_)
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

    fn fault(kind: FaultKind, message: &str) -> Fault {
        Fault { path: "spec".to_owned(), ..Fault::new(kind, "things.example.com", message.to_owned()) }
    }

    fn left_out(version: &str, message: &str) -> Fault {
        Fault { version: Some(version.to_owned()), ..fault(FaultKind::MemberLeftOut, message) }
    }

    fn accepted(verdict: &UnionDeclarationStatus) -> &Condition {
        find(verdict, "Accepted").unwrap()
    }

    fn in_force(verdict: &UnionDeclarationStatus) -> &Condition {
        find(verdict, "InForce").unwrap()
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
            let verdict = verdict(Some(3), is_missing, 0, Some(2), &faults);
            let (accepted, in_force) = (accepted(&verdict), in_force(&verdict));
            assert_eq!((&*accepted.status, &*accepted.reason, &*accepted.message), (status, reason, message));
            assert_eq!((accepted.observed_generation, in_force.observed_generation), (Some(3), Some(3)));
            assert_eq!(in_force.reason, if is_missing { "TargetNotFound" } else { "NoUnionInForce" });
        }
    }

    #[test]
    fn in_force_counts_the_unions_and_names_what_is_left_out_before_other_notes() {
        let notes = [
            fault(FaultKind::KeylessListOfTarget, "no keys"),
            left_out("v1", "no property `b`"),
            left_out("v1beta1", "no property `b`"),
        ];
        let most = verdict(None, false, 3, Some(4), &notes.iter().collect::<Vec<_>>());
        assert_eq!((&*accepted(&most).status, &*accepted(&most).message), ("True", "every union is valid"));
        let Condition { status, reason, message, .. } = in_force(&most);
        assert_eq!((&**status, &**reason), ("True", "UnionsInForce"));
        assert_eq!(message, "3 of 4 unions are in force; spec (v1, v1beta1): no property `b`; spec: no keys");
        assert_eq!(most.unions.as_deref(), Some("3/4"));

        let none = verdict(None, false, 0, Some(1), &[]);
        assert_eq!((&*in_force(&none).status, &*in_force(&none).message), ("False", "0 of 1 union is in force"));
        let unreadable = verdict(None, false, 0, None, &[&fault(FaultKind::InvalidUnion, "unreadable")]);
        assert_eq!((&*in_force(&unreadable).status, unreadable.unions.as_deref()), ("False", None));
    }

    #[test]
    fn a_long_message_lists_each_fault_once_and_counts_the_rest() {
        let faults: Vec<Fault> =
            (0..100).map(|number| fault(FaultKind::InvalidUnion, &format!("{number:030}"))).collect();
        let twice: Vec<&Fault> = faults.iter().chain(&faults).collect();
        let verdict = verdict(None, false, 0, Some(1), &twice);
        let message = &accepted(&verdict).message;
        assert!(message.len() < MAX_MESSAGE + 100, "{}", message.len());
        let listed = message.matches("spec: ").count();
        assert!(message.ends_with(&format!("; and {} more", 100 - listed)), "{message}");
    }

    #[test]
    fn a_stored_status_says_a_verdict_only_as_a_whole_and_keeps_its_times() {
        let judged = verdict(Some(2), false, 1, Some(1), &[]);
        let time = Time(Timestamp::from_second(1_700_000_000).unwrap());
        let stored = |omit: &str| {
            let mut stored = judged.clone();
            stored.conditions.retain(|condition| condition.type_ != omit);
            stored.conditions.iter_mut().for_each(|condition| condition.last_transition_time = time.clone());
            stored.unions = stored.unions.filter(|_| omit != "unions");
            stored
        };
        assert!(has_verdict(&stored(""), &judged) && !lacks_a_part_of(&stored(""), &judged));
        for part in ["Accepted", "InForce", "unions"] {
            assert!(!has_verdict(&stored(part), &judged) && lacks_a_part_of(&stored(part), &judged), "{part}");
        }
        let worse = dated(verdict(Some(2), false, 0, Some(1), &[]), &stored(""));
        assert_eq!(accepted(&worse).last_transition_time, time);
        assert!(in_force(&worse).last_transition_time > time, "the status differs");
    }
}
