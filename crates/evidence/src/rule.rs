//! The rules of `x-kubernetes-validations`, parsed.

use crate::env::CelEnv;
use crate::node::SchemaNode;
use crate::parsed::{Parsed, any};
use cel::common::ast::{Expr, IdedExpr};
use serde_json::Value;
use std::rc::Rc;

/// The keyword of rules.
pub(crate) const RULES: &str = "x-kubernetes-validations";

/// A rule of a schema node.
#[derive(Debug)]
pub(crate) struct ValidationRule<'s> {
    /// The position among the rules of its node.
    pub(crate) index: usize,
    pub(crate) text: &'s str,
    pub(crate) message: Option<&'s str>,
    pub(crate) parsed: Rc<Parsed>,
}

impl<'s> ValidationRule<'s> {
    /// Returns the rules of a node.
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
            Parsed::Expression(expression) if uses_old_object(expression) && !node.flag("optionalOldSelf") => {
                Rc::new(Parsed::Transition)
            }
            Parsed::Expression(_) | Parsed::Transition | Parsed::Unreadable(_) => parsed,
        };
        Self { index, text, message: node.text("message"), parsed }
    }
}

/// Returns true if an expression names `oldSelf`.
fn uses_old_object(expression: &IdedExpr) -> bool {
    any(expression, &mut |expr| matches!(expr, Expr::Ident(name) if name == "oldSelf"))
}
