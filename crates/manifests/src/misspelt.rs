//! Near misses: names that resemble one with a meaning, and so have none. Each would pass in silence.
//!
//! [`kind_of_declaration`] finds documents of a wrong kind, and [`KnownKinds`] objects whose kind is a known one in another version or
//! spelling, or is one letter off.
//! [`Diagnostic::of_misspellings`](crate::diagnostic::Diagnostic::of_misspellings) finds declarations under a wrong name.

use crate::built_in_groups::{is_built_in_group, is_without_unions};
use crate::document::Document;
use crate::file::Problem;
use crate::made::MAKERS;
use crate::simple_schema::plural;
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use kube_unions_core::near::{nearest, one_edit_off};
use std::collections::{BTreeMap, BTreeSet};

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

/// The known kind that another kind was meant to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeantKind<'k> {
    /// The known kind.
    pub kind: &'k GroupVersionKind,
    /// False if the other kind is one letter off, and may be a kind of its own.
    pub is_certain: bool,
}

/// The kinds that files describe.
#[derive(Debug)]
pub struct KnownKinds<'k> {
    known: BTreeSet<&'k GroupVersionKind>,
    /// The kinds that objects had, and what they were meant to be.
    asked: BTreeMap<GroupVersionKind, Option<MeantKind<'k>>>,
    /// The kinds that were warned of.
    warned: BTreeSet<GroupVersionKind>,
}

impl<'k> KnownKinds<'k> {
    /// Creates the set of known kinds.
    pub fn new(known: impl Iterator<Item = &'k GroupVersionKind>) -> Self {
        Self { known: known.collect(), asked: BTreeMap::new(), warned: BTreeSet::new() }
    }

    /// Returns the problem of an object that nobody may take for judged: its kind is left over, or a known one in another version, group
    /// or spelling. `is_asked` tells whether the known kind matters.
    pub fn problem(&mut self, object: &Document, is_asked: impl FnOnce(&GroupVersionKind) -> bool) -> Option<Problem> {
        if let Some(problem) = Problem::of_left_over_kind(object) {
            return Some(problem);
        }
        let own = object.group_version_kind();
        let meant = self.ask(&own).filter(|meant| meant.is_certain && is_asked(meant.kind))?;
        let pointer = if own.kind == meant.kind.kind { "/apiVersion" } else { "/kind" };
        let message = format!("{}: not judged: {}", object.title(), meant.instead_of(&own));
        Some(Problem::of_document(object, pointer, message))
    }

    /// Returns a warning for the first object of a kind that may be a known one, misspelt.
    pub fn warning(&mut self, object: &Document) -> Option<String> {
        let own = object.group_version_kind();
        let meant = self.ask(&own).filter(|meant| !meant.is_certain)?;
        let (line, column) = object.position("").unwrap_or((1, 1));
        let warning = format!("{}:{line}:{column}: {}", object.file.display(), meant.instead_of(&own));
        self.warned.insert(own).then_some(warning)
    }

    /// Returns what to do about an object whose kind is not known, if a known one resembles it.
    pub fn advice(&self, object: &Document) -> Option<String> {
        let own = object.group_version_kind();
        Some(self.near(&own)?.advice(&own))
    }

    fn ask(&mut self, own: &GroupVersionKind) -> Option<MeantKind<'k>> {
        if let Some(known) = self.asked.get(own) {
            return *known;
        }
        let meant = self.near(own);
        self.asked.insert(own.clone(), meant);
        meant
    }

    /// Returns the known kind that another kind resembles, in this order: by its group and kind, by its kind in another spelling, by its kind
    /// in another built-in group, and by one letter.
    pub fn near(&self, own: &GroupVersionKind) -> Option<MeantKind<'k>> {
        if own.kind.is_empty() || self.known.contains(own) || is_without_unions(own) {
            return None;
        }
        let find = |is_meant: &dyn Fn(&GroupVersionKind) -> bool| {
            let mut found = self.known.iter().copied().filter(|it| is_meant(it));
            let first = found.clone().next();
            found.find(|it| it.version == own.version).or(first)
        };
        let is_own_group = |it: &GroupVersionKind| it.group == own.group;
        let is_built_in = |it: &GroupVersionKind| is_built_in_group(&own.group) && is_built_in_group(&it.group);
        let certain = find(&|it| is_own_group(it) && it.kind == own.kind)
            .or_else(|| find(&|it| is_own_group(it) && is_spelt(&own.kind, &it.kind)))
            .or_else(|| find(&|it| is_built_in(it) && (it.kind == own.kind || is_spelt(&own.kind, &it.kind))));
        if let Some(kind) = certain {
            return Some(MeantKind { kind, is_certain: true });
        }
        let known: BTreeSet<GroupKind> = self.known.iter().map(|it| it.group_kind()).collect();
        let near = near_kind(&own.group_kind(), &known)?;
        let kind = find(&|it| it.group == near.group && it.kind == near.kind)?;
        // Nobody else has kinds of a built-in group, and none of them resembles another.
        Some(MeantKind { kind, is_certain: is_built_in_group(&kind.group) })
    }
}

