//! The table of inputs from which the catalog follows: CRDs, `UnionDeclaration`s, the OpenAPI documents of built-in kinds, and
//! the groups that the API server serves from its own code.
//!
//! The table holds what the cluster stores, in whatever order it arrived. Each change returns the kinds that it affects; the
//! caller rebuilds them from [`subject`](Inputs::subject).
//!
//! Knows nothing of requests, compiling and publishing: [`state`](super::state) has those.

mod declarations;
mod definitions;
mod subject;

pub(super) use declarations::{DeclarationChange, StoredDeclaration, versions};
pub(super) use definitions::StoredDefinition;
pub(super) use subject::{Subject, SubjectInputs};

use kube_unions_core::declaration::{BuiltinGroups, Declaration, OpenApi};
use kube_unions_core::names::GroupKind;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::RandomState;
use std::sync::Arc;

/// The table of inputs.
#[derive(Debug)]
pub(super) struct Inputs {
    /// Hashes objects, to tell whether an event changed one.
    hasher: RandomState,
    builtin_groups: Arc<BuiltinGroups>,
    /// By name.
    definitions: BTreeMap<Box<str>, Arc<StoredDefinition>>,
    /// The accepted CRDs that define each kind. The API server never accepts two. INVARIANT: no set is empty.
    definers: HashMap<GroupKind, BTreeSet<Box<str>>>,
    /// By name.
    declarations: BTreeMap<Box<str>, StoredDeclaration>,
    /// The readable declarations that target each kind, by name. INVARIANT: no map is empty.
    targeting: HashMap<GroupKind, BTreeMap<Box<str>, Arc<Declaration>>>,
    /// The documents of built-in kinds that a declaration targets or that publish unions.
    documents: BTreeMap<GroupKind, KindDocuments>,
    /// The built-in kinds whose documents publish unions.
    publishing: BTreeSet<GroupKind>,
}

/// The OpenAPI documents of a built-in kind's group.
#[derive(Debug, Clone)]
pub(super) struct KindDocuments {
    /// The documents' URLs, which change with their content: the version of this input.
    pub(super) urls: Vec<String>,
    pub(super) documents: Vec<Arc<OpenApi>>,
}

impl Default for Inputs {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            builtin_groups: Arc::new(BuiltinGroups::Guessed),
            definitions: BTreeMap::new(),
            definers: HashMap::new(),
            declarations: BTreeMap::new(),
            targeting: HashMap::new(),
            documents: BTreeMap::new(),
            publishing: BTreeSet::new(),
        }
    }
}

impl Inputs {
    /// Returns the groups that the API server serves from its own code, in which no CRD counts.
    pub(super) fn builtin_groups(&self) -> Arc<BuiltinGroups> {
        Arc::clone(&self.builtin_groups)
    }

    /// Returns the inputs of a subject as they are now, `None` if the cluster does not have it.
    pub(super) fn subject(&self, subject: &Subject) -> Option<SubjectInputs> {
        match subject {
            Subject::Definition(name) => {
                let definition = self.definitions.get(name)?;
                let declarations = definition.kind().map(|kind| self.declarations_of(kind)).unwrap_or_default();
                let (name, definition) = (name.clone(), Arc::clone(definition));
                Some(SubjectInputs::Definition { name, definition, declarations })
            }
            Subject::Builtin(kind) => Some(SubjectInputs::Builtin {
                kind: kind.clone(),
                documents: self.documents.get(kind)?.documents.clone(),
                published: self.publishing.contains(kind),
                declarations: self.declarations_of(kind),
            }),
        }
    }

    /// Returns the subjects that describe a kind: its CRDs, else its documents if they are wanted.
    pub(super) fn subjects_of(&self, kind: &GroupKind) -> Vec<Subject> {
        match self.definers.get(kind) {
            Some(names) => names.iter().cloned().map(Subject::Definition).collect(),
            None if self.wants_documents(kind) => vec![Subject::Builtin(kind.clone())],
            None => Vec::new(),
        }
    }

    /// Returns true if the documents of a kind are needed: no CRD defines it, and a declaration targets it or its documents
    /// publish unions.
    pub(super) fn wants_documents(&self, kind: &GroupKind) -> bool {
        let wanted = self.targeting.contains_key(kind) || self.publishing.contains(kind);
        wanted && !self.definers.contains_key(kind)
    }

    /// Replaces the documents of a kind.
    pub(super) fn put_documents(&mut self, kind: &GroupKind, documents: KindDocuments) {
        self.documents.insert(kind.clone(), documents);
    }

    /// Forgets the documents of a kind.
    pub(super) fn remove_documents(&mut self, kind: &GroupKind) {
        self.documents.remove(kind);
    }

    pub(super) fn documented(&self) -> impl Iterator<Item = &GroupKind> {
        self.documents.keys()
    }

    /// Returns the URLs of a kind's documents.
    pub(super) fn urls(&self, kind: &GroupKind) -> Option<&[String]> {
        self.documents.get(kind).map(|row| row.urls.as_slice())
    }

    /// Replaces the kinds whose documents publish unions. Returns those that differ.
    pub(super) fn set_publishing(&mut self, publishing: BTreeSet<GroupKind>) -> Vec<GroupKind> {
        let changed = publishing.symmetric_difference(&self.publishing).cloned().collect();
        self.publishing = publishing;
        changed
    }
}
