//! The errors of creating and applying patches, each with its path and the rule that is broken.

use crate::read::SyntaxError;
use crate::value::{DEEPEST, ValueKind};
use kube_unions_core::field_path::{FieldPath, Segment};
use std::fmt;

/// The part that a document plays in an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DocumentRole {
    /// The object to which a patch applies, or from which it starts.
    Original,
    /// The object as the user wants it.
    Modified,
    /// The object as it is in the cluster.
    Current,
    /// The patch.
    Patch,
}

/// An operation that has no result.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum PatchError {
    /// A document is not JSON.
    #[error("cannot read the {document} as JSON")]
    Unreadable {
        document: DocumentRole,
        /// The syntax error and its position.
        source: SyntaxError,
    },
    /// A document is not an object.
    #[error("the {document} is {found}; it must be an object")]
    NotAnObject {
        document: DocumentRole,
        /// The type of the document.
        found: ValueKind,
    },
    /// A document breaks a rule of the format or of the schema.
    #[error("{}{rule}", Prefix(path))]
    Refused {
        /// The place, in the object that is patched.
        path: FieldPath,
        rule: BrokenRule,
    },
    /// The user and somebody else changed a field differently.
    #[error(
        "{}conflict: the change from original to modified {ours}, and the change from original to current {theirs}; \
         adopt the value in the cluster, or overwrite it",
        Prefix(path)
    )]
    Conflict {
        path: FieldPath,
        ours: ConflictEffect,
        /// The change in the cluster.
        theirs: ConflictEffect,
    },
    /// The patch would change a field that identifies the object.
    #[error("a patch cannot change `{field}`: it identifies the object")]
    Precondition { field: &'static str },
}

/// The effect of one side's change on a field in conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConflictEffect {
    /// Deletes the field.
    Deletes,
    /// Sets the field to a value of this type.
    Sets(ValueKind),
    /// Deletes or replaces the field as a whole, with `$patch`.
    Directs,
}

/// A rule of the format or of the schema that a document breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum BrokenRule {
    /// The schema does not have the field.
    #[error("unable to find api field `{field}` in `{kind}`")]
    UnknownField {
        field: Box<str>,
        /// The type that lacks the field.
        kind: Box<str>,
    },
    /// The documents and the schema disagree about the type of a value.
    #[error("both sides are {found}, but the schema declares {wanted}")]
    WrongShape {
        /// The type in the documents.
        found: ValueKind,
        /// The type in the schema.
        wanted: SchemaShape,
    },
    /// `$patch` has an unknown value.
    #[error("`$patch` is {0}; it must be \"replace\" or \"delete\"")]
    Patch(Box<str>),
    /// A key starts with `$` and is neither a directive nor a field.
    #[error("unknown directive `{0}`, and the schema has no field with this name")]
    UnknownDirective(Box<str>),
    /// `$setElementOrder` or `$deleteFromPrimitiveList` does not name a list.
    #[error("`{0}` must name its list: `{1}/FIELD`")]
    DirectiveName(Box<str>, &'static str),
    /// A directive has a value of the wrong type.
    #[error("`{directive}` is {found}; it must be {wanted}")]
    DirectiveType {
        directive: Box<str>,
        /// The type of its value.
        found: ValueKind,
        /// The types that it accepts.
        wanted: &'static str,
    },
    /// A directive for a list is beside a value that is not a list.
    #[error("`{directive}` needs a list, but {side} has {found} here")]
    DirectiveTarget {
        directive: Box<str>,
        /// The document with the value.
        side: PatchSide,
        /// The type of the value.
        found: ValueKind,
    },
    /// A patch adds a scalar to a list and deletes it from the same list.
    #[error("a value is both added to the list and in `$deleteFromPrimitiveList`")]
    AddedAndDeleted,
    /// A patch sets a field that its `$retainKeys` does not list.
    #[error("invalid patch format of retainKeys: the patch sets `{0}`, which `$retainKeys` does not list")]
    NotRetained(Box<str>),
    /// A list item lacks a merge key.
    #[error("{side} has a list item without the merge key `{key}`")]
    NoMergeKey {
        /// The document with the item.
        side: PatchSide,
        key: Box<str>,
    },
    /// A merge key is null, a list or an object.
    #[error("{side} has a list item whose merge key `{key}` is {found}; it must be a string, a number or a boolean")]
    KeyType {
        /// The document with the item.
        side: PatchSide,
        key: Box<str>,
        /// The type of its value.
        found: ValueKind,
    },
    /// A list of objects merges, and the schema declares no merge key.
    #[error("cannot merge lists without merge key: the schema declares none for this list of objects")]
    NoKeyDeclared,
    /// A list of lists merges.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// A list that merges has a null item.
    #[error("{0} has a list item that is null")]
    NullItem(PatchSide),
    /// A list that merges has items of several types.
    #[error("list element types are not identical: {0} and {1}")]
    MixedTypes(ValueKind, ValueKind),
    /// `$setElementOrder` orders a list without items.
    #[error("no elements in any of the lists that `$setElementOrder` orders")]
    NothingToOrder,
    /// The items of a patch are not in the order of its `$setElementOrder`.
    #[error(
        "the order in the patch list doesn't match `$setElementOrder`: list every item of the patch there, in the same order"
    )]
    OrderMismatch,
    /// `$patchMergeKey` is invalid.
    #[error("`$patchMergeKey` {0}")]
    PatchMergeKey(PatchMergeKeyFault),
    /// A patch item matches several items of the list.
    #[error("`$patchMergeKey` matches more than one item of the list: list more keys, until it matches one")]
    Ambiguous,
    /// Lists and objects are nested too deeply.
    #[error("nested deeper than {DEEPEST} levels")]
    TooDeep,
    /// Two items have the same merge keys.
    #[error(
        "two items of the list have the same merge keys, so no patch can tell them apart: give each its own, or remove one"
    )]
    Duplicate,
    /// Two items have the same merge key, and items with other keys are between them.
    #[error(
        "an item before has the same merge key `{0}`, and applying a patch puts both next to each other: write them so, or \
         replace the object"
    )]
    Apart(Box<str>),
    /// A set has a value twice.
    #[error("the value is twice in the list, and applying a patch keeps one of them: write it once")]
    RepeatedValue,
}

