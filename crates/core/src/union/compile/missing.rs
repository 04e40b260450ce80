//! Fits a union of a `UnionDeclaration` to the schema of one version: leaves out the members that the schema lacks.
//!
//! One declaration serves several releases of somebody else's CRD, and an older release has fewer members. The rest of the
//! union is in force. `check` checks what is left.

use super::check::PreparedObject;
use super::fault::PlaceFaultKind as Kind;
use super::left_out::{LeftOut, Misnamed, MissingDiscriminator, NameList, TooFew};
use crate::schema::{ListUnion, MapUnion, Schema};
use std::collections::BTreeSet;

/// A union as it is declared.
pub(super) enum Written<'s> {
    List(ListUnion),
    Map(&'s str, MapUnion),
}

impl Written<'_> {
    /// Returns the members, and the discriminator of the 2019 form. The 2022 form is found at its discriminator.
    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::List(union) => Box::new(union.fields.keys().chain(&union.discriminator).map(AsRef::as_ref)),
            Self::Map(_, union) => Box::new(union.members.values().flatten().map(|member| &*member.name)),
        }
    }
}

/// Fits a union to the properties beside it. Returns the rest of the union, unless too little is left of it, and a note if
/// anything is left out. A name that is a path is a fault in every version.
pub(super) fn fit<'s>(union: Written<'s>, object: &mut PreparedObject<'_>) -> (Option<Written<'s>>, Option<Kind>) {
    let schema = object.schema;
    // `check` reports a place of another type.
    if !schema.is_object() {
        return (Some(union), None);
    }
    if let Some(name) = union.names().find(|name| schema.is_path_into_property(name)) {
        return (None, Some(Kind::NotBeside(name.into())));
    }
    match union {
        Written::List(union) => {
            if let Some(name) = union.discriminator.as_ref().filter(|name| !schema.properties.contains_key(*name)) {
                let name = Misnamed::new(name, schema, &BTreeSet::new());
                let missing = MissingDiscriminator { name, keeps_unknown: schema.takes_untyped_fields() };
                return (None, Some(Kind::DiscriminatorLeftOut(missing)));
            }
            fit_list(union, schema)
        }
        Written::Map(discriminator, union) => fit_map(discriminator, union, object),
    }
}

fn fit_list<'s>(mut union: ListUnion, schema: &Schema) -> (Option<Written<'s>>, Option<Kind>) {
    let lacking: BTreeSet<Box<str>> =
        union.fields.keys().filter(|name| !schema.properties.contains_key(*name)).cloned().collect();
    if lacking.is_empty() {
        return (Some(Written::List(union)), None);
    }
    let declared = union.fields.keys().chain(&union.discriminator).map(AsRef::as_ref).collect();
    let members = NameList::new(lacking.iter().map(|name| Misnamed::new(name, schema, &declared)), lacking.len());
    union.fields.retain(|name, _| !lacking.contains(name));
    let too_few = (union.fields.len() < 2).then_some(TooFew::Members);
    let keeps_unknown = schema.takes_untyped_fields();
    let note = LeftOut { members, emptied: NameList::none(), values: NameList::none(), too_few, keeps_unknown };
    (too_few.is_none().then_some(Written::List(union)), Some(Kind::MembersLeftOut(note)))
}

fn fit_map<'s>(
    discriminator: &'s str,
    mut union: MapUnion,
    object: &mut PreparedObject<'_>,
) -> (Option<Written<'s>>, Option<Kind>) {
    let schema = object.schema;
    let selected = |union: &MapUnion| -> BTreeSet<Box<str>> {
        union.members.values().flatten().map(|member| member.name.clone()).collect()
    };
    let all = selected(&union);
    let lacking: BTreeSet<Box<str>> =
        all.iter().filter(|name| !schema.properties.contains_key(*name)).cloned().collect();
    if lacking.is_empty() {
        return (Some(Written::Map(discriminator, union)), None);
    }
    let declared = all.iter().map(AsRef::as_ref).chain([discriminator]).collect();
    let members = NameList::new(lacking.iter().map(|name| Misnamed::new(name, schema, &declared)), lacking.len());
    let property = schema.properties.get_key_value(discriminator);
    let enumerated = property.and_then(|(name, property)| object.values(name, property));
    let (mut emptied, mut values) = (Vec::new(), Vec::new());
    union.members.retain(|value, member| {
        if member.as_ref().is_none_or(|member| !lacking.contains(&member.name)) {
            return true;
        }
        *member = None;
        let accepted = enumerated.is_none_or(|values| values.contains(&**value));
        if accepted {
            emptied.push(value.clone());
        } else {
            values.push(value.clone());
        }
        accepted
    });
    let too_few = match (selected(&union).len(), union.members.len()) {
        (0, _) => Some(TooFew::NoMember),
        (_, 0 | 1) => Some(TooFew::Values),
        _ => None,
    };
    let keeps_unknown = schema.takes_untyped_fields();
    let note =
        LeftOut { members, emptied: NameList::of(emptied), values: NameList::of(values), too_few, keeps_unknown };
    (too_few.is_none().then_some(Written::Map(discriminator, union)), Some(Kind::MembersLeftOut(note)))
}
