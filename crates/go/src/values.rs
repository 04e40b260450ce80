//! Which values a discriminator has: the constants of its Go type, `+kubebuilder:validation:Enum`, and the schema's `enum`.
//! Where more than one of them is there, they must agree; only the empty string needs no constant, since it is what a string
//! of Go is that nobody has set.

use super::marker::{Marker, Meaning};
use super::packages::{Packages, ScopedType};
use kube_unions_core::schema::Schema;
use serde_json::Value;
use std::collections::BTreeSet;

/// The values that each source names.
#[derive(Debug)]
pub(super) struct DiscriminatorValues {
    sources: Vec<ValueSource>,
    /// Whether the schema is among the sources.
    by_schema: bool,
    /// A constant of the type whose text could not be told.
    unreadable: Option<String>,
}

#[derive(Debug)]
struct ValueSource {
    name: String,
    values: BTreeSet<Box<str>>,
}

/// Why it can't be told which values there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValuesError {
    /// Nothing names any; perhaps a constant whose text can't be told, at this place.
    None(Option<String>),
    /// One source has values that another lacks.
    Disagree { one: String, other: String, only: Vec<Box<str>> },
}

impl ValuesError {
    /// What is wrong with the values of a discriminator.
    pub(super) fn of(&self, discriminator: &str) -> String {
        let hint = "declare constants of its type, an Enum marker or an `enum` in the schema";
        match self {
            Self::None(None) => format!("the discriminator `{discriminator}` has no values to go by; {hint}"),
            Self::None(Some(place)) => format!(
                "the discriminator `{discriminator}` has no values to go by, for the text of the constant at {place} can't be told; {hint}"
            ),
            Self::Disagree { one, other, only } => {
                let verb = |name: &str, many: &'static str, one: &'static str| {
                    if name.contains("constants") { many } else { one }
                };
                let (has, lacks) = (verb(one, "have", "has"), verb(other, "lack", "lacks"));
                let only = quoted(only);
                format!(
                    "the values of the discriminator `{discriminator}` are in doubt: {one} {has} {only}, which {other} {lacks}; make them the same"
                )
            }
        }
    }
}

impl DiscriminatorValues {
    /// Gathers the values of a field.
    pub(super) fn gather(packages: &Packages, typed: &ScopedType<'_>, markers: &[Marker], schema: &Schema) -> Self {
        let mut values = Self { sources: Vec::new(), by_schema: false, unreadable: None };
        if let Some(listed) = &schema.values {
            values.by_schema = true;
            values.take("the schema's enum", listed.iter().filter_map(Value::as_str).map(Into::into));
        }
        for marker in markers {
            values.take_marker(marker, "the field's Enum marker");
        }
        let mut constants = BTreeSet::new();
        let mut title = String::new();
        let mut has_constants = true;
        for id in packages.resolve(typed).names {
            let Some(declaration) = packages.declaration(id) else { continue };
            for marker in &declaration.markers {
                values.take_marker(marker, &format!("the Enum marker of `{}`", declaration.name));
            }
            // The constants of the type that another one is made from are not its own.
            let constants_here = if has_constants { packages.constants_of(id) } else { Vec::new() };
            has_constants &= declaration.alias;
            for (text, at) in constants_here {
                title = format!("the constants of `{}`", declaration.name);
                match text {
                    Some(text) => drop(constants.insert(text.into())),
                    None => values.unreadable = Some(format!("{}:{}", at.file.display(), at.line)),
                }
            }
        }
        if values.unreadable.is_none() && !constants.is_empty() {
            if values.sources.iter().any(|source| source.values.contains("")) {
                constants.insert("".into());
            }
            values.take(&title, constants);
        }
        values
    }

    /// Leaves out values that belong to fields which the schema does not have, unless the schema has the value.
    pub(super) fn without(&mut self, absent: impl Fn(&str) -> bool) {
        let schema =
            self.sources.first().filter(|_| self.by_schema).map(|source| source.values.clone()).unwrap_or_default();
        for source in &mut self.sources {
            source.values.retain(|value| schema.contains(value) || !absent(value));
        }
    }

    /// The values, if there are any and all sources agree.
    pub(super) fn agreed(&self) -> Result<&BTreeSet<Box<str>>, ValuesError> {
        let Some((first, others)) = self.sources.split_first() else {
            return Err(ValuesError::None(self.unreadable.clone()));
        };
        for other in others {
            let only = |one: &ValueSource, other: &ValueSource| -> Vec<Box<str>> {
                one.values.difference(&other.values).cloned().collect()
            };
            for (one, other) in [(first, other), (other, first)] {
                let only = only(one, other);
                if !only.is_empty() {
                    let (one, other) = (one.name.clone(), other.name.clone());
                    return Err(ValuesError::Disagree { one, other, only });
                }
            }
        }
        Ok(&first.values)
    }

    fn take_marker(&mut self, marker: &Marker, name: &str) {
        if let Meaning::Enum(listed) = &marker.meaning {
            self.take(name, listed.iter().cloned());
        }
    }

    fn take(&mut self, name: &str, values: impl IntoIterator<Item = Box<str>>) {
        self.sources.push(ValueSource { name: name.to_owned(), values: values.into_iter().collect() });
    }
}

pub(super) fn quoted(values: &[Box<str>]) -> String {
    let quoted = values.iter().map(|value| match &**value {
        "" => "`\"\"`".to_owned(),
        value => format!("`{value}`"),
    });
    quoted.collect::<Vec<_>>().join(", ")
}
