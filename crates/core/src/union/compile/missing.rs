//! Fits a union of a `UnionDeclaration` to the schema of one version: leaves out the members that the schema lacks.
//!
//! One declaration serves several releases of somebody else's CRD, and an older release has fewer members. The rest of the
//! union is in force. `check` checks what is left.

use super::check::PreparedObject;
use super::fault::{Flaw, did_you_mean, near_property};
use crate::declaration::FaultKind;
use crate::listed::{listed, quoted};
use crate::schema::{Schema, WrittenUnion};
use crate::union::Form;
use std::collections::{BTreeMap, BTreeSet};

/// Most names that a note lists. The rest is counted.
const MOST_LISTED: usize = 8;

/// Advice for fields that the schema lacks although it keeps them.
const SCHEMALESS: &str = "; the API server keeps unknown fields here: if such a field is meant, add `schemaless: true`";

/// Returns the message for a member or a discriminator that is a field of another object.
pub(crate) fn not_beside(name: &str) -> String {
    format!(
        "`{name}` is a path, but the discriminator and the members of a union are fields of one object; declare the union at the \
         object that has them all"
    )
}

/// Fits a union to the properties beside it. Returns the rest of the union, unless too little is left of it, and a note if
/// anything is left out. A name that is a path is a fault in every version.
pub(super) fn fit(mut union: WrittenUnion, object: &mut PreparedObject<'_>) -> (Option<WrittenUnion>, Option<Flaw>) {
    let schema = object.schema;
    // `check` reports a place of another type.
    if !schema.is_object() {
        return (Some(union), None);
    }
    // The 2022 form is found at its discriminator.
    let searched = union.discriminator.as_deref().filter(|_| union.form == Form::List);
    let path = union.members().into_iter().chain(searched).find(|name| schema.is_path_into_property(name));
    if let Some(name) = path {
        return (None, Some(Flaw::new(FaultKind::MemberElsewhere, not_beside(name))));
    }
    if let Some(name) = searched.filter(|name| !schema.properties.contains_key(*name)) {
        return (None, Some(discriminator_left_out(name, schema)));
    }
    let mut declared = union.members();
    let lacking: BTreeSet<Box<str>> =
        declared.iter().filter(|name| !schema.properties.contains_key(**name)).map(|name| (*name).into()).collect();
    if lacking.is_empty() {
        return (Some(union), None);
    }
    declared.extend(union.discriminator.as_deref());
    let note = members_left_out(&lacking, schema, &declared);
    let property = union.discriminator.as_deref().and_then(|name| schema.properties.get_key_value(name));
    let enumerated = property.and_then(|(name, property)| object.values(name, property));
    let (form, mut emptied, mut values) = (union.form, Vec::new(), Vec::new());
    union.empty_is_unset.retain(|name| !lacking.contains(name));
    union.choices.retain(|value, members| {
        let declared = members.len();
        members.retain(|name, _| !lacking.contains(name));
        if members.len() == declared {
            return true;
        }
        if form == Form::List {
            return !members.is_empty();
        }
        // A field of the value may be left because another value selects it, too.
        let accepted = enumerated.is_none_or(|values| values.contains(&**value));
        if !accepted {
            values.push(value.clone());
        } else if members.is_empty() {
            emptied.push(value.clone());
        }
        accepted
    });
    let too_few = match (form, union.choices.len()) {
        (Form::List, 0 | 1) => Some("fewer than two members are left"),
        (Form::Map, _) if union.choices.values().all(BTreeMap::is_empty) => Some("no member is left"),
        (Form::Map, 0 | 1) => Some("fewer than two values are left"),
        (Form::List | Form::Map, _) => None,
    };
    let note = note.flaw(too_few, &emptied, &values);
    (too_few.is_none().then_some(union), Some(note))
}

/// A note about members that are left out.
struct MembersLeftOut {
    message: String,
    /// The advice at its end, empty if the schema keeps no unknown fields or has a property of a similar name for each member.
    advice: &'static str,
}

fn members_left_out(names: &BTreeSet<Box<str>>, schema: &Schema, declared: &BTreeSet<&str>) -> MembersLeftOut {
    let mut guessed = names.len() <= MOST_LISTED;
    let members = names.iter().map(|name| {
        let near = near_property(name, schema, declared);
        guessed &= near.is_some();
        misnamed(name, near)
    });
    let members = listed(members, MOST_LISTED);
    let [noun, these] =
        if names.len() == 1 { ["property", "this member is"] } else { ["properties", "these members are"] };
    let message = format!("the schema has no {noun} {members}, so {these} left out");
    MembersLeftOut { message, advice: if schema.takes_untyped_fields() && !guessed { SCHEMALESS } else { "" } }
}

impl MembersLeftOut {
    /// Returns the note, with the reason why the rest of the union is not in force, or with what becomes of the values whose
    /// members are left out: `emptied` select no member now, and `values` are those that the enum lacks as well.
    fn flaw(self, too_few: Option<&str>, emptied: &[Box<str>], values: &[Box<str>]) -> Flaw {
        let Self { message, advice } = self;
        let one_or = |names: &[Box<str>], one, several| if names.len() == 1 { one } else { several };
        let mut parts = vec![message];
        if let Some(too_few) = too_few {
            parts.push(format!("{too_few}, so the union is not in force"));
        } else {
            if !emptied.is_empty() {
                let names = quoted(emptied.iter(), MOST_LISTED);
                let (noun, verb) = one_or(emptied, ("the value", "selects"), ("the values", "select"));
                parts.push(format!("{noun} {names} {verb} no member"));
            }
            if !values.is_empty() {
                let names = quoted(values.iter(), MOST_LISTED);
                let (noun, verb) = one_or(values, ("the value", "is"), ("the values", "are"));
                parts.push(format!("{noun} {names}, which the enum lacks, {verb} left out, too"));
            }
        }
        Flaw::new(FaultKind::MemberLeftOut, parts.join("; ") + advice)
    }
}

fn discriminator_left_out(name: &str, schema: &Schema) -> Flaw {
    let near = near_property(name, schema, &BTreeSet::new());
    let advice = if schema.takes_untyped_fields() && near.is_none() { SCHEMALESS } else { "" };
    let name = misnamed(name, near);
    let message =
        format!("the schema has no property {name}, which is the discriminator, so the union is not in force{advice}");
    Flaw::new(FaultKind::DiscriminatorLeftOut, message)
}

fn misnamed(name: &str, near: Option<&str>) -> String {
    format!("`{name}`{}", did_you_mean(near))
}
