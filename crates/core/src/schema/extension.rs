//! The wire types of both forms of `x-kubernetes-unions`. Unknown keys are errors.

use crate::field_path::Printable;
use crate::listed::listed;
use crate::near::nearest;
use crate::schema::Source;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The key of the members in the 2019 form.
const FIELDS: &str = "fields-to-discriminateBy";

/// The advice for a union of the 2019 form that cannot be read.
const RIGHT_FORM: &str = "write `fields-to-discriminateBy: {FIELD: VALUE, …}`";

/// A value of `x-kubernetes-unions`.
#[derive(Debug)]
pub enum Extension {
    /// The 2019 form: a list on the schema of the object. An invalid union does not affect the others.
    List(Vec<Result<ListUnion, ExtensionError>>),
    /// The 2022 form: a map on the schema of the discriminator.
    Map(MapUnion),
}

/// A union of the 2019 form.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(extend("oneOf" = [
        {"required": ["fields-to-discriminateBy"]},
        {"required": ["members"], "not": {"required": ["discriminator"]}},
    ]))
)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map with `fields-to-discriminateBy`")]
pub struct ListUnion {
    /// The discriminator: the field with the value of the members that are set.
    #[serde(default)]
    pub discriminator: Option<Box<str>>,
    /// The discriminator value of each member. Members with the same value are a group: they may be set together.
    #[serde(rename = "fields-to-discriminateBy", default)]
    pub fields: BTreeMap<Box<str>, Box<str>>,
    /// The members, instead of `fields-to-discriminateBy`: without a discriminator they need no values.
    #[serde(default)]
    pub members: Option<Vec<Box<str>>>,
    /// True if an object must have a member set.
    #[serde(default)]
    pub required: bool,
    /// The members that count as not set if they are `false`, `0`, `""`, `{}` or `[]`.
    #[serde(default)]
    pub empty_is_unset: Vec<Box<str>>,
}

/// A union of the 2022 form.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map with `fieldMembers`")]
pub struct MapUnion {
    /// The members that each discriminator value selects. `None` is an empty member: the value selects no field.
    #[serde(rename = "fieldMembers")]
    pub members: BTreeMap<Box<str>, Option<SelectedFields>>,
    /// True if an object must have a choice.
    #[serde(default)]
    pub required: bool,
    /// The members that count as not set if they are `false`, `0`, `""`, `{}` or `[]`.
    #[serde(default)]
    pub empty_is_unset: Vec<Box<str>>,
}

/// The members that a discriminator value selects: one by its `name`, or several `fields`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(
    feature = "kube",
    derive(schemars::JsonSchema),
    schemars(extend("oneOf" = [
        {"required": ["name"]},
        {"required": ["fields"], "properties": {"optional": {"const": false}}},
    ]))
)]
#[serde(deny_unknown_fields, expecting = "a map with `name` or `fields`, or null")]
pub struct SelectedFields {
    /// The name of the only member.
    #[serde(default)]
    pub name: Option<Box<str>>,
    /// True if the only member may be missing while it is selected.
    #[serde(default)]
    pub optional: bool,
    /// The members by name, instead of `name`.
    #[serde(default)]
    pub fields: Option<BTreeMap<Box<str>, SelectedField>>,
}

