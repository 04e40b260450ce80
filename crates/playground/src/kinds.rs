//! The kinds of the objects, and their unions: those of the definitions, and of built-in kinds.

use crate::described::DescribedKind;
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::names::GroupVersionKind;
use kube_unions_manifests::misspelt::KnownKinds;
use kube_unions_manifests::{Assembly, BuiltinUnions, Document, assemble, is_built_in_group};
use kube_unions_offline::{AddedUnions, BuiltInKinds, FILE, PresetNames, target_of};
use std::collections::BTreeSet;
use std::path::Path;

/// The kinds with unions.
pub(crate) struct PlaygroundKinds {
    /// Every kind of the definitions and of the objects.
    pub(crate) all: Assembly,
    /// The kinds of the definitions, without presets. `None`: they are all.
    declared: Option<Assembly>,
    pub(crate) presets: PresetNames,
}

/// The knowledge about the unions of a kind.
pub(crate) enum KindKnowledge {
    /// Unions are in force.
    Unions,
    /// The kind has none, for this reason.
    NoUnions(String),
    /// Nothing describes the kind. The text says what to do.
    Unknown(String),
}

impl KindKnowledge {
    /// Returns the reason why nothing is judged.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Self::Unions => None,
            Self::NoUnions(reason) | Self::Unknown(reason) => Some(reason),
        }
    }
}

impl PlaygroundKinds {
    /// Compiles the definitions, the kinds that the new input describes, and the built-in kinds of objects.
    pub(crate) fn of(definitions: Vec<Document>, more: Vec<Document>, objects: &[Document]) -> Self {
        let mut given = definitions;
        let key = |document: &Document| (document.kind.clone(), document.name.clone());
        let known: BTreeSet<_> = given.iter().map(key).collect();
        given.extend(more.into_iter().filter(|document| !known.contains(&key(document))));
        let named: BTreeSet<GroupVersionKind> = objects.iter().map(Document::group_version_kind).collect();
        let declares = given.iter().any(|it| it.is_declaration() && is_built_in_group(&target_of(it).group));
        let is_wanted = declares || named.iter().any(|kind| is_built_in_group(&kind.group));
        let built_in = Some(()).filter(|()| is_wanted).and_then(|()| BuiltInKinds::read().ok());
        let assembled = |documents| assemble(documents, BuiltinUnions::Ignored);
        let Some(built_in) = built_in else {
            return Self { all: assembled(given), declared: None, presets: PresetNames::default() };
        };
        let added = |presets| AddedUnions { published: BuiltinUnions::Ignored, presets };
        let own = assembled(built_in.enforced(given.clone(), None, added(false)));
        let documents = built_in.enforced(given, Some(&named), added(true));
        Self { presets: PresetNames::of(&built_in, &documents), all: assembled(documents), declared: Some(own) }
    }

    /// Returns true for the file of the built-in kinds, of which no input has a line.
    pub(crate) fn is_embedded(file: &Path) -> bool {
        file == Path::new(FILE)
    }

    /// Returns the unions that the definitions declare.
    pub(crate) fn declared(&self) -> &Catalog {
        &self.declared.as_ref().unwrap_or(&self.all).catalog
    }

    pub(crate) fn entry(&self, kind: &GroupVersionKind) -> Option<&CatalogEntry> {
        self.all.catalog.lookup(&kind.group, &kind.version, &kind.kind)
    }

    pub(crate) fn described(&self, kind: &GroupVersionKind) -> Option<DescribedKind> {
        DescribedKind::of(&self.all, kind)
    }

    /// Returns true if kube-unions never enforces unions of a kind on a cluster.
    pub(crate) fn is_never_enforced(&self, entry: &CatalogEntry) -> bool {
        entry.plan().unions().iter().all(|union| self.presets.is_never_enforced(entry.gvk(), union))
    }

    pub(crate) fn knowledge(&self, object: &Document, known: &KnownKinds<'_>) -> KindKnowledge {
        let kind = object.group_version_kind();
        if self.entry(&kind).is_some() {
            return KindKnowledge::Unions;
        }
        let (name, api_version) = (&kind.kind, kind.api_version());
        let of = format!("the kind `{name}` of `{api_version}`");
        if self.all.kinds().any(|known| *known == kind) {
            let propose = if is_built_in_group(&kind.group) {
                ""
            } else {
                "; `kube-unions propose` finds those that its CRD enforces"
            };
            return KindKnowledge::NoUnions(format!(
                "{of} has no unions in force, so nothing is judged; declare them in a UnionDeclaration{propose}"
            ));
        }
        match known.advice(object) {
            Some(advice) => KindKnowledge::Unknown(format!("{of} is not known; {advice}")),
            None if is_built_in_group(&kind.group) => KindKnowledge::NoUnions(format!("no union of {of} is known")),
            None => KindKnowledge::Unknown(format!("{of} is not among the definitions; paste its CRD")),
        }
    }
}