impl MeantKind<'_> {
    /// Returns the sentence about the kind that stands in its place.
    fn instead_of(&self, own: &GroupVersionKind) -> String {
        format!("the kind `{}` of `{}` is not known; {}", own.kind, own.api_version(), self.advice(own))
    }

    fn advice(&self, own: &GroupVersionKind) -> String {
        let (kind, version) = (&self.kind.kind, self.kind.api_version());
        if own.group_kind() == self.kind.group_kind() && is_built_in_group(&own.group) {
            return format!("the API server serves `{version}`: write that");
        }
        format!("did you mean `{kind}` of `{version}`?")
    }
}

/// Returns true for a kind in another case, or in the plural.
fn is_spelt(own: &str, kind: &str) -> bool {
    let [own, kind] = [own, kind].map(str::to_lowercase);
    own == kind || plural(&kind).is_some_and(|plural| plural == own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::ManifestFile;

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
            kind("apps", "v1", "Deployment"),
            kind("networking.k8s.io", "v1", "NetworkPolicy"),
            kind("networking.k8s.io", "v1", "Ingress"),
            kind("autoscaling", "v2", "HorizontalPodAutoscaler"),
        ];
        let known = KnownKinds::new(all.iter());
        let (certain, perhaps) = (true, false);
        for (group, version, own, near) in [
            ("example.com", "v2", "Widget", None),
            ("example.com", "v3", "Widget", Some((0, certain))),
            ("example.com", "v3", "widget", Some((0, certain))),
            ("example.com", "v2", "widgets", Some((1, certain))),
            ("example.com", "v2", "Wigdet", Some((1, perhaps))),
            ("exmple.com", "v2", "Widget", Some((1, perhaps))),
            ("example.org", "v1", "Widget", None),
            ("exmple.com", "v1", "Wigdet", None),
            ("gateway.example", "v1", "TCPRoute", None),
            ("", "v1", "Pods", Some((3, certain))),
            ("", "v1", "Node", None),
            ("", "v1", "ConfigMap", None),
            ("", "v1", "configmap", None),
            ("", "v1", "", None),
            ("apps", "v1beta1", "Deployment", Some((4, certain))),
            ("apps", "v1beta2", "Deployment", Some((4, certain))),
            ("apps", "v1", "deployment", Some((4, certain))),
            ("apps", "v1", "DEPLOYMENTS", Some((4, certain))),
            ("apps", "v1", "Deploymnet", Some((4, certain))),
            ("app", "v1", "Deployment", Some((4, certain))),
            ("", "v1", "Deployment", Some((4, certain))),
            ("extensions", "v1beta1", "deployment", Some((4, certain))),
            ("extensions", "v1beta1", "Ingress", Some((6, certain))),
            ("extensions", "v1beta1", "PodSecurityPolicy", None),
            ("apps", "v1", "ControllerRevision", None),
            ("networking.k8s.io", "v1", "networkpolicies", Some((5, certain))),
            ("networking.k8s.oi", "v1", "Ingress", Some((6, certain))),
            ("networking.k8s.io", "v1", "IngressClass", None),
            // It is served, and has no unions.
            ("autoscaling", "v1", "HorizontalPodAutoscaler", None),
            ("autoscaling", "v2beta2", "HorizontalPodAutoscaler", Some((7, certain))),
            // Kinds of other groups have names of their own.
            ("serving.knative.dev", "v1", "Pod", None),
            ("networking.istio.io", "v1", "Ingress", None),
        ] {
            let near = near.map(|(at, is_certain): (usize, bool)| MeantKind { kind: &all[at], is_certain });
            assert_eq!(known.near(&kind(group, version, own)), near, "{group}/{version} {own}");
        }
    }

    #[test]
    fn an_object_that_is_not_judged_is_told_with_what_to_write() {
        let deployment = GroupKind::new("apps", "Deployment").at("v1");
        let mut known = KnownKinds::new([&deployment].into_iter());
        let mut problem = |text: &str| {
            let file = ManifestFile::read("a.yaml".into(), text.as_bytes().to_vec()).unwrap();
            known.problem(&file.documents()[0], |_| true).map(|it| it.to_string())
        };
        for (text, says) in [
            (
                "apiVersion: apps/v1beta1\nkind: Deployment\n",
                Some(
                    "a.yaml:1:1: Deployment/?: not judged: the kind `Deployment` of `apps/v1beta1` is not known; \
                      the API server serves `apps/v1`: write that",
                ),
            ),
            (
                "apiVersion: apps/v1\nkind: deployment\nmetadata: {name: w}\n",
                Some(
                    "a.yaml:2:1: deployment/w: not judged: the kind `deployment` of `apps/v1` is not known; \
                      did you mean `Deployment` of `apps/v1`?",
                ),
            ),
            (
                "apiVersion: apps/v1\nkind: ${KIND}\n",
                Some(
                    "a.yaml:2:1: ${KIND}/?: of no kind: a variable is left over: substitute it first, for example \
                      with `flux envsubst`",
                ),
            ),
            ("apiVersion: apps/v1\nkind: Deployment\n", None),
        ] {
            // Each object has its line.
            for _ in 0..2 {
                assert_eq!(problem(text).as_deref(), says, "{text}");
            }
        }
    }
}
