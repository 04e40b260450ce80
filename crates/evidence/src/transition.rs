//! Rules that compare with the old object, and the fields that they compare.

use crate::env::CelEnv;
use crate::node::SchemaNode;
use crate::parsed::{Parsed, children};
use crate::rule::ValidationRule;
use crate::selection::FieldSelection;
use cel::common::ast::{Expr, IdedExpr};
use kube_unions_core::schema::cel_name::unescape;
use kube_unions_core::schema::{Place, PlaceStep};
use serde_json::Value;

/// Returns true if a rule compares an object, an object above it, or one of its fields with the old one.
pub(crate) fn restricts<'n>(
    schema: &Value,
    place: &Place,
    fields: impl Iterator<Item = &'n str> + Clone,
    env: &CelEnv,
) -> bool {
    let mut node = SchemaNode(schema);
    let mut way: &[PlaceStep] = place.steps();
    loop {
        let is_compared = |path: &[String]| {
            let steps = path.iter().zip(way).take_while(|(name, step)| is_property(step, name)).count();
            match path.get(steps..).unwrap_or_default() {
                [] => true,
                [field] => steps == way.len() && fields.clone().any(|name| name == field),
                _ => false,
            }
        };
        if compared(node, env).iter().any(|path| is_compared(path)) {
            return true;
        }
        let Some((step, rest)) = way.split_first() else { break };
        let Some(below) = node.below(step) else { return false };
        (node, way) = (below, rest);
    }
    let mut nodes = fields.filter_map(|name| node.property(name));
    nodes.any(|field| compared(field, env).iter().any(Vec::is_empty))
}

fn is_property(step: &PlaceStep, name: &str) -> bool {
    matches!(step, PlaceStep::Property(property) if **property == *name)
}

/// Returns the paths of the old object that the rules of a node read.
fn compared(node: SchemaNode<'_>, env: &CelEnv) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for rule in ValidationRule::of(node, env) {
        if let Parsed::Expression(expression) = &*env.parse(rule.text) {
            old_fields(expression, &mut paths);
        }
    }
    paths
}

fn old_fields(expression: &IdedExpr, paths: &mut Vec<Vec<String>>) {
    let (mut value, mut tested) = (expression, None);
    if let Expr::Select(select) = &expression.expr
        && select.test
    {
        (value, tested) = (&*select.operand, Some(select.field.as_str()));
    }
    match FieldSelection::of(value) {
        Some(it) if it.variable == "oldSelf" => {
            paths.push(it.names().into_iter().chain(tested).filter_map(unescape).collect());
        }
        _ => children(&expression.expr).into_iter().for_each(|part| old_fields(part, paths)),
    }
}
