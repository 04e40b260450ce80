//! Collects the values of a discriminator from the constants of its Go type, Enum markers and the schema's `enum`.
//!
//! All sources that exist must agree. The empty string needs no constant, because it is the zero value of a Go string.

use super::marker::{Marker, Meaning};
use super::packages::{Packages, ScopedType};
use kube_unions_core::schema::Schema;
use serde_json::Value;
use std::collections::BTreeSet;

/// The values of a discriminator, by source.
#[derive(Debug)]
pub(super) struct DiscriminatorValues {
    /// The schema's `enum` first, if there is one.
    sources: Vec<ValueSource>,
    has_schema_enum: bool,
    /// Position of a constant whose text the sources do not determine.
    unreadable: Option<String>,
}

#[derive(Debug)]
struct ValueSource {
    /// Subject of a sentence: `the constants of …`.
    name: String,
    values: BTreeSet<Box<str>>,
}

/// A discriminator without reliable values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValuesError {
    /// No source has values. Holds the position of an unreadable constant.
    None(Option<String>),
    /// The source `one` has values that `other` lacks.
    Disagree { one: String, other: String, only: Vec<Box<str>> },
}

impl ValuesError {
    pub(super) fn describe(&self, discriminator: &str) -> String {
        let remedy = "declare constants of its type, an Enum marker or an `enum` in the schema";
        match self {
            Self::None(None) => format!("the discriminator `{discriminator}` has no known values: {remedy}"),
            Self::None(Some(place)) => format!(
                "the discriminator `{discriminator}` has no known values, because the constant at {place} is not a string \
                 literal: {remedy}"
            ),
            Self::Disagree { one, other, only } => {
                let verb = |name: &str, plural: &'static str, singular: &'static str| {
                    if name.contains("constants") { plural } else { singular }
                };
                let (has, lacks) = (verb(one, "have", "has"), verb(other, "lack", "lacks"));
                let only = quoted(only);
                format!(
                    "the discriminator `{discriminator}` has contradictory values: {one} {has} {only}, which {other} {lacks}; \
                     make them equal"
                )
            }
        }
    }
}

impl DiscriminatorValues {
    /// Collects the values of a field from its type, its markers and its schema.
    pub(super) fn gather(packages: &Packages, typed: &ScopedType<'_>, markers: &[Marker], schema: &Schema) -> Self {
        let mut values = Self { sources: Vec::new(), has_schema_enum: schema.values.is_some(), unreadable: None };
        if let Some(listed) = &schema.values {
            values.add("the schema's enum", listed.iter().filter_map(Value::as_str).map(Into::into));
        }
        values.add_markers(markers, "the field's Enum marker");
        let mut constants = BTreeSet::new();
        let mut title = String::new();
        let mut is_alias = true;
        for id in packages.resolve(typed).names {
            let Some(declaration) = packages.declaration(id) else { continue };
            values.add_markers(&declaration.markers, &format!("the Enum marker of `{}`", declaration.name));
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
            if values.sources.iter().any(|source| source.values.contains("")) {
                constants.insert("".into());
            }
            values.add(&title, constants);
        }
        values
    }

    /// Removes the values that satisfy a condition, except for those in the schema's `enum`.
    pub(super) fn remove(&mut self, condition: impl Fn(&str) -> bool) {
        let schema = self.sources.first().filter(|_| self.has_schema_enum).map(|source| source.values.clone());
        let schema = schema.unwrap_or_default();
        for source in &mut self.sources {
            source.values.retain(|value| schema.contains(value) || !condition(value));
        }
    }

    /// Returns the values if all sources agree.
    pub(super) fn agreed(&self) -> Result<&BTreeSet<Box<str>>, ValuesError> {
        let Some((first, others)) = self.sources.split_first() else {
            return Err(ValuesError::None(self.unreadable.clone()));
        };
        for (one, other) in others.iter().flat_map(|other| [(first, other), (other, first)]) {
            let only: Vec<Box<str>> = one.values.difference(&other.values).cloned().collect();
            if !only.is_empty() {
                let (one, other) = (one.name.clone(), other.name.clone());
                return Err(ValuesError::Disagree { one, other, only });
            }
        }
        Ok(&first.values)
    }

    fn add_markers(&mut self, markers: &[Marker], name: &str) {
        for marker in markers {
            if let Meaning::Enum(listed) = &marker.meaning {
                self.add(name, listed.iter().cloned());
            }
        }
    }

    fn add(&mut self, name: &str, values: impl IntoIterator<Item = Box<str>>) {
        self.sources.push(ValueSource { name: name.to_owned(), values: values.into_iter().collect() });
    }
}

/// Returns values for a message: `A`, `B`, `""`.
pub(super) fn quoted<'v>(values: impl IntoIterator<Item = &'v Box<str>>) -> String {
    let quoted = values.into_iter().map(|value| match &**value {
        "" => "`\"\"`".to_owned(),
        value => format!("`{value}`"),
    });
    quoted.collect::<Vec<_>>().join(", ")
}
