//! The wire types of both forms of `x-kubernetes-unions`. Unknown keys are errors.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

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
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a map with `fields-to-discriminateBy`")]
pub struct ListUnion {
    /// The discriminator: the field with the value of the member that is set.
    #[serde(default)]
    pub discriminator: Option<Box<str>>,
    /// The discriminator value of each member.
    #[serde(rename = "fields-to-discriminateBy")]
    pub fields: BTreeMap<Box<str>, Box<str>>,
}

/// A union of the 2022 form.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a map with `fieldMembers`")]
pub struct MapUnion {
    /// The member that each discriminator value selects. `None` is an empty member: the value selects no field.
    #[serde(rename = "fieldMembers")]
    pub members: BTreeMap<Box<str>, Option<MemberField>>,
}

/// The member that a discriminator value selects.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a map with `name`, or null")]
pub struct MemberField {
    /// The name of the field.
    pub name: Box<str>,
    /// True if the field may be missing while it is selected.
    #[serde(default)]
    pub optional: bool,
}

/// A value is not a valid `x-kubernetes-unions`.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
#[non_exhaustive]
pub enum ExtensionError {
    /// The value has neither form.
    #[error("must be a list (the 2019 form) or a map with `fieldMembers` (the 2022 form)")]
    NeitherForm,
    /// The value has one of the forms, with an error in it.
    #[error("`{path}`: {message}")]
    Malformed {
        /// The path of the error, below the extension.
        path: String,
        message: String,
    },
}

impl Extension {
    /// Reads the value of an extension.
    ///
    /// # Errors
    /// Returns the path of the first unknown key, missing key or wrong type. In the 2019 form each union has an error of
    /// its own, so that the other unions remain.
    pub fn parse(value: &Value) -> Result<Self, ExtensionError> {
        match value {
            Value::Array(unions) => Ok(Self::List(
                unions.iter().enumerate().map(|(position, union)| read(union, &format!("[{position}]"))).collect(),
            )),
            Value::Object(_) => read(value, "").map(Self::Map),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(ExtensionError::NeitherForm),
        }
    }
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
        ExtensionError::Malformed { path, message: error.into_inner().to_string() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
            (json!({}), "`x-kubernetes-unions`: missing field `fieldMembers`"),
            (json!("x"), "must be a list"),
        ] {
            let message = Extension::parse(&value).unwrap_err().to_string();
            assert!(message.starts_with(wanted), "{message}");
            assert!(!message.contains("struct"), "no type names: {message}");
        }
    }
}
