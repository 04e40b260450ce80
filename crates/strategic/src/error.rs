//! Why a patch can't be made or applied, where, and by which rule.

use crate::read::SyntaxError;
use crate::value::ValueKind;
use kube_unions_core::field_path::{FieldPath, Segment};
use std::fmt;

/// Which of the documents that were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Document {
    /// The object that a patch is applied to, or starts from.
    Original,
    /// The object as it is wanted.
    Modified,
    /// The object as it is in the cluster.
    Current,
    /// The patch.
    Patch,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// A document that is not JSON.
    #[error("the {document} is not readable as JSON")]
    Unreadable {
        /// Which one.
        document: Document,
        /// What is wrong with it.
        source: SyntaxError,
    },
    /// A document that is not an object.
    #[error("the {document} is {found}, and must be an object")]
    NotAnObject {
        /// Which one.
        document: Document,
        /// What it is.
        found: ValueKind,
    },
    /// A rule of the format or of the schema is broken.
    #[error("{}{reason}", Prefix(path))]
    Refused {
        /// Where, in the object that is patched.
        path: FieldPath,
        /// What is wrong.
        reason: Reason,
    },
    /// What the user changed was changed in the cluster, too, and differently.
    #[error(
        "{}conflict: the change from original to modified {ours}, and the change from original to current {theirs}; \
         take over what is in the cluster, or overwrite it",
        Prefix(path)
    )]
    Conflict {
        /// Where.
        path: FieldPath,
        /// What the user's change makes of the field.
        ours: Effect,
        /// What became of the field in the cluster.
        theirs: Effect,
    },
    /// A field that says which object this is would change.
    #[error("`{field}` can't be changed by a patch: it says which object this is")]
    Precondition {
        /// The field.
        field: &'static str,
    },
}

/// What a change makes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// It is gone.
    Deletes,
    /// It is this kind of value.
    Sets(ValueKind),
    /// It is changed by a directive, which concerns the whole of it.
    Directs,
}

/// Which rule of a patch or schema is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// A field that the schema does not have.
    #[error("unable to find api field `{field}` in `{kind}`")]
    UnknownField {
        /// The field.
        field: Box<str>,
        /// The type that has no such field.
        kind: Box<str>,
    },
    /// A value of another shape than the schema says.
    #[error("both sides are {found}, and the schema has {wanted} here")]
    WrongShape {
        /// What the documents have.
        found: ValueKind,
        /// What the schema has.
        wanted: Shape,
    },
    /// `$patch` with a value that it can't have.
    #[error("`$patch` is {0}; it must be \"replace\" or \"delete\"")]
    Patch(Box<str>),
    /// `$something` that is no directive and no field.
    #[error("`{0}` is no directive, and the schema has no such field")]
    UnknownDirective(Box<str>),
    /// `$setElementOrder` or `$deleteFromPrimitiveList` that names no list.
    #[error("`{0}` must name its list: `{1}/FIELD`")]
    DirectiveName(Box<str>, &'static str),
    /// A directive of the wrong type.
    #[error("`{directive}` is {found}; it must be {wanted}")]
    DirectiveType {
        /// The directive.
        directive: Box<str>,
        /// What it is.
        found: ValueKind,
        /// What it must be.
        wanted: &'static str,
    },
    /// A directive beside a value that is no list.
    #[error("`{directive}` needs a list, and {side} has {found} here")]
    DirectiveTarget {
        /// The directive.
        directive: Box<str>,
        /// Whose value it is.
        side: Side,
        /// What it is.
        found: ValueKind,
    },
    /// Deletes from a list of scalars what it adds to it.
    #[error("a value is both added to the list and in `$deleteFromPrimitiveList`")]
    AddedAndDeleted,
    /// A field of the patch is not retained.
    #[error("invalid patch format of retainKeys: the patch sets `{0}`, which `$retainKeys` does not list")]
    NotRetained(Box<str>),
    /// A list item without a key.
    #[error("{side} has a list item without the merge key `{key}`")]
    NoMergeKey {
        /// Whose item it is.
        side: Side,
        /// The key.
        key: Box<str>,
    },
    /// A key that is null, a list or an object.
    #[error("{side} has a list item whose merge key `{key}` is {found}; it must be a string, a number or a boolean")]
    KeyType {
        /// Whose item it is.
        side: Side,
        /// The key.
        key: Box<str>,
        /// What it is.
        found: ValueKind,
    },
    /// A list of objects is to be merged, and nothing tells its items apart.
    #[error("cannot merge lists without merge key: the schema names none for this list of objects")]
    NoKeyDeclared,
    /// A list of lists is to be merged.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// A list with null in it is to be merged.
    #[error("{0} has a list item that is null")]
    NullItem(Side),
    /// Items of several types in a list that is merged.
    #[error("list element types are not identical: {0} and {1}")]
    MixedTypes(ValueKind, ValueKind),
    /// An order for a list that has no items.
    #[error("no elements in any of the lists that `$setElementOrder` is to put in order")]
    NothingToOrder,
    /// The patch and its order list contradict each other.
    #[error(
        "the order in the patch list doesn't match `$setElementOrder`: list every item of the patch there, in the same order"
    )]
    OrderMismatch,
    /// Something wrong with `$patchMergeKey`.
    #[error("`$patchMergeKey` {0}")]
    PatchMergeKey(PatchMergeKeyFault),
    /// A patch item that fits more than one item of the list.
    #[error("the keys in `$patchMergeKey` matches more than one item of the list; add keys until they fit one")]
    Ambiguous,
    /// Two items that nothing tells apart.
    #[error("two items of the list have the same merge keys, so that no patch can tell them apart")]
    Duplicate,
}

