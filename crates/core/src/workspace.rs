//! The join of CRDs, `UnionDeclaration`s and OpenAPI documents, from which a catalog follows.
//!
//! A [`Workspace`] has the sources, in whatever order they arrive. A change marks the CRD or the built-in kind that it affects,
//! and nothing else is compiled again:
//!
//! ```text
//! set_crd, set_declaration, set_documents ─▶ next_job ─▶ CompileJob::compile ─▶ finish ─▶ catalog
//! ```
//!
//! Every reader of unions uses it, so that the webhook, inspections, the command line and the playground cannot disagree. It
//! must not know where sources come from: it has no files, no network and no clock.

mod compact;
mod crd;
mod declarations;
mod job;
mod names_by_kind;
mod queue;

pub use crd::CrdText;
pub use declarations::{KnownDeclaration, unreadable_declaration};
pub use job::{CompileJob, CompiledSubject, JobTicket};

use crate::catalog::{Builder, Catalog};
use crate::declaration::{BuiltinGroups, Declaration, Definition, Fault, OpenApi};
use crate::names::GroupKind;
use crd::{KnownCrd, StoredCrd};
use declarations::missing_target;
use job::{CompileOutcome, Subject, SubjectSource};
use names_by_kind::NamesByKind;
use queue::DirtyQueue;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// CRDs, `UnionDeclaration`s and OpenAPI documents, and the unions that follow from them.
///
/// Each change returns the kinds that it affects. The documents of such a kind have to be set again if it
/// [wants](Self::wants_documents) them: they may be of other versions.
#[derive(Debug, Default)]
pub struct Workspace {
    /// The groups in which no CRD counts. `None` for files: each CRD defines the kind that its `spec` asks for.
    groups: Option<BuiltinGroups>,
    /// By name.
    crds: BTreeMap<Box<str>, KnownCrd>,
    /// The CRDs that count, by the kind that they define. An API server never accepts two of one kind.
    definers: NamesByKind,
    /// By name.
    declarations: BTreeMap<Box<str>, KnownDeclaration>,
    /// The readable declarations, by their targets.
    targeting: NamesByKind,
    /// The documents of built-in kinds.
    documents: BTreeMap<GroupKind, Vec<Arc<OpenApi>>>,
    /// The kinds whose documents have to be set again, since other inputs changed.
    stale: BTreeSet<GroupKind>,
    /// The built-in kinds for which the unions count that their documents publish.
    publishing: BTreeSet<GroupKind>,
    /// Kinds with documents that do not describe them.
    missing: BTreeSet<GroupKind>,
    queue: DirtyQueue,
    builder: Builder,
    changed: bool,
}

impl Workspace {
    /// Returns a workspace for files: every CRD defines the kind that its `spec` asks for.
    pub fn of_files() -> Self {
        Self::default()
    }

    /// Returns a workspace for a cluster: a CRD counts if the API server has accepted it, and a declaration whose target is
    /// missing has a note.
    pub fn of_cluster(groups: BuiltinGroups) -> Self {
        Self { groups: Some(groups), ..Self::default() }
    }

    /// Returns a workspace for the same cluster that has nothing but the declarations of a kind.
    #[must_use]
    pub fn around(&self, kind: &GroupKind) -> Self {
        let mut around = Self { groups: self.groups.clone(), ..Self::default() };
        for name in self.targeting.of(kind) {
            if let Some(known) = self.declarations.get(name) {
                around.put_declaration(name, Some(known.clone()));
            }
        }
        around
    }

    /// Stores the CRD of a name, or the reason why it cannot be read.
    pub fn set_crd(&mut self, name: &str, crd: Result<CrdText<'_>, &str>) -> Vec<GroupKind> {
        let stored =
            KnownCrd::Stored(Arc::new(StoredCrd::new(crd, self.groups.as_ref().unwrap_or(&BuiltinGroups::Guessed))));
        if self.crds.get(name).is_some_and(|known| known.compiles_like(&stored)) {
            // The new status decides if the groups of the API server change.
            self.crds.insert(name.into(), stored);
            return Vec::new();
        }
        self.put_crd(name, Some(stored))
    }

    /// Stores a CRD that was read already. It counts whether or not an API server accepts it.
    pub fn set_definition(&mut self, definition: Definition) -> Vec<GroupKind> {
        let name = definition.name().to_owned();
        self.put_crd(&name, Some(KnownCrd::Read(Arc::new(definition))))
    }

