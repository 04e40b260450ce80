//! The declarations that count: not those of a CRD that is not given, and for a CRD without any those that its validations make.

use crate::commands::propose::EnforcedUnions;
use crate::input::kinds::{self, Assembly, BuiltinUnionsArg};
use crate::input::manifest::Document;
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use kube_unions_manifests::is_built_in_group;
use kube_unions_manifests::without_effect;
use kube_unions_offline::target_of;
use serde_json::Value;
use std::collections::BTreeSet;

/// The kinds of documents with the declarations that count.
pub(super) struct DeclaredKinds {
    pub(super) assembly: Assembly,
    /// The names of the declarations that validations made.
    pub(super) proposed: BTreeSet<String>,
    /// Says which declarations were left out or added, a line each.
    pub(super) hints: Vec<String>,
}

impl DeclaredKinds {
    /// Compiles documents for objects of these kinds.
    pub(super) fn assemble(mut documents: Vec<Document>, objects: &BTreeSet<GroupKind>) -> anyhow::Result<Self> {
        let all = |documents: &[Document]| kinds::assemble(documents.to_vec(), BuiltinUnionsArg::Ignored);
        let mut found = Self { assembly: all(&documents), proposed: BTreeSet::new(), hints: Vec::new() };
        if objects.is_empty() {
            return Ok(found);
        }
        let known: BTreeSet<GroupKind> = found.assembly.kinds().map(GroupVersionKind::group_kind).collect();
        let number = documents.len();
        // As on a cluster, where the CRD may come later.
        documents.retain(|document| {
            let target = document.is_declaration().then(|| target_of(document));
            target.is_none_or(|target| is_built_in_group(&target.group) || known.contains(&target))
        });
        let without_crd = number - documents.len();
        if without_crd > 0 {
            found.hints.push(without_effect(without_crd));
            found.assembly = all(&documents);
        }
        if found.assembly.catalog.errors() == 0 {
            found.propose(&documents, objects)?;
        }
        Ok(found)
    }

    /// Adds the unions that validations enforce to kinds of which nothing declares any.
    fn propose(&mut self, documents: &[Document], objects: &BTreeSet<GroupKind>) -> anyhow::Result<()> {
        let entries = self.assembly.catalog.entries();
        let declared: BTreeSet<GroupKind> = entries.iter().map(|entry| entry.gvk().group_kind()).collect();
        let (mut proposed, mut enforced, mut doubtful) = (Vec::new(), Vec::new(), Vec::new());
        for (document, definition) in self.assembly.declared_definitions() {
            let kind = definition.group_kind();
            if !objects.contains(kind) || declared.contains(kind) {
                continue;
            }
            let crd: Value = serde_json::from_str(&document.text)?;
            let unions = EnforcedUnions::find(document, &definition, &crd)?;
            if unions.is_doubtful {
                doubtful.push(format!("`{}`", kind.kind));
            }
            if !unions.declarations.is_empty() {
                enforced.push(format!("`{}`", kind.kind));
            }
            proposed.extend(unions.declarations);
        }
        if !doubtful.is_empty() {
            let kinds = doubtful.join(", ");
            self.hints
                .push(format!("fields of {kinds} may be a union: `kube-unions propose` says why that is in doubt"));
        }
        if proposed.is_empty() {
            return Ok(());
        }
        let with_proposals = kinds::assemble([documents, &proposed].concat(), BuiltinUnionsArg::Ignored);
        // A proposal with a fault is no fault of the input.
        if with_proposals.catalog.errors() == 0 {
            self.proposed = proposed.into_iter().filter_map(|document| document.name).collect();
            self.assembly = with_proposals;
            let kinds = enforced.join(", ");
            self.hints.push(format!(
                "nothing declares unions of {kinds}: judged by those that the validations of the CRD enforce"
            ));
        }
        Ok(())
    }
}
