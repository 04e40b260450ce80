//! Collects what a patch says about each field.

use crate::context::Context;
use crate::directive::{Directive, refuse_unknown};
use crate::error::BrokenAt;
use crate::schema::NodeId;
use crate::value::{MapEntry, Value};
use hashbrown::HashMap;

/// The parts of a patch that concern one field.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct FieldPatch<'a> {
    pub(super) value: Option<Value<'a>>,
    /// `$setElementOrder`
    pub(super) order: Option<Value<'a>>,
    /// `$deleteFromPrimitiveList`
    pub(super) delete: Option<Value<'a>>,
}

/// The parts of a patch that concern one list.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListPatch<'a> {
    /// `$setElementOrder`
    pub(super) order: Option<&'a [Value<'a>]>,
    pub(super) items: Option<&'a [Value<'a>]>,
    /// `$deleteFromPrimitiveList`
    pub(super) delete: Option<&'a [Value<'a>]>,
}

/// Collects the fields that a patch names, each with its directives.
pub(super) fn field_patches<'a>(
    context: &Context<'a>,
    patch: &'a [MapEntry<'a>],
    node: NodeId,
) -> Result<Vec<(&'a str, FieldPatch<'a>)>, BrokenAt> {
    let mut fields: Vec<(&'a str, FieldPatch<'a>)> = Vec::with_capacity(patch.len());
    let mut positions: HashMap<&'a str, usize> = HashMap::with_capacity(patch.len());
    for &(key, value) in patch {
        let directive = Directive::read(key).map_err(|rule| rule.at(context.schema.step(node, key)))?;
        let name = match directive {
            None => {
                refuse_unknown(context.schema, node, key)?;
                key
            }
            Some(Directive::Order(name) | Directive::Delete(name)) => name,
            Some(Directive::Patch | Directive::RetainKeys) => continue,
        };
        let position = *positions.entry(name).or_insert(fields.len());
        if position == fields.len() {
            fields.push((name, FieldPatch::default()));
        }
        let Some((_, field)) = fields.get_mut(position) else { continue };
        match directive {
            Some(Directive::Order(_)) => field.order = Some(value),
            Some(Directive::Delete(_)) => field.delete = Some(value),
            _ => field.value = Some(value),
        }
    }
    Ok(fields)
}
