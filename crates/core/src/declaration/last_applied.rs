//! Declarations in the last applied configuration: client-side `kubectl apply` keeps the CRD as its author sent it in an
//! annotation, including the extension that the API server drops from the schema.
//!
//! The annotation is stale if the CRD was changed by other means. A declaration in it is used only if every field that it
//! names is in the live schema.

use super::{Definition, FaultKind, Source, wire};
use crate::schema::{Declared, EXTENSION, Extension, Origin, Place, PlaceStep, Schema};
use serde_json::value::RawValue;

/// The name of the annotation.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

const BY: (Source, Option<&Origin>) = (Source::LastApplied, None);

pub(super) fn graft(definition: &mut Definition, text: &str) {
    // Most CRDs have the annotation, which is as large as the CRD. Few have a union in it.
    if !text.contains(EXTENSION) {
        return;
    }
    let document: Result<wire::WireDocument<&RawValue>, _> = wire::read(text, "", wire::CRD.1);
    let spec = document.and_then(|document| wire::read::<wire::Spec>(document.spec.get(), "spec.", wire::CRD.1));
    let spec = match spec {
        Ok(spec) => spec,
        Err(error) => {
            let message = format!("{error}; apply the CRD again");
            return definition.report(FaultKind::StaleLastApplied, None, &Place::root(), BY, message);
        }
    };
    for applied in spec.versions.into_iter().enumerate().filter_map(wire::WireVersion::into_version) {
        let Some(version) = definition.version_named(&applied.name) else { continue };
        let declared = applied.declarations().into_iter();
        for (place, value) in
            declared.flat_map(|(place, all)| all.into_iter().map(move |one| (place.clone(), one.value)))
        {
            let live = definition.versions.get(version).map(|version| &version.schema);
            let missing = live.map_or_else(Vec::new, |live| missing_fields(live, &place, &value));
            if missing.is_empty() {
                definition.graft(version, &place, Declared::new(value, Source::LastApplied));
            } else {
                let message =
                    format!("stale and not used, the schema no longer has {}; apply the CRD again", missing.join(", "));
                definition.report(FaultKind::StaleLastApplied, Some(version), &place, BY, message);
            }
        }
    }
}

/// Returns the fields that a declaration names and that the live schema lacks.
fn missing_fields(live: &Schema, place: &Place, value: &serde_json::Value) -> Vec<String> {
    // In the 2022 form the place is the discriminator, a property of the object with the members.
    let is_property = matches!(place.steps().last(), Some(PlaceStep::Property(_)));
    let object = place.parent().filter(|_| value.is_object() && is_property).unwrap_or_else(|| place.clone());
    let (Some(node), Some(_)) = (live.at(&object), live.at(place)) else { return vec![format!("`{place}`")] };
    let unions = match Extension::parse(value) {
        Ok(Extension::List(unions)) => unions.into_iter().flatten().collect(),
        Ok(Extension::Map(union)) => vec![union],
        // Compiling reports this.
        Err(_) => Vec::new(),
    };
    let named = unions.iter().flat_map(|union| union.members().into_iter().chain(union.discriminator.as_deref()));
    named
        .filter(|name| !node.properties.contains_key(*name))
        .map(|name| format!("`{}`", object.property(name)))
        .collect()
}