    /// Forgets a CRD.
    pub fn remove_crd(&mut self, name: &str) -> Vec<GroupKind> {
        if self.crds.contains_key(name) { self.put_crd(name, None) } else { Vec::new() }
    }

    /// Replaces the groups that the API server serves from its own code, in which no CRD counts.
    pub fn set_builtin_groups(&mut self, groups: BuiltinGroups) -> Vec<GroupKind> {
        if self.groups.as_ref() == Some(&groups) {
            return Vec::new();
        }
        let judged = self.crds.iter().map(|(name, crd)| Some((name.clone(), crd.accepted_anew(&groups)?)));
        let changed: Vec<_> = judged.flatten().collect();
        self.groups = Some(groups);
        changed.into_iter().flat_map(|(name, crd)| self.put_crd(&name, Some(crd))).collect()
    }

    /// Stores the `UnionDeclaration` of a name with the faults of its own, or the reason why it cannot be read.
    pub fn set_declaration(&mut self, name: &str, read: Result<(Declaration, Vec<Fault>), String>) -> Vec<GroupKind> {
        let known = KnownDeclaration::new(name, read);
        if self.declarations.get(name) == Some(&known) { Vec::new() } else { self.put_declaration(name, Some(known)) }
    }

    /// Forgets a `UnionDeclaration`.
    pub fn remove_declaration(&mut self, name: &str) -> Vec<GroupKind> {
        self.put_declaration(name, None)
    }

    /// Replaces the documents of a built-in kind. Does nothing if the kind has them, and none of its other inputs changed.
    pub fn set_documents(&mut self, kind: &GroupKind, documents: Vec<Arc<OpenApi>>) {
        let is_stale = self.stale.remove(kind);
        let known = self.documents.get(kind).filter(|known| known.len() == documents.len());
        if !is_stale
            && known.is_some_and(|known| known.iter().zip(&documents).all(|(one, other)| Arc::ptr_eq(one, other)))
        {
            return;
        }
        self.documents.insert(kind.clone(), documents);
        self.queue.mark_dirty(Subject::Builtin(kind.clone()));
    }

    /// Replaces the built-in kinds for which the unions count that their documents publish.
    pub fn set_publishing(&mut self, publishing: BTreeSet<GroupKind>) -> Vec<GroupKind> {
        let differing = publishing.symmetric_difference(&self.publishing);
        let changed: Vec<_> = differing.filter(|kind| !self.definers.has(kind)).cloned().collect();
        self.publishing = publishing;
        for kind in &changed {
            self.mark(kind);
        }
        changed
    }

    /// Returns the next subject to compile. Its result goes to [`finish`](Self::finish).
    pub fn next_job(&mut self) -> Option<CompileJob> {
        while let Some(ticket) = self.queue.next() {
            let job = self.job(ticket.clone());
            if job.is_some() {
                return job;
            }
            self.queue.cancel(&ticket.subject);
        }
        None
    }

    /// Puts the result of a job in force, unless its inputs have changed since it began. Returns true if no document describes
    /// the kind.
    pub fn finish(&mut self, compiled: CompiledSubject) -> bool {
        let CompiledSubject { ticket, outcome } = compiled;
        let is_current = self.queue.finish(&ticket);
        is_current && self.put_in_force(&ticket.subject, outcome)
    }

    /// Ends a job without a result. The unions in force stay.
    pub fn give_up(&mut self, ticket: &JobTicket) {
        self.queue.finish(ticket);
    }

    /// Compiles every subject whose inputs changed.
    pub fn compile(&mut self) {
        while let Some(job) = self.next_job() {
            self.finish(job.compile());
        }
    }

    /// Builds the catalog of all kinds.
    pub fn catalog(&self) -> Catalog {
        self.builder.build()
    }

    /// Builds the catalog without exempt kinds, see [`is_exempt`](crate::declaration::is_exempt()).
    pub fn catalog_for_admission(&self) -> Catalog {
        self.builder.build_for_admission()
    }

    /// Returns true if the catalog may have changed since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Returns true if no subject waits to be compiled, and none is being compiled.
    pub fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Returns true if the unions of a kind may be older than its inputs.
    pub fn is_dirty(&self, kind: &GroupKind) -> bool {
        let mut subjects = self.definers.of(kind).cloned().map(Subject::Crd).chain([Subject::Builtin(kind.clone())]);
        subjects.any(|subject| self.queue.is_dirty(&subject))
    }

