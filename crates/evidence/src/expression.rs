//! Judges a CEL expression on a partly known object.
//!
//! The logical operators are judged here, on sets of results, so that an unknown part matters only where it decides.
//! [`rewrite`](crate::rewrite) evaluates everything else.

use crate::bounds;
use crate::facts::Fact;
use crate::outcome::Outcomes;
use crate::rewrite;
use crate::scene::{BoundVariable, Scene, lacking};
use crate::validation::{SchemaLevel, check};
use cel::common::ast::operators as op;
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, SelectExpr};
use serde_json::Value;

impl Scene<'_, '_> {
    /// Returns the results that a rule can have.
    pub(crate) fn judge(&self, expression: &IdedExpr) -> Outcomes {
        let judged = if let Expr::Select(select) = &expression.expr {
            select.test.then(|| self.presence(select)).flatten()
        } else if let Expr::Call(call) = &expression.expr {
            self.call(call)
        } else if let Expr::Comprehension(it) = &expression.expr {
            self.quantified(it)
        } else {
            None
        };
        judged.unwrap_or_else(|| rewrite::evaluate(self, expression))
    }

    /// Returns the results of `all` and `exists` over a list with one known item. The others are not known.
    fn quantified(&self, it: &ComprehensionExpr) -> Option<Outcomes> {
        let (list, path) = self.path(&it.iter_range)?;
        let Fact::Around(around) = list.follow(&path).fact else { return None };
        let Expr::Call(step) = &it.loop_step.expr else { return None };
        let [accumulator, condition] = &*step.args else { return None };
        let is_accumulator = |part: &IdedExpr| matches!(&part.expr, Expr::Ident(name) if *name == it.accu_var);
        if !around.is_list || it.iter_var2.is_some() || !is_accumulator(accumulator) || !is_accumulator(&it.result) {
            return None;
        }
        let item = around.item.fact(around.node.items());
        let binding = BoundVariable { name: &it.iter_var, item, outer: self.bound };
        let outcomes = Scene { bound: Some(&binding), ..*self }.judge(condition);
        match (step.func_name.as_str(), &it.accu_init.expr) {
            (op::LOGICAL_AND, Expr::Literal(LiteralValue::Boolean(start))) if *start.inner() => {
                Some(outcomes.and(Outcomes::content()))
            }
            (op::LOGICAL_OR, Expr::Literal(LiteralValue::Boolean(start))) if !*start.inner() => {
                Some(outcomes.or(Outcomes::content()))
            }
            _ => None,
        }
    }

    fn call(&self, call: &CallExpr) -> Option<Outcomes> {
        let args = &*call.args;
        if let Some(holds) = bounds::compare(call, |value| self.surely_set(value)) {
            return Some(Outcomes::certain(holds));
        }
        match (call.func_name.as_str(), args) {
            (op::LOGICAL_AND, [_, ..]) => args.iter().map(|arg| self.judge(arg)).reduce(Outcomes::and),
            (op::LOGICAL_OR, [_, ..]) => args.iter().map(|arg| self.judge(arg)).reduce(Outcomes::or),
            (op::LOGICAL_NOT, [arg]) => Some(self.judge(arg).not()),
            (op::CONDITIONAL, [condition, then, otherwise]) => {
                let (then, otherwise) = (self.judge(then), self.judge(otherwise));
                Some(Outcomes::choose(&self.judge(condition), then, otherwise))
            }
            (op::EQUALS, [one, other]) if self.are_same(one, other) => Some(Outcomes::certain(true)),
            (op::NOT_EQUALS, [one, other]) if self.are_same(one, other) => Some(Outcomes::certain(false)),
            (op::EQUALS, [one, other]) if self.differ(one, other) => self.only_if_set([one, other], false),
            (op::NOT_EQUALS, [one, other]) if self.differ(one, other) => self.only_if_set([one, other], true),
            (op::EQUALS, [one, other]) if is_boolean(one) && is_boolean(other) => {
                Some(self.judge(one).equal(self.judge(other)))
            }
            (op::NOT_EQUALS, [one, other]) if is_boolean(one) && is_boolean(other) => {
                Some(self.judge(one).equal(self.judge(other)).not())
            }
            _ => None,
        }
    }

    /// Returns true if both sides are fields with the same value, of whatever type it is in CEL.
    fn are_same(&self, one: &IdedExpr, other: &IdedExpr) -> bool {
        match (self.surely_set(one), self.surely_set(other)) {
            (Some(Fact::Value(one, _)), Some(Fact::Value(other, _))) => one == other,
            _ => false,
        }
    }

    /// Returns true if one side is a text, and the other a field of unknown content that cannot be this text by its schema.
    fn differ(&self, one: &IdedExpr, other: &IdedExpr) -> bool {
        let ((root, path), literal) = match (self.path(one), self.path(other)) {
            (Some(path), None) => (path, other),
            (None, Some(path)) => (path, one),
            _ => return false,
        };
        let Expr::Literal(LiteralValue::String(text)) = &literal.expr else { return false };
        let node = match root.follow(&path).fact {
            Fact::Present(node, _) | Fact::Maybe(node) => node,
            Fact::Absent | Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Nowhere => None,
        };
        let value = Value::String(text.inner().to_owned());
        node.is_some_and(|node| check(node, Fact::Value(&value, Some(node)), SchemaLevel::ROOT).rejects())
    }

    /// Returns the result of a comparison that is an error if its field is not set.
    fn only_if_set(&self, sides: [&IdedExpr; 2], result: bool) -> Option<Outcomes> {
        let (root, path) = sides.into_iter().find_map(|side| self.path(side))?;
        let reached = root.follow(&path);
        let maybe = reached.parent_maybe || matches!(reached.fact, Fact::Maybe(_));
        let outcomes = Outcomes::certain(result);
        Some(if maybe { outcomes.or_error() } else { outcomes })
    }

    /// Returns the results of `has()`, `None` for a test of something else than a field of `self`.
    fn presence(&self, test: &SelectExpr) -> Option<Outcomes> {
        let (root, mut path) = self.path(&test.operand)?;
        path.push(&test.field);
        let reached = root.follow(&path);
        let outcomes = match reached.fact {
            _ if reached.parent_absent => return Some(Outcomes::error()),
            Fact::Nowhere => return Some(Outcomes::beyond(lacking(&path))),
            Fact::Absent => Outcomes::certain(false),
            Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(..) => Outcomes::certain(true),
            Fact::Maybe(_) => Outcomes::open(),
        };
        Some(if reached.parent_maybe { outcomes.or_error() } else { outcomes })
    }
}

/// Returns true if an expression is surely a boolean.
fn is_boolean(expression: &IdedExpr) -> bool {
    let Expr::Call(call) = &expression.expr else {
        let is_test = matches!(&expression.expr, Expr::Select(select) if select.test);
        return is_test || matches!(&expression.expr, Expr::Literal(LiteralValue::Boolean(_)));
    };
    if let (op::CONDITIONAL, [_, then, otherwise]) = (call.func_name.as_str(), &*call.args) {
        return is_boolean(then) && is_boolean(otherwise);
    }
    let logical = [op::LOGICAL_AND, op::LOGICAL_OR, op::LOGICAL_NOT, op::EQUALS, op::NOT_EQUALS, op::IN];
    let compares = [op::LESS, op::LESS_EQUALS, op::GREATER, op::GREATER_EQUALS];
    logical.iter().chain(&compares).any(|name| *name == call.func_name)
}
