//! Events of CRDs, of documents and of the API server's own groups, and the results of rebuilding what they change.

use super::super::documents::FetchedDocuments;
use super::super::inputs::{KindDocuments, Subject};
use super::super::queue::FinishedRebuild;
use super::super::raw::RawDefinition;
use super::super::rebuild::{RebuiltSubject, rebuild};
use super::super::schemas::SchemaFetchError;
use super::ClusterState;
use crate::causes::with_causes;
use kube_unions_core::names::GroupKind;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

impl ClusterState {
    /// Begins a list of CRDs.
    pub(in crate::cluster) fn list_definitions(&mut self) {
        self.definitions.begin();
    }

    /// Ends a list of CRDs: forgets those that it has not brought.
    pub(in crate::cluster) fn definitions_listed(&mut self) {
        if !self.definitions.complete {
            self.publication.mark_changed();
        }
        let inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = self.definitions.end(inputs.definitions());
        drop(inputs);
        for name in gone {
            self.remove_definition(&name);
        }
    }

    /// Stores a CRD that is new or has changed.
    pub(in crate::cluster) fn put_definition(&mut self, raw: &RawDefinition) {
        let name = raw.name();
        if name.is_empty() {
            let reason = raw.parts().err().unwrap_or("it has no name");
            tracing::warn!(reason, "ignoring a CRD without a name");
            return;
        }
        self.definitions.see(name);
        let old_kind = self.inputs().defined_by(name).cloned();
        let changed = self.inputs().put_definition(raw);
        if changed {
            self.definition_changed(name, old_kind);
        }
    }

    /// Forgets a CRD.
    pub(in crate::cluster) fn remove_definition(&mut self, name: &str) {
        let old_kind = self.inputs().defined_by(name).cloned();
        let removed = self.inputs().remove_definition(name);
        if removed {
            self.definition_changed(name, old_kind);
        }
    }

    pub(in crate::cluster) fn has_definition(&self, name: &str) -> bool {
        self.inputs().has_definition(name)
    }

    /// Applies the `APIService`s: CRDs in the groups that the API server serves from its own code do not count.
    pub(in crate::cluster) fn services_changed(&mut self) {
        if self.services.are_listed_now() {
            return;
        }
        self.own_groups_known.set(i64::from(self.services.are_known()));
        if self.schemas.set_from_definitions(self.services.defined()) {
            self.documents.poll_soon();
        }
        let groups = self.services.builtin_groups();
        let changed = self.inputs().set_builtin_groups(groups);
        for (name, old_kind) in changed {
            self.definition_changed(&name, old_kind);
        }
    }

    /// Takes in fetched documents.
    pub(in crate::cluster) fn fetched(&mut self, fetched: FetchedDocuments) {
        self.fetching = false;
        match fetched.publishing {
            None => {}
            Some(Ok(publishing)) => {
                let changed = self.inputs().set_publishing(publishing);
                for kind in changed {
                    if self.inputs().definition_of(&kind).is_none() {
                        self.kind_changed(&kind);
                    }
                }
            }
            Some(Err(error)) => {
                tracing::warn!(
                    reason = with_causes(&error),
                    "cannot read the unions that built-in types publish; retrying"
                );
                self.documents.poll_soon();
            }
        }
        let mut failed: BTreeMap<String, Vec<GroupKind>> = BTreeMap::new();
        for (kind, documents) in fetched.kinds {
            if let Some(reason) = self.kind_fetched(&kind, documents) {
                failed.entry(reason).or_default().push(kind);
            }
        }
        for (reason, kinds) in failed {
            let first = kinds.first().map(ToString::to_string);
            let kinds = kinds.len();
            tracing::warn!(first, kinds, reason, "cannot read OpenAPI documents; unions in force stay, retrying");
        }
        let inputs = self.inputs();
        let needed: BTreeSet<&str> = inputs.documented().map(|kind| &*kind.group).collect();
        self.schemas.retain(|group| needed.contains(group));
    }

    /// Takes in the documents of a kind. Returns a reason to log if they could not be fetched.
    fn kind_fetched(
        &mut self,
        kind: &GroupKind,
        documents: Result<Option<KindDocuments>, SchemaFetchError>,
    ) -> Option<String> {
        if !self.documents.finish(kind) {
            return None;
        }
        self.mark_verdicts(kind);
        match documents {
            Ok(documents) => {
                self.documents.succeed(kind);
                if let Some(documents) = documents {
                    self.inputs().put_documents(kind, documents);
                    self.queue.mark_dirty(Subject::Builtin(kind.clone()));
                }
                None
            }
            Err(error) => {
                let reason = with_causes(&error);
                self.documents.fail(kind, &reason).then_some(reason)
            }
        }
    }

