//! Turns the markers of one struct into unions.
//!
//! [`grouping`] assigns members to discriminators. [`implicit`] finds the members of a union whose members are not marked.
//! [`one_of`] reads the groups of `ExactlyOneOf` and `AtMostOneOf`. The rules never guess: if the markers allow more than one
//! reading, the union is left out, because a wrong member would delete data that users stored.

mod grouping;
mod implicit;
mod marked_struct;
mod one_of;

pub(super) use self::marked_struct::{MarkedStruct, StructField};
pub(super) use self::one_of::{OneOfGroup, OneOfObject};

use self::grouping::{MarkedMember, Membership, UnionGroup};
use self::marked_struct::same_letters;
use super::finding::GoFinding;
use super::finding_kind::FindingKind;
use super::marked_union::{Choices, FoundBy, MarkedUnion, Selection};
use super::marker::{Family, Meaning, Presence};
use super::packages::Packages;
use super::values::{DiscriminatorValues, ValuesError, quoted};
use kube_unions_core::union::Form;
use std::collections::BTreeSet;

impl MarkedStruct<'_, '_> {
    /// Returns the unions of the struct and what was left out.
    pub(super) fn unions(&self, packages: &Packages) -> (Vec<MarkedUnion>, Vec<GoFinding>) {
        let invalid = self.invalid_markers();
        if !invalid.is_empty() {
            return (Vec::new(), invalid);
        }

        let (groups, mut findings) = grouping::groups(self);
        let mut unions = Vec::new();
        for group in groups {
            if let Some(absent) = group.discriminator.filter(|field| field.schema.is_none()) {
                findings.push(absent.left_out("discriminator"));
                continue;
            }
            let absent = group.members.marked().iter().filter(|member| member.field.schema.is_none());
            findings.extend(absent.map(|member| member.field.left_out("member")));
            match self.union(&group, packages, &mut findings) {
                Ok(union) => unions.extend(union),
                Err(finding) => findings.push(finding),
            }
        }
        (unions, findings)
    }

    /// Returns a finding for each invalid marker. Its meaning might change every union of the struct.
    fn invalid_markers(&self) -> Vec<GoFinding> {
        let of_fields = self.fields.iter().flat_map(|field| field.meanings.iter().copied());
        let meanings = self.markers.iter().map(|marker| (&marker.meaning, &marker.at)).chain(of_fields);
        let invalid = meanings.filter_map(|(meaning, at)| {
            let Meaning::Invalid(message) = meaning else { return None };
            let message = format!("{message}; the unions of `{}` are unknown", self.title);
            Some(GoFinding::left_out(at, FindingKind::InvalidMarker, message))
        });
        invalid.collect()
    }

    /// Returns the union of a group, or `None` if the schema has none of its members.
    fn union(
        &self,
        group: &UnionGroup<'_>,
        packages: &Packages,
        findings: &mut Vec<GoFinding>,
    ) -> Result<Option<MarkedUnion>, GoFinding> {
        let mut choices = match group.discriminator {
            None => Self::choices_without_discriminator(group)?,
            Some(discriminator) => {
                let Some(schema) = discriminator.schema else { return Ok(None) };
                let is_allowed = |name: &str| name == "string" || (name == "boolean" && group.has(Family::Mode));
                if let Some(other) = schema.type_name.as_deref().filter(|name| !is_allowed(name)) {
                    let message = format!(
                        "the discriminator `{}` must be a string, but its type in the schema is {other}",
                        discriminator.name
                    );
                    return Err(GoFinding::left_out(discriminator.at(), FindingKind::DiscriminatorType, message));
                }
                let markers = &discriminator.field.markers;
                let mut values = DiscriminatorValues::gather(packages, &discriminator.typed(), markers, schema);
                values.remove(|value| self.selects_absent(value, discriminator, group));
                let disagreements = values.disagreements(discriminator.name).into_iter();
                let finding = |message| GoFinding::new(discriminator.at(), FindingKind::OtherValues, message);
                findings.extend(disagreements.map(finding));
                match &group.members {
                    Membership::Marked(members) => marked_choices(members, group.form(), discriminator, &values)?,
                    Membership::ByName => implicit::choices(self, discriminator, &values, packages)?,
                }
            }
        };
        if group.discriminator.is_some_and(StructField::is_boolean) {
            for value in ["false", "true"] {
                choices.entry(value.into()).or_default();
            }
        }
        let has_member = choices.values().any(|selected| !selected.is_empty());
        Ok(has_member.then(|| self.finish(group, choices, packages)))
    }

