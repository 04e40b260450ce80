//! Acceptance of a CRD by the API server, which decides if the CRD defines its kind and by which names.
//!
//! Anyone who may create CRDs may write any names into them. The API server decides which names it accepts, and records
//! that in the status of the CRD. The accepted names of another CRD must never be taken for those of this one.

use super::{BuiltinGroups, DefinitionError, Resource, wire};
use crate::names::GroupKind;
use serde::Deserialize;

/// The state of a stored CRD, according to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceptance {
    /// The CRD defines this kind.
    Accepted(ClaimedKind),
    /// The API server has not decided yet.
    Pending,
    /// The CRD does not define the kind that it names, for this reason.
    Ignored(GroupKind, String),
}

/// A kind and its resource, by their accepted names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedKind {
    /// The kind.
    pub kind: GroupKind,
    /// The resource.
    pub resource: Resource,
}

/// The fields of a CRD's `status` that decide on its acceptance.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    accepted_names: Option<wire::Names>,
    conditions: Vec<Condition>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    name: String,
    status: String,
    reason: String,
    message: String,
}

impl Acceptance {
    /// Reads the acceptance of a CRD from the JSON texts of its `spec` and `status`. No CRD defines a kind in a group of
    /// `own`. The schemas are not parsed.
    ///
    /// # Errors
    /// Returns an error if the `spec` has no group or no names.
    pub fn read(spec: &str, status: Option<&str>, own: &BuiltinGroups) -> Result<Self, DefinitionError> {
        let head: wire::Head = wire::read(spec, "spec.", wire::CRD.1)?;
        let kind = GroupKind { group: head.group, kind: head.names.kind };
        if own.has(&kind.group) {
            let why = match own {
                BuiltinGroups::Listed(_) => {
                    "the API server serves this group from its own code and ignores CRDs in it, so none of its unions \
                     is in force; delete the CRD, or define the kind in a group of your own"
                }
                BuiltinGroups::Guessed => {
                    "the webhook cannot read which groups the API server serves from its own code, so it ignores CRDs \
                     whose group may be one of them; grant it get, list and watch of \
                     `apiservices.apiregistration.k8s.io`"
                }
            };
            return Ok(Self::Ignored(kind, why.to_owned()));
        }
        let status: Status = status.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let condition = |name: &str| status.conditions.iter().find(|condition| condition.name == name);
        if let Some(refused) = condition("NamesAccepted").filter(|condition| condition.status == "False") {
            let Condition { reason, message, .. } = refused;
            let why = format!(
                "the API server does not accept its names (`NamesAccepted` is False, {reason}: {message}), so none of its \
                 unions is in force; give it names that no other CRD of the group has, or delete it"
            );
            return Ok(Self::Ignored(kind, why));
        }
        let is_true = |name| condition(name).is_some_and(|condition| condition.status == "True");
        let in_force = is_true("NamesAccepted") && is_true("Established");
        let names = status.accepted_names.filter(|_| in_force).map(|names| names.into_parts(head.scope.as_deref()));
        Ok(match names {
            Some((name, Some(resource))) if !name.is_empty() && !resource.plural.is_empty() => {
                Self::Accepted(ClaimedKind { kind: GroupKind { kind: name, ..kind }, resource })
            }
            _ => Self::Pending,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    fn status(conditions: &[(&str, &str)], accepted: &Value) -> String {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(name, status)| json!({"type": name, "status": status, "reason": "KindConflict", "message": "taken"}))
            .collect();
        json!({"conditions": conditions, "acceptedNames": accepted, "storedVersions": ["v1"]}).to_string()
    }

    fn acceptance_of(group: &str, status: Option<&str>, own: &BuiltinGroups) -> Acceptance {
        let spec =
            json!({"group": group, "scope": "Cluster", "names": {"kind": "Thing", "plural": "things"}, "versions": 7});
        Acceptance::read(&spec.to_string(), status, own).unwrap()
    }

    #[test]
    fn a_crd_counts_when_it_is_established_by_the_names_that_were_accepted() {
        let none = BuiltinGroups::Listed(BTreeSet::new());
        let names = json!({"kind": "Thing", "plural": "things", "singular": "thing", "shortNames": ["th"]});
        let (yes, no) = ("True", "False");
        let both = [("Established", yes), ("NamesAccepted", yes)];
        let Acceptance::Accepted(claim) = acceptance_of("g.example", Some(&status(&both, &names)), &none) else {
            panic!()
        };
        assert_eq!((claim.kind, &*claim.resource.plural), (GroupKind::new("g.example", "Thing"), "things"));
        assert_eq!(
            (&*claim.resource.singular, claim.resource.short_names.as_slice()),
            ("thing", &["th".to_owned()][..])
        );
        assert!(!claim.resource.namespaced && claim.resource.custom);

        // The names differ from those in the spec: the API server still uses the old ones.
        let old = json!({"kind": "Old", "plural": "olds"});
        let Acceptance::Accepted(claim) = acceptance_of("g.example", Some(&status(&both, &old)), &none) else {
            panic!()
        };
        assert_eq!((&*claim.kind.kind, &*claim.resource.plural), ("Old", "olds"));

        for pending in [
            None,
            Some("7".to_owned()),
            Some("{}".to_owned()),
            Some(status(&[("NamesAccepted", yes)], &names)),
            Some(status(&[("NamesAccepted", yes), ("Established", no)], &names)),
            Some(status(&[("Established", yes)], &names)),
            Some(status(&both, &json!({"kind": "", "plural": "things"}))),
        ] {
            assert_eq!(acceptance_of("g.example", pending.as_deref(), &none), Acceptance::Pending, "{pending:?}");
        }
    }

    #[test]
    fn a_crd_whose_names_are_not_accepted_does_not_count_whatever_else_its_status_says() {
        let names = json!({"kind": "Thing", "plural": "things"});
        let status = status(&[("Established", "True"), ("NamesAccepted", "False")], &names);
        let acceptance = acceptance_of("g.example", Some(&status), &BuiltinGroups::Listed(BTreeSet::new()));
        let Acceptance::Ignored(claim, why) = acceptance else { panic!("{acceptance:?}") };
        assert_eq!(&*claim.kind, "Thing");
        assert!(["NamesAccepted", "KindConflict", "taken"].iter().all(|word| why.contains(word)), "{why}");
    }

    #[test]
    fn a_crd_in_a_group_of_the_server_itself_does_not_count() {
        let own = BuiltinGroups::Listed(BTreeSet::from(["networking.k8s.io".into()]));
        let established = status(
            &[("Established", "True"), ("NamesAccepted", "True")],
            &json!({"kind": "Thing", "plural": "things"}),
        );
        let read = |group, own| acceptance_of(group, Some(&established), own);
        assert!(matches!(read("networking.k8s.io", &own), Acceptance::Ignored(..)));
        assert!(matches!(read("gateway.networking.k8s.io", &own), Acceptance::Accepted(_)));
        let Acceptance::Ignored(_, why) = read("gateway.networking.k8s.io", &BuiltinGroups::Guessed) else { panic!() };
        assert!(why.contains("apiservices"), "{why}");
        assert!(matches!(read("example.com", &BuiltinGroups::Guessed), Acceptance::Accepted(_)));
    }
}
