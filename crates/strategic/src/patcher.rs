//! The public face of the crate: reads documents, runs one operation on them, and returns the result in the form of the documents.

use crate::apply;
use crate::context::{Context, Emptied};
use crate::create::{self, CreateOptions, CreateSides, conflicts};
use crate::document::JsonDocument;
use crate::error::{DocumentRole, PatchError};
use crate::schema::{MergeRule, MergeSchema, RootKind, SchemaError};
use crate::value::{MapEntry, Value};
use bumpalo::Bump;
use kube_unions_core::field_path::FieldPath;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::schema::{Definitions, OpenApi, OpenApiError, Schema};

/// Creates and applies the patches of one kind.
#[derive(Debug)]
pub struct Patcher {
    pub(crate) schema: MergeSchema,
    strict: bool,
}

/// A schema from which no [`Patcher`] can be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatcherError {
    /// The text is not a schema.
    #[error("cannot read the schema")]
    Unreadable(#[source] OpenApiError),
    /// The document does not describe the kind.
    #[error("the document does not describe the kind `{0}`")]
    NoKind(Box<str>),
    /// The schema contradicts itself.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl Patcher {
    /// Returns the patcher of a custom resource, from the schema of its CRD and the unions that are declared on it.
    ///
    /// `apiVersion`, `kind` and `metadata` merge as in every Kubernetes object, whatever the schema says about them.
    pub fn for_resource(kind: &str, schema: &Schema) -> Result<Self, SchemaError> {
        Self::new(kind, RootKind::Resource, schema, &Definitions::default())
    }

    /// Returns the merge rules of a custom resource, sorted by place, for tools that merge objects themselves.
    ///
    /// They include the rules of `metadata`. An embedded resource has the rules of its own kind, and only those that the schema
    /// has beyond them are listed.
    ///
    /// ```
    /// # use strategic_merge_patch::{MergeStrategy, Patcher, Schema};
    /// let schema: Schema = serde_json::from_str(r#"{"type": "object", "properties": {"hosts": {"type": "array",
    ///     "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}"#)?;
    /// let rules = Patcher::resource_rules("Site", &schema)?;
    /// assert_eq!(rules[0].place.to_string(), "hosts");
    /// assert_eq!(rules[0].strategy, MergeStrategy::Set);
    /// assert_eq!(rules[1].place.to_string(), "metadata.finalizers");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resource_rules(kind: &str, schema: &Schema) -> Result<Vec<MergeRule>, SchemaError> {
        Ok(MergeSchema::build(kind, RootKind::Resource, schema, &Definitions::default())?.rules())
    }

    /// Returns the patcher of a kind in an OpenAPI document. Types may refer to themselves.
    pub fn from_openapi(document: &OpenApi, kind: &GroupVersionKind) -> Result<Self, PatcherError> {
        let written = document.unresolved_schema(kind).map_err(PatcherError::Unreadable)?;
        let (schema, definitions) = written.ok_or_else(|| PatcherError::NoKind(kind.kind.clone()))?;
        Ok(Self::new(&kind.kind, RootKind::Plain, &schema, &definitions)?)
    }

    /// Returns the patcher of a JSON schema. References resolve to its `definitions`, `$defs` or `components.schemas`.
    pub fn from_json_schema(name: &str, text: &str) -> Result<Self, PatcherError> {
        let (schema, definitions) = Definitions::read(text).map_err(PatcherError::Unreadable)?;
        Ok(Self::new(name, RootKind::Plain, &schema, &definitions)?)
    }

    fn new(kind: &str, root: RootKind, schema: &Schema, definitions: &Definitions) -> Result<Self, SchemaError> {
        Ok(Self { schema: MergeSchema::build(kind, root, schema, definitions)?, strict: false })
    }

    /// Returns a patcher that refuses to remove a merge key when several items match.
    ///
    /// Otherwise such a patch removes the key from the first matching item, as the specification of `$patchMergeKey` has it.
    #[must_use]
    pub fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    /// Returns the object with the patch applied.
    ///
    /// In a list that merges, the items of the patch keep their order, and the other items stay as close as possible to their
    /// old neighbours.
    ///
    /// ```
    /// # use strategic_merge_patch::Patcher;
    /// let patcher = Patcher::from_json_schema("Pod", r#"{"properties": {"containers": {"type": "array",
    ///     "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
    ///     "items": {"properties": {"name": {"type": "string"}, "image": {"type": "string"}}}}}}"#)?;
    /// let live = r#"{"containers":[{"name":"a","image":"a:1"},{"name":"b","image":"b:1"}]}"#;
    /// let patched = patcher.apply(live, r#"{"containers": [{"name": "b", "image": "b:2"}, {"name": "a", "$patch": "delete"}]}"#)?;
    /// assert_eq!(patched, r#"{"containers":[{"name":"b","image":"b:2"}]}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`PatchError::Unreadable`] and [`PatchError::NotAnObject`] for a document, and [`PatchError::Refused`] with the path for
    /// a patch that breaks a rule.
    pub fn apply<D: JsonDocument + ?Sized>(&self, original: &D, patch: &D) -> Result<D::Owned, PatchError> {
        let (arena, emptied) = (Bump::new(), Emptied::default());
        let original = fields(original, DocumentRole::Original, &arena)?;
        let patch = fields(patch, DocumentRole::Patch, &arena)?;
        Ok(D::write(apply::apply(&self.context(&arena, &emptied), original, patch)?))
    }

    /// Returns the places, in the original object, of the objects of which a patch leaves `{}`: `$patch: delete` removes the fields of
    /// an object and keeps the object, and null removes it.
    ///
    /// ```
    /// # use strategic_merge_patch::Patcher;
    /// let patcher = Patcher::from_json_schema("Pod", r#"{"properties": {"probe": {"type": "object"}}}"#)?;
    /// let (live, patch) = (r#"{"probe":{"exec":{}}}"#, r#"{"probe":{"$patch":"delete"}}"#);
    /// assert_eq!(patcher.apply(live, patch)?, r#"{"probe":{}}"#);
    /// assert_eq!(patcher.emptied(live, patch)?[0].to_string(), "probe");
    /// assert_eq!(patcher.apply(live, r#"{"probe":null}"#)?, "{}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Self::apply`].
    pub fn emptied<D: JsonDocument + ?Sized>(&self, original: &D, patch: &D) -> Result<Vec<FieldPath>, PatchError> {
        let (arena, emptied) = (Bump::new(), Emptied::default());
        let original = fields(original, DocumentRole::Original, &arena)?;
        let patch = fields(patch, DocumentRole::Patch, &arena)?;
        apply::apply(&self.context(&arena, &emptied), original, patch)?;
        Ok(emptied.into_places().map(Iterator::collect).collect())
    }

    /// Returns the patch that turns `original` into `modified`.
    ///
    /// It contains only what changed. For each merged list in which anything changed, it also states the order of the items.
    ///
    /// # Errors
    /// The errors of [`Self::apply`].
    pub fn create_two_way<D: JsonDocument + ?Sized>(&self, original: &D, modified: &D) -> Result<D::Owned, PatchError> {
        let (arena, emptied) = (Bump::new(), Emptied::default());
        let original = fields(original, DocumentRole::Original, &arena)?;
        let modified = fields(modified, DocumentRole::Modified, &arena)?;
        let sides = CreateSides { original: Some(original), current: original, modified };
        Ok(D::write(create::create(&self.context(&arena, &emptied), sides, CreateOptions::TWO_WAY)?))
    }

    /// Returns the patch that makes the user's changes, from `original` to `modified`, to `current`. Changes that others made
    /// to `current` stay.
    ///
    /// # Errors
    /// The errors of [`Self::apply`], [`PatchError::Precondition`] if `apiVersion`, `kind` or `metadata.name` changes, and
    /// [`PatchError::Conflict`] with [`Conflicts::Refuse`].
    pub fn create_three_way<D: JsonDocument + ?Sized>(&self, sides: &ThreeWay<'_, D>) -> Result<D::Owned, PatchError> {
        let (arena, emptied) = (Bump::new(), Emptied::default());
        let context = self.context(&arena, &emptied);
        let original = fields(sides.original, DocumentRole::Original, &arena)?;
        let modified = fields(sides.modified, DocumentRole::Modified, &arena)?;
        let current = fields(sides.current, DocumentRole::Current, &arena)?;
        let ours = CreateSides { original: Some(original), current, modified };
        let patch = create::create(&context, ours, CreateOptions::THREE_WAY)?;
        conflicts::refuse_other_object(patch)?;
        if sides.conflicts == Conflicts::Refuse {
            let theirs = CreateSides { original: Some(original), current: original, modified: current };
            let theirs = create::create(&context, theirs, CreateOptions::CONFLICTS)?;
            conflicts::refuse_conflicts(&context, patch, theirs)?;
        }
        Ok(D::write(patch))
    }

    fn context<'a>(&'a self, arena: &'a Bump, emptied: &'a Emptied) -> Context<'a> {
        Context { schema: &self.schema, arena, strict: self.strict, emptied }
    }
}

/// The objects from which a three-way patch is created. A null object counts as absent.
#[derive(Debug)]
pub struct ThreeWay<'d, D: ?Sized> {
    /// The object as the user applied it last.
    pub original: &'d D,
    /// The object as the user wants it now.
    pub modified: &'d D,
    /// The object as it is in the cluster.
    pub current: &'d D,
    /// The treatment of fields that both sides changed.
    pub conflicts: Conflicts,
}

/// The treatment of a field that the user and somebody else changed differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflicts {
    /// The user's change wins.
    #[default]
    Overwrite,
    /// Creating the patch fails with [`PatchError::Conflict`].
    Refuse,
}

/// Returns the fields of a document. A null document counts as absent.
pub(crate) fn fields<'a, D: JsonDocument + ?Sized>(
    document: &'a D,
    role: DocumentRole,
    arena: &'a Bump,
) -> Result<&'a [MapEntry<'a>], PatchError> {
    let value = document.read(role, arena)?;
    if matches!(value, Value::Null) {
        return Ok(&[]);
    }
    value.entries().ok_or(PatchError::NotAnObject { document: role, found: value.kind() })
}
