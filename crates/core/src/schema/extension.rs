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
    List(Vec<Result<WrittenUnion, ExtensionError>>),
    /// The 2022 form: a map on the schema of the discriminator.
    Map(WrittenUnion),
}

/// The two forms of `x-kubernetes-unions`. They differ in their place in the schema and in their normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The 2019 form: a list on the schema of the object. The discriminator is optional.
    List,
    /// The 2022 form: a map on the property of the discriminator.
    Map,
}

/// A union as it is declared, in one shape for both forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenUnion {
    pub(crate) form: Form,
    /// The discriminator, if the declaration names one. That of the 2022 form stands on it.
    pub(crate) discriminator: Option<Box<str>>,
    /// The values with the members that they select, and if each may be missing.
    pub(crate) choices: BTreeMap<Box<str>, BTreeMap<Box<str>, bool>>,
    /// An object without a choice violates the union.
    pub(crate) required: bool,
    /// The members that count as not set if they are `false`, zero, `""`, `{}` or `[]`.
    pub(crate) empty_is_unset: Vec<Box<str>>,
    /// A key of the declaration that the published extension does not have.
    pub(crate) key_beyond_extension: Option<&'static str>,
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
pub(crate) struct ListUnion {
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
pub(crate) struct MapUnion {
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
            Value::Array(unions) => {
                let unions = unions.iter().enumerate();
                Ok(Self::List(
                    unions.map(|(position, union)| ListUnion::read(union, &format!("[{position}]"))).collect(),
                ))
            }
            Value::Object(_) => MapUnion::read(value).map(Self::Map),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Err(malformed("", "must be a list (the 2019 form) or a map with `fieldMembers` (the 2022 form)"))
            }
        }
    }

    /// Returns true if `x-kubernetes-unions` in a schema can say the same. The annotation can say more: several fields of one
    /// value, values of a boolean, what is required, and which empty values are not set.
    pub fn fits_schema(&self) -> bool {
        match self {
            Self::List(unions) => unions.iter().flatten().all(WrittenUnion::fits_schema),
            Self::Map(union) => union.fits_schema(),
        }
    }
}

impl WrittenUnion {
    /// Returns the members, sorted. Several values of the 2022 form may select the same one.
    pub(crate) fn members(&self) -> BTreeSet<&str> {
        self.choices.values().flat_map(BTreeMap::keys).map(|name| &**name).collect()
    }

    fn fits_schema(&self) -> bool {
        let is_boolean = |value: &str| matches!(value, "true" | "false" | "");
        let has_discriminator = self.form == Form::Map || self.discriminator.is_some();
        let has_groups = self.form == Form::List && self.choices.values().any(|members| members.len() > 1);
        let of_boolean = has_discriminator && self.choices.keys().all(|value| is_boolean(value));
        self.key_beyond_extension.is_none() && !has_groups && !of_boolean
    }

    /// Checks that `emptyIsUnset` names members, and notes the options that both forms have beyond the published extension.
    fn checked(self, prefix: &str) -> Result<Self, ExtensionError> {
        check_unset(&self.empty_is_unset, &self.members(), prefix)?;
        let unset = (!self.empty_is_unset.is_empty()).then_some("emptyIsUnset");
        let option = self.required.then_some("required").or(unset);
        Ok(Self { key_beyond_extension: self.key_beyond_extension.or(option), ..self })
    }
}

