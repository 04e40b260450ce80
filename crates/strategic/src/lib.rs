//! Strategic merge patch, for custom resources, too: patches that merge lists item by item and clear what a union excludes.
//!
//! An API server takes strategic merge patches for built-in types only. Here they are made and applied anywhere, by a
//! [`Patcher`] that knows how the fields of one kind merge: from the schema of its CRD, with the unions that were declared for
//! it, or from an OpenAPI document. What flows through: documents are read into trees that keep every number as it was written
//! (`value`, `read`, `write`), walked level by level with the levels on the heap (`apply`, `diff`), and lists are
//! matched by an index of their keys (`keys`, `keyed`). Nothing recurses. Time and memory are in proportion to the input, with one
//! exception: where several items of a patch have the same keys, a list inside of them is put in order once for each of them.
//!
//! What the format means is what Go's `k8s.io/apimachinery/pkg/util/strategicpatch` makes of it, but for the rules of
//! [`Difference`]; beyond it, lists may be keyed by several fields (`$patchMergeKey`).
//!
//! # Three ways, and kube
//!
//! A controller keeps the object as its user applied it last, takes the one that is wanted now, and the one in the cluster. What
//! others changed there stays:
//!
//! ```
//! use kube_unions_core::schema::Schema;
//! use strategic_merge_patch::{Conflicts, Patcher, ThreeWay};
//! use serde_json::{Value, json};
//!
//! let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
//!     "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
//!         "items": {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"},
//!             "protocol": {"type": "string", "default": "TCP"}, "target": {"type": "string"}}}},
//!     "source": {"type": "object", "properties": {"git": {"type": "object"}, "image": {"type": "object"}},
//!         "x-kubernetes-unions": [{"fields-to-discriminateBy": {"git": "Git", "image": "Image"}}]}}}}}))?;
//! let patcher = Patcher::for_resource("Widget", &schema)?;
//!
//! let applied = json!({"spec": {"source": {"git": {}}, "ports": [{"port": 53, "target": "a"}]}});
//! let wanted = json!({"spec": {"source": {"image": {"tag": "v1"}}, "ports": [{"port": 53, "target": "b"}]}});
//! let live = json!({"spec": {"source": {"git": {"ref": "main"}}, "replicas": 3, "ports": [
//!     {"port": 53, "protocol": "UDP", "target": "x"}, {"port": 53, "protocol": "TCP", "target": "a"}]}});
//!
//! let patch: Value = patcher.create_three_way(&ThreeWay {
//!     original: &applied, modified: &wanted, current: &live, conflicts: Conflicts::Overwrite,
//! })?;
//! assert_eq!(patcher.apply(&live, &patch)?, json!({"spec": {"source": {"image": {"tag": "v1"}}, "replicas": 3, "ports": [
//!     {"port": 53, "protocol": "UDP", "target": "x"}, {"port": 53, "protocol": "TCP", "target": "b"}]}}));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The API server takes no such patch for a custom resource. The object that it makes is sent with the `resourceVersion` that it
//! was made from, so that nobody's change is lost: the server answers 409 if there was one, and the patch is made anew.
//!
//! # Text
//!
//! As text nothing is lost that was written, however large or exact a number is:
//!
//! ```
//! use strategic_merge_patch::Patcher;
//!
//! let patcher = Patcher::from_json_schema("Thing", r#"{"properties": {"list": {"type": "array",
//!     "x-kubernetes-patch-strategy": "merge", "items": {"type": "string"}}}}"#)?;
//! let patch = patcher.create_two_way(r#"{"list": ["a", "b"], "n": 1.10}"#, r#"{"list": ["b", "c"], "n": 123456789012345678901234567890}"#)?;
//! assert_eq!(patch, r#"{"$setElementOrder/list":["b","c"],"$deleteFromPrimitiveList/list":["a"],"list":["c"],"n":123456789012345678901234567890}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Pure: documents and schemas in, documents out. May not know clusters, files or admission.

mod apply;
mod create;
mod directive;
mod document;
mod error;
mod keys;
mod read;
mod schema;
mod settle;
mod value;
mod write;

pub use document::Document;
pub use error::{Difference, Document as DocumentRole, Effect, PatchError, PatchMergeKeyFault, Reason, Shape, Side};
pub use read::{SyntaxError, SyntaxFault};
pub use schema::SchemaError;
pub use value::ValueKind;

use bumpalo::Bump;
use document::sealed::Tree;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::schema::{Definitions, OpenApi, OpenApiError, Schema};
use schema::{Meta, Root};
use value::{Entry, Value};

/// How the objects of one kind are patched.
#[derive(Debug)]
pub struct Patcher {
    meta: Meta,
    strict: bool,
}

