//! Unions as an author declares them on a type, and how they travel in its schema.
//!
//! A union is not put where `x-kubernetes-unions` would stand but beside the fields of its type, as a keyword of its own that
//! nobody else reads. There nothing can lose it on the way to a CRD: a type that is flattened into another takes it along,
//! even where two that are flattened both have one, and it never makes two fields differ that kube compares.

use kube_unions_core::schema::EXTENSION;
use schemars::Schema;
use schemars::transform::Transform;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What the keyword of a union begins with; its value as JSON follows, so that no two unions have the same.
const KEYWORD: &str = "x-kube-unions ";

/// A union whose discriminator decides which member is set: the form of 2022. A transform for the struct that has the fields.
///
/// All values of the discriminator must be listed. Fields are named as they are in JSON.
///
/// ```
/// # use kube_unions_author::Union;
/// #[derive(schemars::JsonSchema)]
/// #[serde(rename_all = "camelCase")]
/// #[schemars(transform = Union::by("type").member("Canary", "canary").optional("BlueGreen", "blueGreen").empty("Recreate"))]
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
pub struct Union {
    discriminator: String,
    choices: Vec<Choice>,
}

/// A value of the discriminator and what it selects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a value and what it selects")]
struct Choice {
    value: String,
    selects: Option<Selected>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a field")]
struct Selected {
    field: String,
    optional: bool,
}

/// A union of which at most one member is set, whichever that is: the form of 2019. A transform for the struct that has the
/// fields, or for an enum whose variants are the fields.
///
/// Setting another member switches to it. A discriminator is not needed; where there is one, it follows the members.
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
    /// Values and the fields they stand for.
    members: Vec<(String, String)>,
}

/// A union as it is found in a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a union")]
pub(super) enum Mark {
    Union(Union),
    AtMostOne(AtMostOne),
}

impl Union {
    /// A union by this discriminator: a required field of type string, best with an enum.
    pub fn by(discriminator: impl Into<String>) -> Self {
        Self { discriminator: discriminator.into(), choices: Vec::new() }
    }

    /// The value selects the field, which must then be set.
    #[must_use]
    pub fn member(self, value: impl Into<String>, field: impl Into<String>) -> Self {
        self.choice(value.into(), Some(Selected { field: field.into(), optional: false }))
    }

    /// The value selects the field, which may be left out all the same.
    #[must_use]
    pub fn optional(self, value: impl Into<String>, field: impl Into<String>) -> Self {
        self.choice(value.into(), Some(Selected { field: field.into(), optional: true }))
    }

    /// The value selects no field.
    #[must_use]
    pub fn empty(self, value: impl Into<String>) -> Self {
        self.choice(value.into(), None)
    }

    fn choice(mut self, value: String, selects: Option<Selected>) -> Self {
        self.choices.push(Choice { value, selects });
        self
    }

    pub(super) fn discriminator(&self) -> &str {
        &self.discriminator
    }

    /// What stands at the discriminator, and the values that are given more than once.
    pub(super) fn extension(&self) -> (Value, Vec<&str>) {
        let (mut members, mut twice) = (Map::new(), Vec::new());
        for Choice { value, selects } in &self.choices {
            let member = match selects {
                None => Value::Null,
                Some(Selected { field, optional: false }) => json!({"name": field}),
                Some(Selected { field, optional: true }) => json!({"name": field, "optional": true}),
            };
            if members.insert(value.clone(), member).is_some() {
                twice.push(value.as_str());
            }
        }
        (json!({"fieldMembers": members}), twice)
    }

    /// A union of the form of 2019 with the same discriminator and members, for asking what is wrong with these where there
    /// is no discriminator to stand on.
    pub(super) fn by_fields(&self) -> Value {
        let selected = self.choices.iter().filter_map(|choice| choice.selects.as_ref());
        let fields: Map<_, _> = selected.map(|selected| (selected.field.clone(), json!(selected.field))).collect();
        json!({"discriminator": self.discriminator, "fields-to-discriminateBy": fields})
    }
}

impl AtMostOne {
    /// A union without members yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The field is a member; the value stands for it in the discriminator, if there is one.
    #[must_use]
    pub fn member(mut self, value: impl Into<String>, field: impl Into<String>) -> Self {
        self.members.push((value.into(), field.into()));
        self
    }

    /// The field that names the member which is set.
    #[must_use]
    pub fn discriminator(mut self, field: impl Into<String>) -> Self {
        self.discriminator = Some(field.into());
        self
    }

    /// What stands in the list at the object, and the fields that are given more than once.
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

impl Transform for Union {
    fn transform(&mut self, schema: &mut Schema) {
        Mark::Union(self.clone()).put_on(schema);
    }
}

impl Transform for AtMostOne {
    fn transform(&mut self, schema: &mut Schema) {
        Mark::AtMostOne(self.clone()).put_on(schema);
    }
}

impl Mark {
    /// The union that a keyword of a schema stands for, if it is one.
    pub(super) fn from_keyword(keyword: &str) -> Option<Result<Self, serde_json::Error>> {
        keyword.strip_prefix(KEYWORD).map(serde_json::from_str)
    }

    /// Whether a keyword declares a union, by us or by its author's own hand.
    pub(super) fn is_keyword(keyword: &str) -> bool {
        keyword == EXTENSION || keyword.starts_with(KEYWORD)
    }

    fn put_on(&self, schema: &mut Schema) {
        // Strings, lists and options of them: there is always a text.
        if let Ok(text) = serde_json::to_string(self) {
            schema.insert(format!("{KEYWORD}{text}"), Value::Bool(true));
        }
    }
}