    /// Returns true if the documents of a kind are needed: no CRD defines it, and a declaration targets it or the unions count
    /// that they publish.
    pub fn wants_documents(&self, kind: &GroupKind) -> bool {
        let wanted = self.targeting.has(kind) || self.publishing.contains(kind);
        wanted && !self.definers.has(kind)
    }

    /// Returns the kinds whose documents are needed, sorted.
    pub fn wanted(&self) -> BTreeSet<GroupKind> {
        let all = self.targeting.kinds().chain(&self.publishing);
        all.filter(|kind| self.wants_documents(kind)).cloned().collect()
    }

    /// Returns the kinds that have documents, sorted.
    pub fn documented(&self) -> impl Iterator<Item = &GroupKind> {
        self.documents.keys()
    }

    /// Returns the kinds that have documents which do not describe them, sorted.
    pub fn missing(&self) -> &BTreeSet<GroupKind> {
        &self.missing
    }

    /// Returns true if there is a CRD of this name.
    pub fn has_crd(&self, name: &str) -> bool {
        self.crds.contains_key(name)
    }

    /// Returns the kinds that CRDs define.
    pub fn defined(&self) -> impl Iterator<Item = &GroupKind> {
        self.definers.kinds()
    }

    /// Returns the name of the CRD that defines a kind.
    pub fn crd_of(&self, kind: &GroupKind) -> Option<&str> {
        self.definers.of(kind).next().map(AsRef::as_ref)
    }