/// A member of several that a discriminator value selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = structural))]
#[serde(deny_unknown_fields, expecting = "a map with `optional`, or an empty one")]
pub struct SelectedField {
    /// True if the field may be missing while it is selected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// A value is not a valid `x-kubernetes-unions`.
#[derive(Debug, thiserror::Error)]
#[error("{}{message}", if .path.is_empty() { String::new() } else { format!("`{}`: ", .path) })]
pub struct ExtensionError {
    /// The path of the error, below the extension. Empty if the value has neither form.
    pub(crate) path: String,
    pub(crate) message: String,
}

impl Extension {
    /// Reads the value of an extension, as the annotation and a `UnionDeclaration` may state it.
    ///
    /// # Errors
    /// Returns the path of the first unknown key, missing key or wrong type. In the 2019 form each union has an error of
    /// its own, so that the other unions remain.
    pub fn parse(value: &Value) -> Result<Self, ExtensionError> {
        match value {
            Value::Array(unions) => Ok(Self::List(
                unions
                    .iter()
                    .enumerate()
                    .map(|(position, union)| {
                        let prefix = format!("[{position}]");
                        let union = ListUnion::read(union, &prefix)?;
                        check_unset(&union.empty_is_unset, union.fields.keys(), &prefix)?;
                        Ok(union)
                    })
                    .collect(),
            )),
            Value::Object(_) => {
                let union: MapUnion = read(value, "")?;
                for (value, selected) in &union.members {
                    selected
                        .as_ref()
                        .map_or(Ok(()), SelectedFields::check)
                        .map_err(|message| malformed(&format!("fieldMembers.{value}"), message))?;
                }
                let selected = union.members.values().flatten().flat_map(SelectedFields::names);
                check_unset(&union.empty_is_unset, selected, "")?;
                Ok(Self::Map(union))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Err(malformed("", "must be a list (the 2019 form) or a map with `fieldMembers` (the 2022 form)"))
            }
        }
    }

    /// Returns true if `x-kubernetes-unions` in a schema can say the same. The annotation can say more: several fields of one
    /// value, values of a boolean, what is required, and which empty values are not set.
    pub fn fits_schema(&self) -> bool {
        let is_boolean = |value: &str| matches!(value, "true" | "false" | "");
        match self {
            Self::List(unions) => unions.iter().flatten().all(|union| {
                let distinct: BTreeSet<_> = union.fields.values().collect();
                union.key_beyond_extension().is_none()
                    && distinct.len() == union.fields.len()
                    && !(union.discriminator.is_some() && union.fields.values().all(|value| is_boolean(value)))
            }),
            Self::Map(union) => {
                union.key_beyond_extension().is_none() && !union.members.keys().all(|value| is_boolean(value))
            }
        }
    }
}

impl ListUnion {
    /// Reads a union, and gives listed members their names as values.
    fn read(value: &Value, prefix: &str) -> Result<Self, ExtensionError> {
        let mut union: Self = read(value, prefix)
            .map_err(|error| ExtensionError { message: format!("{}; {RIGHT_FORM}", error.message), ..error })?;
        let malformed = |message: String| malformed(prefix, message);
        let has_fields = value.get(FIELDS).is_some();
        match &union.members {
            None if has_fields => {}
            None => return Err(malformed(format!("missing field `{FIELDS}`; {RIGHT_FORM}"))),
            Some(_) if has_fields => return Err(malformed(format!("has both `{FIELDS}` and `members`; keep one"))),
            Some(_) if union.discriminator.is_some() => {
                return Err(malformed(format!("has a `discriminator`, so each member needs its value; {RIGHT_FORM}")));
            }
            Some(members) => {
                for name in members {
                    if union.fields.insert(name.clone(), name.clone()).is_some() {
                        let name = Printable::new(name, usize::MAX);
                        return Err(malformed(format!("`members` has `{name}` twice; remove one")));
                    }
                }
            }
        }
        Ok(union)
    }

    /// Returns a key that the published extension does not have.
    pub(crate) fn key_beyond_extension(&self) -> Option<&'static str> {
        let listed = self.members.as_ref().map(|_| "members");
        listed.or_else(|| beyond_extension(self.required, &self.empty_is_unset))
    }
}

impl MapUnion {
    /// Returns a key that the published extension does not have.
    pub(crate) fn key_beyond_extension(&self) -> Option<&'static str> {
        let has_fields = self.members.values().flatten().any(|selected| selected.fields.is_some());
        has_fields.then_some("fields").or_else(|| beyond_extension(self.required, &self.empty_is_unset))
    }
}

