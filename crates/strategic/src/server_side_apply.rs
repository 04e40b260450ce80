//! Server-side apply: the object and the owners of its fields after an apply or another write, as the API server holds them.
//!
//! `types` says who can own which part of an object, `merge` and `compare` walk objects by it, and `owned` relates it to sets of
//! fields. `ownership` reads and writes `metadata.managedFields`. This file decides: what an applier no longer sets goes, unless
//! somebody else owns it, and a field that somebody else owns and an applier changes is a conflict.

mod compare;
mod field_set;
mod merge;
mod owned;
mod ownership;
mod path;
mod types;

pub use field_set::ManagedFieldsError;
pub use ownership::{FieldManager, Managers};

pub(crate) use ownership::LAST_APPLIED;
pub use types::TypeFault;

use crate::document::JsonDocument;
use crate::error::{BrokenAt, DocumentRole, PatchError, Prefix};
use crate::patcher::{Conflicts, PatcherError, fields};
use crate::schema::{RootKind, SchemaError};
use crate::value::Value;
use bumpalo::Bump;
use compare::{FieldChanges, equal};
use field_set::FieldSet;
use kube_unions_core::field_path::FieldPath;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::schema::{Definitions, OpenApi, Schema};
use merge::Merging;
use ownership::{ManagerIdentity, ManagerOperation, OwnedFields};
use std::fmt;
use types::{ApplyTypes, TypeRef};

/// The fields that nobody owns.
const NEVER_OWNED: [&[&str]; 12] = [
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

/// The manager of the fields of an object that had no managers at its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Applies configurations to the objects of one kind as the API server does.
#[derive(Debug)]
pub struct ServerSideApply {
    types: ApplyTypes,
}

/// An object after an apply, without `metadata.managedFields`.
#[derive(Debug, Clone, PartialEq)]
pub struct AppliedObject<T> {
    /// The object that the API server would store.
    pub object: T,
    /// The owners of its fields.
    pub managers: Managers,
}

/// A write that the API server refuses.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum ApplyError {
    /// A document is not JSON, not an object, or nested too deeply.
    #[error(transparent)]
    Document(#[from] PatchError),
    /// A document does not fit the schema.
    #[error("the {document} does not fit the schema: {}{fault}", Prefix(path))]
    Type { document: DocumentRole, path: FieldPath, fault: TypeFault },
    /// A document does not name the version of its fields.
    #[error("the {document} has no `apiVersion`: set it, for example to `apps/v1`")]
    NoVersion { document: DocumentRole },
    /// The applied configuration says who owns its fields.
    #[error("metadata.managedFields must be nil: remove it from the applied configuration")]
    SetsManagedFields,
    /// Nothing would be left of the object, because its schema makes it one value.
    #[error("nothing would be left of the object: remove `x-kubernetes-map-type: atomic` from the root of its schema")]
    Emptied,
    /// Other managers own fields that the apply changes.
    #[error("{}", ConflictList(.0))]
    Conflicts(Vec<FieldConflict>),
}

/// A field that an apply changes and another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// The other manager as the API server prints it, for example `"helm" using apps/v1`.
    pub manager: String,
    /// The field as the API server prints it, for example `.spec.ports[port=80,protocol="TCP"].targetPort`.
    pub path: String,
}

impl ServerSideApply {
    /// Returns the types of a custom resource, from the schema of its CRD.
    ///
    /// # Errors
    /// A schema that the API server would not accept.
    pub fn for_resource(kind: &str, schema: &Schema) -> Result<Self, SchemaError> {
        Self::new(kind, RootKind::Resource, schema, &Definitions::default())
    }

    /// Returns the types of a kind in an OpenAPI document.
    ///
    /// # Errors
    /// A document without the kind, and a schema that the API server would not accept.
    pub fn from_openapi(document: &OpenApi, kind: &GroupVersionKind) -> Result<Self, PatcherError> {
        let written = document.unresolved_schema(kind).map_err(PatcherError::Unreadable)?;
        let (schema, definitions) = written.ok_or_else(|| PatcherError::NoKind(kind.kind.clone()))?;
        Ok(Self::new(&kind.kind, RootKind::Plain, &schema, &definitions)?)
    }

    /// Returns the types of a JSON schema that describes whole objects. `{}` knows nothing about them.
    ///
    /// # Errors
    /// A text that is not a schema, and a schema that the API server would not accept.
    pub fn from_json_schema(name: &str, text: &str) -> Result<Self, PatcherError> {
        let (schema, definitions) = Definitions::read(text).map_err(PatcherError::Unreadable)?;
        Ok(Self::new(name, RootKind::Plain, &schema, &definitions)?)
    }

    fn new(kind: &str, root: RootKind, schema: &Schema, definitions: &Definitions) -> Result<Self, SchemaError> {
        Ok(Self { types: ApplyTypes::build(kind, root, schema, definitions)? })
    }

