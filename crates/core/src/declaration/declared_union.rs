//! A union of a `UnionDeclaration`, as it is written.

#[cfg(feature = "kube")]
use crate::schema::structural;
use crate::schema::{Extension, ExtensionError, Place, SelectedField};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Most fields that identify an item of a list together.
pub(super) const MOST_KEYS: usize = 8;

/// A union.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = structural))]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a union with `path`")]
pub struct DeclaredUnion {
    /// The object with the fields, for example `spec.strategy`. Use `spec.volumes[*]` for the items of a list,
    /// `spec.steps.*` for the values of a map, and the empty string for the whole object.
    pub path: String,
    /// The field that names the members which are set: a string, or a boolean with the values `"true"` and `"false"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<String>,
    /// The 2022 form: the values of the discriminator and the fields that they select. List every value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_members: Option<BTreeMap<String, DeclaredMember>>,
    /// The 2019 form: the fields and the discriminator value of each. Fields with the same value are a group: they may be set
    /// together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields_to_discriminate_by: Option<BTreeMap<String, String>>,
    /// The fields, if there is no discriminator: then they need no values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kube", schemars(length(min = 1, max = 128), extend("x-kubernetes-list-type" = "set")))]
    pub members: Option<Vec<String>>,
    /// True if an object at the path must have a member set. In the 2022 form a value that selects no member, or an optional
    /// one, is enough. An object that is missing is not checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// The members that count as not set if they are `false`, `0`, `""`, `{}` or `[]`. Such a value is never cleared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kube", schemars(length(max = 128), extend("x-kubernetes-list-type" = "set")))]
    pub empty_is_unset: Vec<String>,
    /// True if the schema need not describe the fields, because it keeps unknown fields
    /// (`x-kubernetes-preserve-unknown-fields`) at the path or on the way to it. Fields that it does describe are checked. A
    /// discriminator that it does not describe is a boolean if its values are `true` and `false`, and a string otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schemaless: bool,
    /// The fields that identify an item, of each list on the way that the schema does not describe, or describes without
    /// keys, for example `spec.template.spec.volumes: [name]`. Nothing can be cleared in a list without keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "kube", schemars(extend("maxProperties" = 16), transform = sets_of_keys))]
    pub list_keys: BTreeMap<String, Vec<String>>,
}

/// The field that a discriminator value selects, or the fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = structural))]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a member: a map with `name` or `fields`, or an empty one"
)]
pub struct DeclaredMember {
    /// The name of the field. A value with neither `name` nor `fields` selects no field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True if the field may be missing while it is selected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Several fields by name, instead of `name`. A field may be selected by several values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "kube", schemars(extend("maxProperties" = 128)))]
    pub fields: Option<BTreeMap<String, SelectedField>>,
}

impl DeclaredMember {
    /// Returns the names of the fields.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.name.iter().chain(self.fields.iter().flat_map(BTreeMap::keys)).map(String::as_str)
    }
}

impl DeclaredUnion {
    /// Returns the place in the schema and the value of `x-kubernetes-unions` there: a list of one union, or a union on its
    /// discriminator.
    ///
    /// # Errors
    /// Returns the message of a fault.
    pub fn graft(&self) -> Result<(Place, Value), String> {
        let object = Place::from_path(&self.path).map_err(|error| error.to_string())?;
        let own = (&self.field_members, &self.fields_to_discriminate_by, &self.discriminator);
        let (place, value) = match own {
            (None, None, None) if self.members.is_some() => {
                let mut names = self.members.clone().unwrap_or_default();
                names.sort();
                (object, json!([self.with_options(json!({"members": names}))]))
            }
            _ if self.members.is_some() => {
                return Err("`members` is for a union without a discriminator, instead of `fieldMembers` and \
                            `fieldsToDiscriminateBy`; keep one"
                    .to_owned());
            }
            (Some(members), None, Some(discriminator)) => {
                // A value that selects no field is null there.
                let selected =
                    |one: &DeclaredMember| if *one == DeclaredMember::default() { Value::Null } else { json!(one) };
                let members: Map<_, _> = members.iter().map(|(value, one)| (value.clone(), selected(one))).collect();
                (object.property(discriminator), self.with_options(json!({"fieldMembers": members})))
            }
            (None, Some(fields), discriminator) => {
                let mut union = json!({"fields-to-discriminateBy": fields});
                if let (Some(name), Some(union)) = (discriminator, union.as_object_mut()) {
                    union.insert("discriminator".to_owned(), name.as_str().into());
                }
                (object, json!([self.with_options(union)]))
            }
            (Some(_), None, None) => return Err("`fieldMembers` needs the name of its `discriminator`".to_owned()),
            (Some(_), Some(_), _) => {
                return Err("has both `fieldMembers` and `fieldsToDiscriminateBy`; keep one".to_owned());
            }
            (None, None, _) => {
                return Err("has no `fieldMembers`, `fieldsToDiscriminateBy` or `members`; give one".to_owned());
            }
        };
        match Extension::parse(&value) {
            Ok(Extension::List(mut unions)) => unions.pop().map_or(Ok(()), |union| union.map(|_| ())),
            parsed => parsed.map(|_| ()),
        }
        .map_err(|ExtensionError { path, message }| format!("`{}` {message}", path.trim_start_matches("[0].")))?;
        Ok((place, value))
    }

    fn with_options(&self, mut union: Value) -> Value {
        if let Some(union) = union.as_object_mut() {
            union.extend(self.required.then(|| ("required".to_owned(), true.into())));
            let unset = (!self.empty_is_unset.is_empty()).then(|| {
                let mut names = self.empty_is_unset.clone();
                names.sort();
                names.into()
            });
            union.extend(unset.map(|unset| ("emptyIsUnset".to_owned(), unset)));
        }
        union
    }
}

/// Makes the fields that identify an item of a list a bounded set.
#[cfg(feature = "kube")]
fn sets_of_keys(schema: &mut schemars::Schema) {
    if let Some(keys) = schema.get_mut("additionalProperties").and_then(Value::as_object_mut) {
        keys.insert("minItems".to_owned(), 1.into());
        keys.insert("maxItems".to_owned(), MOST_KEYS.into());
        keys.insert("x-kubernetes-list-type".to_owned(), "set".into());
    }
}