    /// Puts the result of a rebuild in force.
    pub(in crate::cluster) fn rebuilt(&mut self, finished: FinishedRebuild) {
        if !self.queue.finish(&finished) {
            return;
        }
        let FinishedRebuild { subject, rebuilt, .. } = finished;
        if let Some(rebuilt) = rebuilt {
            self.put_in_force(&subject, rebuilt);
        } else {
            tracing::error!(%subject, "compiling panicked; the unions in force of the kind stay");
        }
    }

    fn put_in_force(&mut self, subject: &Subject, rebuilt: RebuiltSubject) {
        let name = subject.to_string();
        let kind = match subject {
            Subject::Definition(name) => self.inputs().defined_by(name).cloned(),
            Subject::Builtin(kind) => Some(kind.clone()),
        };
        let not_described = matches!(rebuilt, RebuiltSubject::NotDescribed);
        match rebuilt {
            RebuiltSubject::Compiled(compiled) => self.builder.insert(*compiled),
            RebuiltSubject::Rejected(faults) => self.builder.reject_all(&name, faults),
            RebuiltSubject::Ignored(kind, why) => self.builder.ignore(&name, kind, why),
            RebuiltSubject::Pending | RebuiltSubject::NotDescribed => drop(self.builder.remove(&name)),
        }
        self.publication.mark_changed();
        let Some(kind) = kind else { return };
        self.set_missing(&kind, not_described);
        self.mark_verdicts(&kind);
        if not_described {
            // Its API may be starting.
            self.documents.poll_soon();
        }
    }

    /// Reacts to a CRD that was added, changed or removed. `old_kind`: the kind that it defined before.
    fn definition_changed(&mut self, name: &str, old_kind: Option<GroupKind>) {
        let subject = Subject::Definition(name.into());
        let kind = self.inputs().defined_by(name).cloned();
        if old_kind != kind
            && let Some(old_kind) = old_kind
        {
            // The unions of another kind must not stay in force until this one is rebuilt.
            self.take_out_of_force(&subject);
            self.kind_changed(&old_kind);
        }
        if let Some(kind) = kind {
            self.drop_documents(&kind);
            self.queue.mark_dirty(subject);
            return;
        }
        // Nothing to compile: it does not wait for its turn.
        self.queue.cancel(&subject);
        let inputs = self.inputs().subject(&subject);
        match inputs.map(|inputs| rebuild(&inputs)) {
            None | Some(RebuiltSubject::Pending) => self.take_out_of_force(&subject),
            Some(rebuilt) => self.put_in_force(&subject, rebuilt),
        }
    }

    /// Reacts to a change of the declarations of a kind, of the CRD that defines it, or of the unions that its documents publish.
    pub(super) fn kind_changed(&mut self, kind: &GroupKind) {
        let subjects = self.inputs().subjects_of(kind);
        if subjects.is_empty() {
            self.drop_documents(kind);
        }
        for subject in subjects {
            match subject {
                Subject::Definition(_) => self.queue.mark_dirty(subject),
                // The documents may be newer, or of other versions.
                Subject::Builtin(_) => self.documents.request(kind),
            }
        }
    }

    /// Forgets the documents of a kind, and the unions that follow from them.
    fn drop_documents(&mut self, kind: &GroupKind) {
        let subject = Subject::Builtin(kind.clone());
        self.documents.cancel(kind);
        self.queue.cancel(&subject);
        self.inputs().remove_documents(kind);
        self.take_out_of_force(&subject);
        self.set_missing(kind, false);
    }

    fn take_out_of_force(&mut self, subject: &Subject) {
        if self.builder.remove(&subject.to_string()) {
            self.publication.mark_changed();
        }
    }

    /// Notes whether the cluster has a kind that declarations target.
    fn set_missing(&mut self, kind: &GroupKind, missing: bool) {
        let changed = if missing { self.missing.insert(kind.clone()) } else { self.missing.remove(kind) };
        if changed {
            let declarations = self.inputs().declarations_of(kind);
            for declaration in declarations {
                self.report_declaration(declaration.name());
            }
        }
    }
}