impl SelectedFields {
    /// Checks that one of `name` and `fields` is given.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match (&self.name, &self.fields, self.optional) {
            (None, None, _) => Err("missing field `name`"),
            (Some(_), Some(_), _) => Err("has both `name` and `fields`; keep one"),
            (None, Some(_), true) => Err("`optional` belongs to each of the `fields`"),
            (Some(_), None, _) | (None, Some(_), false) => Ok(()),
        }
    }

    /// Returns members, each with true if it may be missing, as a value of `fieldMembers`.
    pub fn to_value<'m>(members: impl IntoIterator<Item = (&'m str, bool)>) -> Value {
        let members: Vec<_> = members.into_iter().collect();
        match members[..] {
            [] => Value::Null,
            [(name, false)] => json!({"name": name}),
            [(name, true)] => json!({"name": name, "optional": true}),
            _ => {
                let field = |(name, optional): (&str, bool)| (name.to_owned(), json!(SelectedField { optional }));
                json!({"fields": members.into_iter().map(field).collect::<Map<_, _>>()})
            }
        }
    }

    /// Returns the members, and if each may be missing.
    pub fn members(&self) -> impl Iterator<Item = (&str, bool)> {
        let one = self.name.as_deref().map(|name| (name, self.optional));
        let several = self.fields.iter().flatten();
        one.into_iter().chain(several.map(|(name, SelectedField { optional })| (&**name, *optional)))
    }

    /// Returns the names of the members.
    pub fn names(&self) -> impl Iterator<Item = &Box<str>> {
        self.name.iter().chain(self.fields.iter().flat_map(BTreeMap::keys))
    }
}

impl Source {
    /// Returns true if a declaration may say more than the published extension: several fields of a value, what is required,
    /// and which empty values are not set.
    pub(crate) fn says_more(self) -> bool {
        match self {
            Self::Annotation | Self::Declaration => true,
            Self::Schema | Self::LastApplied | Self::Published => false,
        }
    }
}

/// Removes `additionalProperties: false`, which structural schemas do not have: the API server itself rejects or drops
/// unknown fields.
#[cfg(feature = "kube")]
pub(crate) fn structural(schema: &mut schemars::Schema) {
    schema.remove("additionalProperties");
}

fn beyond_extension(required: bool, empty_is_unset: &[Box<str>]) -> Option<&'static str> {
    required.then_some("required").or((!empty_is_unset.is_empty()).then_some("emptyIsUnset"))
}

/// Checks that `emptyIsUnset` names members.
fn check_unset<'u>(
    empty_is_unset: &[Box<str>],
    members: impl Iterator<Item = &'u Box<str>>,
    prefix: &str,
) -> Result<(), ExtensionError> {
    let members: BTreeSet<&str> = members.map(|name| &**name).collect();
    let quoted = |name: &str| format!("`{}`", Printable::new(name, usize::MAX));
    let mut distinct = BTreeSet::new();
    let message = empty_is_unset.iter().find_map(|name| {
        if members.contains(&**name) {
            return (!distinct.insert(name)).then(|| format!("has {} twice; remove one", quoted(name)));
        }
        let advice = match nearest(name, members.iter().copied()) {
            Some(similar) => format!("did you mean {}?", quoted(similar)),
            None => format!("the members are {}", listed(members.iter().map(|name| quoted(name)), usize::MAX)),
        };
        Some(format!("has {}, which is not a member; {advice}", quoted(name)))
    });
    let separator = if prefix.is_empty() { "" } else { "." };
    message.map_or(Ok(()), |message| Err(malformed(&format!("{prefix}{separator}emptyIsUnset"), message)))
}

fn malformed(path: &str, message: impl Into<String>) -> ExtensionError {
    ExtensionError { path: path.to_owned(), message: message.into() }
}

