//! What the markers of one struct mean: which unions it has, of which fields, in which form.
//!
//! Nothing is guessed. Where the markers leave open what is meant, the union is left out: a member too many would lose what
//! users stored.

mod grouping;
mod implicit;

use self::grouping::{Membership, UnionGroup};
use super::Selection;
use super::finding::{FindingReason, GoFinding, Severity};
use super::marker::{Family, Marker, Meaning};
use super::packages::{Packages, Scope, ScopedType};
use super::types::{Field, Position};
use super::values::{DiscriminatorValues, quoted};
use kube_unions_core::schema::Schema;
use kube_unions_core::union::Form;
use std::collections::{BTreeMap, BTreeSet};

/// A struct with what the schema says of its fields.
#[derive(Debug)]
pub(super) struct MarkedStruct<'p, 's> {
    /// As it is called: `v1.Strategy`.
    pub(super) title: String,
    pub(super) at: &'p Position,
    pub(super) markers: Vec<&'p Marker>,
    /// Its own fields that are in an object, in order.
    pub(super) fields: Vec<StructField<'p, 's>>,
}

/// A field of its own.
#[derive(Debug)]
pub(super) struct StructField<'p, 's> {
    pub(super) field: &'p Field,
    pub(super) name: &'p str,
    pub(super) scope: Scope<'p>,
    /// None where the schema does not have it.
    pub(super) schema: Option<&'s Schema>,
    pub(super) required: bool,
}

/// A union as the markers have it.
#[derive(Debug)]
pub(super) struct UnionDraft {
    pub(super) form: Form,
    pub(super) discriminator: Option<Box<str>>,
    /// By value.
    pub(super) choices: BTreeMap<Box<str>, Option<Selection>>,
    /// Of the discriminator, or of the first member.
    pub(super) at: Position,
    /// Where each member stands.
    pub(super) members: BTreeMap<Box<str>, Position>,
}

/// Why there is no union, or why it lacks a member.
#[derive(Debug, Clone)]
pub(super) struct Omission {
    at: Position,
    severity: Severity,
    reason: FindingReason,
    message: String,
}

impl Omission {
    fn ambiguous(at: &Position, message: String) -> Self {
        Self { at: at.clone(), severity: Severity::Error, reason: FindingReason::Ambiguous, message }
    }

    fn fault(at: &Position, message: String) -> Self {
        Self { at: at.clone(), severity: Severity::Error, reason: FindingReason::Fault, message }
    }

    /// A field that is in another version, or behind a feature gate.
    fn skipped(own: &StructField<'_, '_>, what: &str) -> Self {
        let message = format!("the {what} `{}` is not in the schema", own.name);
        Self { at: own.at().clone(), severity: Severity::Note, reason: FindingReason::Skipped, message }
    }

    pub(super) fn into_finding(self, path: String) -> GoFinding {
        let Self { at, severity, reason, message } = self;
        GoFinding { position: Some(at), path, severity, reason, message: format!("{message}; left out") }
    }
}

impl<'p> StructField<'p, '_> {
    fn at(&self) -> &'p Position {
        &self.field.at
    }

    fn typed(&self) -> ScopedType<'p> {
        ScopedType { written: &self.field.written, scope: self.scope.clone() }
    }

    fn is_called(&self, value: &str) -> bool {
        same_letters(&self.field.name, value)
    }
}

impl MarkedStruct<'_, '_> {
    /// The unions of the struct, and what was left out.
    pub(super) fn unions(&self, packages: &Packages) -> (Vec<UnionDraft>, Vec<Omission>) {
        let unreadable = self.unreadable();
        if !unreadable.is_empty() {
            return (Vec::new(), unreadable);
        }

        let (groups, mut left_out) = grouping::groups(self);
        let mut drafts = Vec::new();
        for group in groups {
            if let Some(absent) = group.discriminator.filter(|own| own.schema.is_none()) {
                left_out.push(Omission::skipped(absent, "discriminator"));
                continue;
            }
            if let Membership::Marked(members) = &group.chosen {
                let absent = members.iter().filter(|member| member.own.schema.is_none());
                left_out.extend(absent.map(|member| Omission::skipped(member.own, "member")));
            }
            match self.draft(&group, packages) {
                Ok(Some(draft)) => drafts.push(draft),
                Ok(None) => {}
                Err(why) => left_out.push(why),
            }
        }
        (drafts, left_out)
    }

