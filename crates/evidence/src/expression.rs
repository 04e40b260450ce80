//! Judges a CEL expression on a partly known object.
//!
//! The logical operators are judged here, on sets of results, so that an unknown part matters only where it decides.
//! [`rewrite`](crate::rewrite) evaluates everything else.

use crate::facts::Fact;
use crate::limits::MOST_STEPS;
use crate::node::SchemaNode;
use crate::outcome::{Outcome, Outcomes};
use crate::rewrite;
use crate::rule::Parsed;
use crate::validation::{SchemaLevel, check};
use cel::Env;
use cel::common::ast::operators as op;
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, SelectExpr};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// The object that a rule judges, `self`, and the functions that the rule may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'f, 's> {
    pub(crate) object: Fact<'f, 's>,
    pub(crate) env: &'f CelEnv,
    /// The variable of the innermost macro that is judged here, not by the library.
    pub(crate) bound: Option<&'f BoundVariable<'f, 's>>,
}

/// The variable of a macro over a list, for the item that is known.
#[derive(Debug)]
pub(crate) struct BoundVariable<'f, 's> {
    name: &'f str,
    item: Fact<'f, 's>,
    outer: Option<&'f BoundVariable<'f, 's>>,
}

/// The standard library of CEL, the rules that were parsed already, and the steps that are left.
pub(crate) struct CelEnv {
    pub(crate) library: Arc<Env>,
    /// By the text of the rule.
    parsed: RefCell<HashMap<String, Rc<Parsed>>>,
    left: Cell<usize>,
}

impl CelEnv {
    pub(crate) fn new() -> Rc<Self> {
        let (parsed, left) = (RefCell::default(), Cell::new(MOST_STEPS));
        Rc::new(Self { library: Arc::new(Env::stdlib()), parsed, left })
    }

    /// Parses a rule, once.
    pub(crate) fn parse(&self, text: &str) -> Rc<Parsed> {
        if let Some(known) = self.parsed.borrow().get(text) {
            return Rc::clone(known);
        }
        let parsed = Rc::new(Parsed::of(text, &self.library));
        self.parsed.borrow_mut().insert(text.to_owned(), Rc::clone(&parsed));
        parsed
    }

    /// Takes steps. Returns false if too few are left.
    pub(crate) fn take(&self, steps: usize) -> bool {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or(0));
        left.is_some()
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.left.get() == 0
    }
}

impl std::fmt::Debug for CelEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CelEnv")
    }
}

impl<'f, 's> Scene<'f, 's> {
    /// Returns the results that a rule can have.
    pub(crate) fn judge(&self, expression: &IdedExpr) -> Outcomes {
        match &expression.expr {
            Expr::Select(select) if select.test => {
                self.presence(select).unwrap_or_else(|| rewrite::evaluate(self, expression))
            }
            Expr::Call(call) => self.call(call).unwrap_or_else(|| rewrite::evaluate(self, expression)),
            Expr::Comprehension(it) => self.quantified(it).unwrap_or_else(|| rewrite::evaluate(self, expression)),
            Expr::Unspecified
            | Expr::Ident(_)
            | Expr::List(_)
            | Expr::Literal(_)
            | Expr::Map(_)
            | Expr::Select(_)
            | Expr::Struct(_) => rewrite::evaluate(self, expression),
        }
    }