fn read<'v, T: Deserialize<'v>>(value: &'v Value, prefix: &str) -> Result<T, ExtensionError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let inner = error.path().to_string();
        let path = match (prefix, inner.as_str()) {
            ("", ".") => crate::schema::EXTENSION.to_owned(),
            (_, ".") => prefix.to_owned(),
            ("", _) => inner,
            _ => format!("{prefix}.{inner}"),
        };
        ExtensionError { path, message: error.into_inner().to_string() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let Extension::List(unions) =
            Extension::parse(&json!([{"discriminator": "type", "fields-to-discriminateBy": {"a": "A"}}])).unwrap()
        else {
            panic!("a list is the 2019 form")
        };
        assert_eq!(unions.len(), 1);
        let Extension::Map(union) =
            Extension::parse(&json!({"fieldMembers": {"A": {"name": "a", "optional": true}, "": null}})).unwrap()
        else {
            panic!("a map is the 2022 form")
        };
        assert_eq!(union.members[""], None);
        assert!(union.members["A"].as_ref().unwrap().optional);
        assert_eq!(union.key_beyond_extension(), None);
    }

    #[test]
    fn the_annotation_says_more_than_the_extension() {
        let parsed = |value| Extension::parse(&value).unwrap();
        let Extension::Map(union) = parsed(json!({"required": true, "emptyIsUnset": ["b"],
            "fieldMembers": {"A": {"fields": {"b": {}, "c": {"optional": true}}}, "N": {"fields": {}}, "D": {"name": "d"}}}))
        else {
            panic!("a map is the 2022 form")
        };
        let members = |value: &str| union.members[value].as_ref().unwrap().members().collect::<Vec<_>>();
        assert_eq!(
            (members("A"), members("N"), members("D")),
            (vec![("b", false), ("c", true)], vec![], vec![("d", false)])
        );
        assert_eq!((union.required, union.key_beyond_extension()), (true, Some("fields")));
        let Extension::List(unions) = parsed(json!([{"fields-to-discriminateBy": {"a": "A"}, "required": true}]))
        else {
            panic!("a list is the 2019 form")
        };
        assert_eq!(unions[0].as_ref().unwrap().key_beyond_extension(), Some("required"));
    }

    #[test]
    fn one_wrong_union_of_a_list_leaves_the_others() {
        let Extension::List(unions) =
            Extension::parse(&json!([{"fields-to-discriminateBy": {"a": "A"}}, {"fields": {}}, 7])).unwrap()
        else {
            panic!("a list is the 2019 form")
        };
        assert!(unions[0].is_ok());
        let message = unions[1].as_ref().unwrap_err().to_string();
        assert!(message.starts_with("`[1].fields`: unknown field `fields`"), "{message}");
        assert!(unions[2].is_err());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_path() {
        for (value, wanted) in [
            (
                json!({"fieldMembers": {"A": {"name": "a", "optinal": true}}}),
                "`fieldMembers.A.optinal`: unknown field `optinal`",
            ),
            (json!({"fieldMembers": {"A": {}}}), "`fieldMembers.A`: missing field `name`"),
            (json!({"fieldMembers": {"A": "a"}}), "`fieldMembers.A`: "),
            (
                json!({"fieldMembers": {"A": {"name": "a", "fields": {}}}}),
                "`fieldMembers.A`: has both `name` and `fields`; keep one",
            ),
            (
                json!({"fieldMembers": {"A": {"fields": {"a": {}}, "optional": true}}}),
                "`fieldMembers.A`: `optional` belongs to each of the `fields`",
            ),
            (
                json!({"fieldMembers": {"A": {"fields": {"a": {"optinal": true}}}}}),
                "`fieldMembers.A.fields.a.optinal`: unknown field `optinal`",
            ),
            (
                json!({"fieldMembers": {"A": {"name": "first"}}, "emptyIsUnset": ["frist"]}),
                "`emptyIsUnset`: has `frist`, which is not a member; did you mean `first`?",
            ),
            (json!({}), "`x-kubernetes-unions`: missing field `fieldMembers`"),
            (json!("x"), "must be a list"),
        ] {
            let message = Extension::parse(&value).unwrap_err().to_string();
            assert!(message.starts_with(wanted), "{message}");
            assert!(!message.contains("struct"), "no type names: {message}");
        }
    }
}
