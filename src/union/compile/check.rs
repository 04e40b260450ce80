//! The checks of one declaration against the object it stands on.

use super::PlaceFaultKind as Kind;
use crate::schema::{Declared, DefaultValue, ListUnion, MapUnion, Schema, Source};
use crate::union::plan::Role;
use crate::union::{Choice, Form, MemberSet, Selected, Union};
use std::collections::BTreeMap;

/// A declaration that is right by itself. Whether another one has its fields already is asked by [`free`].
pub(super) struct Checked {
    form: Form,
    discriminator: Option<Box<str>>,
    members: Vec<Box<str>>,
    choices: Vec<Choice>,
}

/// Checks a union of the 2019 form. All that is wrong is reported, not the first thing only.
pub(super) fn list(union: &ListUnion, schema: &Schema) -> Result<Checked, Vec<Kind>> {
    let mut faults = Vec::new();
    if !schema.is_object() {
        return Err(vec![Kind::NotAnObject(describe(schema))]);
    }
    let discriminator = union.discriminator.as_deref();
    let mut by_value: BTreeMap<&str, &str> = BTreeMap::new();
    for (member, value) in &union.fields {
        if value.is_empty() {
            faults.push(Kind::EmptyValue(member.clone()));
        } else if let Some(one) = by_value.insert(value, member) {
            faults.push(Kind::SameValue { one: one.into(), other: member.clone(), value: value.clone() });
        }
    }
    let members: Vec<_> = union.fields.keys().cloned().collect();
    check_members(&members, discriminator, schema, &mut faults);
    if let Some(name) = discriminator
        && let Some(values) = check_discriminator(name, schema, &mut faults)
    {
        let missing = union.fields.values().filter(|value| !values.contains(&&***value));
        faults.extend(missing.map(|value| Kind::ValueNotInEnum { discriminator: name.into(), value: value.clone() }));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let choices = by_value.into_iter().map(|(value, member)| choice(&members, value, Some((member, true)))).collect();
    Ok(Checked { form: Form::List, discriminator: union.discriminator.clone(), members, choices })
}

/// Checks a union of the 2022 form that stands on the property `discriminator` of `schema`.
pub(super) fn map(union: &MapUnion, discriminator: &str, schema: &Schema) -> Result<Checked, Vec<Kind>> {
    let mut faults = Vec::new();
    let mut members: Vec<_> = union.members.values().flatten().map(|member| member.name.clone()).collect();
    members.sort();
    // Two values may select one field.
    members.dedup();
    check_members(&members, Some(discriminator), schema, &mut faults);
    if let Some(values) = check_discriminator(discriminator, schema, &mut faults) {
        let declared = || union.members.keys();
        let missing = declared().filter(|value| !values.contains(&&***value));
        faults.extend(
            missing.map(|value| Kind::ValueNotInEnum { discriminator: discriminator.into(), value: value.clone() }),
        );
        let undeclared = values.iter().filter(|value| !union.members.contains_key(**value));
        faults.extend(
            undeclared.map(|value| Kind::EnumValueNotDeclared {
                discriminator: discriminator.into(),
                value: (*value).into(),
            }),
        );
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let choices = union
        .members
        .iter()
        .map(|(value, member)| choice(&members, value, member.as_ref().map(|member| (&*member.name, member.optional))))
        .collect();
    Ok(Checked { form: Form::Map, discriminator: Some(discriminator.into()), members, choices })
}

/// Checks what an API server publishes of its own types more closely: its generator takes the name of a Go field for the value,
/// which is often wrong, so values that no enum confirms are not trusted.
pub(super) fn published(checked: Checked, source: Source, schema: &Schema) -> Result<Checked, Vec<Kind>> {
    match checked.discriminator_in(schema) {
        Some((name, discriminator)) if source == Source::Published && discriminator.values.is_none() => {
            let values = checked.choices.iter().map(|choice| choice.value.clone()).collect();
            Err(vec![Kind::ValuesUnconfirmed { discriminator: name.into(), values }])
        }
        _ => Ok(checked),
    }
}

/// Checks that no union of the object has one of the fields already.
pub(super) fn free(checked: &Checked, roles: &BTreeMap<Box<str>, Role>) -> Result<(), Vec<Kind>> {
    let fields = checked.members.iter().chain(&checked.discriminator);
    let taken: Vec<_> =
        fields.filter(|name| roles.contains_key(*name)).map(|name| Kind::FieldTaken(name.clone())).collect();
    if taken.is_empty() { Ok(()) } else { Err(taken) }
}

impl Checked {
    /// Notes which fields the union has, as the object's union of this number.
    pub(super) fn claim(&self, number: u8, roles: &mut BTreeMap<Box<str>, Role>) {
        for (index, member) in (0_u8..).zip(&self.members) {
            roles.insert(member.clone(), Role::Member { union: number, index });
        }
        if let Some(name) = &self.discriminator {
            roles.insert(name.clone(), Role::Discriminator { union: number });
        }
    }

    /// The discriminator's name and schema.
    pub(super) fn discriminator_in<'s>(&'s self, schema: &'s Schema) -> Option<(&'s str, &'s Schema)> {
        let (name, schema) = schema.properties.get_key_value(self.discriminator.as_ref()?)?;
        Some((name, schema))
    }

    pub(super) fn into_union(self, path: String, declared: &Declared) -> Union {
        Union {
            path: path.into(),
            form: self.form,
            source: declared.source,
            origin: declared.origin.clone(),
            action: declared.action,
            discriminator: self.discriminator,
            members: self.members.into(),
            choices: self.choices.into(),
        }
    }
}

fn check_members(members: &[Box<str>], discriminator: Option<&str>, schema: &Schema, faults: &mut Vec<Kind>) {
    if members.is_empty() {
        faults.push(Kind::NoMembers);
    }
    if members.len() > MemberSet::CAPACITY {
        faults.push(Kind::TooManyMembers(members.len()));
    }
    for member in members {
        if Some(&**member) == discriminator {
            faults.push(Kind::MemberIsDiscriminator(member.clone()));
            continue;
        }
        let Some(property) = schema.properties.get(member) else {
            faults.push(Kind::NoSuchMember(member.clone()));
            continue;
        };
        if schema.required.contains(member) {
            faults.push(Kind::MemberRequired(member.clone()));
        }
        if property.default != DefaultValue::Absent {
            faults.push(Kind::MemberHasDefault(member.clone()));
        }
    }
}

/// The values of the discriminator's enum, if it has one.
fn check_discriminator<'s>(name: &str, schema: &'s Schema, faults: &mut Vec<Kind>) -> Option<Vec<&'s str>> {
    let Some(discriminator) = schema.properties.get(name) else {
        faults.push(Kind::NoSuchDiscriminator(name.into()));
        return None;
    };
    if discriminator.type_name.as_deref() != Some("string") {
        faults.push(Kind::DiscriminatorNotString { name: name.into(), found: describe(discriminator) });
        return None;
    }
    Some(discriminator.values.as_ref()?.iter().filter_map(serde_json::Value::as_str).collect())
}

/// A value and the member it selects, with whether that is optional. `members` is sorted and has the member.
fn choice(members: &[Box<str>], value: &str, selects: Option<(&str, bool)>) -> Choice {
    let selected = selects.and_then(|(name, optional)| {
        let found = members.binary_search_by(|member| (**member).cmp(name)).ok()?;
        Some(Selected { index: u8::try_from(found).ok()?, name: name.into(), optional })
    });
    Choice { value: value.into(), selected }
}

fn describe(schema: &Schema) -> String {
    schema.type_name.as_deref().map_or_else(|| "of no declared type".to_owned(), |name| format!("of type {name}"))
}
