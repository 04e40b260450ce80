//! The unions that an author puts on types.

use kube_unions_core::schema::SelectedFields;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A union whose discriminator selects the member (the 2022 form). A transform for the struct that has the fields.
///
/// List every value of the discriminator, and name the fields as JSON does.
///
/// ```
/// # use kube_unions_author::DiscriminatedUnion;
/// #[derive(schemars::JsonSchema)]
/// #[serde(rename_all = "camelCase")]
/// #[schemars(transform = DiscriminatedUnion::by("type").member("Canary", "canary").optional("BlueGreen", "blueGreen").empty("Recreate"))]
/// struct Strategy {
///     r#type: StrategyType,
///     canary: Option<Canary>,
///     blue_green: Option<BlueGreen>,
/// }
/// # #[derive(schemars::JsonSchema)] enum StrategyType { Canary, BlueGreen, Recreate }
/// # #[derive(schemars::JsonSchema)] struct Canary {}
/// # #[derive(schemars::JsonSchema)] struct BlueGreen {}
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a union by a discriminator")]
pub struct DiscriminatedUnion {
    discriminator: String,
    /// Values with a field that they select, if any, and whether it may be missing. A value with several fields occurs several times.
    choices: Vec<(String, Option<(String, bool)>)>,
}

/// A union whose members exclude each other (the 2019 form). A transform for the struct that has the fields. For an enum, use
/// [`EnumUnion`](crate::EnumUnion).
///
/// Setting another member switches to it. A discriminator is optional; it follows the members.
///
/// ```
/// # use kube_unions_author::AtMostOne;
/// #[derive(schemars::JsonSchema)]
/// #[schemars(transform = AtMostOne::new().member("Git", "git").member("Bucket", "bucket"))]
/// struct Source {
///     git: Option<Git>,
///     bucket: Option<Bucket>,
/// }
/// # #[derive(schemars::JsonSchema)] struct Git {}
/// # #[derive(schemars::JsonSchema)] struct Bucket {}
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a union of fields")]
pub struct AtMostOne {
    discriminator: Option<String>,
    /// Values with their fields.
    members: Vec<(String, String)>,
}

impl DiscriminatedUnion {
    /// Creates a union with a discriminator: a required string field, preferably an enum.
    pub fn by(discriminator: impl Into<String>) -> Self {
        Self { discriminator: discriminator.into(), choices: Vec::new() }
    }

    /// Adds a field that a value selects, and that must be set. Further calls with the value add fields.
    #[must_use]
    pub fn member(self, value: impl Into<String>, field: impl Into<String>) -> Self {
        self.choice(value.into(), Some((field.into(), false)))
    }

    /// Adds a field that a value selects, and that may be missing. Further calls with the value add fields.
    #[must_use]
    pub fn optional(self, value: impl Into<String>, field: impl Into<String>) -> Self {
        self.choice(value.into(), Some((field.into(), true)))
    }

    /// Adds a value that selects no field.
    #[must_use]
    pub fn empty(self, value: impl Into<String>) -> Self {
        self.choice(value.into(), None)
    }

    fn choice(mut self, value: String, selects: Option<(String, bool)>) -> Self {
        self.choices.push((value, selects));
        self
    }

    pub(super) fn discriminator(&self) -> &str {
        &self.discriminator
    }

    /// Returns the extension at the discriminator, and the values that select a field twice, or no field and others.
    pub(super) fn extension(&self) -> (Value, Vec<&str>) {
        let (mut members, mut twice) = (Map::new(), Vec::new());
        for (value, _) in &self.choices {
            if members.contains_key(value) {
                continue;
            }
            let selects = self.choices.iter().filter(|(it, _)| it == value).map(|(_, selects)| selects);
            let selects: Vec<_> = selects.collect();
            let fields = selects.iter().copied().flatten().map(|(name, optional)| (name.as_str(), *optional));
            let distinct: BTreeSet<&str> = fields.clone().map(|(name, _)| name).collect();
            if selects.len() > 1 && distinct.len() < selects.len() {
                twice.push(value.as_str());
            }
            members.insert(value.clone(), SelectedFields::to_value(fields));
        }
        (json!({"fieldMembers": members}), twice)
    }

    /// Returns a 2019 union with the same discriminator and members. If the struct has no such discriminator, checking this
    /// union finds the faults of the members.
    pub(super) fn by_fields(&self) -> Value {
        let selected = self.choices.iter().filter_map(|(_, selects)| selects.as_ref());
        let fields: Map<_, _> = selected.map(|(name, _)| (name.clone(), json!(name))).collect();
        json!({"discriminator": self.discriminator, "fields-to-discriminateBy": fields})
    }
}

impl AtMostOne {
    /// Creates a union without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member. `value` is its value of the discriminator, if there is one.
    #[must_use]
    pub fn member(mut self, value: impl Into<String>, field: impl Into<String>) -> Self {
        self.members.push((value.into(), field.into()));
        self
    }

    /// Sets the discriminator, which names the member that is set.
    #[must_use]
    pub fn discriminator(mut self, field: impl Into<String>) -> Self {
        self.discriminator = Some(field.into());
        self
    }

    /// Returns the item of the extension at the object, and the fields that occur more than once.
    pub(super) fn extension(&self) -> (Value, Vec<&str>) {
        let (mut fields, mut twice) = (Map::new(), Vec::new());
        for (value, field) in &self.members {
            if fields.insert(field.clone(), json!(value)).is_some() {
                twice.push(field.as_str());
            }
        }
        let mut union = Map::new();
        if let Some(discriminator) = &self.discriminator {
            union.insert("discriminator".to_owned(), json!(discriminator));
        }
        union.insert("fields-to-discriminateBy".to_owned(), fields.into());
        (union.into(), twice)
    }
}
