//! Turns the markers of one struct into unions.
//!
//! [`grouping`] assigns members to discriminators. [`implicit`] finds the members of a union whose members are not marked.
//! [`one_of`] reads the groups of `ExactlyOneOf` and `AtMostOneOf`. The rules never guess: if the markers allow more than one
//! reading, the union is left out, because a wrong member would delete data that users stored.

mod grouping;
mod implicit;
mod marked_struct;
mod one_of;
mod remark;

pub(super) use self::marked_struct::{MarkedStruct, StructField};
pub(super) use self::one_of::{OneOfGroup, OneOfObject};
pub(super) use self::remark::Remark;

use self::grouping::{MarkedMember, Membership, UnionGroup};
use self::marked_struct::same_letters;
use super::finding_kind::FindingKind;
use super::marked_union::{Choices, FoundBy, MarkedUnion, Selection};
use super::marker::{Family, Meaning};
use super::packages::Packages;
use super::position::Position;
use super::values::{DiscriminatorValues, ValuesError, quoted};
use kube_unions_core::schema::Place;
use kube_unions_core::union::Form;
use std::collections::{BTreeMap, BTreeSet};

/// A union of a struct, without its place in the schema.
#[derive(Debug)]
pub(super) struct UnionDraft {
    pub(super) form: Form,
    pub(super) discriminator: Option<Box<str>>,
    pub(super) choices: Choices,
    /// Position of the discriminator, of the first member, or of the marker of a group.
    pub(super) at: Position,
    pub(super) members: BTreeMap<Box<str>, Position>,
    pub(super) found_by: FoundBy,
}

impl UnionDraft {
    pub(super) fn into_union(self, place: Place, go_type: String) -> MarkedUnion {
        let Self { form, discriminator, choices, at, members, found_by } = self;
        MarkedUnion { place, form, discriminator, choices, go_type, source: at, members, found_by }
    }
}

impl MarkedStruct<'_, '_> {
    /// Returns the unions of the struct and what was left out.
    pub(super) fn unions(&self, packages: &Packages) -> (Vec<UnionDraft>, Vec<Remark>) {
        let invalid = self.invalid_markers();
        if !invalid.is_empty() {
            return (Vec::new(), invalid);
        }

        let (groups, mut remarks) = grouping::groups(self);
        let mut drafts = Vec::new();
        for group in groups {
            if let Some(absent) = group.discriminator.filter(|field| field.schema.is_none()) {
                remarks.push(Remark::skipped(absent, "discriminator"));
                continue;
            }
            if let Membership::Marked(members) = &group.members {
                let absent = members.iter().filter(|member| member.field.schema.is_none());
                remarks.extend(absent.map(|member| Remark::skipped(member.field, "member")));
            }
            match self.draft(&group, packages, &mut remarks) {
                Ok(draft) => drafts.extend(draft),
                Err(remark) => remarks.push(remark),
            }
        }
        (drafts, remarks)
    }

    /// Returns an remark for each invalid marker. Its meaning might change every union of the struct.
    fn invalid_markers(&self) -> Vec<Remark> {
        let of_fields = self.fields.iter().flat_map(|field| &field.field.markers);
        let markers = self.markers.iter().copied().chain(of_fields);
        let invalid = markers.filter_map(|marker| {
            let Meaning::Invalid(message) = &marker.meaning else { return None };
            let message = format!("{message}; the unions of `{}` are unknown", self.title);
            Some(Remark::new(&marker.at, FindingKind::InvalidMarker, message))
        });
        invalid.collect()
    }

    /// Returns the union of a group, or `None` if the schema has none of its members.
    fn draft(
        &self,
        group: &UnionGroup<'_>,
        packages: &Packages,
        remarks: &mut Vec<Remark>,
    ) -> Result<Option<UnionDraft>, Remark> {
        let choices = match group.discriminator {
            None => Self::choices_without_discriminator(group)?,
            Some(discriminator) => {
                let Some(schema) = discriminator.schema else { return Ok(None) };
                if let Some(other) = schema.type_name.as_deref().filter(|name| *name != "string") {
                    let message = format!(
                        "the discriminator `{}` must be a string, but its type in the schema is {other}",
                        discriminator.name
                    );
                    return Err(Remark::new(discriminator.at(), FindingKind::DiscriminatorType, message));
                }
                let markers = &discriminator.field.markers;
                let mut values = DiscriminatorValues::gather(packages, &discriminator.typed(), markers, schema);
                values.remove(|value| self.selects_absent(value, discriminator, group));
                let disagreements = values.disagreements(discriminator.name).into_iter();
                remarks.extend(
                    disagreements.map(|message| Remark::besides(discriminator.at(), FindingKind::OtherValues, message)),
                );
                match &group.members {
                    Membership::Marked(members) => marked_choices(members, group.form(), discriminator, &values)?,
                    Membership::ByName => implicit::choices(self, discriminator, &values, packages)?,
                }
            }
        };
        let has_member = choices.values().any(Option::is_some);
        Ok(has_member.then(|| self.finish(group, choices)))
    }

