//! A union of a `UnionDeclaration`, as it is written.

use crate::field_path::Printable;
use crate::listed::listed;
use crate::near::nearest;
use crate::schema::{Place, UnionOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Most fields that identify an item of a list together.
pub(super) const MOST_KEYS: usize = 8;

/// A union.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = structural))]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a union with `path`")]
pub struct DeclaredUnion {
    /// The object with the fields, for example `spec.strategy`. Use `spec.volumes[*]` for the items of a list,
    /// `spec.steps.*` for the values of a map, and the empty string for the whole object.
    pub path: String,
    /// The string field that names the member which is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<String>,
    /// The 2022 form: the values of the discriminator and the fields that they select. List every value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_members: Option<BTreeMap<String, DeclaredMember>>,
    /// The 2019 form: the fields and the discriminator value of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields_to_discriminate_by: Option<BTreeMap<String, String>>,
    /// True if an object at the path must have a member set. In the 2022 form a value that selects no member, or an optional
    /// one, is enough. An object that is missing is not checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// The members that count as not set if they are `false`, `0`, `""`, `{}` or `[]`. Such a value is never cleared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "kube", schemars(length(max = 128), extend("x-kubernetes-list-type" = "set")))]
    pub empty_is_unset: Vec<String>,
    /// True if the schema need not describe the fields, because it keeps unknown fields
    /// (`x-kubernetes-preserve-unknown-fields`) at the path or on the way to it. Fields that it does describe are checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schemaless: bool,
    /// With `schemaless`: the fields that identify an item, of each list on the way that the schema does not describe, for
    /// example `spec.template.spec.volumes: [name]`. Nothing can be cleared in a list without keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(feature = "kube", schemars(extend("maxProperties" = 16), transform = sets_of_keys))]
    pub list_keys: BTreeMap<String, Vec<String>>,
}

/// The field that a discriminator value selects.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "kube", derive(schemars::JsonSchema), schemars(transform = structural))]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a member: a map with `name`, or an empty one")]
pub struct DeclaredMember {
    /// The name of the field. A value without a name selects no field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True if the field may be missing while it is selected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

impl DeclaredUnion {
    /// Returns the place in the schema and the extension for it, or the message of a fault.
    pub(super) fn graft(&self) -> Result<(Place, Value), String> {
        let object = Place::from_path(&self.path).map_err(|error| error.to_string())?;
        match (&self.field_members, &self.fields_to_discriminate_by, &self.discriminator) {
            (Some(members), None, Some(discriminator)) => {
                let member = |member: &DeclaredMember| match &member.name {
                    Some(name) => json!({"name": name, "optional": member.optional}),
                    None => Value::Null,
                };
                let members: Map<_, _> = members.iter().map(|(value, field)| (value.clone(), member(field))).collect();
                Ok((object.property(discriminator), json!({"fieldMembers": members})))
            }
            (None, Some(fields), discriminator) => {
                let mut union = json!({"fields-to-discriminateBy": fields});
                if let (Some(name), Some(union)) = (discriminator, union.as_object_mut()) {
                    union.insert("discriminator".to_owned(), name.as_str().into());
                }
                Ok((object, json!([union])))
            }
            (Some(_), None, None) => Err("`fieldMembers` needs the name of its `discriminator`".to_owned()),
            (Some(_), Some(_), _) => Err("has both `fieldMembers` and `fieldsToDiscriminateBy`; keep one".to_owned()),
            (None, None, _) => Err("has neither `fieldMembers` nor `fieldsToDiscriminateBy`; give one".to_owned()),
        }
    }

    /// Returns the rules that the extension cannot state, or the message of a fault.
    pub(super) fn options(&self) -> Result<UnionOptions, String> {
        let selected = self.field_members.iter().flat_map(BTreeMap::values).filter_map(|member| member.name.as_deref());
        let fields = self.fields_to_discriminate_by.iter().flat_map(BTreeMap::keys).map(String::as_str);
        let members: BTreeSet<&str> = selected.chain(fields).collect();
        let mut empty_is_unset: BTreeSet<&str> = BTreeSet::new();
        for name in &self.empty_is_unset {
            if !members.contains(&**name) {
                return Err(not_a_member(name, &members));
            }
            if !empty_is_unset.insert(name) {
                return Err(format!("`emptyIsUnset` has `{}` twice; remove one", Printable::new(name, usize::MAX)));
            }
        }
        let empty_is_unset = empty_is_unset.into_iter().map(Into::into).collect();
        Ok(UnionOptions { required: self.required, empty_is_unset })
    }
}

fn not_a_member(name: &str, members: &BTreeSet<&str>) -> String {
    let quoted = |name: &str| format!("`{}`", Printable::new(name, usize::MAX));
    let advice = match nearest(name, members.iter().copied()) {
        Some(similar) => format!("did you mean {}?", quoted(similar)),
        None => format!("the members are {}", listed(members.iter().map(|name| quoted(name)), usize::MAX)),
    };
    format!("`emptyIsUnset` has {}, which is not a member; {advice}", quoted(name))
}

/// Removes `additionalProperties: false`, which structural schemas do not have: the API server itself rejects or drops
/// unknown fields.
#[cfg(feature = "kube")]
pub(super) fn structural(schema: &mut schemars::Schema) {
    schema.remove("additionalProperties");
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
