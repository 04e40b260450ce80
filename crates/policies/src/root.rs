//! Where the paths to unions begin: at the object, or at a part of it that several kinds have in common.

use crate::cel::{pointer, table, text};
use crate::value::UserValue;
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
    pub(crate) fields: Vec<&'p str>,
    pub(crate) kind: &'p str,
}

/// The object in which the paths of a policy begin, as expressions.
#[derive(Debug)]
pub(crate) struct Root<'p> {
    pub(crate) now: UserValue,
    pub(crate) was: UserValue,
    /// The list of both.
    pub(crate) both: String,
    /// A word for one of them.
    pub(crate) word: &'static str,
    /// The beginning of paths, unless they begin at the object.
    pub(crate) path: Option<String>,
    /// The fields that may lead to it. Those that are tried first come first.
    pub(crate) fields: Vec<Vec<&'p str>>,
}

impl<'p> Root<'p> {
    /// Returns the root of the policy of one kind, if there are no owners, otherwise that of the specification of their pods.
    pub(crate) fn new(owners: &[PodOwner<'p>], purpose: Purpose, variables: &mut Variables) -> Self {
        let mut kinds: BTreeMap<Vec<&'p str>, Vec<&'p str>> = BTreeMap::new();
        for owner in owners {
            kinds.entry(owner.fields.clone()).or_default().push(owner.kind);
        }
        let roots: Vec<Vec<&str>> = kinds.keys().cloned().collect();
        // The fields of most kinds need no condition.
        let Some(common) = roots.iter().max_by_key(|root| kinds.get(*root).map_or(0, Vec::len)).cloned() else {
            return Self {
                now: UserValue::new("object"),
                was: UserValue::new("oldObject"),
                both: "[object, oldObject]".to_owned(),
                word: "o",
                path: None,
                fields: vec![Vec::new()],
            };
        };
        kinds.remove(&common);
        let path = |root: &[&str]| match purpose {
            Purpose::Mutation => root.iter().map(|name| pointer(name)).collect(),
            Purpose::Validation => root.join("."),
        };
        let others = kinds.iter().flat_map(|(root, kinds)| kinds.iter().map(|kind| (*kind, path(root))));
        let path = format!("{}[?object.kind].orValue({})", table(others), text(&path(&common)));
        // A built-in kind has only one of these fields.
        let places: Vec<UserValue> = roots.iter().map(|root| UserValue::new("o").follow(root)).collect();
        let pods = format!("[object, oldObject].map(o, {})", UserValue::first_of(&places).or("{}").text());
        let both = variables.add("pods", &pods, "the specification of the pods, now and before");
        Self {
            path: Some(variables.add("path", &path, "where it is")),
            now: UserValue::new(format!("{both}[0]")),
            was: UserValue::new(format!("{both}[1]")),
            both,
            word: "pod",
            fields: roots,
        }
    }
}