    /// Returns the choices of a 2019 union without a discriminator. Its values are only names.
    fn choices_without_discriminator(group: &UnionGroup<'_>) -> Result<Choices, Remark> {
        let mut choices = Choices::new();
        if let Membership::Marked(members) = &group.members {
            for member in members.iter().filter(|member| member.field.schema.is_some()) {
                choose(&mut choices, member.value().into(), member, Form::List)?;
            }
        }
        Ok(choices)
    }

    /// Returns true if a value selects a field that the schema does not have.
    fn selects_absent(&self, value: &str, discriminator: &StructField<'_, '_>, group: &UnionGroup<'_>) -> bool {
        match &group.members {
            Membership::Marked(members) => members.iter().any(|member| {
                member.field.schema.is_none() && member.value_names().iter().any(|name| same_letters(name, value))
            }),
            Membership::ByName => self.named(value, discriminator.name).iter().any(|field| field.schema.is_none()),
        }
    }

    fn finish(&self, group: &UnionGroup<'_>, choices: Choices) -> UnionDraft {
        let names: BTreeSet<&str> = choices.values().flatten().map(|selected| &*selected.name).collect();
        let members: Vec<_> = self.fields.iter().filter(|field| names.contains(field.name)).collect();
        let first = group.discriminator.or(members.first().copied());
        UnionDraft {
            form: group.form(),
            discriminator: group.discriminator.map(|field| field.name.into()),
            at: first.map_or(self.at, StructField::at).clone(),
            members: members.iter().map(|field| (field.name.into(), field.at().clone())).collect(),
            choices,
            found_by: match &group.members {
                Membership::Marked(_) => FoundBy::Markers,
                Membership::ByName => FoundBy::Names,
            },
        }
    }
}

/// Returns the choices of marked members. A value that a marker names must be one of the discriminator's; letter case may
/// differ.
fn marked_choices(
    members: &[MarkedMember<'_>],
    form: Form,
    discriminator: &StructField<'_, '_>,
    values: &DiscriminatorValues,
) -> Result<Choices, Remark> {
    let known = match values.known() {
        Ok(known) => Some(known),
        // If every marker names its value, nothing has to be looked up.
        Err(ValuesError::None(_)) if members.iter().all(|member| member.named_value.is_some()) => None,
        Err(error) => return Err(Remark::new(discriminator.at(), error.kind(), error.describe(discriminator.name))),
    };
    let mut choices = Choices::new();
    for member in members.iter().filter(|member| member.field.schema.is_some()) {
        let value = match known {
            None => member.value().into(),
            Some(known) => {
                spelling(&member.value_names(), known).map_err(|similar| no_value(member, &similar, known))?
            }
        };
        choose(&mut choices, value, member, form)?;
    }
    if form == Form::Map {
        for value in known.into_iter().flatten() {
            choices.entry(value.clone()).or_insert(None);
        }
    }
    Ok(choices)
}

/// Returns the known value that the first fitting name stands for: the same text, or the only one with the same letters.
/// Otherwise fails with the values that have the same letters.
fn spelling(names: &[&str], known: &BTreeSet<Box<str>>) -> Result<Box<str>, Vec<Box<str>>> {
    for name in names {
        if let Some(exact) = known.get(*name) {
            return Ok(exact.clone());
        }
        let similar: Vec<Box<str>> = known.iter().filter(|value| same_letters(value, name)).cloned().collect();
        match similar.as_slice() {
            [only] => return Ok(only.clone()),
            [] => {}
            _ => return Err(similar),
        }
    }
    Err(Vec::new())
}

fn no_value(member: &MarkedMember<'_>, similar: &[Box<str>], known: &BTreeSet<Box<str>>) -> Remark {
    let subject = format!("the value `{}` of the member `{}`", member.value(), member.field.name);
    if similar.is_empty() {
        let known = quoted(known);
        let message = format!(
            "{subject} is not a value of the discriminator ({known}): correct it, or name the right one in the marker"
        );
        return Remark::new(&member.at, FindingKind::UnknownValue, message);
    }
    let similar = quoted(similar);
    let message = format!("{subject} may be any of {similar}, which differ in letter case: name one in the marker");
    Remark::new(&member.at, FindingKind::AmbiguousMember, message)
}

/// Makes a value select a member.
fn choose(choices: &mut Choices, value: Box<str>, member: &MarkedMember<'_>, form: Form) -> Result<(), Remark> {
    let name: Box<str> = member.field.name.into();
    if form == Form::List && choices.values().flatten().any(|selected| selected.name == name) {
        let message = format!("the member `{name}` has two values, which the 2019 form cannot express: keep one");
        return Err(Remark::new(&member.at, FindingKind::DuplicateValue, message));
    }
    let selected = Selection { name, optional: member.optional, by_rule: false };
    if let Some(Some(other)) = choices.get(&value).filter(|known| known.as_ref() != Some(&selected)) {
        let message = format!(
            "the members `{}` and `{}` have the same value `{value}`: give each its own",
            other.name, selected.name
        );
        return Err(Remark::new(&member.at, FindingKind::DuplicateValue, message));
    }
    choices.insert(value, Some(selected));
    Ok(())
}

impl UnionGroup<'_> {
    fn form(&self) -> Form {
        let is_2019 = match &self.members {
            Membership::Marked(members) => members.iter().any(|member| member.family != Family::Member),
            Membership::ByName => false,
        };
        if is_2019 || self.discriminator.is_none() { Form::List } else { Form::Map }
    }
}