    /// Returns what the API server stores after `manager` applies `config`, as `kubectl apply --server-side` does.
    ///
    /// `live` is null or `{}` if there is no object yet. [`Conflicts::Overwrite`] is `--force-conflicts`.
    ///
    /// # Errors
    /// Every [`ApplyError`].
    pub fn apply<D: JsonDocument + ?Sized>(
        &self,
        live: &D,
        managers: &Managers,
        manager: &str,
        config: &D,
        conflicts: Conflicts,
    ) -> Result<AppliedObject<D::Owned>, ApplyError> {
        let arena = Bump::new();
        let config = Value::Map(fields(config, DocumentRole::Patch, &arena)?);
        let live = self.stored(live, DocumentRole::Current, &arena)?;
        if config
            .get("metadata")
            .and_then(|metadata| metadata.get("managedFields"))
            .is_some_and(|set| !matches!(set, Value::Null))
        {
            return Err(ApplyError::SetsManagedFields);
        }
        self.check(config, DocumentRole::Patch, false)?;
        let version = api_version(config, DocumentRole::Patch)?;
        let mut managers = managers.clone();
        if managers.is_empty() {
            let changes = self.changes(Value::EMPTY, live)?;
            managers.take(&changes, BEFORE_FIRST_APPLY, version);
        }
        self.reconcile(&mut managers);
        let identity = ManagerIdentity::new(manager, ManagerOperation::Apply, version);
        let merging = Merging { types: &self.types, arena: &arena };
        let merged = merging.merge(live, config);
        let owned = OwnedFields { fields: self.types.field_set(config), api_version: version.into(), time: None };
        let before = managers.entries.insert(identity.clone(), owned);
        let last = before.as_ref().map(|owned| owned.fields.clone()).unwrap_or_default();
        let new = self.prune(merging, merged, &managers, last);
        if matches!(new, Value::Null) {
            return Err(ApplyError::Emptied);
        }
        let changes = self.changes(live, new)?;
        let found = managers.conflicts(&changes, &identity);
        if conflicts == Conflicts::Refuse && !found.is_empty() {
            return Err(ApplyError::Conflicts(found));
        }
        managers.lose(&changes, Some(&identity));
        managers.strip(&identity);
        let unchanged = equal(live, new);
        if let (true, Some(before), Some(owned)) = (unchanged, before, managers.entries.get_mut(&identity)) {
            owned.time = before.time;
        }
        Ok(AppliedObject { object: D::write(if unchanged { live } else { new }), managers })
    }

    /// Returns who owns what after `manager` stores `new` by any other write: create, update, patch, client-side apply.
    ///
    /// `live` is null or `{}` if there is no object yet.
    ///
    /// # Errors
    /// [`ApplyError::Document`], [`ApplyError::Type`] and [`ApplyError::NoVersion`].
    pub fn update<D: JsonDocument + ?Sized>(
        &self,
        live: &D,
        managers: &Managers,
        manager: &str,
        new: &D,
    ) -> Result<Managers, ApplyError> {
        let arena = Bump::new();
        let new = self.stored(new, DocumentRole::Modified, &arena)?;
        let live = self.stored(live, DocumentRole::Current, &arena)?;
        let version = api_version(new, DocumentRole::Modified)?;
        let mut managers = managers.clone();
        let is_stored = live.get("metadata").and_then(|metadata| metadata.get("uid")).is_some();
        if managers.is_empty() && is_stored {
            // The API server begins to track such an object with its first apply.
            return Ok(managers);
        }
        self.reconcile(&mut managers);
        let changes = self.changes(live, new)?;
        managers.lose(&changes, None);
        managers.take(&changes, manager, version);
        Ok(managers)
    }

