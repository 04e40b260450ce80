//! The form of a patch.

use crate::context::Context;
use crate::error::BrokenAt;
use crate::strip_directives::{StripMode, strip_directives};
use crate::value::Value;

/// The form of the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CreateOptions {
    /// Emit `$setElementOrder` for lists that merge.
    pub(super) order: bool,
    /// Leave out the parts of new values that are marked with `$patch`, as the reference does when it joins two patches.
    unmarked: bool,
}

impl CreateOptions {
    pub(crate) const TWO_WAY: Self = Self { order: true, unmarked: false };
    pub(crate) const THREE_WAY: Self = Self { order: true, unmarked: true };
    /// The change in the cluster, which is only compared with the user's change.
    pub(crate) const CONFLICTS: Self = Self { order: false, unmarked: false };

    /// Returns a value that the patch contains as a whole, if any of it is left.
    pub(super) fn whole<'a>(self, context: &Context<'a>, value: Value<'a>) -> Result<Option<Value<'a>>, BrokenAt> {
        if self.unmarked { strip_directives(context, value, None, StripMode::Unmarked) } else { Ok(Some(value)) }
    }
}
