//! The position of the compiler in a schema.

use crate::schema::{Place, PlaceStep};

/// A step into a schema that borrows its names.
#[derive(Debug, Clone, Copy)]
pub(super) enum SchemaStep<'s> {
    Property(&'s str),
    Items,
    Values,
}

/// The position of the compiler, with the attributes that matter to unions. Its [`Place`] is built only for a union or a
/// fault, since most nodes have neither.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Surroundings<'s> {
    pub(super) around: Option<(&'s Self, SchemaStep<'s>)>,
    /// An upper bound of the length of its path.
    pub(super) length: usize,
    /// The keys of the list, if the node is its item.
    pub(super) keys: &'s [Box<str>],
    /// The outermost list without keys around the node.
    pub(super) keyless: Option<&'s Self>,
}

impl<'s> Surroundings<'s> {
    pub(super) fn inwards(&'s self, step: SchemaStep<'s>) -> Self {
        let more = if let SchemaStep::Property(name) = step { name.len().saturating_add(1) } else { "[*]".len() };
        let length = self.length.saturating_add(more);
        Self { around: Some((self, step)), length, keys: &[], keyless: self.keyless }
    }

    pub(super) fn place(&self) -> Place {
        let outwards = std::iter::successors(self.around, |(at, _)| at.around);
        let mut steps: Vec<PlaceStep> = outwards
            .map(|(_, step)| match step {
                SchemaStep::Property(name) => PlaceStep::Property(name.into()),
                SchemaStep::Items => PlaceStep::Items,
                SchemaStep::Values => PlaceStep::Values,
            })
            .collect();
        steps.reverse();
        steps.into_iter().collect()
    }
}