    /// Returns the CRDs that were [read already](Self::set_definition), sorted by name.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.crds.values().filter_map(KnownCrd::read)
    }

    /// Returns the CRD that defines a kind, if it was read already.
    pub fn definition(&self, kind: &GroupKind) -> Option<&Definition> {
        self.crds.get(self.crd_of(kind)?)?.read()
    }

    /// Returns a definition with the unions of the declarations that target it.
    pub fn declared(&self, mut definition: Definition) -> Definition {
        for declaration in self.declarations_of(definition.group_kind()) {
            definition.declare(&declaration);
        }
        definition
    }

    /// Returns a `UnionDeclaration`.
    pub fn declaration(&self, name: &str) -> Option<&KnownDeclaration> {
        self.declarations.get(name)
    }

    /// Returns the names of all `UnionDeclaration`s, sorted.
    pub fn declarations(&self) -> impl ExactSizeIterator<Item = &str> {
        self.declarations.keys().map(AsRef::as_ref)
    }

    /// Returns the readable declarations that target a kind, sorted by name. The first of two contradicting ones is in force.
    pub fn declarations_of(&self, kind: &GroupKind) -> Vec<Arc<Declaration>> {
        self.targeting.of(kind).filter_map(|name| self.declarations.get(name)?.declaration.clone()).collect()
    }

    /// Returns the versions that the declarations of a kind name, `None` if one of them is about all versions.
    pub fn versions_of(&self, kind: &GroupKind) -> Option<BTreeSet<String>> {
        let mut named = BTreeSet::new();
        for declaration in self.declarations_of(kind) {
            let versions = &declaration.target().versions;
            if versions.is_empty() {
                return None;
            }
            named.extend(versions.iter().cloned());
        }
        Some(named)
    }

    /// Replaces the faults of a declaration that do not come from a schema: its own, and one more.
    pub fn report(&mut self, name: &str, more: Option<Fault>) {
        let known = self.declarations.get(name);
        let mut faults = known.map_or_else(Vec::new, |known| known.faults.clone());
        let missing = known.and_then(KnownDeclaration::target).filter(|target| self.missing.contains(target));
        faults.extend(missing.filter(|_| self.groups.is_some()).map(|target| missing_target(&target, name)));
        faults.extend(more);
        self.builder.report(name, faults);
        self.changed = true;
    }

    fn job(&self, ticket: JobTicket) -> Option<CompileJob> {
        let (source, kind) = match &ticket.subject {
            Subject::Crd(name) => {
                let crd = self.crds.get(name)?;
                (SubjectSource::Crd(crd.clone()), crd.kind())
            }
            Subject::Builtin(kind) => {
                let (documents, published) = (self.documents.get(kind)?.clone(), self.publishing.contains(kind));
                (SubjectSource::Builtin { kind: kind.clone(), documents, published }, Some(kind))
            }
        };
        let declarations = kind.map(|kind| self.declarations_of(kind)).unwrap_or_default();
        Some(CompileJob { ticket, source, declarations })
    }

    fn put_crd(&mut self, name: &str, crd: Option<KnownCrd>) -> Vec<GroupKind> {
        let subject = Subject::Crd(name.into());
        let (old, new) =
            (self.crds.get(name).and_then(KnownCrd::kind).cloned(), crd.as_ref().and_then(KnownCrd::kind).cloned());
        match crd {
            Some(crd) => drop(self.crds.insert(name.into(), crd)),
            None => drop(self.crds.remove(name)),
        }
        let mut affected = Vec::new();
        if let Some(old) = old.filter(|old| new.as_ref() != Some(old)) {
            self.definers.remove(&old, name);
            // The unions of another kind must not stay in force until this one is compiled.
            self.withdraw(&subject);
            self.mark(&old);
            affected.push(old);
        }
        if let Some(new) = new {
            self.definers.insert(&new, name);
            self.drop_documents(&new);
            self.queue.mark_dirty(subject);
            affected.push(new);
            return affected;
        }
        // Nothing to compile: it does not wait for its turn.
        self.queue.cancel(&subject);
        let job = self.job(JobTicket { subject: subject.clone(), version: 0 });
        self.put_in_force(&subject, job.map_or(CompileOutcome::Pending, |job| job.outcome()));
        affected
    }

    fn put_declaration(&mut self, name: &str, known: Option<KnownDeclaration>) -> Vec<GroupKind> {
        let new = known.as_ref().and_then(KnownDeclaration::target);
        let old = match known {
            Some(known) => self.declarations.insert(name.into(), known),
            None => self.declarations.remove(name),
        };
        let old = old.as_ref().and_then(KnownDeclaration::target);
        if let Some(old) = &old {
            self.targeting.remove(old, name);
        }
        if let Some(new) = &new {
            self.targeting.insert(new, name);
        }
        self.report(name, None);
        let affected: BTreeSet<GroupKind> = old.into_iter().chain(new).collect();
        for kind in &affected {
            self.mark(kind);
        }
        affected.into_iter().collect()
    }

    /// Marks the CRDs of a kind whose inputs changed. A built-in kind is marked when its documents are set.
    fn mark(&mut self, kind: &GroupKind) {
        for name in self.definers.of(kind) {
            self.queue.mark_dirty(Subject::Crd(name.clone()));
        }
        if self.wants_documents(kind) {
            self.stale.insert(kind.clone());
        } else {
            self.drop_documents(kind);
        }
    }

    /// Forgets the documents of a kind, and the unions that follow from them.
    fn drop_documents(&mut self, kind: &GroupKind) {
        let subject = Subject::Builtin(kind.clone());
        self.queue.cancel(&subject);
        self.documents.remove(kind);
        self.stale.remove(kind);
        self.withdraw(&subject);
        self.set_missing(kind, false);
    }

    /// Takes a subject out of force.
    fn withdraw(&mut self, subject: &Subject) {
        self.changed |= self.builder.remove(&subject.to_string());
    }

    /// Puts the result of compiling in force. Returns true if no document describes the kind.
    fn put_in_force(&mut self, subject: &Subject, outcome: CompileOutcome) -> bool {
        let not_described = matches!(outcome, CompileOutcome::NotDescribed);
        match outcome {
            CompileOutcome::Compiled(compiled) | CompileOutcome::Rejected(_, compiled) => {
                self.builder.insert(*compiled);
            }
            CompileOutcome::Pending | CompileOutcome::NotDescribed => self.withdraw(subject),
        }
        self.changed = true;
        if let Subject::Builtin(kind) = subject {
            self.set_missing(kind, not_described);
        }
        not_described
    }

    /// Notes whether the documents of a kind describe it.
    fn set_missing(&mut self, kind: &GroupKind, missing: bool) {
        let changed = if missing { self.missing.insert(kind.clone()) } else { self.missing.remove(kind) };
        if changed {
            let names: Vec<_> = self.targeting.of(kind).cloned().collect();
            for name in names {
                self.report(&name, None);
            }
        }
    }
}
