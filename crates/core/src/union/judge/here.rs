//! The position of a walk over an object. Its path is built only for a change or a violation.

use crate::field_path::{FieldPath, Segment};

/// The position of a walk.
#[derive(Debug)]
pub(super) struct Here<'t> {
    around: Option<(&'t Here<'t>, Inwards<'t>)>,
}

/// A step of the walk.
#[derive(Debug, Clone, Copy)]
pub(super) enum Inwards<'t> {
    Field(&'t str),
    Index(u32),
    Key(&'t str),
}

impl<'t> Here<'t> {
    pub(super) fn root() -> Self {
        Self { around: None }
    }

    pub(super) fn then(&'t self, step: Inwards<'t>) -> Self {
        Self { around: Some((self, step)) }
    }

    /// Returns the steps to the object at this position or to one of its fields, innermost first.
    fn outwards<'f>(&self, field: Option<&'f str>) -> impl Iterator<Item = Inwards<'f>> + Clone
    where
        't: 'f,
    {
        let steps = std::iter::successors(self.around, |(here, _)| here.around).map(|(_, step)| step);
        field.map(Inwards::Field).into_iter().chain(steps)
    }

    /// Returns the path of the object at this position, or of one of its fields.
    pub(super) fn path(&self, field: Option<&str>) -> FieldPath {
        let steps = self.outwards(field);
        let mut segments = Vec::with_capacity(steps.clone().count());
        segments.extend(steps.map(|step| match step {
            Inwards::Field(name) => Segment::Field(name.into()),
            Inwards::Index(at) => Segment::Index(usize::try_from(at).unwrap_or(usize::MAX)),
            Inwards::Key(key) => Segment::Key(key.into()),
        }));
        segments.reverse();
        segments.into_iter().collect()
    }

    /// Returns the bytes that the path takes.
    pub(super) fn memory(&self, field: Option<&str>) -> usize {
        let of = |step| match step {
            Inwards::Field(name) | Inwards::Key(name) => name.len(),
            Inwards::Index(_) => 0,
        };
        self.outwards(field).fold(0, |all, step| all.saturating_add(size_of::<Segment>()).saturating_add(of(step)))
    }
}
