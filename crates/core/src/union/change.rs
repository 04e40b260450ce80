//! The changes of normalisation.

use crate::field_path::{FieldPath, Printable};
use crate::json_patch::PatchOperation;
use std::fmt;
use std::sync::Arc;

/// Longest discriminator value that a change displays, in bytes.
const LONGEST_VALUE: usize = 64;

/// A change of normalisation. Displays as a sentence with no value except the discriminator's. Its names are shared with the
/// plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The field that changes.
    pub path: FieldPath,
    /// The kind of change and its reason.
    pub reason: ChangeReason,
}

/// The kind of a change and its reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ChangeReason {
    /// A member is cleared because the discriminator was changed to a value that does not select it.
    ClearedByDiscriminator {
        /// The name of the discriminator.
        discriminator: Arc<str>,
        /// Its new value, cut if it is long.
        value: Arc<str>,
    },
    /// A member is cleared because another member was set.
    ClearedByMember {
        /// The member that was set.
        member: Arc<str>,
    },
    /// An empty value that came with an apply is cleared beside another choice: nothing tells that the manifest sets it.
    ClearedUnowned,
    /// A null that a server-side apply left in a field that cannot be null is removed.
    ClearedNull,
    /// The discriminator is set because a member is set.
    Deduced {
        /// The new value of the discriminator.
        value: Arc<str>,
        /// The member that is set.
        member: Arc<str>,
        /// True if the discriminator is a boolean.
        boolean: bool,
    },
}

impl Change {
    /// Returns true if a member is cleared.
    pub(crate) fn clears(&self) -> bool {
        !matches!(self.reason, ChangeReason::Deduced { .. })
    }

    /// Returns the patch operation that makes the change.
    pub fn operation(&self) -> PatchOperation {
        match &self.reason {
            ChangeReason::ClearedByDiscriminator { .. }
            | ChangeReason::ClearedByMember { .. }
            | ChangeReason::ClearedUnowned
            | ChangeReason::ClearedNull => PatchOperation::Remove(self.path.clone()),
            ChangeReason::Deduced { value, boolean, .. } => {
                let value = if *boolean { (&**value == "true").into() } else { (&**value).into() };
                PatchOperation::Set(self.path.clone(), value)
            }
        }
    }
}

impl ChangeReason {
    /// Returns the bytes that are not shared with the plan.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::ClearedByDiscriminator { value, .. } => value.len().saturating_add(2 * size_of::<usize>()),
            Self::ClearedByMember { .. } | Self::ClearedUnowned | Self::ClearedNull | Self::Deduced { .. } => 0,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}

impl fmt::Display for ChangeReason {
    /// Displays the reason without the path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClearedByDiscriminator { discriminator, value } => {
                let value = Printable::new(value, LONGEST_VALUE);
                write!(f, "cleared because `{discriminator}` changed to \"{value}\"")
            }
            Self::ClearedByMember { member } => write!(f, "cleared because `{member}` was set"),
            Self::ClearedUnowned => f.write_str(
                "cleared because an empty value in an applied manifest is no choice beside another one; leave it out",
            ),
            Self::ClearedNull => f.write_str("cleared because the server-side apply left it null"),
            Self::Deduced { value, member, .. } => write!(f, "set to \"{value}\" because `{member}` is set"),
        }
    }
}
