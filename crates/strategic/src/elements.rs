//! The type that the items of lists have in common.

use crate::error::{BrokenAt, BrokenRule, PatchSide};
use crate::value::{Value, ValueKind};
use kube_unions_core::field_path::Segment;

/// The type of all items of some lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elements {
    Maps,
    Scalars,
}

/// Returns the type of the items of a live list and of a patch list, or `None` if both are empty. An integer and a decimal
/// number have the same type.
pub(crate) fn elements(live: &[Value<'_>], patch: &[Value<'_>]) -> Result<Option<Elements>, BrokenAt> {
    let mut found: Option<ValueKind> = None;
    for (list, side) in [(live, PatchSide::Live), (patch, PatchSide::Patch)] {
        for (position, item) in list.iter().enumerate() {
            let kind = item.kind();
            let broken = match (kind, found) {
                (ValueKind::List, None) => BrokenRule::ListOfLists,
                (ValueKind::Null, _) => BrokenRule::NullItem(side),
                (kind, Some(first)) if kind != first => BrokenRule::MixedTypes(first, kind),
                _ => {
                    found = Some(kind);
                    continue;
                }
            };
            return Err(broken.at(Segment::Index(position)));
        }
    }
    Ok(found.map(|kind| if kind == ValueKind::Object { Elements::Maps } else { Elements::Scalars }))
}
