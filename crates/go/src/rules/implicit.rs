//! Members that are not marked: the optional fields whose Go or JSON name is a value of the discriminator.
//!
//! `+union` alone does not make every field a member, because types keep timeouts and names beside their members.

use super::marked_struct::{MarkedStruct, StructField};
use crate::finding::GoFinding;
use crate::finding_kind::FindingKind;
use crate::marked_union::{Choices, Selection};
use crate::packages::{Packages, Underlying, UnknownType};
use crate::values::{DiscriminatorValues, ValuesError, quoted};
use kube_unions_core::schema::Schema;
use kube_unions_evidence::{MemberRequirement, TruthTable, UnionFields};
use std::collections::BTreeSet;

/// Returns the member of each value. A member is optional unless the rules of the CRD require it: the name alone does not say so.
///
/// Fails if the values are unknown, if two fields fit one value, if no field fits any, or if a field that looks like a member
/// fits none.
pub(super) fn choices(
    marked: &MarkedStruct<'_, '_>,
    discriminator: &StructField<'_, '_>,
    values: &DiscriminatorValues,
    packages: &Packages,
) -> Result<Choices, GoFinding> {
    let others = || marked.fields.iter().filter(|field| field.name != discriminator.name && field.schema.is_some());
    let looks_like_member = |field: &&StructField<'_, '_>| !field.required && is_pointer_to_struct(field, packages);
    let known = values.known().map_err(|error| {
        if matches!(error, ValuesError::None(_))
            && !marked.is_union()
            && !others().any(|field| looks_like_member(&field))
        {
            return alone(marked, discriminator, "looks like a member");
        }
        let message = format!("{}, or mark the members", error.describe(discriminator.name));
        GoFinding::left_out(discriminator.at(), error.kind(), message)
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
    let required =
        members.iter().filter(|(value, member)| table.requires(value, member) == MemberRequirement::Required);
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
