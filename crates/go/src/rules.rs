//! Turns the markers of one struct into unions.
//!
//! [`marked_struct`] assigns marked members to discriminators. Members that are not marked are the optional fields whose Go or JSON name
//! is a value of the discriminator: `+union` alone does not make every field a member, because types keep timeouts and names beside
//! their members. [`one_of`] reads the groups of `ExactlyOneOf` and `AtMostOneOf`. The rules never guess: if the markers allow more than one
//! reading, the union is left out, because a wrong member would delete data that users stored.

mod marked_struct;
mod one_of;

pub(super) use self::marked_struct::{MarkedStruct, StructField};
pub(super) use self::one_of::{OneOfGroup, OneOfObject};

use self::marked_struct::{MarkedMember, UnionGroup, groups, same_letters};
use crate::finding::{FindingKind, GoFinding};
use crate::marked_union::{Choices, FoundBy, MarkedUnion, Selection};
use crate::marker::{Family, Meaning, Presence};
use crate::packages::{Packages, Underlying, UnknownType};
use crate::values::{DiscriminatorValues, quoted};
use kube_unions_core::schema::Schema;
use kube_unions_core::union::Form;
use kube_unions_evidence::{TruthTable, UnionFields};
use std::collections::BTreeSet;

impl MarkedStruct<'_, '_> {
    /// Returns the unions of the struct and what was left out.
    pub(super) fn unions(&self, packages: &Packages) -> (Vec<MarkedUnion>, Vec<GoFinding>) {
        let invalid = self.invalid_markers();
        if !invalid.is_empty() {
            return (Vec::new(), invalid);
        }

        let (groups, mut findings) = groups(self);
        let mut unions = Vec::new();
        for group in groups {
            if let Some(absent) = group.discriminator.filter(|field| field.schema.is_none()) {
                findings.push(absent.left_out("discriminator"));
                continue;
            }
            let absent = group.marked().iter().filter(|member| member.field.schema.is_none());
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
                    Some(members) => marked_choices(members, group.form(), discriminator, &values)?,
                    None => choices_by_name(self, discriminator, &values, packages)?,
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
        for member in group.marked().iter().filter(|member| member.field.schema.is_some()) {
            choose(&mut choices, member.value(), member, Form::List)?;
        }
        Ok(choices)
    }

    /// Returns true if a value selects a field that the schema does not have.
    fn selects_absent(&self, value: &str, discriminator: &StructField<'_, '_>, group: &UnionGroup<'_>) -> bool {
        match &group.members {
            Some(members) => members.iter().any(|member| {
                member.field.schema.is_none() && member.value_names().iter().any(|name| same_letters(name, value))
            }),
            None => self.named(value, discriminator.name).iter().any(|field| field.schema.is_none()),
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
            found_by: if group.members.is_some() { FoundBy::Markers } else { FoundBy::Names },
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
    let known = match values.known(discriminator.name) {
        Ok(known) => Some(known),
        // If every marker names its value, nothing has to be looked up. In declarative validation, the name of the field is one.
        Err((FindingKind::UnknownValues, _)) if members.iter().all(MarkedMember::has_value) => None,
        Err((kind, message)) => return Err(GoFinding::left_out(discriminator.at(), kind, message)),
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
        self.marked().iter().any(|member| member.marker.family == family)
    }

    /// Returns true for a union of declarative validation.
    fn is_validation(&self) -> bool {
        self.marked().iter().any(|member| member.marker.family.is_validation())
    }

    fn form(&self) -> Form {
        let is_2019 = self.has(Family::Deprecated) || self.has(Family::ZeroOrOneOf);
        if is_2019 || self.discriminator.is_none() { Form::List } else { Form::Map }
    }
}

/// Returns the member of each value. A member is optional unless the rules of the CRD require it: the name alone does not say so.
///
/// Fails if the values are unknown, if two fields fit one value, if no field fits any, or if a field that looks like a member
/// fits none.
fn choices_by_name(
    marked: &MarkedStruct<'_, '_>,
    discriminator: &StructField<'_, '_>,
    values: &DiscriminatorValues,
    packages: &Packages,
) -> Result<Choices, GoFinding> {
    let others = || marked.fields.iter().filter(|field| field.name != discriminator.name && field.schema.is_some());
    let looks_like_member = |field: &&StructField<'_, '_>| !field.required && is_pointer_to_struct(field, packages);
    let known = values.known(discriminator.name).map_err(|(kind, message)| {
        let is_alone = !marked.is_union() && !others().any(|field| looks_like_member(&field));
        if kind == FindingKind::UnknownValues && is_alone {
            return alone(marked, discriminator, "looks like a member");
        }
        GoFinding::left_out(discriminator.at(), kind, format!("{message}, or mark the members"))
    })?;
    let mut selected: Vec<(&str, Option<&str>)> = Vec::new();
    let mut named = BTreeSet::new();
    for value in known {
        let fields = marked.named(value, discriminator.name);
        named.extend(fields.iter().map(|field| field.name));
        let fields: Vec<_> = fields.into_iter().filter(|field| field.schema.is_some()).collect();
        let exact = fields.iter().find(|field| [&*field.field.name, field.name].contains(&&**value));
        let member = match (exact, fields.as_slice()) {
            (Some(exact), _) => Some(*exact),
            (None, []) => None,
            (None, [only]) => Some(*only),
            (None, [one, other, ..]) => {
                let message = format!(
                    "the value `{value}` may select `{}` or `{}`, which differ from it in letter case: mark the members",
                    one.name, other.name
                );
                return Err(GoFinding::left_out(other.at(), FindingKind::AmbiguousMember, message));
            }
        };
        selected.push((value, member.map(|field| field.name)));
    }
    let is_left_over = |field: &&StructField<'_, '_>| !named.contains(field.name) && looks_like_member(field);
    if let Some(field) = others().find(is_left_over) {
        let message = format!(
            "`{}` looks like a member (optional, a pointer to a struct), but no value of `{}` has its name: mark the members \
             with `+unionMember`",
            field.name, discriminator.name
        );
        return Err(GoFinding::left_out(field.at(), FindingKind::UnmarkedMember, message));
    }
    if named.is_empty() {
        if !marked.is_union() {
            return Err(alone(marked, discriminator, "has the name of one of its values"));
        }
        let message = format!(
            "no field of `{}` has the name of a value of `{}` ({}): mark the members with `+unionMember=Value`",
            marked.title,
            discriminator.name,
            quoted(known)
        );
        return Err(GoFinding::left_out(discriminator.at(), FindingKind::UnmarkedUnion, message));
    }
    let members: Vec<_> = selected.iter().filter_map(|(value, member)| Some((*value, (*member)?))).collect();
    let values: Vec<&str> = selected.iter().map(|(value, _)| *value).collect();
    let required = required(marked, discriminator.name, &values, &members);
    let choice = |(value, member): (&str, Option<&str>)| {
        let by_rule = required.contains(value);
        let selection = |name: &str| Selection { name: name.into(), optional: !by_rule, by_rule };
        (value.into(), member.map(selection).into_iter().collect())
    };
    Ok(selected.into_iter().map(choice).collect())
}

/// Returns the values whose member the validation rules of the CRD require: they reject every object that has the value and lacks
/// the member. Rules that cannot be decided require nothing.
fn required<'v>(
    marked: &MarkedStruct<'_, '_>,
    discriminator: &str,
    values: &[&str],
    members: &[(&'v str, &str)],
) -> BTreeSet<&'v str> {
    let Some(node) = marked.json.pointer(&marked.place.to_pointer()) else { return BTreeSet::new() };
    let names: BTreeSet<&str> = members.iter().map(|(_, member)| *member).collect();
    let union = UnionFields {
        discriminator: Some(discriminator.to_owned()),
        values: values.iter().map(|&value| value.to_owned()).collect(),
        members: names.into_iter().map(str::to_owned).collect(),
        ..UnionFields::default()
    };
    let table = TruthTable::of(node, &union);
    let required = members.iter().filter(|(value, member)| table.requires(value, member));
    required.map(|(value, _)| *value).collect()
}

/// Returns the note on a struct with a discriminator and nothing that it could select.
fn alone(marked: &MarkedStruct<'_, '_>, discriminator: &StructField<'_, '_>, missing: &str) -> GoFinding {
    let message = format!(
        "`{}` has the discriminator `{}`, and no field {missing}: if it is a union, mark its members with \
         `+unionMember`",
        marked.title, discriminator.name
    );
    GoFinding::left_out(discriminator.at(), FindingKind::DiscriminatorAlone, message)
}

/// Returns true for a pointer to a struct in Go that is also an object in the schema. A duration, for example, is a string
/// there.
fn is_pointer_to_struct(field: &StructField<'_, '_>, packages: &Packages) -> bool {
    let resolved = packages.resolve(&field.typed());
    let may_be = matches!(
        resolved.underlying,
        Underlying::Struct { .. } | Underlying::Unknown { reason: UnknownType::NotGiven(_), .. }
    );
    resolved.pointer && may_be && field.schema.is_some_and(Schema::is_object)
}
