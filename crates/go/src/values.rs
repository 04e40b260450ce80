//! Collects the values of a discriminator from the schema's `enum`, Enum markers and the constants of its Go type.
//!
//! The schema's `enum` decides, because the API server enforces it: a Go source that differs is worth a warning. Without it, the
//! Go sources must agree. The empty string needs no constant, because it is the zero value of a Go string.

use super::finding::FindingKind;
use super::marker::{Marker, Meaning};
use super::packages::{Packages, ScopedType, Underlying, UnknownType};
use kube_unions_core::schema::Schema;
use std::collections::BTreeSet;

/// The values of a discriminator, by source.
#[derive(Debug)]
pub(super) struct DiscriminatorValues {
    /// The values that the schema's `enum` and `allOf` allow.
    schema: Option<BTreeSet<Box<str>>>,
    /// The values that all Enum markers allow, and the constants, each with the subject of a sentence: `the constants of …`.
    sources: Vec<(String, BTreeSet<Box<str>>)>,
    /// Position of a constant whose text the sources do not determine.
    unreadable: Option<String>,
}

/// Returns the first difference of two sources: `the constants of X have A, which the schema's enum lacks`.
fn disagreement(
    (one, ones): (&str, &BTreeSet<Box<str>>),
    (other, others): (&str, &BTreeSet<Box<str>>),
) -> Option<String> {
    let verb = |name: &str, plural: &'static str, singular: &'static str| {
        if name.ends_with("markers") || name.contains("constants") { plural } else { singular }
    };
    let lacks = |one: &str, ones: &BTreeSet<Box<str>>, other: &str, others| {
        let only = quoted(ones.difference(others));
        let (has, lacks) = (verb(one, "have", "has"), verb(other, "lack", "lacks"));
        (!only.is_empty()).then(|| format!("{one} {has} {only}, which {other} {lacks}"))
    };
    lacks(one, ones, other, others).or_else(|| lacks(other, others, one, ones))
}

impl DiscriminatorValues {
    /// Collects the values of a field from its type, its markers and its schema.
    pub(super) fn gather(packages: &Packages, typed: &ScopedType<'_>, markers: &[Marker], schema: &Schema) -> Self {
        let allowed = schema.allowed_texts().map(|values| values.into_iter().map(Into::into).collect());
        let mut values = Self { schema: allowed, sources: Vec::new(), unreadable: None };
        let narrowed = values.add_markers(markers, "the field's Enum marker");
        let mut constants: BTreeSet<Box<str>> = BTreeSet::new();
        let mut title = String::new();
        let mut is_alias = true;
        let resolved = packages.resolve(typed);
        if let Underlying::Unknown { reason: UnknownType::Broken(declaration), .. } = resolved.underlying {
            values.unreadable = Some(format!("{}:{}", declaration.at.file.display(), declaration.at.line));
        }
        for id in resolved.names {
            let Some(declaration) = packages.declaration(id) else { continue };
            let _ = values.add_markers(&declaration.markers, &format!("the Enum marker of `{}`", declaration.name));
            // Constants belong to a type and its aliases, not to the type that it is defined by.
            for (text, at) in if is_alias { packages.constants_of(id) } else { Vec::new() } {
                title = format!("the constants of `{}`", declaration.name);
                match text {
                    Some(text) => drop(constants.insert(text.into())),
                    None => values.unreadable = Some(format!("{}:{}", at.file.display(), at.line)),
                }
            }
            is_alias &= declaration.alias;
        }
        if values.unreadable.is_none() && !constants.is_empty() {
            let listed = values.schema.iter().chain(values.sources.iter().map(|(_, values)| values));
            if listed.into_iter().any(|values| values.contains("")) {
                constants.insert("".into());
            }
            // A field's own marker may leave out constants of the type on purpose.
            if let Some((_, listed)) = values.sources.first().filter(|_| narrowed) {
                let in_schema = |value: &str| values.schema.as_ref().is_some_and(|schema| schema.contains(value));
                constants.retain(|value| listed.contains(value) || in_schema(value));
            }
            values.sources.push((title, constants));
        }
        values
    }

    /// Removes the values that satisfy a condition from the Go sources. Those in the schema's `enum` stay.
    pub(super) fn remove(&mut self, condition: impl Fn(&str) -> bool) {
        let Self { schema, sources, .. } = self;
        let in_schema = |value: &str| schema.as_ref().is_some_and(|schema| schema.contains(value));
        for (_, values) in sources {
            values.retain(|value| in_schema(value) || !condition(value));
        }
    }

    /// Returns the values: those of the schema's `enum`, or else those of the Go sources if these agree.
    ///
    /// # Errors
    /// The kind and the message of a finding: no source has values, or two Go sources differ.
    pub(super) fn known(&self, discriminator: &str) -> Result<&BTreeSet<Box<str>>, (FindingKind, String)> {
        if let Some(schema) = &self.schema {
            return Ok(schema);
        }
        let Some(((first, values), others)) = self.sources.split_first() else {
            let place = self.unreadable.as_ref();
            let why = place.map(|place| format!(", because the Go at {place} cannot be evaluated")).unwrap_or_default();
            let message = format!(
                "the discriminator `{discriminator}` has no known values{why}: declare constants of its type, an Enum marker or \
                 an `enum` in the schema"
            );
            return Err((FindingKind::UnknownValues, message));
        };
        match others.iter().find_map(|(other, others)| disagreement((first, values), (other, others))) {
            Some(disagreement) => {
                let message = format!(
                    "the discriminator `{discriminator}` has contradictory values: {disagreement}; make them equal"
                );
                Err((FindingKind::ContradictoryValues, message))
            }
            None => Ok(values),
        }
    }

    /// Returns a message for each Go source that differs from the schema's `enum`.
    pub(super) fn disagreements(&self, discriminator: &str) -> Vec<String> {
        let Some(schema) = &self.schema else { return Vec::new() };
        let differing = self.sources.iter().filter_map(|(source, values)| {
            let disagreement = disagreement((source, values), ("the schema's enum", schema))?;
            Some(format!(
                "the discriminator `{discriminator}` has contradictory values, and the schema decides: {disagreement}; make \
                 them equal"
            ))
        });
        differing.collect()
    }

    /// Adds the values of Enum markers and returns true if there is one. As in controller-gen, a value must be in each of them.
    fn add_markers(&mut self, markers: &[Marker], name: &str) -> bool {
        let mut found = false;
        for marker in markers {
            let Meaning::Enum(listed) = &marker.meaning else { continue };
            found = true;
            if let Some((source, values)) = self.sources.first_mut() {
                "the Enum markers".clone_into(source);
                values.retain(|value| listed.contains(value));
            } else {
                self.sources.push((name.to_owned(), listed.iter().cloned().collect()));
            }
        }
        found
    }
}

/// Returns values for a message: `A`, `B`, `""`.
pub(super) fn quoted(values: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let quoted = values.into_iter().map(|value| match value.as_ref() {
        "" => "`\"\"`".to_owned(),
        value => format!("`{value}`"),
    });
    quoted.collect::<Vec<_>>().join(", ")
}