    /// Returns the manager that applied a manifest: the one whose applied fields are most like those of the manifest. It is `otherwise` if
    /// each has more other fields.
    ///
    /// # Errors
    /// [`ApplyError::Document`].
    pub fn applier<'m, D: JsonDocument + ?Sized>(
        &self,
        managers: &'m Managers,
        manifest: &D,
        otherwise: &'m str,
    ) -> Result<&'m str, ApplyError> {
        let arena = Bump::new();
        let manifest = Value::Map(fields(manifest, DocumentRole::Original, &arena)?);
        Ok(managers.nearest(&self.types.field_set(manifest), otherwise))
    }

    /// Returns the managers that own a field in which two objects differ.
    ///
    /// # Errors
    /// [`ApplyError::Document`] and [`ApplyError::Type`].
    pub fn owners<D: JsonDocument + ?Sized>(
        &self,
        managers: &Managers,
        object: &D,
        other: &D,
    ) -> Result<Vec<FieldManager>, ApplyError> {
        let arena = Bump::new();
        let [object, other] = [object, other].map(|it| self.stored(it, DocumentRole::Current, &arena));
        let FieldChanges { removed: mut fields, set } = self.changes(object?, other?)?;
        fields.union(&set);
        Ok(managers.owners(&fields))
    }

    /// Reads a stored object, which may have duplicate items, and removes `metadata.managedFields`.
    fn stored<'a, D: JsonDocument + ?Sized>(
        &'a self,
        object: &'a D,
        role: DocumentRole,
        arena: &'a Bump,
    ) -> Result<Value<'a>, ApplyError> {
        let object = Value::Map(fields(object, role, arena)?);
        self.check(object, role, true)?;
        let managed = FieldSet::of_fields(&[&["metadata", "managedFields"]]);
        let has_managed = object.get("metadata").is_some_and(|metadata| metadata.get("managedFields").is_some());
        Ok(if has_managed { Merging { types: &self.types, arena }.remove(object, &managed) } else { object })
    }

    fn check(&self, value: Value<'_>, document: DocumentRole, duplicates: bool) -> Result<(), ApplyError> {
        self.types.check(value, TypeRef::ROOT, duplicates).map_err(|broken| misfit(broken, document))
    }

    fn changes(&self, old: Value<'_>, new: Value<'_>) -> Result<FieldChanges, ApplyError> {
        self.types.compare(old, new).map_err(|broken| misfit(broken, DocumentRole::Modified))
    }

    fn reconcile(&self, managers: &mut Managers) {
        for owned in managers.entries.values_mut() {
            self.types.reconcile(&mut owned.fields);
        }
    }

    /// Removes what the applier set last and no longer sets, unless another manager owns it.
    fn prune<'a>(&self, merging: Merging<'a>, merged: Value<'a>, managers: &Managers, last: FieldSet) -> Value<'a> {
        if last.is_empty() {
            return merged;
        }
        let named = |set| self.types.with_named_fields(set);
        let (last, all) = (named(last), named(self.types.field_set(merged)));
        let without_last = merging.remove(merged, &last);
        let mut gone = all.clone();
        gone.subtract(&named(self.types.field_set(without_last)));
        gone.subtract(&named(managers.all_fields()));
        let with_owned = merging.remove(merged, &gone);
        // Only what the applier owned goes, not what is below it and was nobody's.
        let mut gone = all;
        gone.subtract(&named(self.types.field_set(with_owned)));
        gone.intersect(&last);
        merging.remove(merged, &gone)
    }
}

impl Managers {
    /// Returns the changed fields that others own.
    fn conflicts(&self, changes: &FieldChanges, own: &ManagerIdentity) -> Vec<FieldConflict> {
        let mut found = Vec::new();
        for (identity, owned) in self.entries.iter().filter(|(identity, _)| *identity != own) {
            let mut fields = owned.fields.clone();
            fields.intersect(&changes.set);
            fields.for_each_path("", &mut |path| found.push(FieldConflict { manager: identity.to_string(), path }));
        }
        found
    }

    /// Takes changed and removed fields from everybody but one manager.
    fn lose(&mut self, changes: &FieldChanges, except: Option<&ManagerIdentity>) {
        self.entries.retain(|identity, owned| {
            if Some(identity) != except {
                owned.fields.subtract(&changes.set);
                owned.fields.subtract(&changes.removed);
            }
            !owned.fields.is_empty()
        });
    }

    /// Gives changed fields to the manager that wrote them, beside those that it has.
    fn take(&mut self, changes: &FieldChanges, manager: &str, api_version: &str) {
        let mut fields = changes.set.clone();
        fields.subtract(&FieldSet::of_fields(&NEVER_OWNED));
        if fields.is_empty() {
            return;
        }
        let identity = ManagerIdentity::new(manager, ManagerOperation::Update, api_version);
        if let Some(before) = self.entries.get(&identity) {
            fields.union(&before.fields);
        }
        self.entries.insert(identity, OwnedFields { fields, api_version: api_version.into(), time: None });
    }

    /// Takes from a manager what nobody owns.
    fn strip(&mut self, identity: &ManagerIdentity) {
        if let Some(owned) = self.entries.get_mut(identity) {
            owned.fields.subtract(&FieldSet::of_fields(&NEVER_OWNED));
            if owned.fields.is_empty() {
                self.entries.remove(identity);
            }
        }
    }
}

fn api_version(object: Value<'_>, document: DocumentRole) -> Result<&str, ApplyError> {
    match object.get("apiVersion") {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        _ => Err(ApplyError::NoVersion { document }),
    }
}

fn misfit(broken: BrokenAt<TypeFault>, document: DocumentRole) -> ApplyError {
    let (path, fault) = broken.into_parts();
    ApplyError::Type { document, path, fault }
}

struct ConflictList<'c>(&'c [FieldConflict]);

/// Prints the conflicts as the API server does.
impl fmt::Display for ConflictList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        if let [FieldConflict { manager, path }] = self.0 {
            return write!(f, "Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        write!(f, "Apply failed with {count} conflicts: ")?;
        for (position, group) in self.0.chunk_by(|one, other| one.manager == other.manager).enumerate() {
            let Some(FieldConflict { manager, .. }) = group.first() else { continue };
            write!(f, "{}conflicts with {manager}:", if position > 0 { "\n" } else { "" })?;
            for FieldConflict { path, .. } in group {
                write!(f, "\n- {path}")?;
            }
        }
        Ok(())
    }
}