    /// Returns the choices of a 2019 union without a discriminator. Its values are only names.
    fn choices_without_discriminator(group: &UnionGroup<'_>) -> Result<Choices, GoFinding> {
        let mut choices = Choices::new();
        for member in group.members.marked().iter().filter(|member| member.field.schema.is_some()) {
            choose(&mut choices, member.value(), member, Form::List)?;
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

    fn finish(&self, group: &UnionGroup<'_>, choices: Choices, packages: &Packages) -> MarkedUnion {
        let names: BTreeSet<&str> = choices.values().flatten().map(|selected| &*selected.name).collect();
        let members: Vec<_> = self.fields.iter().filter(|field| names.contains(field.name)).collect();
        let first = group.discriminator.or(members.first().copied());
        let empty = members.iter().filter(|field| group.is_validation() && packages.is_unset_if_empty(&field.typed()));
        MarkedUnion {
            place: self.place.clone(),
            form: group.form(),
            discriminator: group.discriminator.map(|field| field.name.into()),
            go_type: self.title.clone(),
            source: first.map_or(self.at, StructField::at).clone(),
            members: members.iter().map(|field| (field.name.into(), field.at().clone())).collect(),
            required: group.discriminator.is_none() && group.has(Family::Validation),
            empty_is_unset: empty.map(|field| field.name.into()).collect(),
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
) -> Result<Choices, GoFinding> {
    let known = match values.known() {
        Ok(known) => Some(known),
        // If every marker names its value, nothing has to be looked up. In declarative validation, the name of the field is one.
        Err(ValuesError::None(_)) if members.iter().all(MarkedMember::has_value) => None,
        Err(error) => {
            return Err(GoFinding::left_out(discriminator.at(), error.kind(), error.describe(discriminator.name)));
        }
    };
    let mut choices = Choices::new();
    for member in members.iter().filter(|member| member.field.schema.is_some()) {
        let value = match known {
            None => member.value().into(),
            Some(known) => {
                spelling(&member.value_names(), known).map_err(|similar| no_value(member, &similar, known))?
            }
        };
        choose(&mut choices, &value, member, form)?;
    }
    if form == Form::Map {
        for value in known.into_iter().flatten() {
            choices.entry(value.clone()).or_default();
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

fn no_value(member: &MarkedMember<'_>, similar: &[Box<str>], known: &BTreeSet<Box<str>>) -> GoFinding {
    let subject = format!("the value `{}` of the member `{}`", member.value(), member.field.name);
    if similar.is_empty() {
        let known = quoted(known);
        let message = format!(
            "{subject} is not a value of the discriminator ({known}): correct it, or name the right one in the marker"
        );
        return GoFinding::left_out(member.at, FindingKind::UnknownValue, message);
    }
    let similar = quoted(similar);
    let message = format!("{subject} may be any of {similar}, which differ in letter case: name one in the marker");
    GoFinding::left_out(member.at, FindingKind::AmbiguousMember, message)
}

/// Makes a value select a member.
fn choose(choices: &mut Choices, value: &str, member: &MarkedMember<'_>, form: Form) -> Result<(), GoFinding> {
    let name: Box<str> = member.field.name.into();
    if form == Form::List && choices.values().flatten().any(|selected| selected.name == name) {
        let message = format!("the member `{name}` has two values, which the 2019 form cannot express: keep one");
        return Err(GoFinding::left_out(member.at, FindingKind::DuplicateValue, message));
    }
    let presence = member.marker.presence;
    let selected = Selection { name, optional: presence == Presence::Optional, by_rule: false };
    let of_value = choices.entry(value.into()).or_default();
    if member.marker.family == Family::Mode {
        // Several markers of a field are in force together.
        match of_value.iter_mut().find(|known| known.name == selected.name) {
            _ if presence == Presence::Forbidden => {}
            Some(known) => known.optional &= selected.optional,
            None => of_value.push(selected),
        }
        return Ok(());
    }
    if let Some(other) = of_value.iter().find(|known| **known != selected) {
        let message = format!(
            "the members `{}` and `{}` have the same value `{value}`: give each its own",
            other.name, selected.name
        );
        return Err(GoFinding::left_out(member.at, FindingKind::DuplicateValue, message));
    }
    *of_value = vec![selected];
    Ok(())
}

impl UnionGroup<'_> {
    /// Returns true if a member has a marker of a family.
    fn has(&self, family: Family) -> bool {
        self.members.marked().iter().any(|member| member.marker.family == family)
    }

    /// Returns true for a union of declarative validation.
    fn is_validation(&self) -> bool {
        self.members.marked().iter().any(|member| member.marker.family.is_validation())
    }

    fn form(&self) -> Form {
        let is_2019 = self.has(Family::Deprecated) || self.has(Family::ZeroOrOneOf);
        if is_2019 || self.discriminator.is_none() { Form::List } else { Form::Map }
    }
}
