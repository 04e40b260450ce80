//! Fits a union of a `UnionDeclaration` to the schema of one version: leaves out the members that the schema lacks.
//!
//! One declaration serves several releases of somebody else's CRD, and an older release has fewer members. The rest of the
//! union is in force. `check` checks what is left.

use super::check::PreparedObject;
use super::{PlaceFaultKind as Kind, Written};
use crate::near::nearest;
use crate::schema::{ListUnion, MapUnion, Schema};
use std::collections::BTreeSet;
use std::fmt;

/// Most names that a note lists. The rest is counted.
const MOST_LISTED: usize = 8;

/// Advice for fields that the schema lacks although it keeps them.
const SCHEMALESS: &str = "; the API server keeps unknown fields here: if such a field is meant, add `schemaless: true`";

/// The parts of a union that are left out, because the schema of a version lacks them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// The members, each with the property that it was perhaps meant to be.
    members: NameList<Misnamed>,
    /// The values that select no member now.
    emptied: NameList<Box<str>>,
    /// The values that the enum lacks as well.
    values: NameList<Box<str>>,
    /// The reason why the rest is no union. `None` if it is in force.
    too_few: Option<TooFew>,
    /// True if the schema keeps fields that it does not describe.
    keeps_unknown: bool,
}

/// The reason why a union with members that are left out is not in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TooFew {
    /// Fewer than two members of a union without choices.
    Members,
    /// No member of a union of the 2022 form.
    NoMember,
    /// Fewer than two values of the discriminator.
    Values,
}

/// A name that the schema lacks, and the one that was perhaps meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Misnamed {
    name: Box<str>,
    near: Option<Box<str>>,
}

/// The discriminator of a union, which the schema lacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingDiscriminator {
    name: Misnamed,
    /// True if the schema keeps fields that it does not describe.
    keeps_unknown: bool,
}

/// The first names of a list, and the number of the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct NameList<T> {
    first: Vec<T>,
    more: usize,
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

impl Misnamed {
    /// Looks for a property that `name` was perhaps meant to be. It is none of those that are `declared` as well.
    fn new(name: &str, schema: &Schema, declared: &BTreeSet<&str>) -> Self {
        let others = schema.properties.keys().map(AsRef::as_ref).filter(|name| !declared.contains(name));
        Self { name: name.into(), near: nearest(name, others).map(Into::into) }
    }
}

impl<T> NameList<T> {
    fn new(names: impl Iterator<Item = T>, count: usize) -> Self {
        Self { first: names.take(MOST_LISTED).collect(), more: count.saturating_sub(MOST_LISTED) }
    }

    fn of(names: Vec<T>) -> Self {
        let count = names.len();
        Self::new(names.into_iter(), count)
    }

    fn none() -> Self {
        Self { first: Vec::new(), more: 0 }
    }

    fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Returns `one` if the list has one name, else `several`.
    fn word<'w>(&self, one: &'w str, several: &'w str) -> &'w str {
        if self.first.len() == 1 { one } else { several }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { members, emptied, values, too_few, keeps_unknown } = self;
        let (noun, these) =
            (members.word("property", "properties"), members.word("this member is", "these members are"));
        write!(f, "the schema has no {noun} {members}, so {these} left out")?;
        if let Some(too_few) = too_few {
            write!(f, "; {too_few}, so the union is not in force")?;
        } else {
            write_values(f, emptied, values)?;
        }
        let guessed = members.more == 0 && members.first.iter().all(|member| member.near.is_some());
        if *keeps_unknown && !guessed { f.write_str(SCHEMALESS) } else { Ok(()) }
    }
}

/// Writes what becomes of the values whose members are left out.
fn write_values(f: &mut fmt::Formatter<'_>, emptied: &NameList<Box<str>>, values: &NameList<Box<str>>) -> fmt::Result {
    if !emptied.is_empty() {
        let (noun, verb) = (emptied.word("the value", "the values"), emptied.word("selects", "select"));
        write!(f, "; {noun} {emptied} {verb} no member")?;
    }
    if !values.is_empty() {
        let (noun, verb) = (values.word("the value", "the values"), values.word("is", "are"));
        write!(f, "; {noun} {values}, which the enum lacks, {verb} left out, too")?;
    }
    Ok(())
}

impl fmt::Display for MissingDiscriminator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, keeps_unknown } = self;
        write!(f, "the schema has no property {name}, which is the discriminator, so the union is not in force")?;
        if *keeps_unknown && name.near.is_none() { f.write_str(SCHEMALESS) } else { Ok(()) }
    }
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Members => "fewer than two members are left",
            Self::NoMember => "no member is left",
            Self::Values => "fewer than two values are left",
        })
    }
}

impl fmt::Display for Misnamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name)?;
        match &self.near {
            Some(near) => write!(f, " (did you mean `{near}`?)"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for NameList<Misnamed> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.first, self.more)
    }
}

impl fmt::Display for NameList<Box<str>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted: Vec<String> = self.first.iter().map(|name| format!("`{name}`")).collect();
        list(f, &quoted, self.more)
    }
}

fn list(f: &mut fmt::Formatter<'_>, names: &[impl fmt::Display], more: usize) -> fmt::Result {
    for (position, name) in names.iter().enumerate() {
        write!(f, "{}{name}", if position == 0 { "" } else { ", " })?;
    }
    if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
}
