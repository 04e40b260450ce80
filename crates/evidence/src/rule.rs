//! The rules of `x-kubernetes-validations`: parsed, what they mention, and the fields of the old object that they compare.

use crate::env::{CelEnv, Parsed, any, children};
use crate::node::SchemaNode;
use crate::scene::FieldSelection;
use cel::common::ast::{Expr, IdedExpr};
use kube_unions_core::schema::cel_name::unescape;
use kube_unions_core::schema::{Place, PlaceStep};
use serde_json::Value;
use std::rc::Rc;

pub(crate) const RULES: &str = "x-kubernetes-validations";

#[derive(Debug)]
pub(crate) struct ValidationRule<'s> {
    /// The position among the rules of its node.
    pub(crate) index: usize,
    pub(crate) text: &'s str,
    pub(crate) message: Option<&'s str>,
    pub(crate) parsed: Rc<Parsed>,
}

impl<'s> ValidationRule<'s> {
    pub(crate) fn of(node: SchemaNode<'s>, env: &CelEnv) -> Vec<Self> {
        Self::of_those(node, env, usize::MAX, |_| true)
    }

    /// Returns the first `most` rules of a node whose text is wanted.
    pub(crate) fn of_those(
        node: SchemaNode<'s>,
        env: &CelEnv,
        most: usize,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<Self> {
        let rules = node.list(RULES).iter().enumerate();
        let rules = rules.filter(|(_, rule)| is_wanted(SchemaNode(rule).text("rule").unwrap_or_default()));
        rules.take(most).map(|(index, rule)| Self::read(index, rule, env)).collect()
    }

    fn read(index: usize, rule: &'s Value, env: &CelEnv) -> Self {
        let node = SchemaNode(rule);
        let text = node.text("rule").unwrap_or_default();
        let parsed = env.parse(text);
        let mut is_old = |expr: &Expr| matches!(expr, Expr::Ident(name) if name == "oldSelf");
        let parsed = match &*parsed {
            Parsed::Expression(expression) if any(expression, &mut is_old) && !node.flag("optionalOldSelf") => {
                Rc::new(Parsed::Transition)
            }
            Parsed::Expression(_) | Parsed::Transition | Parsed::Unreadable(_) => parsed,
        };
        Self { index, text, message: node.text("message"), parsed }
    }
}

/// Returns true if a rule compares an object, an object above it, or one of its fields with the old one.
pub(crate) fn restricts<'n>(
    schema: &Value,
    place: &Place,
    fields: impl Iterator<Item = &'n str> + Clone,
    env: &CelEnv,
) -> bool {
    let mut node = SchemaNode(schema);
    let mut way: &[PlaceStep] = place.steps();
    let is_at = |name: &str, step: &PlaceStep| matches!(step, PlaceStep::Property(property) if **property == *name);
    loop {
        let is_compared = |path: &[String]| {
            let steps = path.iter().zip(way).take_while(|(name, step)| is_at(name, step)).count();
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

/// Returns true if a text has a name as a whole word.
pub(crate) fn mentions(text: &str, name: &str) -> bool {
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let after = text.get(at.saturating_add(name.len())..).and_then(|after| after.chars().next());
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn only_whole_words_are_mentions() {
        assert!(mentions("has(self.a)", "a"));
        assert!(!mentions("has(self.ab)", "a"));
        assert!(!mentions("has(self.ab)", ""));
    }
}
