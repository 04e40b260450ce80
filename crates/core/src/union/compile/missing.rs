//! Fits a union of a `UnionDeclaration` to the schema of one version: leaves out the members that the schema lacks.
//!
//! One declaration serves several releases of somebody else's CRD, and an older release has fewer members. The rest of the
//! union is in force. `check` checks what is left.

use super::check::PreparedObject;
use super::fault::Flaw;
use crate::declaration::FaultKind;
use crate::listed::{listed, quoted};
use crate::near::nearest;
use crate::schema::{ListUnion, MapUnion, Schema};
use std::collections::BTreeSet;

/// Most names that a note lists. The rest is counted.
const MOST_LISTED: usize = 8;

/// Advice for fields that the schema lacks although it keeps them.
const SCHEMALESS: &str = "; the API server keeps unknown fields here: if such a field is meant, add `schemaless: true`";

/// A union as it is declared.
pub(super) enum Written<'s> {
    List(ListUnion),
    Map(&'s str, MapUnion),
}

/// What is left of a union, unless that is too little, and a note if anything is left out.
type Fitted<'s> = (Option<Written<'s>>, Option<Flaw>);

impl Written<'_> {
    /// Returns the members, and the discriminator of the 2019 form. The 2022 form is found at its discriminator.
    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::List(union) => Box::new(union.fields.keys().chain(&union.discriminator).map(AsRef::as_ref)),
            Self::Map(_, union) => Box::new(union.members.values().flatten().map(|member| &*member.name)),
        }
    }
}

/// Returns the message for a member or a discriminator that is a field of another object.
pub(crate) fn not_beside(name: &str) -> String {
    format!(
        "`{name}` is a path, but the discriminator and the members of a union are fields of one object; declare the union at the \
         object that has them all"
    )
}

/// Fits a union to the properties beside it. A name that is a path is a fault in every version.
pub(super) fn fit<'s>(union: Written<'s>, object: &mut PreparedObject<'_>) -> Fitted<'s> {
    let schema = object.schema;
    // `check` reports a place of another type.
    if !schema.is_object() {
        return (Some(union), None);
    }
    if let Some(name) = union.names().find(|name| schema.is_path_into_property(name)) {
        return (None, Some(Flaw::new(FaultKind::MemberElsewhere, not_beside(name))));
    }
    match union {
        Written::List(union) => {
            if let Some(name) = union.discriminator.as_ref().filter(|name| !schema.properties.contains_key(*name)) {
                return (None, Some(discriminator_left_out(name, schema)));
            }
            fit_list(union, schema)
        }
        Written::Map(discriminator, union) => fit_map(discriminator, union, object),
    }
}

fn fit_list<'s>(mut union: ListUnion, schema: &Schema) -> Fitted<'s> {
    let lacking = lacking(union.fields.keys(), schema);
    if lacking.is_empty() {
        return (Some(Written::List(union)), None);
    }
    let declared = union.fields.keys().chain(&union.discriminator).map(AsRef::as_ref).collect();
    let note = members_left_out(&lacking, schema, &declared);
    union.fields.retain(|name, _| !lacking.contains(name));
    let too_few = (union.fields.len() < 2).then_some("fewer than two members are left");
    note.rest(too_few, &[], &[], Written::List(union))
}

fn fit_map<'s>(discriminator: &'s str, mut union: MapUnion, object: &mut PreparedObject<'_>) -> Fitted<'s> {
    let schema = object.schema;
    let selected = |union: &MapUnion| -> BTreeSet<Box<str>> {
        union.members.values().flatten().map(|member| member.name.clone()).collect()
    };
    let all = selected(&union);
    let lacking = lacking(&all, schema);
    if lacking.is_empty() {
        return (Some(Written::Map(discriminator, union)), None);
    }
    let declared = all.iter().map(AsRef::as_ref).chain([discriminator]).collect();
    let note = members_left_out(&lacking, schema, &declared);
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
        (0, _) => Some("no member is left"),
        (_, 0 | 1) => Some("fewer than two values are left"),
        _ => None,
    };
    note.rest(too_few, &emptied, &values, Written::Map(discriminator, union))
}

fn lacking<'n>(names: impl IntoIterator<Item = &'n Box<str>>, schema: &Schema) -> BTreeSet<Box<str>> {
    names.into_iter().filter(|name| !schema.properties.contains_key(*name)).cloned().collect()
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
    /// Returns the rest of the union with the note, or the note alone if too few members or values are left. `emptied` are the
    /// values that select no member now, and `values` those that the enum lacks as well.
    fn rest<'s>(
        self,
        too_few: Option<&str>,
        emptied: &[Box<str>],
        values: &[Box<str>],
        rest: Written<'s>,
    ) -> Fitted<'s> {
        let Self { mut message, advice } = self;
        let one_or = |names: &[Box<str>], one, several| if names.len() == 1 { one } else { several };
        if let Some(too_few) = too_few {
            message += &format!("; {too_few}, so the union is not in force");
        } else {
            if !emptied.is_empty() {
                let names = quoted(emptied.iter(), MOST_LISTED);
                let (noun, verb) = one_or(emptied, ("the value", "selects"), ("the values", "select"));
                message += &format!("; {noun} {names} {verb} no member");
            }
            if !values.is_empty() {
                let names = quoted(values.iter(), MOST_LISTED);
                let (noun, verb) = one_or(values, ("the value", "is"), ("the values", "are"));
                message += &format!("; {noun} {names}, which the enum lacks, {verb} left out, too");
            }
        }
        let note = Flaw::new(FaultKind::MemberLeftOut, message + advice);
        (too_few.is_none().then_some(rest), Some(note))
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

/// Looks for a property that `name` was perhaps meant to be. It is none of those that are `declared` as well.
fn near_property<'s>(name: &str, schema: &'s Schema, declared: &BTreeSet<&str>) -> Option<&'s str> {
    nearest(name, schema.properties.keys().map(AsRef::as_ref).filter(|name| !declared.contains(name)))
}

fn misnamed(name: &str, near: Option<&str>) -> String {
    format!("`{name}`{}", guess(near))
}

/// Returns the question for the name that was perhaps meant.
pub(super) fn guess(near: Option<&str>) -> String {
    near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}
