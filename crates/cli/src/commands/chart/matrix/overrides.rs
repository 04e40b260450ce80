//! The overrides with which a user chooses another member of a union: the member, written where the default one is in the values, and nothing else.

use super::samples::Samples;
use super::unions::{RenderedUnion, text_of};
use crate::commands::chart::values::ValuesPath;
use kube_unions_core::schema::Schema;
use kube_unions_core::union::{Choice, SelectedMember, UnionStep};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A choice, written to a place in the values.
#[derive(Debug)]
pub(super) struct NaiveOverride {
    /// The place in the values.
    pub(super) path: ValuesPath,
    /// The fields that the user sets there.
    fields: Map<String, Value>,
    pub(super) choice: String,
    /// The members that the choice allows, those that are optional too.
    allows: BTreeSet<String>,
    /// True if the values have a default of the union there.
    pub(super) has_default: bool,
}

impl NaiveOverride {
    pub(super) fn values(&self) -> Value {
        self.path.iter().rev().fold(Value::Object(self.fields.clone()), |inner, name| json!({ name: inner }))
    }

    /// Returns the members of a union that the choice excludes.
    pub(super) fn excluded<'u>(&self, union: &RenderedUnion<'u>) -> Vec<&'u str> {
        union.members.iter().copied().filter(|name| !self.allows.contains(*name)).collect()
    }

    /// Returns true if a union has the choice: the members, and the value of the discriminator.
    pub(super) fn is_chosen_by(&self, union: &RenderedUnion<'_>) -> bool {
        let discriminator = union.union.discriminator();
        self.fields.iter().all(|(name, value)| {
            if Some(&**name) == discriminator {
                union.value.as_deref() == Some(&*text_of(value))
            } else {
                union.members.contains(&&**name)
            }
        })
    }
}

/// Returns the overrides for unions, each once, in the order of their places.
pub(super) fn overrides<'u, 'd: 'u>(
    values: &Value,
    unions: impl Iterator<Item = (&'u RenderedUnion<'d>, &'u Schema)>,
) -> Vec<NaiveOverride> {
    let mut maps = Vec::new();
    collect(values, &mut Vec::new(), &mut maps);
    let samples = Samples::read();
    let mut found = BTreeMap::new();
    for (union, schema) in unions {
        let sources = maps.iter().filter(|(path, map)| is_source(union, path, map));
        for (path, map) in sources {
            let has_default = union.members.iter().any(|name| map.contains_key(*name));
            for naive in choices(union, schema, &samples) {
                // Those with a sample first.
                let is_made = !naive.fields.keys().any(|name| samples.has(name));
                let key = (path.clone(), is_made, Value::Object(naive.fields.clone()).to_string());
                let naive = found.entry(key).or_insert(NaiveOverride { path: path.clone(), ..naive });
                naive.has_default |= has_default;
            }
        }
    }
    found.into_values().collect()
}

/// Returns true if the object of a union may come from a map of the values: it has a member as well, or a field with the same value, or the
/// name of the object.
fn is_source(union: &RenderedUnion<'_>, path: &ValuesPath, map: &Map<String, Value>) -> bool {
    let is_member = |name: &str| union.members.contains(&name);
    let is_field = |name: &str| is_member(name) || union.union.discriminator() == Some(name);
    // Items have fields that many maps have, like `name`.
    let is_named = union.own_name().is_some();
    let is_same = |(name, value): (&String, &Value)| match (value, union.object.get(name)) {
        (Value::Object(_), Some(Value::Object(_))) => is_member(name),
        (_, Some(rendered)) => (is_named || is_field(name)) && is_equal(value, rendered),
        (_, None) => false,
    };
    map.iter().any(is_same) || (is_named && union.own_name() == path.last().map(String::as_str))
}

/// Returns true for values that a template renders alike: it writes the fields of an object in another order, and a text without its quotes.
fn is_equal(value: &Value, rendered: &Value) -> bool {
    value == rendered || text_of(value) == text_of(rendered)
}

/// Returns the other choices of a union, at no place yet.
fn choices(union: &RenderedUnion<'_>, schema: &Schema, samples: &Samples) -> Vec<NaiveOverride> {
    let at = schema_at(schema, &union.steps);
    let sample = |name: &str| samples.of(name, at.and_then(|at| at.properties.get(name)));
    let discriminator = union.union.discriminator();
    let is_other = |choice: &&Choice| match discriminator {
        Some(_) => !choice.value().is_empty() && union.value.as_deref() != Some(choice.value()),
        None => !choice.members().iter().any(|member| union.members.contains(&member.name())),
    };
    let naive = |choice: &Choice| {
        let mut names: Vec<&str> =
            choice.members().iter().filter(|member| !member.is_optional()).map(SelectedMember::name).collect();
        // The value of a discriminator is a choice without a member.
        if names.is_empty() && discriminator.is_none() {
            names.extend(choice.members().first().map(SelectedMember::name));
        }
        let mut fields: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), sample(name))).collect();
        let mut text = names.join(", ");
        if let Some(discriminator) = discriminator {
            let value = if union.union.is_boolean() { json!(choice.value() == "true") } else { json!(choice.value()) };
            fields.insert(discriminator.to_owned(), value);
            text = format!("{discriminator}: {}", choice.value());
        }
        let allows = choice.members().iter().map(|member| member.name().to_owned()).collect();
        NaiveOverride { path: Vec::new(), fields, choice: text, allows, has_default: false }
    };
    union.union.choices().iter().filter(is_other).map(naive).collect()
}

fn schema_at<'s>(schema: &'s Schema, steps: &[UnionStep<'_>]) -> Option<&'s Schema> {
    steps.iter().try_fold(schema, |schema, step| match step {
        UnionStep::Field(name) => schema.properties.get(*name),
        UnionStep::Values => schema.additional_properties.as_deref(),
        UnionStep::Items { .. } => schema.items.as_deref(),
    })
}

/// Collects the maps of values. Helm replaces a list as a whole, so what is in one meets no default.
fn collect<'v>(values: &'v Value, path: &mut ValuesPath, maps: &mut Vec<(ValuesPath, &'v Map<String, Value>)>) {
    let Some(fields) = values.as_object() else { return };
    if !path.is_empty() {
        maps.push((path.clone(), fields));
    }
    for (name, value) in fields {
        path.push(name.clone());
        collect(value, path, maps);
        path.pop();
    }
}