    /// The markers that can't be read: what they mean might change everything.
    fn unreadable(&self) -> Vec<Omission> {
        let of_fields = self.fields.iter().flat_map(|own| &own.field.markers);
        let markers = self.markers.iter().copied().chain(of_fields);
        let unreadable = markers.filter_map(|marker| {
            let Meaning::Faulty(message) = &marker.meaning else { return None };
            let message = format!("{message}; so nothing is known of the unions of `{}`", self.title);
            Some(Omission { at: marker.at.clone(), severity: Severity::Error, reason: FindingReason::Marker, message })
        });
        unreadable.collect()
    }

    /// `None` where the schema does not have what the union is made of.
    fn draft(&self, group: &UnionGroup<'_>, packages: &Packages) -> Result<Option<UnionDraft>, Omission> {
        let Some(discriminator) = group.discriminator else {
            return self.without_discriminator(group);
        };
        let Some(schema) = discriminator.schema else { return Ok(None) };
        if let Some(other) = schema.type_name.as_deref().filter(|name| *name != "string") {
            let message =
                format!("the discriminator `{}` must be a string, and the schema says {other}", discriminator.name);
            return Err(Omission::fault(discriminator.at(), message));
        }
        let mut values =
            DiscriminatorValues::gather(packages, &discriminator.typed(), &discriminator.field.markers, schema);
        values.without(|value| self.belongs_to_absent(value, group));
        let choices = match &group.chosen {
            Membership::Marked(_) => Self::explicit(group, discriminator, &values)?,
            Membership::ByName => implicit::choices(self, discriminator, &values, packages)?,
        };
        if choices.values().flatten().next().is_none() {
            return Ok(None);
        }
        Ok(Some(self.finished(group.form(), Some(discriminator), choices)))
    }

    /// The form of 2019 without a discriminator: values are names only.
    fn without_discriminator(&self, group: &UnionGroup<'_>) -> Result<Option<UnionDraft>, Omission> {
        let Membership::Marked(members) = &group.chosen else { return Ok(None) };
        let mut choices = BTreeMap::new();
        for member in members.iter().filter(|member| member.own.schema.is_some()) {
            let value: Box<str> = member.value.unwrap_or(&member.own.field.name).into();
            choose(&mut choices, value, member, Form::List)?;
        }
        if choices.is_empty() { Ok(None) } else { Ok(Some(self.finished(Form::List, None, choices))) }
    }