impl ListUnion {
    /// Reads a union. Listed members have their names as values.
    fn read(value: &Value, prefix: &str) -> Result<WrittenUnion, ExtensionError> {
        let Self { discriminator, fields, members, required, empty_is_unset } = read(value, prefix)
            .map_err(|error| ExtensionError { message: format!("{}; {RIGHT_FORM}", error.message), ..error })?;
        let malformed = |message: String| malformed(prefix, message);
        let has_fields = value.get(FIELDS).is_some();
        let key_beyond_extension = members.as_ref().map(|_| "members");
        let mut choices: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        match members {
            None if has_fields => {
                for (name, value) in fields {
                    choices.entry(value).or_default().insert(name, true);
                }
            }
            None => return Err(malformed(format!("missing field `{FIELDS}`; {RIGHT_FORM}"))),
            Some(_) if has_fields => return Err(malformed(format!("has both `{FIELDS}` and `members`; keep one"))),
            Some(_) if discriminator.is_some() => {
                return Err(malformed(format!("has a `discriminator`, so each member needs its value; {RIGHT_FORM}")));
            }
            Some(members) => {
                for name in members {
                    if choices.insert(name.clone(), BTreeMap::from([(name.clone(), true)])).is_some() {
                        let name = Printable::new(&name, usize::MAX);
                        return Err(malformed(format!("`members` has `{name}` twice; remove one")));
                    }
                }
            }
        }
        let form = Form::List;
        WrittenUnion { form, discriminator, choices, required, empty_is_unset, key_beyond_extension }.checked(prefix)
    }
}

impl MapUnion {
    /// Reads a union without its discriminator, on which it stands.
    fn read(value: &Value) -> Result<WrittenUnion, ExtensionError> {
        let Self { members, required, empty_is_unset } = read(value, "")?;
        let (mut choices, mut key_beyond_extension) = (BTreeMap::new(), None);
        for (value, selected) in members {
            let mut members = BTreeMap::new();
            if let Some(selected) = selected {
                selected.check().map_err(|message| malformed(&format!("fieldMembers.{value}"), message))?;
                key_beyond_extension = key_beyond_extension.or(selected.fields.as_ref().map(|_| "fields"));
                members.extend(selected.members());
            }
            choices.insert(value, members);
        }
        let (form, discriminator) = (Form::Map, None);
        WrittenUnion { form, discriminator, choices, required, empty_is_unset, key_beyond_extension }.checked("")
    }
}

impl SelectedFields {
    /// Checks that one of `name` and `fields` is given.
    fn check(&self) -> Result<(), &'static str> {
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
    fn members(self) -> impl Iterator<Item = (Box<str>, bool)> {
        let one = self.name.map(|name| (name, self.optional));
        let several = self.fields.into_iter().flatten();
        one.into_iter().chain(several.map(|(name, SelectedField { optional })| (name, optional)))
    }
}

impl Source {
    /// Returns true if a declaration may have more than the published extension: several fields of a value, what is required,
    /// and which empty values are not set.
    pub(crate) fn exceeds_extension(self) -> bool {
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

/// Checks that `emptyIsUnset` names members.
fn check_unset(empty_is_unset: &[Box<str>], members: &BTreeSet<&str>, prefix: &str) -> Result<(), ExtensionError> {
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
        assert!(union.choices[""].is_empty());
        assert!(union.choices["A"]["a"]);
        assert_eq!(union.key_beyond_extension, None);
    }

    #[test]
    fn the_annotation_says_more_than_the_extension() {
        let parsed = |value| Extension::parse(&value).unwrap();
        let Extension::Map(union) = parsed(json!({"required": true, "emptyIsUnset": ["b"],
            "fieldMembers": {"A": {"fields": {"b": {}, "c": {"optional": true}}}, "N": {"fields": {}}, "D": {"name": "d"}}}))
        else {
            panic!("a map is the 2022 form")
        };
        let members =
            |value: &str| union.choices[value].iter().map(|(name, optional)| (&**name, *optional)).collect::<Vec<_>>();
        assert_eq!(
            (members("A"), members("N"), members("D")),
            (vec![("b", false), ("c", true)], vec![], vec![("d", false)])
        );
        assert_eq!((union.required, union.key_beyond_extension), (true, Some("fields")));
        let Extension::List(unions) = parsed(json!([{"fields-to-discriminateBy": {"a": "A"}, "required": true}]))
        else {
            panic!("a list is the 2019 form")
        };
        assert_eq!(unions[0].as_ref().unwrap().key_beyond_extension, Some("required"));
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
