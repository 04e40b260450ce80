//! The parts of a union that are left out, because the schema of a version lacks them.

use crate::near::nearest;
use crate::schema::Schema;
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
    pub(super) members: NameList<Misnamed>,
    /// The values that select no member now.
    pub(super) emptied: NameList<Box<str>>,
    /// The values that the enum lacks as well.
    pub(super) values: NameList<Box<str>>,
    /// The reason why the rest is no union. `None` if it is in force.
    pub(super) too_few: Option<TooFew>,
    /// True if the schema keeps fields that it does not describe.
    pub(super) keeps_unknown: bool,
}

/// The reason why a union with members that are left out is not in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TooFew {
    /// Fewer than two members of a union without choices.
    Members,
    /// No member of a union of the 2022 form.
    NoMember,
    /// Fewer than two values of the discriminator.
    Values,
}

/// A name that the schema lacks, and the one that was perhaps meant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Misnamed {
    name: Box<str>,
    near: Option<Box<str>>,
}

/// The discriminator of a union, which the schema lacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingDiscriminator {
    pub(super) name: Misnamed,
    /// True if the schema keeps fields that it does not describe.
    pub(super) keeps_unknown: bool,
}

/// The first names of a list, and the number of the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NameList<T> {
    first: Vec<T>,
    more: usize,
}

impl Misnamed {
    /// Looks for a property that `name` was perhaps meant to be. It is none of those that are `declared` as well.
    pub(super) fn new(name: &str, schema: &Schema, declared: &BTreeSet<&str>) -> Self {
        let others = schema.properties.keys().map(AsRef::as_ref).filter(|name| !declared.contains(name));
        Self { name: name.into(), near: nearest(name, others).map(Into::into) }
    }
}

impl<T> NameList<T> {
    pub(super) fn new(names: impl Iterator<Item = T>, count: usize) -> Self {
        Self { first: names.take(MOST_LISTED).collect(), more: count.saturating_sub(MOST_LISTED) }
    }

    pub(super) fn of(names: Vec<T>) -> Self {
        let count = names.len();
        Self::new(names.into_iter(), count)
    }

    pub(super) fn none() -> Self {
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