    /// Members that are marked: a name given must be a value; a field's own name may differ in case.
    fn explicit(
        group: &UnionGroup<'_>,
        discriminator: &StructField<'_, '_>,
        values: &DiscriminatorValues,
    ) -> Result<BTreeMap<Box<str>, Option<Selection>>, Omission> {
        let Membership::Marked(members) = &group.chosen else { return Ok(BTreeMap::new()) };
        let form = group.form();
        let known = match values.agreed() {
            Ok(known) => Some(known),
            // Where every member says its value, there is nothing to be found out.
            Err(super::values::ValuesError::None(_)) if members.iter().all(|member| member.value.is_some()) => None,
            Err(error) => {
                return Err(Omission::ambiguous(discriminator.at(), error.of(discriminator.name)));
            }
        };
        let mut choices: BTreeMap<Box<str>, Option<Selection>> = BTreeMap::new();
        for member in members.iter().filter(|member| member.own.schema.is_some()) {
            let name = member.value.unwrap_or(&member.own.field.name);
            let value = match known {
                None => name.into(),
                Some(known) => spelled(name, known).map_err(|found| no_value(member, name, &found, known))?,
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

    /// Whether a value selects a field that the schema does not have: of another version, or behind a feature gate.
    fn belongs_to_absent(&self, value: &str, group: &UnionGroup<'_>) -> bool {
        match &group.chosen {
            Membership::Marked(members) => members.iter().any(|member| {
                let name = member.value.unwrap_or(&member.own.field.name);
                member.own.schema.is_none() && same_letters(name, value)
            }),
            Membership::ByName => self.fields.iter().any(|own| own.schema.is_none() && own.is_called(value)),
        }
    }

    fn finished(
        &self,
        form: Form,
        discriminator: Option<&StructField<'_, '_>>,
        choices: BTreeMap<Box<str>, Option<Selection>>,
    ) -> UnionDraft {
        let names: BTreeSet<&str> = choices.values().flatten().map(|selected| &*selected.name).collect();
        let members: Vec<_> = self.fields.iter().filter(|own| names.contains(own.name)).collect();
        let first = members.first().map_or(self.at, |own| own.at());
        UnionDraft {
            form,
            discriminator: discriminator.map(|own| own.name.into()),
            at: discriminator.map_or(first, |own| own.at()).clone(),
            members: members.iter().map(|own| (own.name.into(), own.at().clone())).collect(),
            choices,
        }
    }
}

/// Why a member has no value.
fn no_value(
    member: &grouping::MarkedMember<'_>,
    name: &str,
    found: &[Box<str>],
    known: &BTreeSet<Box<str>>,
) -> Omission {
    let at = &member.at;
    if found.is_empty() {
        let known: Vec<_> = known.iter().cloned().collect();
        let message = format!(
            "the value `{name}` of the member `{}` is none of the discriminator's, which are {}; correct it, or name the right \
             one in the marker",
            member.own.name,
            quoted(&known)
        );
        return Omission::fault(at, message);
    }
    let message = format!(
        "the value `{name}` of the member `{}` may be {}, which differ from it in case; name the right one in the marker",
        member.own.name,
        quoted(found)
    );
    Omission::ambiguous(at, message)
}

/// Has a value select a member.
fn choose(
    choices: &mut BTreeMap<Box<str>, Option<Selection>>,
    value: Box<str>,
    member: &grouping::MarkedMember<'_>,
    form: Form,
) -> Result<(), Omission> {
    let name: Box<str> = member.own.name.into();
    let twice = choices.values().flatten().any(|selected| selected.name == name);
    if twice && form == Form::List {
        let message = format!("the member `{name}` has two values, which the form of 2019 cannot say; keep one");
        return Err(Omission::fault(&member.at, message));
    }
    let selected = Selection { name, optional: member.optional };
    if let Some(Some(other)) = choices.get(&value).filter(|known| known.as_ref() != Some(&selected)) {
        let message = format!(
            "the members `{}` and `{}` have the same value `{value}`; each needs its own",
            other.name, selected.name
        );
        return Err(Omission::fault(&member.at, message));
    }
    choices.insert(value, Some(selected));
    Ok(())
}

/// The value that a name stands for: itself, or the only one that differs from it in case alone. Else those that might be meant.
fn spelled(name: &str, known: &BTreeSet<Box<str>>) -> Result<Box<str>, Vec<Box<str>>> {
    if let Some(exact) = known.get(name) {
        return Ok(exact.clone());
    }
    let similar: Vec<Box<str>> = known.iter().filter(|value| same_letters(value, name)).cloned().collect();
    match similar.as_slice() {
        [only] => Ok(only.clone()),
        _ => Err(similar),
    }
}

fn same_letters(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || one.to_lowercase() == other.to_lowercase()
}

impl UnionGroup<'_> {
    fn form(&self) -> Form {
        match &self.chosen {
            Membership::Marked(members) if members.iter().any(|member| member.family != Family::Member) => Form::List,
            Membership::Marked(_) | Membership::ByName if self.discriminator.is_none() => Form::List,
            Membership::Marked(_) | Membership::ByName => Form::Map,
        }
    }
}
