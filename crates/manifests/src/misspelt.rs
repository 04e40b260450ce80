//! Near misses: names that resemble one with a meaning, and so have none. Each would pass in silence.
//!
//! [`kind_of_declaration`] finds documents of a wrong kind, and [`KnownKinds`] objects whose kind is one letter off.
//! [`Diagnostic::of_misspellings`](crate::diagnostic::Diagnostic::of_misspellings) finds declarations under a wrong name.

use crate::document::Document;
use crate::made::MAKERS;
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use kube_unions_core::near::{nearest, one_edit_off};
use std::collections::BTreeSet;

/// The documents that declare unions, beside those that CRDs are made of: group and kind.
const DECLARING: [(&str, &str); 2] =
    [("apiextensions.k8s.io", "CustomResourceDefinition"), ("kube-unions.dev", "UnionDeclaration")];

/// Returns a message for a document whose group or kind resembles that of a CRD or a `UnionDeclaration`.
pub fn kind_of_declaration(document: &Document) -> Option<String> {
    let (group, _) = document.group_version();
    let kind = document.kind.as_deref()?;
    let makers = MAKERS.into_iter().map(|(group, kind, _)| (group, kind));
    let (group, kind) =
        DECLARING.into_iter().chain(makers).find_map(|(wanted_group, wanted_kind)| match (group, kind) {
            (group, kind) if group == wanted_group && nearest(kind, [wanted_kind]).is_some() => {
                Some((group, wanted_kind))
            }
            (group, kind) if kind == wanted_kind && nearest(group, [wanted_group]).is_some() => {
                Some((wanted_group, kind))
            }
            _ => None,
        })?;
    let own = document.api_version.as_deref().unwrap_or_default();
    let wrong = document.kind.as_deref().unwrap_or_default();
    Some(format!("the kind `{wrong}` of `{own}` is not checked; did you mean `{kind}` of `{group}`?"))
}

/// Returns true for a document that [describes kinds](Document::describes_kinds), or whose kind is nearly that of one that does: an
/// assembly has a problem for it.
pub fn is_meant_for_kinds(document: &Document) -> bool {
    document.describes_kinds() || kind_of_declaration(document).is_some()
}

/// Returns the known kind whose group or name is one letter off another kind.
pub fn near_kind<'k>(other: &GroupKind, known: &'k BTreeSet<GroupKind>) -> Option<&'k GroupKind> {
    let kinds = known.iter().filter(|it| it.group == other.group).map(|it| &*it.kind);
    let groups = known.iter().filter(|it| it.kind == other.kind).map(|it| &*it.group);
    let near = match (one_edit_off(&other.kind, kinds), one_edit_off(&other.group, groups)) {
        (Some(kind), _) => GroupKind::new(&*other.group, kind),
        (None, group) => GroupKind::new(group?, &*other.kind),
    };
    known.get(&near)
}

/// The kinds that files describe.
#[derive(Debug)]
pub struct KnownKinds<'k> {
    known: BTreeSet<&'k GroupVersionKind>,
    /// The kinds that were asked about already.
    asked: BTreeSet<(String, String)>,
}

impl<'k> KnownKinds<'k> {
    /// Creates the set of known kinds.
    pub fn new(known: impl Iterator<Item = &'k GroupVersionKind>) -> Self {
        Self { known: known.collect(), asked: BTreeSet::new() }
    }

    /// Returns a warning for the first object of a kind that is not known, and whose group, version or kind is one letter off
    /// a known one. A version that a known kind does not have always counts.
    pub fn warning(&mut self, object: &Document) -> Option<String> {
        let (kind, api_version) = (object.kind.clone()?, object.api_version.clone()?);
        if !self.asked.insert((api_version.clone(), kind.clone())) {
            return None;
        }
        let meant = self.meant(object)?;
        let (line, column) = object.position("").unwrap_or((1, 1));
        let file = object.file.display();
        Some(format!(
            "{file}:{line}:{column}: the kind `{kind}` of `{api_version}` is not known; did you mean {meant}?"
        ))
    }

    /// Returns the known kind that the kind of an object was meant to be, as messages name it: `Rollout` of `example.com/v1`.
    pub fn meant(&self, object: &Document) -> Option<String> {
        let (group, version) = object.group_version();
        let near = self.near(group, version, object.kind.as_deref()?)?;
        Some(format!("`{}` of `{}`", near.kind, near.api_version()))
    }

    fn near(&self, group: &str, version: &str, kind: &str) -> Option<&'k GroupVersionKind> {
        let of = |group: &str, kind: &str| {
            let mut versions = self.known.iter().filter(|it| (&*it.group, &*it.kind) == (group, kind)).copied();
            let first = versions.clone().next();
            versions.find(|it| &*it.version == version).or(first)
        };
        if let Some(same) = of(group, kind) {
            return (&*same.version != version).then_some(same);
        }
        let known: BTreeSet<GroupKind> = self.known.iter().map(|it| GroupKind::new(&*it.group, &*it.kind)).collect();
        near_kind(&GroupKind::new(group, kind), &known).and_then(|near| of(&near.group, &near.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_near_if_its_group_version_or_kind_is() {
        let kind = |group: &str, version: &str, kind: &str| GroupVersionKind {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        };
        let all = [
            kind("example.com", "v1", "Widget"),
            kind("example.com", "v2", "Widget"),
            kind("gateway.example", "v1", "TLSRoute"),
            kind("", "v1", "Pod"),
        ];
        let known = KnownKinds::new(all.iter());
        for (group, version, kind, near) in [
            ("example.com", "v2", "Widget", None),
            ("example.com", "v3", "Widget", Some(0)),
            ("example.com", "v2", "Wigdet", Some(1)),
            ("example.com", "v3", "widget", Some(0)),
            ("exmple.com", "v2", "Widget", Some(1)),
            ("example.org", "v1", "Widget", None),
            ("exmple.com", "v1", "Wigdet", None),
            ("gateway.example", "v1", "TCPRoute", None),
            ("", "v1", "Pods", Some(3)),
            ("", "v1", "Node", None),
        ] {
            assert_eq!(known.near(group, version, kind), near.map(|at: usize| &all[at]), "{group}/{version} {kind}");
        }
    }
}
