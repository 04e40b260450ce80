//! Proposals as the content of the annotation of their CRD.

use super::{VersionProposals, propose};
use crate::input::crd::EditableCrd;
use crate::input::manifest::Document;
use kube_unions_core::declaration::{AnnotationContent, DeclaredMember, DeclaredUnion, Definition};
use kube_unions_core::schema::{Place, SelectedField};
use kube_unions_evidence::{ProposedChoice, ProposedUnion};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The unions that the validations of a CRD enforce and that nothing declares.
pub(in crate::commands) struct ProposedContent {
    pub(in crate::commands) content: AnnotationContent,
    /// The validations that no union of the annotation says, with the reason, a line each.
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
                let mut unions = found.proposals.unions.iter().filter(|it| !it.immutable && !is_declared(&it.path));
                unions.try_for_each(|union| add(places, union))?;
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
fn add(places: &mut BTreeMap<String, Value>, union: &ProposedUnion) -> anyhow::Result<()> {
    let (place, value) = declared(union).graft().map_err(anyhow::Error::msg)?;
    match (places.get_mut(&place.to_pointer()), value) {
        (Some(Value::Array(unions)), Value::Array(more)) => unions.extend(more),
        (_, value) => drop(places.insert(place.to_pointer(), value)),
    }
    Ok(())
}

/// Returns a union as a declaration has it.
fn declared(union: &ProposedUnion) -> DeclaredUnion {
    let members = || union.choices.iter().flat_map(|choice| choice.members.iter().map(move |it| (choice, it)));
    let of_choice = |choice: &ProposedChoice| match &*choice.members {
        [one] => DeclaredMember { name: Some(one.name.clone()), optional: one.optional, fields: None },
        [] => DeclaredMember::default(),
        several => {
            let fields = several.iter().map(|it| (it.name.clone(), SelectedField { optional: it.optional }));
            DeclaredMember { fields: Some(fields.collect()), ..DeclaredMember::default() }
        }
    };
    let has_discriminator = union.discriminator.is_some();
    DeclaredUnion {
        path: union.path.clone(),
        discriminator: union.discriminator.clone(),
        field_members: has_discriminator
            .then(|| union.choices.iter().map(|choice| (choice.value.clone(), of_choice(choice))).collect()),
        fields_to_discriminate_by: (!has_discriminator)
            .then(|| members().map(|(choice, it)| (it.name.clone(), choice.value.clone())).collect()),
        required: union.exactly_one,
        empty_is_unset: union.empty_is_unset.iter().cloned().collect(),
        ..DeclaredUnion::default()
    }
}
