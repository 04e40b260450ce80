//! Where the ways to unions begin: at the object, or at a part of it that several kinds have in common.

use crate::cel::{chain, pointer, table, text, texts};
use crate::manifests::{self, MANIFESTS};
use crate::variables::Variables;
use std::collections::BTreeMap;

/// The use of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Mutation,
    Validation,
}

/// A kind that has the part, and the fields that lead to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodOwner<'p> {
    pub(crate) trunk: Vec<&'p str>,
    pub(crate) kind: &'p str,
}

/// The object in which the ways of a policy begin, as expressions.
#[derive(Debug)]
pub(crate) struct Root<'p> {
    pub(crate) now: String,
    pub(crate) was: String,
    /// The beginning of paths, unless they begin at the object.
    pub(crate) path: Option<String>,
    /// The field sets of the manifests in it.
    pub(crate) manifests: String,
    /// The fields that may lead to it.
    pub(crate) trunks: Vec<Vec<&'p str>>,
}

impl<'p> Root<'p> {
    /// Returns the root of the policy of one kind, if there are no owners, otherwise that of the specification of their pods.
    pub(crate) fn new(owners: &[PodOwner<'p>], purpose: Purpose, variables: &mut Variables) -> Self {
        let mut kinds: BTreeMap<Vec<&'p str>, Vec<&'p str>> = BTreeMap::new();
        for owner in owners {
            kinds.entry(owner.trunk.clone()).or_default().push(owner.kind);
        }
        let trunks: Vec<Vec<&str>> = kinds.keys().cloned().collect();
        // The fields of most kinds need no condition.
        let Some(common) = trunks.iter().max_by_key(|trunk| kinds.get(*trunk).map_or(0, Vec::len)).cloned() else {
            let (now, was) = ("object".to_owned(), "oldObject".to_owned());
            return Self { now, was, path: None, manifests: MANIFESTS.to_owned(), trunks: vec![Vec::new()] };
        };
        kinds.remove(&common);
        let of_kind = |value: &dyn Fn(&[&str]) -> String| {
            let mut choice = String::new();
            for (trunk, kinds) in &kinds {
                let is_kind = match &kinds[..] {
                    [kind] => format!("object.kind == {}", text(kind)),
                    kinds => format!("object.kind in {}", texts(kinds.iter().copied())),
                };
                choice.extend([format!("{is_kind} ? {} :\n", value(trunk))]);
            }
            choice + &value(&common)
        };
        let path = |trunk: &[&str]| match purpose {
            Purpose::Mutation => trunk.iter().map(|name| pointer(name)).collect(),
            Purpose::Validation => trunk.join("."),
        };
        let others = kinds.iter().flat_map(|(trunk, kinds)| kinds.iter().map(|kind| (*kind, path(trunk))));
        let path = format!("{}[?object.kind].orValue({})", table(others), text(&path(&common)));
        let part = |object: &str| of_kind(&|trunk| format!("{}.orValue({{}})", chain(object, trunk)));
        let (now, was) = (part("object"), part("oldObject"));
        let claimed = of_kind(&|trunk| {
            let steps: String = trunk.iter().map(|name| manifests::field_step(name)).collect();
            format!("it.fields{steps}")
        });
        let claimed = claimed.replace('\n', "\n    ");
        let manifests = format!(
            "{MANIFESTS}.map(it, {{\n  \"by\": it.by,\n  \"fields\": (\n    {claimed}\n  ).orValue(dyn({{}}))\n}})"
        );
        Self {
            path: Some(variables.add("path", &path, "where the specification of the pods is")),
            now: variables.add("pod", &now, ""),
            was: variables.add("oldPod", &was, ""),
            manifests: variables.add("podManifests", &manifests, "in that specification"),
            trunks,
        }
    }
}
