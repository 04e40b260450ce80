//! Tells why a schema lacks the place of a declaration.

use super::{FaultKind, Place, Source};
use crate::near::nearest;
use crate::schema::{PlaceStep, Schema};
use crate::union::not_beside;

/// Returns the kind and the message of a fault: the schema lacks the place of a declaration.
///
/// Another release of somebody else's CRD may have the place, so a `UnionDeclaration` for it has a note. A place that no
/// release can have, because a step leads into a node of another type, is an error.
pub(super) fn missing_place(schema: &Schema, place: &Place, source: Source) -> (FaultKind, String) {
    const LACKS: &str = "the schema has no such place";
    let error =
        |why: &str| (FaultKind::UnknownPlace, format!("{LACKS}{why}; correct the path or remove the declaration"));
    if source != Source::Declaration {
        return error("");
    }
    let mut at = Place::root();
    let mut node = schema;
    for step in place.steps() {
        let inner = at.then(step.clone());
        if let Some(inside) = schema.at(&inner) {
            (at, node) = (inner, inside);
            continue;
        }
        let is_list = node.type_name.as_deref() == Some("array") || node.items.is_some();
        return match step {
            PlaceStep::Property(_) if is_list => error(&format!(": `{at}` is a list, whose items are `{at}[*]`")),
            PlaceStep::Property(_) if node.additional_properties.is_some() => {
                error(&format!(": `{at}` is a map, whose values are `{at}.*`"))
            }
            PlaceStep::Property(name) if node.is_path_into_property(name) => {
                (FaultKind::MemberElsewhere, not_beside(name))
            }
            PlaceStep::Property(name) if !node.properties.is_empty() => {
                let near = nearest(name, node.properties.keys().map(AsRef::as_ref));
                let near = near.map(|near| format!("; did you mean `{}`?", at.property(near))).unwrap_or_default();
                (
                    FaultKind::PlaceLeftOut,
                    format!("{LACKS}, so this union is not in force: there is no `{inner}`{near}"),
                )
            }
            PlaceStep::Items if !is_list && node.type_name.is_some() => error(&format!(": `{at}` is not a list")),
            PlaceStep::Values if !node.properties.is_empty() => error(&format!(": `{at}` is not a map")),
            PlaceStep::Property(_) | PlaceStep::Items | PlaceStep::Values => error(""),
        };
    }
    error("")
}
