//! The names of policies.

use crate::target::{PolicyTarget, VersionScope};
use kube_unions_core::schema::Actions;
use kube_unions_core::union::Part;

/// The longest name of a policy. A longer one ends in a hash.
const LONGEST: usize = 63;

/// The parts of a policy's work. Each is a policy of its own, because a policy has one binding and one set of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Normalize,
    Validate(Actions),
}

/// Returns the name of a policy, for example `unions-rollouts.example.com-status-deny`. It depends only on the arguments.
pub(crate) fn policy_name(prefix: &str, target: &PolicyTarget<'_>, part: Part, work: Work) -> String {
    let group = &target.gvk.group;
    let dot = if group.is_empty() { "" } else { "." };
    let part = match part {
        Part::Main => "",
        Part::Status => "-status",
    };
    let work = match work {
        Work::Normalize => "normalize".to_owned(),
        Work::Validate(actions) => actions.names().join("-").to_ascii_lowercase(),
    };
    let version = match &target.scope {
        VersionScope::Only(_) => format!("-{}", target.gvk.version),
        VersionScope::AllExcept(_) | VersionScope::TooMany(_) => String::new(),
    };
    let whole = format!("{prefix}{}{dot}{group}{version}", target.plural);
    let end = format!("{part}-{work}");
    if whole.len().saturating_add(end.len()) <= LONGEST {
        return format!("{whole}{end}");
    }
    let hash = format!("-{:016x}", fnv1a(whole.as_bytes()));
    let room = LONGEST.saturating_sub(end.len()).saturating_sub(hash.len());
    let kept = whole.get(..whole.floor_char_boundary(room)).unwrap_or_default();
    format!("{}{hash}{end}", kept.trim_end_matches(['.', '-']))
}

/// Returns the FNV-1a hash of bytes, which is the same in every release.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_unions_core::names::GroupVersionKind;
    use kube_unions_core::union::Plan;

    fn name(plural: &str, group: &str) -> String {
        let gvk = GroupVersionKind { group: group.into(), version: "v1".into(), kind: "Kind".into() };
        let plan = Plan::default();
        let scope = VersionScope::AllExcept(Vec::new());
        let target = PolicyTarget { gvk: &gvk, plural, custom: true, plan: &plan, scope };
        policy_name("unions-", &target, Part::Status, Work::Validate(Actions::DENY))
    }

    #[test]
    fn names_are_readable_and_long_ones_end_in_a_stable_hash() {
        assert_eq!(name("rollouts", "example.com"), "unions-rollouts.example.com-status-deny");
        assert_eq!(name("pods", ""), "unions-pods-status-deny");
        let long = "a".repeat(60);
        assert_eq!(name(&long, "example.com"), "unions-aaaaaaaaaaaaaaaaaaaaaaaaaaa-7e91e556568c25fb-status-deny");
        assert_ne!(name(&long, "example.com"), name(&long, "example.org"));
        assert!(name(&long, "example.com").len() <= LONGEST);
    }
}
