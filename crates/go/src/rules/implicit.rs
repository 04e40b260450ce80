//! Members that are not marked: the optional fields that are called as a value of the discriminator is, letter case aside.
//!
//! A union without marked members does not mean every field: types keep timeouts and names beside them.

use super::{MarkedStruct, Omission, StructField};
use crate::Selection;
use crate::packages::{Packages, Underlying};
use crate::values::{DiscriminatorValues, quoted};
use std::collections::BTreeMap;

pub(super) fn choices(
    marked: &MarkedStruct<'_, '_>,
    discriminator: &StructField<'_, '_>,
    values: &DiscriminatorValues,
    packages: &Packages,
) -> Result<BTreeMap<Box<str>, Option<Selection>>, Omission> {
    let known = values.agreed().map_err(|error| {
        Omission::ambiguous(discriminator.at(), format!("{}, or mark the members", error.of(discriminator.name)))
    })?;
    let others = || marked.fields.iter().filter(|own| own.name != discriminator.name && own.schema.is_some());
    let mut choices = BTreeMap::new();
    for value in known {
        let called: Vec<_> = others().filter(|own| own.is_called(value)).collect();
        let exact = called.iter().find(|own| *own.field.name == **value);
        let member = match (exact, called.as_slice()) {
            (Some(exact), _) => Some(*exact),
            (None, []) => None,
            (None, [only]) => Some(*only),
            (None, [one, other, ..]) => {
                let message = format!(
                    "the value `{value}` may be of `{}` or of `{}`, which differ from it in case; mark the members",
                    one.name, other.name
                );
                return Err(Omission::ambiguous(other.at(), message));
            }
        };
        choices.insert(value.clone(), member.map(|own| Selection { name: own.name.into(), optional: false }));
    }
    let left_over = others().find(|own| {
        let chosen = known.iter().any(|value| own.is_called(value));
        !chosen && !own.required && is_pointer_to_struct(own, packages)
    });
    if let Some(own) = left_over {
        let message = format!(
            "`{}` looks like a member (optional, a pointer to a struct), and no value of `{}` is called so; mark the members with \
             `+unionMember`",
            own.name, discriminator.name
        );
        return Err(Omission::ambiguous(own.at(), message));
    }
    let is_called_so = |own: &StructField<'_, '_>| known.iter().any(|value| own.is_called(value));
    if !marked.fields.iter().any(is_called_so) {
        let known: Vec<_> = known.iter().cloned().collect();
        let message = format!(
            "no field of `{}` is called as a value of `{}` is, which are {}; mark the members with `+unionMember=Value`",
            marked.title,
            discriminator.name,
            quoted(&known)
        );
        return Err(Omission::fault(discriminator.at(), message));
    }
    Ok(choices)
}

/// Whether it is one, in Go and in the schema: a duration is a struct in Go and a string in an object.
fn is_pointer_to_struct(own: &StructField<'_, '_>, packages: &Packages) -> bool {
    let resolved = packages.resolve(&own.typed());
    let may_be = matches!(resolved.end, Underlying::Struct { .. } | Underlying::Missing { .. });
    resolved.pointer && may_be && own.schema.is_some_and(kube_unions_core::schema::Schema::is_object)
}
