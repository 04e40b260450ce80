//! What is known of a cluster and asked for in more than one place: which kind which CRD defines, and which declarations
//! are about which kind.

use kube_unions_core::declaration::{BuiltinGroups, Declaration, DeclarationError, Fault};
use kube_unions_core::names::GroupKind;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Kinds, and what is declared of them.
#[derive(Debug)]
pub(super) struct Known {
    /// The groups that no CRD speaks for.
    own_groups: Arc<BuiltinGroups>,
    definitions: HashMap<GroupKind, Box<str>>,
    kinds: HashMap<Box<str>, GroupKind>,
    // INVARIANT: none of the inner maps is empty.
    declarations: HashMap<GroupKind, BTreeMap<Box<str>, Arc<Declaration>>>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            own_groups: Arc::new(BuiltinGroups::Guessed),
            definitions: HashMap::new(),
            kinds: HashMap::new(),
            declarations: HashMap::new(),
        }
    }
}

impl Known {
    /// The groups that no CRD speaks for.
    pub(super) fn own_groups(&self) -> Arc<BuiltinGroups> {
        Arc::clone(&self.own_groups)
    }

    /// Takes note of the groups that no CRD speaks for. Tells whether they are others than before.
    pub(super) fn set_own_groups(&mut self, own: BuiltinGroups) -> bool {
        let changed = *self.own_groups != own;
        self.own_groups = Arc::new(own);
        changed
    }

    /// The CRD that defines a kind.
    pub(super) fn definition(&self, kind: &GroupKind) -> Option<&str> {
        self.definitions.get(kind).map(AsRef::as_ref)
    }

    /// Notes which kind a CRD defines. Gives the one it defined before, if that is another.
    pub(super) fn define(&mut self, name: &str, kind: &GroupKind) -> Option<GroupKind> {
        let before = self.undefine(name).filter(|before| before != kind);
        self.definitions.insert(kind.clone(), name.into());
        self.kinds.insert(name.into(), kind.clone());
        before
    }

    /// Forgets a CRD. Gives the kind that nothing defines any more.
    pub(super) fn undefine(&mut self, name: &str) -> Option<GroupKind> {
        let kind = self.kinds.remove(name)?;
        if self.definition(&kind) != Some(name) {
            return None;
        }
        self.definitions.remove(&kind);
        Some(kind)
    }

    /// Whether anything is declared of a kind.
    pub(super) fn is_declared(&self, kind: &GroupKind) -> bool {
        self.declarations.contains_key(kind)
    }

    /// What is declared of a kind, in the order of names.
    pub(super) fn declarations(&self, kind: &GroupKind) -> Vec<Arc<Declaration>> {
        self.declarations.get(kind).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// The versions that declarations of a kind name; `None` if one of them is about all.
    pub(super) fn versions(&self, kind: &GroupKind) -> Option<BTreeSet<String>> {
        versions(self.declarations.get(kind).into_iter().flat_map(BTreeMap::values).map(AsRef::as_ref))
    }

    pub(super) fn declare(&mut self, declaration: Declaration) {
        let of_kind = self.declarations.entry(declaration.target().group_kind()).or_default();
        of_kind.insert(declaration.name().into(), Arc::new(declaration));
    }

    pub(super) fn withdraw(&mut self, kind: &GroupKind, name: &str) {
        if let Some(of_kind) = self.declarations.get_mut(kind) {
            of_kind.remove(name);
            if of_kind.is_empty() {
                self.declarations.remove(kind);
            }
        }
    }
}

/// The versions that declarations name; `None` if one of them is about all.
pub(super) fn versions<'d>(declarations: impl IntoIterator<Item = &'d Declaration>) -> Option<BTreeSet<String>> {
    let mut named = BTreeSet::new();
    for declaration in declarations {
        if declaration.versions().is_empty() {
            return None;
        }
        named.extend(declaration.versions().iter().cloned());
    }
    Some(named)
}

/// A declaration from its name and the text of its `spec`.
pub(super) fn read_declaration(name: &str, spec: &RawValue) -> Result<(Declaration, Vec<Fault>), DeclarationError> {
    let metadata = json!({"name": name});
    let spec = spec.get();
    Declaration::from_json(&format!(
        r#"{{"apiVersion":"kube-unions.dev/v1alpha1","kind":"UnionDeclaration","metadata":{metadata},"spec":{spec}}}"#
    ))
}
