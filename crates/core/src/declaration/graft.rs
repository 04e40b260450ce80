//! Grafts declarations onto the schemas of a kind, and reports those that do not fit.

use super::{
    ANNOTATION, Declaration, Declared, Definition, DefinitionVersion, Fault, FaultKind, LAST_APPLIED, Origin, Place,
    Source,
};
use crate::field_path::pointer;
use crate::listed::quoted;
use crate::near::nearest;
use crate::schema::{EXTENSION, KeysLeftOut, MOST_UNTYPED_NODES, OriginEntry, PlaceStep, Schema, UntypedError};
use crate::union::not_beside;

/// Most declarations that are kept at one place. An object has at most 255 unions.
const MOST_AT_ONE_PLACE: usize = 255;

/// Most versions of a kind that a fault names.
const MOST_VERSIONS: usize = 16;

impl Definition {
    /// Grafts a `UnionDeclaration` if the kind is its target. Returns true if it is.
    pub fn declare(&mut self, declaration: &Declaration) -> bool {
        if declaration.target().group_kind() != self.kind {
            return false;
        }
        if self.is_exempt() {
            let message = "objects of this kind are never sent to the webhook, which must not block the repair of a cluster; \
                           only the command line applies the declaration";
            self.report_target(FaultKind::ExemptKind, declaration, "/spec/target", message.to_owned());
        }
        for name in &declaration.target().versions {
            let version = self.version_named(name).and_then(|position| self.versions.get(position));
            let message = match version {
                Some(version) if version.served => continue,
                Some(_) => format!("the version `{name}` is not served, so nothing is in force there"),
                None => {
                    let known = self.versions.iter().map(|version| &version.name).take(MOST_VERSIONS);
                    let known = quoted(known, MOST_VERSIONS);
                    format!("the kind has no version `{name}`, so nothing is in force there; it has {known}")
                }
            };
            self.report_target(FaultKind::VersionLeftOut, declaration, "/spec/target/versions", message);
        }
        for position in 0..self.versions.len() {
            let named = &declaration.target().versions;
            let wanted = |version: &DefinitionVersion| {
                (named.is_empty() && version.served) || named.iter().any(|name| **name == *version.name)
            };
            if self.versions.get(position).is_some_and(wanted) {
                for (place, declared) in declaration.unions() {
                    self.graft(position, place, declared.clone());
                }
            }
        }
        true
    }

    /// Grafts a declaration onto the schema of a version, unless a better source has declared the place. If two sources
    /// contradict each other, the better one wins and the other one is reported.
    pub(super) fn graft(&mut self, version: usize, place: &Place, declared: Declared) {
        let Some(target) = self.versions.get_mut(version) else { return };
        if declared.untyped.as_ref().is_none_or(|untyped| !untyped.schemaless)
            && let Some((around, step)) = target.schema.undescribed(place)
        {
            let message = undescribed(&around, step, declared.source);
            return self.report(FaultKind::UndescribedPlace, Some(version), place, declared.by(), message);
        }
        if let Some(untyped) = &declared.untyped
            && let Err(error) = target.schema.add_untyped(untyped, &mut self.untyped_budget)
        {
            return self.report_untyped(version, place, &declared, error);
        }
        self.report_left_out_keys(version, place, &declared);
        let Some(node) = self.versions.get_mut(version).and_then(|target| target.schema.at_mut(place)) else {
            return self.report_missing(version, place, &declared);
        };
        if let Some(better) = node.unions.iter_mut().find(|known| known.source < declared.source) {
            if better.agrees_with(&declared) {
                better.repeat(declared.origin);
            } else {
                let message = contradicts(better.source);
                self.report(FaultKind::Contradiction, Some(version), place, declared.by(), message);
            }
            return;
        }
        let mut others = node.unions.iter_mut().filter(|known| known.source == declared.source);
        if let Some(same) = others.find(|known| known.agrees_with(&declared)) {
            return same.repeat(declared.origin);
        }
        if node.unions.len() >= MOST_AT_ONE_PLACE {
            let message = format!("more than {MOST_AT_ONE_PLACE} declarations have this place; remove some");
            return self.report(FaultKind::TooManyUnions, Some(version), place, declared.by(), message);
        }
        let mut overruled: Vec<_> = node.unions.extract_if(.., |known| known.source > declared.source).collect();
        overruled.retain(|worse| !worse.agrees_with(&declared));
        let message = contradicts(declared.source);
        node.unions.push(declared);
        for worse in overruled {
            self.report(FaultKind::Contradiction, Some(version), place, worse.by(), message.clone());
        }
    }

    /// Reports a place that the schema need not describe, and that cannot be added to it.
    fn report_untyped(&mut self, version: usize, place: &Place, declared: &Declared, error: UntypedError) {
        let of_template = matches!(declared.origin, Some(Origin { entry: OriginEntry::PodTemplate(..), .. }));
        let (kind, at, message) = match error {
            // The parts of a pod template that are missing together are one fault.
            UntypedError::Missing(at) if of_template => return self.report_missing(version, &at, declared),
            UntypedError::Missing(_) => return self.report_missing(version, place, declared),
            UntypedError::Embedded(at) => (
                FaultKind::EmbeddedPlace,
                if of_template { at } else { place.clone() },
                "stands inside an embedded resource, where unions have no effect; declare it for the kind of that resource"
                    .to_owned(),
            ),
            UntypedError::OtherType(at, wanted) => (
                FaultKind::ConflictingType,
                place.clone(),
                format!("`{at}` is not {wanted}, as the schema or another declaration has it; correct one of them"),
            ),
            UntypedError::OtherKeys(at, keys) => (
                FaultKind::ConflictingKeys,
                place.clone(),
                format!(
                    "the schema or another declaration, which is in force, says that the items of `{at}` have the keys {}; make them the \
                     same",
                    quoted(keys.iter(), usize::MAX)
                ),
            ),
            UntypedError::TooMany => (
                FaultKind::TooManyFields,
                place.clone(),
                format!("the declarations of this kind have more than {MOST_UNTYPED_NODES} fields without a schema; remove some"),
            ),
        };
        self.report(kind, Some(version), &at, declared.by(), message);
    }

