//! Events of `UnionDeclaration`s, and the verdicts on them.

use super::super::inputs::DeclarationChange;
use super::super::raw::RawDeclaration;
use super::super::rebuild::missing_target;
use super::super::status::StatusWriter;
use super::super::verdict::{DeclarationVerdict, UnionCount};
use super::{ClusterState, Publication};
use kube_unions_core::declaration::Fault;
use kube_unions_core::names::GroupKind;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::PoisonError;

impl ClusterState {
    /// Begins a list of declarations.
    pub(in crate::cluster) fn list_declarations(&mut self) {
        self.declarations.begin();
    }

    /// Ends a list of declarations: forgets those that it has not brought.
    pub(in crate::cluster) fn declarations_listed(&mut self) {
        let inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = self.declarations.end(inputs.declarations().map(AsRef::as_ref));
        drop(inputs);
        for name in gone {
            self.remove_declaration(&name);
        }
    }

    /// Waits for declarations no longer, since they cannot be listed. `none`: the cluster has none; otherwise those that are
    /// known stay.
    pub(in crate::cluster) fn declarations_unavailable(&mut self, none: bool) {
        self.declarations.listed = none.then(HashSet::new);
        self.declarations_listed();
    }

    pub(in crate::cluster) fn has_declarations(&self) -> bool {
        self.inputs().declarations().len() > 0
    }

    /// Stores a declaration that is new or has changed.
    pub(in crate::cluster) fn put_declaration(&mut self, raw: &RawDeclaration) {
        let name = raw.name();
        if name.is_empty() {
            return;
        }
        self.declarations.see(name);
        let change = self.inputs().put_declaration(raw);
        self.declaration_changed(name, change);
    }

    /// Forgets a declaration.
    pub(in crate::cluster) fn remove_declaration(&mut self, name: &str) {
        let change = self.inputs().remove_declaration(name);
        self.declaration_changed(name, Some(change));
    }

    fn declaration_changed(&mut self, name: &str, change: Option<DeclarationChange>) {
        self.publication.due_verdicts.insert(name.into());
        let Some(DeclarationChange { kinds, has_faults }) = change else { return };
        if has_faults || kinds.iter().any(|kind| self.missing.contains(kind)) {
            self.report_declaration(name);
        }
        for kind in kinds {
            self.kind_changed(&kind);
        }
    }

    /// Reports the faults of a declaration that do not come from a schema.
    pub(super) fn report_declaration(&mut self, name: &str) {
        let mut faults = Vec::new();
        if let Some(declaration) = self.inputs().declaration(name) {
            faults.clone_from(&declaration.faults);
            let missing = declaration.target.as_ref().filter(|target| self.missing.contains(target));
            faults.extend(missing.map(|target| missing_target(target, name)));
        }
        self.builder.report(name, faults);
        self.publication.mark_changed();
    }

    /// Reconsiders the verdicts on the declarations of a kind.
    pub(super) fn mark_verdicts(&mut self, kind: &GroupKind) {
        let declarations = self.inputs().declarations_of(kind);
        self.publication.due_verdicts.extend(declarations.iter().map(|declaration| declaration.name().into()));
    }

    /// Publishes the verdicts that follow from the published catalog. A declaration whose kind is being fetched or rebuilt gets
    /// its verdict after that.
    pub(super) fn publish_verdicts(&mut self, statuses: &mut StatusWriter) {
        let inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let Publication { catalog: Some(catalog), due_verdicts, .. } = &mut self.publication else { return };
        if due_verdicts.is_empty() {
            return;
        }
        let mut faults: HashMap<&str, Vec<&Fault>> = HashMap::new();
        for fault in catalog.faults() {
            if let Some(declaration) = &fault.declaration
                && due_verdicts.contains(declaration.as_str())
            {
                faults.entry(declaration).or_default().push(fault);
            }
        }
        let in_force = catalog.in_force();
        for name in std::mem::take(due_verdicts) {
            let Some(declaration) = inputs.declaration(&name) else {
                statuses.forget(&name);
                continue;
            };
            let target = declaration.target.as_ref();
            let is_behind = |kind: &GroupKind| {
                let subjects = inputs.subjects_of(kind);
                self.documents.is_behind(kind) || subjects.iter().any(|subject| self.queue.is_dirty(subject))
            };
            if target.is_some_and(is_behind) {
                continue;
            }
            let missing = target.is_some_and(|kind| self.missing.contains(kind));
            let faults = faults.get(&*name).map_or(&[][..], Vec::as_slice);
            let in_force = in_force.get(&*name).map_or(0, BTreeSet::len);
            let unions = declaration.declared.map(|declared| UnionCount { in_force, declared });
            let verdict = DeclarationVerdict::new(declaration.generation, missing, unions, faults);
            statuses.publish(&name, verdict, &declaration.status);
        }
    }
}
