//! Proposals as the content of the annotation of their CRD.

use super::{VersionProposals, propose};
use crate::input::crd::EditableCrd;
use crate::input::manifest::Document;
use kube_unions_core::declaration::{AnnotationContent, Definition};
use kube_unions_core::schema::{Place, SelectedFields};
use kube_unions_evidence::ProposedUnion;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The unions that the validations of a CRD enforce and that nothing declares.
pub(in crate::commands) struct ProposedContent {
    pub(in crate::commands) content: AnnotationContent,
    /// What validations enforce and the annotation does not declare, with the reason, a line each.
    pub(in crate::commands) left_out: BTreeSet<String>,
}

impl ProposedContent {
    /// Finds the unions of a CRD. An object that has a declaration keeps it alone.
    pub(in crate::commands) fn find(
        document: &Document,
        definition: &Definition,
        crd: &EditableCrd<'_>,
    ) -> anyhow::Result<Self> {
        let json: Value = serde_json::from_str(&document.text)?;
        let declared = declared_objects(crd);
        let mut proposed = Self { content: AnnotationContent::new(), left_out: BTreeSet::new() };
        for found in propose(document, definition, &json, false, false) {
            for version in found.versions() {
                let is_declared = |path: &str| {
                    let place = Place::from_path(path).map(|place| place.to_pointer()).unwrap_or_default();
                    declared.contains(&(version.to_owned(), place))
                };
                proposed.leave_out(&found, is_declared);
                let places = proposed.content.entry(version.to_owned()).or_default();
                let unions = found.proposals.unions.iter().filter(|it| !it.immutable && !is_declared(&it.path));
                unions.for_each(|union| add(places, union));
            }
        }
        proposed.content.retain(|_, places| !places.is_empty());
        Ok(proposed)
    }

    /// Adds what validations of objects without a declaration enforce, and no union of an annotation can say.
    fn leave_out(&mut self, found: &VersionProposals<'_>, is_declared: impl Fn(&str) -> bool) {
        let mut line = |path: &str, why: &str| {
            let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
            self.left_out.insert(format!("{path}not declared: {why}"));
        };
        for union in found.proposals.unions.iter().filter(|it| it.immutable && !is_declared(&it.path)) {
            line(&union.path, "a rule compares the union with the old object; declare it with `kube-unions propose`");
        }
        for path in &found.proposals.pod_templates {
            line(path, "a pod template; declare it with `kube-unions propose`");
        }
        for doubt in found.proposals.doubts.iter().filter(|doubt| !is_declared(&doubt.path)) {
            let fields = if doubt.fields.is_empty() { String::new() } else { format!("{}: ", doubt.fields.join(", ")) };
            line(&doubt.path, &format!("{fields}{}", doubt.why));
        }
    }
}

impl VersionProposals<'_> {
    /// Returns the names of the versions.
    fn versions(&self) -> Vec<&str> {
        if self.versions.is_empty() {
            let served = self.definition.versions().iter().filter(|version| version.served);
            served.map(|version| &*version.name).collect()
        } else {
            self.versions.clone()
        }
    }
}

/// Returns the objects with a declaration, in a schema or in the annotation: version and JSON Pointer.
fn declared_objects(crd: &EditableCrd<'_>) -> BTreeSet<(String, String)> {
    let annotated = crd.annotation.iter().flatten();
    let annotated = annotated
        .flat_map(|(version, places)| places.iter().map(move |(pointer, value)| (&**version, &**pointer, value)));
    let written = crd.extensions.iter().map(|it| (&*it.version, &*it.pointer, &it.value));
    let objects = annotated.chain(written).filter_map(|(version, pointer, value)| {
        let place = Place::from_pointer(pointer).ok()?;
        // The 2022 form stands on the discriminator.
        let object = if value.is_object() { place.parent()? } else { place };
        Some((version.to_owned(), object.to_pointer()))
    });
    objects.collect()
}

/// Adds a union to the places of a version.
fn add(places: &mut BTreeMap<String, Value>, union: &ProposedUnion) {
    let Ok(object) = Place::from_path(&union.path) else { return };
    let value = union_value(union);
    if let Some(discriminator) = &union.discriminator {
        places.insert(object.property(discriminator).to_pointer(), value);
    } else if let Some(Value::Array(unions)) = places.get_mut(&object.to_pointer()) {
        unions.push(value);
    } else {
        places.insert(object.to_pointer(), Value::Array(vec![value]));
    }
}

/// Returns a union as `x-kubernetes-unions` has it.
fn union_value(union: &ProposedUnion) -> Value {
    let mut value = Map::new();
    if union.discriminator.is_some() {
        let choice = union.choices.iter().map(|choice| {
            let members = choice.members.iter().map(|member| (&*member.name, member.optional));
            (choice.value.clone(), SelectedFields::to_value(members))
        });
        value.insert("fieldMembers".to_owned(), Value::Object(choice.collect()));
    } else {
        let fields = union.choices.iter().flat_map(|choice| {
            choice.members.iter().map(|member| (member.name.clone(), Value::String(choice.value.clone())))
        });
        value.insert("fields-to-discriminateBy".to_owned(), Value::Object(fields.collect()));
    }
    if union.exactly_one {
        value.insert("required".to_owned(), true.into());
    }
    if !union.empty_is_unset.is_empty() {
        value.insert("emptyIsUnset".to_owned(), json!(union.empty_is_unset));
    }
    Value::Object(value)
}