/// Why there is no [`Patcher`] for a schema.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatcherError {
    /// The text is not a schema.
    #[error("not a readable schema")]
    Unreadable(#[source] OpenApiError),
    /// The document does not describe the kind.
    #[error("the document does not describe the kind `{0}`")]
    NoKind(Box<str>),
    /// What the schema says makes no sense.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl Patcher {
    /// For a custom resource, by the schema of its CRD with the unions that were declared for it. It has `apiVersion`, `kind`
    /// and `metadata` as every object has them, whatever the schema says of these.
    pub fn for_resource(kind: &str, schema: &Schema) -> Result<Self, SchemaError> {
        Ok(Self::new(Meta::build(kind, Root::Resource, schema, &Definitions::default())?))
    }

    /// For what a schema describes, and nothing else. References in it lead nowhere.
    pub fn for_schema(name: &str, schema: &Schema) -> Result<Self, SchemaError> {
        Ok(Self::new(Meta::build(name, Root::Plain, schema, &Definitions::default())?))
    }

    /// For a kind of an OpenAPI document. A type that holds itself is known at any depth.
    pub fn from_openapi(document: &OpenApi, kind: &GroupVersionKind) -> Result<Self, PatcherError> {
        let written = document.written(kind).map_err(PatcherError::Unreadable)?;
        let (schema, definitions) = written.ok_or_else(|| PatcherError::NoKind(kind.kind.clone()))?;
        Ok(Self::new(Meta::build(&kind.kind, Root::Plain, &schema, &definitions)?))
    }

    /// For a JSON schema that may bring along what it refers to, under `definitions`, `$defs` or `components.schemas`.
    pub fn from_json_schema(name: &str, text: &str) -> Result<Self, PatcherError> {
        let (schema, definitions) = Definitions::read(text).map_err(PatcherError::Unreadable)?;
        Ok(Self::new(Meta::build(name, Root::Plain, &schema, &definitions)?))
    }

    fn new(meta: Meta) -> Self {
        Self { meta, strict: false }
    }

    /// Refuses, too, what the format leaves to chance: a merge key that a patch removes from one of several items that fit.
    #[must_use]
    pub fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    /// The object with a patch applied to it. Of a list that merges, the patch's items come in its order, and the others stay as
    /// near to where they were as that allows.
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
    /// A document that can't be read, or what [`Reason`] lists, with its path.
    pub fn apply<D: Document + ?Sized>(&self, original: &D, patch: &D) -> Result<D::Owned, PatchError> {
        let arena = Bump::new();
        let context = self.context(&arena);
        let original = object(original, DocumentRole::Original, &arena)?;
        let patch = object(patch, DocumentRole::Patch, &arena)?;
        Ok(D::owned(Tree(apply::apply(&context, original, patch)?)))
    }

    fn context<'a>(&'a self, arena: &'a Bump) -> Context<'a> {
        Context { meta: &self.meta, arena, strict: self.strict }
    }

    /// The patch that makes `modified` of `original`. It says the order of a list that merges if anything in it changed, and
    /// nothing at all of what is the same.
    pub fn create_two_way<D: Document + ?Sized>(&self, original: &D, modified: &D) -> Result<D::Owned, PatchError> {
        let arena = Bump::new();
        let context = self.context(&arena);
        let before = object(original, DocumentRole::Original, &arena)?;
        let after = object(modified, DocumentRole::Modified, &arena)?;
        let sides = create::Sides { before, live: before, after };
        let patch = create::create(&context, sides, create::Making { order: true, joined: false })?;
        Ok(D::owned(Tree(patch)))
    }

    /// The patch that makes the user's changes, from `original` to `modified`, to `current`, and leaves alone what others changed
    /// there. `apiVersion`, `kind` and `metadata.name` say which object it is, and may not change.
    ///
    /// # Errors
    /// Beside those of any document: [`PatchError::Precondition`], and with [`Conflicts::Refuse`] [`PatchError::Conflict`].
    pub fn create_three_way<D: Document + ?Sized>(&self, sides: &ThreeWay<'_, D>) -> Result<D::Owned, PatchError> {
        let arena = Bump::new();
        let context = self.context(&arena);
        let before = object(sides.original, DocumentRole::Original, &arena)?;
        let after = object(sides.modified, DocumentRole::Modified, &arena)?;
        let live = object(sides.current, DocumentRole::Current, &arena)?;
        let patch = create::create(
            &context,
            create::Sides { before, live, after },
            create::Making { order: true, joined: true },
        )?;
        create::conflicts::refuse_other_object(patch)?;
        if sides.conflicts == Conflicts::Refuse {
            let theirs = create::Sides { before, live: before, after: live };
            let changed = create::create(&context, theirs, create::Making { order: false, joined: false })?;
            create::conflicts::refuse_conflicts(&context, patch, changed)?;
        }
        Ok(D::owned(Tree(patch)))
    }
}

/// The objects that a three-way patch is made from. One that is null counts as absent.
#[derive(Debug)]
pub struct ThreeWay<'d, D: ?Sized> {
    /// The object as the user applied it last.
    pub original: &'d D,
    /// The object as the user wants it now.
    pub modified: &'d D,
    /// The object as it is in the cluster.
    pub current: &'d D,
    /// What becomes of a field that the user and somebody else changed differently.
    pub conflicts: Conflicts,
}

/// What becomes of a field that was changed differently by the user and in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflicts {
    /// The user's change counts.
    #[default]
    Overwrite,
    /// There is no patch, but an error.
    Refuse,
}

/// The fields of a document. One that is null counts as absent.
fn object<'a, D: Document + ?Sized>(
    document: &'a D,
    role: DocumentRole,
    arena: &'a Bump,
) -> Result<&'a [Entry<'a>], PatchError> {
    let value = document.tree(role, arena)?.0;
    if matches!(value, Value::Null) {
        return Ok(&[]);
    }
    value.entries().ok_or(PatchError::NotAnObject { document: role, found: value.kind() })
}

/// What every operation has at hand.
#[derive(Debug, Clone, Copy)]
struct Context<'a> {
    meta: &'a Meta,
    arena: &'a Bump,
    strict: bool,
}

impl<'a> Context<'a> {
    fn map(&self, entries: &[Entry<'a>]) -> Value<'a> {
        Value::Map(self.arena.alloc_slice_copy(entries))
    }

    fn list(&self, items: &[Value<'a>]) -> Value<'a> {
        Value::List(self.arena.alloc_slice_copy(items))
    }
}