    /// Reports each list whose keys the schema decides otherwise than `listKeys`. The keys in a pod template are nobody's words.
    fn report_left_out_keys(&mut self, version: usize, place: &Place, declared: &Declared) {
        let (Some(target), Some(untyped)) = (self.versions.get(version), &declared.untyped) else { return };
        if matches!(declared.origin, Some(Origin { entry: OriginEntry::PodTemplate(..), .. })) {
            return;
        }
        let reasons = target.schema.left_out_keys(untyped).map(|(list, reason)| {
            let reason = match reason {
                KeysLeftOut::Others(keys) => format!("its items have the keys {}", quoted(keys.iter(), usize::MAX)),
                KeysLeftOut::Set => "it is a set, whose items have no keys".to_owned(),
                KeysLeftOut::NoField(key) => format!("its items have no field `{key}`"),
            };
            format!("`listKeys` has no effect on `{list}`: by the schema, {reason}")
        });
        for message in reasons.collect::<Vec<_>>() {
            self.report(FaultKind::KeysLeftOut, Some(version), place, declared.by(), message);
        }
    }

    fn report_missing(&mut self, version: usize, place: &Place, declared: &Declared) {
        let Some(target) = self.versions.get(version) else { return };
        let (kind, message) = missing_place(&target.schema, place, declared.source);
        let message = match &declared.origin {
            Some(Origin { entry: OriginEntry::PodTemplate(..), .. }) if kind == FaultKind::PlaceLeftOut => {
                format!("the schema has no `{place}`, so the unions in it are not in force")
            }
            _ => message,
        };
        self.report(kind, Some(version), place, declared.by(), message);
    }

    fn report_target(&mut self, kind: FaultKind, declaration: &Declaration, pointer: &str, message: String) {
        self.faults.push(Fault::of_declaration(kind, &self.name, declaration.name(), pointer, message));
    }

    pub(super) fn report(
        &mut self,
        kind: FaultKind,
        version: Option<usize>,
        place: &Place,
        by: (Source, Option<&Origin>),
        message: String,
    ) {
        let version = version.and_then(|position| self.versions.get(position));
        self.faults.push(fault(kind, &self.name, version, place, by, message));
    }
}

/// Returns a fault of a declaration by this source, and this union if it is a `UnionDeclaration`.
pub(crate) fn fault(
    kind: FaultKind,
    definition: &str,
    version: Option<&DefinitionVersion>,
    place: &Place,
    (source, origin): (Source, Option<&Origin>),
    message: String,
) -> Fault {
    let (pointer, message) = match origin.map(|origin| origin.entry) {
        None => (pointer_of(version, place, source), message),
        Some(entry @ OriginEntry::Union(_)) => (entry.pointer(), message),
        Some(entry @ OriginEntry::PodTemplate(position, _)) => {
            (entry.pointer(), format!("podTemplates[{position}]: {message}"))
        }
    };
    Fault {
        declaration: origin.map(|origin| origin.declaration.to_string()),
        version: version.map(|version| version.name.to_string()),
        path: place.to_string(),
        source: Some(source),
        pointer,
        ..Fault::new(kind, definition, message)
    }
}

/// Returns the kind and the message of a fault: the schema lacks the place of a declaration.
///
/// Another release of somebody else's CRD may have the place, so a `UnionDeclaration` for it has a note. A place that no
/// release can have, because a step leads into a node of another type, is an error.
fn missing_place(schema: &Schema, place: &Place, source: Source) -> (FaultKind, String) {
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

fn contradicts(source: Source) -> String {
    format!("contradicts the {source}, which is in force; make them the same or remove one")
}

/// Returns the message for a place that the schema does not describe, with the reason.
fn undescribed(around: &Place, step: &PlaceStep, source: Source) -> String {
    let around = if around.steps().is_empty() { "the schema".to_owned() } else { format!("the schema of `{around}`") };
    let inner = match step {
        PlaceStep::Property(name) => format!("`{name}`"),
        PlaceStep::Items => "the items of a list".to_owned(),
        PlaceStep::Values => "the values of a map".to_owned(),
    };
    let remedy = if source == Source::Declaration {
        "add `schemaless: true`, and `listKeys` for the lists on the way"
    } else {
        "describe it there, or declare the union in a UnionDeclaration with `schemaless: true`"
    };
    format!("{around} keeps unknown fields and does not describe {inner}; {remedy}")
}

/// Returns the JSON Pointer of a declaration in the document of its CRD or `UnionDeclaration`.
pub(crate) fn pointer_of(version: Option<&DefinitionVersion>, place: &Place, source: Source) -> String {
    let annotation = |name: &str| pointer(["metadata", "annotations", name]);
    match (source, version) {
        (Source::Schema | Source::Published, Some(version)) => {
            let schema = format!("/spec/versions/{}/schema/openAPIV3Schema", version.position);
            format!("{schema}{}/{EXTENSION}", place.to_pointer())
        }
        (Source::Schema | Source::Published, None) => "/spec/versions".to_owned(),
        (Source::Declaration, _) => "/spec".to_owned(),
        (Source::Annotation, None) => annotation(ANNOTATION),
        (Source::Annotation, Some(version)) => annotation(ANNOTATION) + &pointer([&*version.name, &place.to_pointer()]),
        (Source::LastApplied, _) => annotation(LAST_APPLIED),
    }
}
