//! Members that are not marked: the optional fields whose name is a value of the discriminator.
//!
//! `+union` alone does not make every field a member, because types keep timeouts and names beside their members.

use super::Choices;
use super::marked_struct::{MarkedStruct, StructField};
use super::omission::Omission;
use crate::marked_union::Selection;
use crate::packages::{Packages, Underlying};
use crate::values::{DiscriminatorValues, quoted};
use kube_unions_core::schema::Schema;

/// Returns the member of each value.
///
/// Fails if the values are unknown, if two fields fit one value, if no field fits any, or if a field that looks like a member
/// fits none.
pub(super) fn choices(
    marked: &MarkedStruct<'_, '_>,
    discriminator: &StructField<'_, '_>,
    values: &DiscriminatorValues,
    packages: &Packages,
) -> Result<Choices, Omission> {
    let known = values.agreed().map_err(|error| {
        Omission::ambiguous(discriminator.at(), format!("{}, or mark the members", error.describe(discriminator.name)))
    })?;
    let is_value = |field: &StructField<'_, '_>| known.iter().any(|value| field.is_named(value));
    let others = || marked.fields.iter().filter(|field| field.name != discriminator.name && field.schema.is_some());
    let mut choices = Choices::new();
    for value in known {
        let named: Vec<_> = others().filter(|field| field.is_named(value)).collect();
        let exact = named.iter().find(|field| *field.field.name == **value);
        let member = match (exact, named.as_slice()) {
            (Some(exact), _) => Some(*exact),
            (None, []) => None,
            (None, [only]) => Some(*only),
            (None, [one, other, ..]) => {
                let message = format!(
                    "the value `{value}` may select `{}` or `{}`, which differ from it in letter case: mark the members",
                    one.name, other.name
                );
                return Err(Omission::ambiguous(other.at(), message));
            }
        };
        choices.insert(value.clone(), member.map(|field| Selection { name: field.name.into(), optional: false }));
    }
    let left_over = others().find(|field| !is_value(field) && !field.required && is_pointer_to_struct(field, packages));
    if let Some(field) = left_over {
        let message = format!(
            "`{}` looks like a member (optional, a pointer to a struct), but no value of `{}` has its name: mark the members \
             with `+unionMember`",
            field.name, discriminator.name
        );
        return Err(Omission::ambiguous(field.at(), message));
    }
    if !marked.fields.iter().any(is_value) {
        let message = format!(
            "no field of `{}` has the name of a value of `{}` ({}): mark the members with `+unionMember=Value`",
            marked.title,
            discriminator.name,
            quoted(known)
        );
        return Err(Omission::fault(discriminator.at(), message));
    }
    Ok(choices)
}

/// Returns true for a pointer to a struct in Go that is also an object in the schema. A duration, for example, is a string
/// there.
fn is_pointer_to_struct(field: &StructField<'_, '_>, packages: &Packages) -> bool {
    let resolved = packages.resolve(&field.typed());
    let may_be = matches!(resolved.underlying, Underlying::Struct { .. } | Underlying::Missing { .. });
    resolved.pointer && may_be && field.schema.is_some_and(Schema::is_object)
}
