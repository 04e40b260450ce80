//! The names of policies.

use crate::target::{PolicyTarget, VersionScope};
use kube_unions_core::names::{is_dns_label, is_dns_subdomain};
use kube_unions_core::schema::Actions;
use kube_unions_core::union::Part;

/// The parts of the ends of names. Each begins with the only hyphen that it has.
const ENDS: [&str; 5] = ["-status", "-normalize", "-deny", "-warn", "-audit"];

/// Follows a resource or group that ends like a name, or like one with this behind it.
const ESCAPE: &str = "-x";

/// Precedes the version of a policy for one version.
const ONLY: &str = "-only-";

/// Returns the name of a policy, for example `unions-rollouts.example.com-status-deny`. It depends only on the arguments.
///
/// Names of different targets, parts and works differ. `None` if such a name is not one of an object: it is a DNS subdomain of at
/// most 253 characters.
pub(crate) fn policy_name(
    prefix: &str,
    target: &PolicyTarget<'_>,
    part: Part,
    work: Option<Actions>,
) -> Option<String> {
    let group = &target.gvk.group;
    let dot = if group.is_empty() { "" } else { "." };
    let part = match part {
        Part::Main => "",
        Part::Status => "-status",
    };
    let work = name_of(work);
    let version = match &target.scope {
        VersionScope::Only(_) => {
            // A version could be read as one with a part of an end behind it.
            let version = format!("{ONLY}{}", target.gvk.version);
            Some(version).filter(|it| !target.gvk.version.ends_with(ESCAPE) && !ends_like_a_name(it))?
        }
        VersionScope::AllExcept(_) | VersionScope::TooMany(_) => String::new(),
    };
    // A resource with a dot could be another resource and its group.
    let resource = is_dns_label(target.plural).then(|| format!("{}{dot}{group}", target.plural))?;
    let escape = if ends_like_a_name(&resource) || resource.contains(ONLY) { ESCAPE } else { "" };
    Some(format!("{prefix}{resource}{escape}{version}{part}-{work}")).filter(|name| is_dns_subdomain(name))
}

/// Returns the name of a policy for the pod templates of several kinds. No resource of the API server has it: resources of the core group
/// have no hyphen, and others end with their group.
pub(crate) fn name_for_pod_templates(prefix: &str, work: Option<Actions>) -> Option<String> {
    Some(format!("{prefix}pod-templates-{}", name_of(work))).filter(|name| is_dns_subdomain(name))
}

/// Returns the name of the work of a policy, see [`PolicyBody`](crate::body::PolicyBody). Each is a policy of its own, because a policy has
/// one binding and one set of actions.
fn name_of(work: Option<Actions>) -> String {
    work.map_or_else(|| "normalize".to_owned(), |actions| actions.names().join("-").to_ascii_lowercase())
}

/// Returns true if a name could be read as one of a shorter resource, or as an escaped one.
fn ends_like_a_name(resource: &str) -> bool {
    let bare = resource.trim_end_matches(ESCAPE);
    ENDS.into_iter().any(|end| bare.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_unions_core::names::GroupVersionKind;
    use kube_unions_core::union::Plan;
    use std::collections::HashMap;

    const DENY: Option<Actions> = Some(Actions::DENY);

    fn named(plural: &str, group: &str, part: Part, work: Option<Actions>) -> Option<String> {
        let gvk = GroupVersionKind { group: group.into(), version: "v1".into(), kind: "Kind".into() };
        let plan = Plan::default();
        let scope = VersionScope::AllExcept(Vec::new());
        let target = PolicyTarget { gvk: &gvk, plural, custom: true, plan: &plan, scope };
        policy_name("unions-", &target, part, work)
    }

    #[test]
    fn names_are_readable_and_only_ambiguous_ones_are_escaped() {
        for (plural, group, name) in [
            ("rollouts", "example.com", "unions-rollouts.example.com-status-deny"),
            ("pods", "", "unions-pods-status-deny"),
            ("foos", "v.example-status", "unions-foos.v.example-status-x-status-deny"),
            ("foos", "v.example-status-x", "unions-foos.v.example-status-x-x-status-deny"),
            ("foos", "v.example-x", "unions-foos.v.example-x-status-deny"),
        ] {
            assert_eq!(named(plural, group, Part::Status, DENY).as_deref(), Some(name));
        }
        let (long, longer) = ("a".repeat(224), "a".repeat(225));
        let name = named("foos", &long, Part::Status, DENY).unwrap();
        assert!(name.len() == 248 && name.contains(&long), "no hash that two names could share: {name}");
        for (plural, group) in [("foos", &*longer.repeat(2)), ("Foos", "g"), ("a.b", ""), ("", "g"), ("foos", "G")] {
            assert_eq!(named(plural, group, Part::Status, DENY), None, "{plural}.{group}");
        }
    }

    #[test]
    fn the_name_of_a_policy_for_one_version_is_not_that_of_another_group() {
        let plan = Plan::default();
        let name = |group: &str, version: &str, only: bool| {
            let gvk = GroupVersionKind { group: group.into(), version: version.into(), kind: "Kind".into() };
            let scope = if only { VersionScope::Only(Vec::new()) } else { VersionScope::AllExcept(Vec::new()) };
            let target = PolicyTarget { gvk: &gvk, plural: "foos", custom: true, plan: &plan, scope };
            policy_name("unions-", &target, Part::Main, DENY)
        };
        assert_eq!(name("g", "v2", true).as_deref(), Some("unions-foos.g-only-v2-deny"));
        assert_eq!(name("g-only-v2", "v1", false).as_deref(), Some("unions-foos.g-only-v2-x-deny"));
        for version in ["v2-x", "v2-status", "v2-deny-x", "deny"] {
            assert_eq!(name("g", version, true), None, "{version}");
        }
    }

    /// Every resource and group of up to three parts, of which most are parts of ends.
    #[test]
    fn different_targets_parts_and_works_have_different_names() {
        let pieces = ["-status", "-normalize", "-deny", "-warn", "-audit", "-x", "-xx", ".a", "-"];
        let mut tails = vec![String::new()];
        for length in 0..3 {
            let of_this_length: Vec<_> = tails.iter().filter(|tail| parts(tail) == length).cloned().collect();
            tails.extend(of_this_length.iter().flat_map(|tail| pieces.map(|piece| format!("{tail}{piece}"))));
        }
        let works = || Actions::ALL.map(Some).into_iter().chain([None]);
        let mut all = HashMap::new();
        let mut count = 0;
        for (plural, group) in
            tails.iter().flat_map(|tail| [(format!("a{tail}"), String::new()), ("a".into(), format!("a{tail}"))])
        {
            for (part, work) in
                [Part::Main, Part::Status].into_iter().flat_map(|part| works().map(move |work| (part, work)))
            {
                let Some(name) = named(&plural, &group, part, work) else { continue };
                assert!(is_dns_subdomain(&name), "{name}");
                count += 1;
                let before = all.insert(name.clone(), (plural.clone(), group.clone(), part, work));
                assert_eq!(before, None, "{name} of {plural:?} {group:?} {part:?} {work:?}");
            }
        }
        assert!(count > 10_000, "{count}");
    }

    fn parts(tail: &str) -> usize {
        tail.matches(['-', '.']).count()
    }
}