/// What is wrong with a `$patchMergeKey`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchMergeKeyFault {
    /// It is no list of distinct strings, or empty.
    #[error("must be a non-empty list of distinct strings")]
    NotStrings,
    /// It does not have the default key.
    #[error("must contain the merge key `{0}`")]
    NoDefault(Box<str>),
    /// It has a key that is none of the list's.
    #[error("contains `{0}`, which is no merge key of the list")]
    NotRecommended(Box<str>),
    /// Some items have it and some don't.
    #[error("must be in every item of the list, or in none")]
    Mixed,
    /// A key is null, and the item does not have it.
    #[error("lists `{0}`, which is null in the patch, and no item of the list that fits has it")]
    NothingToRemove(Box<str>),
    /// A key is null in an item that is deleted.
    #[error("lists `{0}`, which is null in an item that is deleted")]
    NullInDelete(Box<str>),
}

/// Whose list item it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Side {
    /// The object that is patched, or that the patch starts from.
    Live,
    /// The patch, or the object as it is wanted.
    Patch,
    /// The list in `$setElementOrder`.
    Order,
}

/// What a schema says of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// An object.
    Object,
    /// A list.
    List,
    /// A string, number or boolean.
    Scalar,
}

/// The rules that this engine follows on purpose where Go's `strategicpatch` does not: it panics there, leaks directives into
/// objects, loses data or decides by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Difference {
    /// 1. A directive never becomes part of a result, nor does a null that deletes: where the parent is absent, in a list that is
    ///    replaced, in a new item.
    NoLeaks,
    /// 2. What makes no sense is an error instead of a panic or silence: null items, objects as keys, odd directives.
    NoPanics,
    /// 3. One scalar both added and deleted is an error.
    AddedAndDeleted,
    /// 4. `$deleteFromPrimitiveList/f: null` is an error.
    NullDeleteList,
    /// 5. `$setElementOrder` is there when the order changed, and not for equal lists.
    OrderWhereItChanged,
    /// 6. Deleting and adding with an order list keeps the order asked for.
    OrderAskedFor,
    /// 7. Items with the same key are never lost.
    NothingLost,
    /// 8. A `replace` map that did not change is not in the patch.
    UnchangedReplace,
    /// An integer and a decimal are both numbers, so that a list may hold both.
    NumbersAreOneType,
    /// Looking for conflicts neither fails on scalars that both sides delete or on two empty lists, nor reorders the patch.
    ConflictsOnlyLook,
}

impl Reason {
    /// The rule by which Go's `strategicpatch` does not object, or panics, if there is one.
    pub fn difference(&self) -> Option<Difference> {
        match self {
            Self::Patch(_)
            | Self::UnknownDirective(_)
            | Self::DirectiveType { .. }
            | Self::DirectiveTarget { .. }
            | Self::KeyType { .. }
            | Self::NullItem(_)
            | Self::OrderMismatch => Some(Difference::NoPanics),
            Self::AddedAndDeleted => Some(Difference::AddedAndDeleted),
            Self::Duplicate => Some(Difference::NothingLost),
            Self::UnknownField { .. }
            | Self::WrongShape { .. }
            | Self::DirectiveName(..)
            | Self::NotRetained(_)
            | Self::NoMergeKey { .. }
            | Self::NoKeyDeclared
            | Self::ListOfLists
            | Self::MixedTypes(..)
            | Self::NothingToOrder
            | Self::PatchMergeKey(_)
            | Self::Ambiguous => None,
        }
    }

    /// The reason, below the place that a level of the walk stands for.
    pub(super) fn at(self, below: impl IntoIterator<Item = Segment>) -> Fault {
        Fault { below: below.into_iter().collect(), reason: Box::new(self) }
    }
}

/// A reason with the part of its path that is known so far.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) below: Vec<Segment>,
    pub(super) reason: Box<Reason>,
}

impl From<Reason> for Fault {
    fn from(reason: Reason) -> Self {
        reason.at([])
    }
}

impl Fault {
    /// The same, one step further out.
    pub(super) fn inside(mut self, step: Segment) -> Self {
        self.below.insert(0, step);
        self
    }

    /// The error, with the path of the level where it was found.
    pub(super) fn into_error(self, level: impl IntoIterator<Item = Segment>) -> PatchError {
        PatchError::Refused { path: level.into_iter().chain(self.below).collect(), reason: *self.reason }
    }
}

struct Prefix<'p>(&'p FieldPath);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.segments().is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Original => "original",
            Self::Modified => "modified object",
            Self::Current => "current object",
            Self::Patch => "patch",
        })
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::List => "a list",
            Self::Object => "an object",
        })
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deletes => f.write_str("deletes it"),
            Self::Sets(kind) => write!(f, "makes it {kind}"),
            Self::Directs => f.write_str("deletes or replaces it as a whole"),
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Live => "the object",
            Self::Patch => "the patch",
            Self::Order => "`$setElementOrder`",
        })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "an object",
            Self::List => "a list",
            Self::Scalar => "a scalar",
        })
    }
}
