//! Strategic merge patch, for custom resources, too.

mod apply;
mod compose;
mod diff;
mod directive;
mod document;
mod error;
mod keyed;
mod keys;
mod list;
mod meta;
mod read;
mod settle;
mod three_way;
mod value;
mod write;

pub use document::Document;
pub use error::{Difference, Document as DocumentRole, Effect, PatchError, PatchMergeKeyFault, Reason, Shape, Side};
pub use meta::SchemaError;
pub use read::{SyntaxError, SyntaxFault};
pub use value::ValueKind;

use crate::schema::{Definitions, Kind, OpenApi, OpenApiError, Schema};
use bumpalo::Bump;
use document::sealed::Tree;
use meta::{Meta, Root};
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
    pub fn from_openapi(document: &OpenApi, kind: &Kind) -> Result<Self, PatcherError> {
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

    /// The object with a patch applied to it.
    pub fn apply<D: Document + ?Sized>(&self, original: &D, patch: &D) -> Result<D::Owned, PatchError> {
        let arena = Bump::new();
        let context = self.context(&arena);
        let original = object(original, DocumentRole::Original, &arena)?;
        let patch = object(patch, DocumentRole::Patch, &arena)?;
        Ok(D::owned(Tree(apply::apply(&context, original, patch)?)))
    }

    /// One patch that does what some do one after the other. What one patch can't say is an error.
    pub fn compose<D: Document + ?Sized>(&self, patches: &[&D]) -> Result<D::Owned, PatchError> {
        let arena = Bump::new();
        let context = Context { joins: true, ..self.context(&arena) };
        let mut all: &[Entry<'_>] = &[];
        for (position, patch) in patches.iter().enumerate() {
            let patch = object(*patch, DocumentRole::Patch, &arena)?;
            all = match if position == 0 { Value::Map(patch) } else { apply::apply(&context, all, patch)? } {
                Value::Map(entries) => entries,
                _ => &[],
            };
        }
        Ok(D::owned(Tree(Value::Map(all))))
    }

    fn context<'a>(&'a self, arena: &'a Bump) -> Context<'a> {
        Context { meta: &self.meta, arena, strict: self.strict, joins: false }
    }

    /// The patch that makes `modified` of `original`.
    pub fn create_two_way<D: Document + ?Sized>(&self, original: &D, modified: &D) -> Result<D::Owned, PatchError> {
        let arena = Bump::new();
        let context = self.context(&arena);
        let before = object(original, DocumentRole::Original, &arena)?;
        let after = object(modified, DocumentRole::Modified, &arena)?;
        let sides = diff::Sides { before, live: before, after };
        let patch = diff::create(&context, sides, diff::Making { order: true, joined: false })?;
        Ok(D::owned(Tree(patch)))
    }

    /// The patch that makes the user's changes, from `original` to `modified`, to `current`, and leaves alone what others changed
    /// there.
    pub fn create_three_way<D: Document + ?Sized>(&self, sides: &ThreeWay<'_, D>) -> Result<D::Owned, PatchError> {
        let arena = Bump::new();
        let context = self.context(&arena);
        let before = object(sides.original, DocumentRole::Original, &arena)?;
        let after = object(sides.modified, DocumentRole::Modified, &arena)?;
        let live = object(sides.current, DocumentRole::Current, &arena)?;
        let patch =
            diff::create(&context, diff::Sides { before, live, after }, diff::Making { order: true, joined: true })?;
        three_way::refuse_other_object(patch)?;
        if sides.conflicts == Conflicts::Refuse {
            let theirs = diff::Sides { before, live: before, after: live };
            let changed = diff::create(&context, theirs, diff::Making { order: false, joined: false })?;
            three_way::refuse_conflicts(&context, patch, changed)?;
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
    match document.tree(role, arena)?.0 {
        Value::Map(entries) => Ok(entries),
        Value::Null => Ok(&[]),
        other => Err(PatchError::NotAnObject { document: role, found: other.kind() }),
    }
}

/// What every operation has at hand.
#[derive(Debug, Clone, Copy)]
struct Context<'a> {
    meta: &'a Meta,
    arena: &'a Bump,
    strict: bool,
    /// Whether patches are composed, instead of one being applied.
    joins: bool,
}

impl<'a> Context<'a> {
    fn map(&self, entries: &[Entry<'a>]) -> Value<'a> {
        Value::Map(self.arena.alloc_slice_copy(entries))
    }

    fn list(&self, items: &[Value<'a>]) -> Value<'a> {
        Value::List(self.arena.alloc_slice_copy(items))
    }
}