    /// Returns the knowledge of `self` or of a bound variable, and the fields that lead from it to a value. `None` if the value
    /// is something else.
    pub(crate) fn path<'e>(&self, expression: &'e IdedExpr) -> Option<(Fact<'f, 's>, Vec<&'e str>)> {
        let selection = FieldSelection::plain(expression)?;
        Some((self.variable(selection.variable)?, selection.names()))
    }

    /// Returns the knowledge of `self` or of a bound variable.
    pub(crate) fn variable(&self, name: &str) -> Option<Fact<'f, 's>> {
        let mut bound = self.bound;
        while let Some(binding) = bound {
            if binding.name == name {
                return Some(binding.item);
            }
            bound = binding.outer;
        }
        (name == "self").then_some(self.object)
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
        let item = around.item.fact(around.node.get("items").map(SchemaNode));
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
        match (call.func_name.as_str(), args) {
            (op::LOGICAL_AND, [_, ..]) => args.iter().map(|arg| self.judge(arg)).reduce(Outcomes::and),
            (op::LOGICAL_OR, [_, ..]) => args.iter().map(|arg| self.judge(arg)).reduce(Outcomes::or),
            (op::LOGICAL_NOT, [arg]) => Some(self.judge(arg).not()),
            (op::CONDITIONAL, [condition, then, otherwise]) => {
                let (then, otherwise) = (self.judge(then), self.judge(otherwise));
                Some(Outcomes::choose(&self.judge(condition), then, otherwise))
            }
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

    /// Returns true if one side is a text, and the other a field of unknown content that cannot be this text by its schema.
    fn differ(&self, one: &IdedExpr, other: &IdedExpr) -> bool {
        let ((root, path), literal) = match (self.path(one), self.path(other)) {
            (Some(path), None) => (path, other),
            (None, Some(path)) => (path, one),
            _ => return false,
        };
        let Expr::Literal(LiteralValue::String(text)) = &literal.expr else { return false };
        let node = match root.follow(&path).fact {
            Fact::Present(node) | Fact::Maybe(node) => node,
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
            _ if reached.parent_absent => return Some(Outcomes::only(Outcome::Error)),
            Fact::Nowhere => return Some(Outcomes::beyond(lacking(&path))),
            Fact::Absent => Outcomes::certain(false),
            Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(_) => Outcomes::certain(true),
            Fact::Maybe(_) => Outcomes::open(),
        };
        Some(if reached.parent_maybe { outcomes.or_error() } else { outcomes })
    }
}

/// The variable and the fields that lead to a value, for example `self.spec.?type`.
#[derive(Debug)]
pub(crate) struct FieldSelection<'e> {
    pub(crate) variable: &'e str,
    /// The fields, each with true if it is selected by `.?`.
    pub(crate) fields: Vec<(&'e str, bool)>,
}

impl<'e> FieldSelection<'e> {
    /// Reads an expression, `None` if it is something else.
    pub(crate) fn of(expression: &'e IdedExpr) -> Option<Self> {
        let mut fields = Vec::new();
        let mut at = expression;
        loop {
            match &at.expr {
                Expr::Ident(variable) => {
                    fields.reverse();
                    return Some(Self { variable, fields });
                }
                Expr::Select(select) if !select.test => {
                    fields.push((select.field.as_str(), false));
                    at = &select.operand;
                }
                Expr::Call(call) if call.func_name == op::OPT_SELECT => {
                    let [operand, field] = &*call.args else { return None };
                    let Expr::Literal(LiteralValue::String(name)) = &field.expr else { return None };
                    fields.push((name.inner(), true));
                    at = operand;
                }
                Expr::Unspecified
                | Expr::Call(_)
                | Expr::Comprehension(_)
                | Expr::List(_)
                | Expr::Literal(_)
                | Expr::Map(_)
                | Expr::Select(_)
                | Expr::Struct(_) => return None,
            }
        }
    }

    /// Reads an expression without optional fields, `None` if it is something else.
    pub(crate) fn plain(expression: &'e IdedExpr) -> Option<Self> {
        Self::of(expression).filter(|it| !it.is_optional())
    }

    pub(crate) fn is_optional(&self) -> bool {
        self.fields.iter().any(|(_, optional)| *optional)
    }

    pub(crate) fn names(&self) -> Vec<&'e str> {
        self.fields.iter().map(|(name, _)| *name).collect()
    }
}

pub(crate) fn lacking(path: &[&str]) -> String {
    format!("the schema has no field `{}`", path.join("."))
}

/// Returns true if an expression is surely a boolean.
fn is_boolean(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Literal(LiteralValue::Boolean(_)) => true,
        Expr::Select(select) => select.test,
        Expr::Call(call) => match (call.func_name.as_str(), &*call.args) {
            (op::CONDITIONAL, [_, then, otherwise]) => is_boolean(then) && is_boolean(otherwise),
            (name, _) => {
                let logical = [op::LOGICAL_AND, op::LOGICAL_OR, op::LOGICAL_NOT, op::EQUALS, op::NOT_EQUALS, op::IN];
                let compares = [op::LESS, op::LESS_EQUALS, op::GREATER, op::GREATER_EQUALS];
                logical.contains(&name) || compares.contains(&name)
            }
        },
        Expr::Unspecified
        | Expr::Comprehension(_)
        | Expr::Ident(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Struct(_) => false,
    }
}