/// An invalid `$patchMergeKey`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchMergeKeyFault {
    /// It is empty, repeats a key, or is not a list of strings.
    #[error("must be a non-empty list of distinct strings")]
    NotStrings,
    /// It lacks the default key.
    #[error("must contain the merge key `{0}`")]
    NoDefault(Box<str>),
    /// It lists a field that is not a merge key of the list.
    #[error("contains `{0}`, which is not a merge key of the list")]
    NotRecommended(Box<str>),
    /// Only some items of the list have it.
    #[error("must be in every item of the list, or in none")]
    Mixed,
    /// It lists a key that the patch removes, and no matching item has the key.
    #[error("lists `{0}`, which is null in the patch, but no matching item of the list has it")]
    NothingToRemove(Box<str>),
    /// It lists a key that is null in an item to delete.
    #[error("lists `{0}`, which is null in an item to delete")]
    NullInDelete(Box<str>),
}

/// The document that a value or a list item belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchSide {
    /// The object that is patched, or from which the patch starts.
    Live,
    /// The patch, or the object as the user wants it.
    Patch,
    /// The list in `$setElementOrder`.
    Order,
}

/// The type of a value according to the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaShape {
    /// An object.
    Object,
    /// A list.
    List,
    /// A string, a number or a boolean.
    Scalar,
}

/// A broken rule and the lower part of its path, which every level around it extends.
#[derive(Debug)]
pub(crate) struct BrokenAt<R = BrokenRule> {
    path: Vec<Segment>,
    rule: Box<R>,
}

impl BrokenRule {
    /// Adds the lower part of the path.
    pub(crate) fn at(self, step: Segment) -> BrokenAt {
        BrokenAt { path: vec![step], rule: Box::new(self) }
    }
}

impl<R> From<R> for BrokenAt<R> {
    fn from(rule: R) -> Self {
        Self { path: Vec::new(), rule: Box::new(rule) }
    }
}

impl<R> BrokenAt<R> {
    /// Extends the path by one step upwards.
    pub(crate) fn inside(mut self, step: Segment) -> Self {
        self.path.insert(0, step);
        self
    }

    /// Returns the whole path and the rule.
    pub(crate) fn into_parts(self) -> (FieldPath, R) {
        (self.path.into_iter().collect(), *self.rule)
    }
}

impl From<BrokenAt> for PatchError {
    fn from(broken: BrokenAt) -> Self {
        let (path, rule) = broken.into_parts();
        Self::Refused { path, rule }
    }
}

pub(crate) struct Prefix<'p>(pub(crate) &'p FieldPath);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.segments().is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

impl fmt::Display for DocumentRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Original => "original",
            Self::Modified => "modified object",
            Self::Current => "current object",
            Self::Patch => "patch",
        })
    }
}

impl fmt::Display for ConflictEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deletes => f.write_str("deletes it"),
            Self::Sets(kind) => write!(f, "sets it to {kind}"),
            Self::Directs => f.write_str("deletes or replaces it as a whole"),
        }
    }
}

impl fmt::Display for PatchSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Live => "the object",
            Self::Patch => "the patch",
            Self::Order => "`$setElementOrder`",
        })
    }
}

impl fmt::Display for SchemaShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "an object",
            Self::List => "a list",
            Self::Scalar => "a scalar",
        })
    }
}
