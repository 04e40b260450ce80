//! The values from which a patch is created.

/// The fields of an object or the items of a list, on three sides. `None` is an object or a list that is absent: what `current` lacks
/// is added as a whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CreateSides<'a, T> {
    pub(crate) original: Option<&'a [T]>,
    pub(crate) current: &'a [T],
    pub(crate) modified: &'a [T],
}
