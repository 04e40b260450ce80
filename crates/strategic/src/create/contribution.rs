//! The part of a patch that one level makes.

use crate::value::Value;

/// The contribution of a level to the patch around it.
#[derive(Debug)]
pub(super) enum Contribution<'a> {
    Map {
        /// The patch of the object, or `None` if nothing changed.
        patch: Option<Value<'a>>,
        /// The patch deletes something.
        deletes: bool,
    },
    List {
        items: Option<Value<'a>>,
        /// `$deleteFromPrimitiveList`
        delete: Option<Value<'a>>,
        /// `$setElementOrder`
        order: Option<Value<'a>>,
        /// The patch deletes something.
        deletes: bool,
    },
}
