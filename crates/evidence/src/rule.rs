//! The rules of `x-kubernetes-validations`: parsed, and what they mention.

use crate::env::{CelEnv, Parsed, any};
use crate::node::SchemaNode;
use cel::common::ast::{Expr, IdedExpr};
use serde_json::Value;
use std::rc::Rc;

pub(crate) const RULES: &str = "x-kubernetes-validations";

/// The name of the old object in a rule.
pub(crate) const OLD: &str = "oldSelf";

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
        let parsed = match &*parsed {
            Parsed::Expression(expression) if reads_old(expression) && !node.flag("optionalOldSelf") => {
                Rc::new(Parsed::Transition)
            }
            Parsed::Expression(_) | Parsed::Transition | Parsed::Unreadable(_) => parsed,
        };
        Self { index, text, message: node.text("message"), parsed }
    }
}

/// Returns true if an expression reads the old object.
pub(crate) fn reads_old(expression: &IdedExpr) -> bool {
    any(expression, &mut |part| matches!(part, Expr::Ident(name) if name == OLD))
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
