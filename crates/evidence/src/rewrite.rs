//! Evaluates a part of a rule: replaces the fields of `self` by what is known about them, and lets the library compute.
//!
//! A part that needs an unknown value has any result. A part that uses a function whose meaning may differ between the
//! library and the API server is not evaluated.

use crate::bounds;
use crate::env::guarded;
use crate::facts::Fact;
use crate::limits::{MOST_OPEN_TESTS, TOO_MANY_STEPS};
use crate::outcome::Outcomes;
use crate::rule::OLD;
use crate::scene::{FieldSelection, Scene, lacking};
use crate::value;
use cel::common::ast::operators as op;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, MapExpr, SelectExpr};
use cel::{Context, ExecutionError, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Operators and functions that mean the same in the library and in the API server.
const SAME: [&str; 23] = [
    op::CONDITIONAL,
    op::LOGICAL_AND,
    op::LOGICAL_OR,
    op::LOGICAL_NOT,
    op::SUBSTRACT,
    op::ADD,
    op::MULTIPLY,
    op::DIVIDE,
    op::MODULO,
    op::EQUALS,
    op::NOT_EQUALS,
    op::GREATER_EQUALS,
    op::LESS_EQUALS,
    op::GREATER,
    op::LESS,
    op::NEGATE,
    op::INDEX,
    op::NOT_STRICTLY_FALSE,
    op::IN,
    "size",
    "startsWith",
    "endsWith",
    "contains",
];

const COMPARISONS: [&str; 6] = [op::EQUALS, op::NOT_EQUALS, op::GREATER, op::GREATER_EQUALS, op::LESS, op::LESS_EQUALS];

/// Operators that do not evaluate every operand.
const LAZY: [&str; 4] = [op::CONDITIONAL, op::LOGICAL_AND, op::LOGICAL_OR, op::NOT_STRICTLY_FALSE];

pub(crate) fn evaluate(scene: &Scene<'_, '_>, expression: &IdedExpr) -> Outcomes {
    let mut tests = BTreeMap::new();
    let outcomes = attempt(scene, expression, &mut tests);
    if tests.is_empty() {
        return outcomes;
    }
    if tests.len() > MOST_OPEN_TESTS {
        return Outcomes::content();
    }
    // Only the presence of other fields is open, so try each combination.
    let mut result: Option<Outcomes> = None;
    for number in 0..1_u32 << tests.len() {
        for (bit, present) in tests.values_mut().enumerate() {
            *present = number >> bit & 1 == 1;
        }
        let outcomes = attempt(scene, expression, &mut tests);
        result = Some(match result {
            None => outcomes,
            Some(result) => result.either(outcomes),
        });
        // More combinations cannot decide it.
        if result.as_ref().is_some_and(Outcomes::is_open) {
            return Outcomes::content();
        }
    }
    result.map_or_else(Outcomes::content, Outcomes::of_contents)
}

/// Evaluates an expression with assumptions about the presence of fields. Adds the tests without an assumption.
fn attempt(scene: &Scene<'_, '_>, expression: &IdedExpr, tests: &mut BTreeMap<String, bool>) -> Outcomes {
    let mut evaluator =
        PartialEvaluator { scene, tests, names: Vec::new(), values: Vec::new(), lazy: 0, unknown: false, beyond: None };
    let Ok(closed) = evaluator.closed(expression) else { return Outcomes::error() };
    let PartialEvaluator { values, unknown, beyond, .. } = evaluator;
    match beyond {
        _ if unknown => Outcomes::content(),
        Some(why) => Outcomes::beyond(why),
        None => compute(scene, &closed, values),
    }
}

fn compute(scene: &Scene<'_, '_>, closed: &IdedExpr, values: Vec<(String, Value)>) -> Outcomes {
    let result = guarded(|| {
        let mut context = Context::with_env(Arc::clone(&scene.env.library));
        for (name, value) in values {
            context.add_variable_from_value(name, value);
        }
        Value::resolve(closed, &context)
    });
    match result {
        Some(Ok(Value::Bool(holds))) => Outcomes::certain(holds),
        Some(Ok(_)) => Outcomes::beyond("a part of the rule is not a boolean"),
        // Errors that depend on values. Every other one is of types, which the API server finds before it stores the rule.
        Some(Err(
            ExecutionError::NoSuchKey(_)
            | ExecutionError::IndexOutOfBounds(_)
            | ExecutionError::DivisionByZero(_)
            | ExecutionError::RemainderByZero(_)
            | ExecutionError::Overflow(..),
        )) => Outcomes::error(),
        Some(Err(_)) | None => Outcomes::beyond("a part of the rule cannot be evaluated"),
    }
}

/// A part that is always evaluated reads a field that is not set.
struct StrictError;

/// Replaces the fields of `self` in an expression.
struct PartialEvaluator<'c, 'f, 's> {
    scene: &'c Scene<'f, 's>,
    /// Assumptions, by the path of the field from its variable.
    tests: &'c mut BTreeMap<String, bool>,
    /// The variables of the macros around the current part.
    names: Vec<String>,
    values: Vec<(String, Value)>,
    /// The number of lazy operators and macros around the current part.
    lazy: usize,
    unknown: bool,
    beyond: Option<String>,
}

type Closed = Result<IdedExpr, StrictError>;

impl<'f, 's> PartialEvaluator<'_, 'f, 's> {
    /// Returns a copy of an expression without fields of `self`.
    fn closed(&mut self, expression: &IdedExpr) -> Closed {
        let mut closed = expression.clone();
        self.close(&mut closed)?;
        Ok(closed)
    }

    fn close(&mut self, at: &mut IdedExpr) -> Result<(), StrictError> {
        if !self.scene.env.take(1) {
            self.refuse_because(TOO_MANY_STEPS.to_owned());
            return Ok(());
        }
        if let Some((root, selection)) = self.path(at) {
            let value = self.read(root, &selection.names())?;
            *at = value;
            return Ok(());
        }
        match &mut at.expr {
            Expr::Literal(_) => {}
            Expr::Ident(name) if self.names.contains(name) => {}
            Expr::Ident(name) => self.refuse(&format!("the name `{name}`")),
            Expr::Select(select) if select.test => self.test(select)?.into_iter().for_each(|test| *at = test),
            Expr::Select(select) => self.close(&mut select.operand)?,
            Expr::Call(call) => self.call(call)?.into_iter().for_each(|value| *at = value),
            Expr::List(list) => {
                if !list.optional_indices.is_empty() {
                    self.refuse("optional elements");
                }
                self.close_all(&mut list.elements)?;
            }
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    match &mut entry.expr {
                        EntryExpr::MapEntry(it) if !it.optional => {
                            self.close(&mut it.key)?;
                            self.close(&mut it.value)?;
                        }
                        EntryExpr::MapEntry(_) | EntryExpr::StructField(_) => self.refuse("optional entries"),
                    }
                }
            }
            Expr::Comprehension(it) => self.comprehension(it)?,
            Expr::Struct(_) | Expr::Unspecified => self.refuse("an object of a named type"),
        }
        Ok(())
    }

    /// Returns the way to a value, unless it begins with the variable of a macro that the library evaluates.
    fn path<'e>(&self, expression: &'e IdedExpr) -> Option<(Fact<'f, 's>, FieldSelection<'e>)> {
        let selection = FieldSelection::plain(expression)?;
        Some((self.variable(&selection)?, selection))
    }

    /// Returns the knowledge of the variable of a selection, unless the variable is that of a macro that the library evaluates.
    fn variable(&self, selection: &FieldSelection<'_>) -> Option<Fact<'f, 's>> {
        let is_free = self.names.iter().all(|name| name != selection.variable);
        is_free.then(|| self.scene.variable(selection.variable)).flatten()
    }

    fn close_all(&mut self, expressions: &mut [IdedExpr]) -> Result<(), StrictError> {
        expressions.iter_mut().try_for_each(|one| self.close(one))
    }

    fn read(&mut self, root: Fact<'_, '_>, path: &[&str]) -> Closed {
        let reached = root.follow(path);
        match reached.fact {
            Fact::Absent => return self.error(),
            Fact::Nowhere => self.refuse_because(lacking(path)),
            Fact::Value(value, node) => match value::to_cel(value, node) {
                Some(value) => {
                    let name = format!("@field{}", self.values.len());
                    self.values.push((name.clone(), value));
                    return Ok(plain(Expr::Ident(name)));
                }
                None => self.refuse_because(format!("the type of the field `{}` is not compared here", path.join("."))),
            },
            Fact::Object(_) | Fact::Around(_) | Fact::Present(..) | Fact::Maybe(_) => self.unknown = true,
        }
        Ok(nothing())
    }

    fn test(&mut self, select: &mut SelectExpr) -> Result<Option<IdedExpr>, StrictError> {
        let Some((root, selection)) = self.path(&select.operand) else {
            self.close(&mut select.operand)?;
            return Ok(None);
        };
        let mut path = selection.names();
        path.push(&select.field);
        let reached = root.follow(&path);
        if reached.parent_absent {
            return self.error().map(Some);
        }
        self.unknown |= reached.parent_maybe;
        let present = match reached.fact {
            Fact::Absent => false,
            Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(..) => true,
            Fact::Maybe(_) => {
                let field = format!("{}.{}", selection.variable, path.join("."));
                *self.tests.entry(field).or_insert(false)
            }
            Fact::Nowhere => {
                self.refuse_because(lacking(&path));
                false
            }
        };
        Ok(Some(boolean(present)))
    }

    fn call(&mut self, call: &mut CallExpr) -> Result<Option<IdedExpr>, StrictError> {
        if let Some(closed) = self.optional(call) {
            return closed.map(Some);
        }
        let surely_set = |value: &IdedExpr| self.path(value).and_then(|_| self.scene.surely_set(value));
        if let Some(holds) = bounds::compare(call, surely_set) {
            return Ok(Some(boolean(holds)));
        }
        let name = call.func_name.as_str();
        if !SAME.contains(&name) && (name != "matches" || !has_plain_pattern(call)) {
            self.refuse(&function(name));
        }
        let before = (self.unknown, self.beyond.clone());
        let comparison = COMPARISONS.contains(&name).then(|| call.clone());
        let strict = match LAZY.contains(&name) {
            true if name == op::CONDITIONAL => call.args.len().min(1),
            true => 0,
            false => call.args.len(),
        };
        if let Some(target) = &mut call.target {
            self.close(target)?;
        }
        let (strict, lazy) = call.args.split_at_mut(strict);
        self.close_all(strict)?;
        self.lazily(|this| this.close_all(lazy))?;
        // Either result of a comparison is possible. In a macro, each item could have another one.
        if let Some(comparison) = comparison
            && self.unknown
            && !before.0
            && self.names.is_empty()
        {
            (self.unknown, self.beyond) = before;
            return Ok(Some(boolean(*self.tests.entry(format!("{comparison:?}")).or_insert(false))));
        }
        Ok(None)
    }

    fn comprehension(&mut self, it: &mut ComprehensionExpr) -> Result<(), StrictError> {
        self.close(&mut it.iter_range)?;
        if it.iter_var2.is_some() || it.iter_var == "self" {
            self.refuse("a macro with these variables");
        }
        let bound = self.names.len();
        self.names.extend([it.iter_var.clone(), it.accu_var.clone()]);
        let parts = [&mut it.accu_init, &mut it.loop_cond, &mut it.loop_step, &mut it.result];
        let closed = self.lazily(|this| parts.into_iter().try_for_each(|part| this.close(part)));
        self.names.truncate(bound);
        closed
    }

    fn lazily(&mut self, close: impl FnOnce(&mut Self) -> Result<(), StrictError>) -> Result<(), StrictError> {
        self.lazy = self.lazy.saturating_add(1);
        let closed = close(self);
        self.lazy = self.lazy.saturating_sub(1);
        closed
    }

    /// Returns an expression that fails as the API server does, for a part that may not be evaluated.
    fn error(&self) -> Closed {
        if self.lazy == 0 {
            return Err(StrictError);
        }
        let operand = Box::new(plain(Expr::Map(MapExpr { entries: Vec::new() })));
        Ok(plain(Expr::Select(SelectExpr { operand, field: "absent".to_owned(), test: false })))
    }

    fn refuse(&mut self, what: &str) {
        self.refuse_because(format!("{what} is not evaluated here"));
    }

    fn refuse_because(&mut self, why: String) {
        self.beyond.get_or_insert(why);
    }
}

impl PartialEvaluator<'_, '_, '_> {
    /// Replaces `self.?field.hasValue()` and `self.?field.orValue(other)`, and the same of an optional `oldSelf`, which is not there on create.
    fn optional(&mut self, call: &CallExpr) -> Option<Closed> {
        let target = call.target.as_deref()?;
        let (is_test, other) = match (call.func_name.as_str(), &*call.args) {
            ("hasValue", []) => (true, None),
            ("orValue", [other]) => (false, Some(other)),
            _ => return None,
        };
        if matches!(&target.expr, Expr::Ident(name) if name == OLD) {
            return Some(match (self.scene.old, other) {
                (old, None) => Ok(boolean(old.is_some())),
                (Some(old), Some(_)) => self.read(old, &[]),
                (None, Some(other)) => self.closed(other),
            });
        }
        let selection = FieldSelection::of(target).filter(FieldSelection::is_optional)?;
        let root = self.variable(&selection)?;
        let (names, path) = (selection.names(), selection.fields);
        let strict: Vec<&str> = path.iter().take_while(|(_, optional)| !optional).map(|(name, _)| *name).collect();
        match root.follow(&strict).fact {
            Fact::Absent => return Some(self.error()),
            Fact::Maybe(_) => {
                self.unknown = true;
                return Some(Ok(nothing()));
            }
            Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(..) | Fact::Nowhere => {}
        }
        // After the first optional step, a plain step on a field that is set fails if the next field is not set.
        let mut strictly_lacks = false;
        for (length, (_, optional)) in (1_usize..).zip(&path) {
            if length <= strict.len() || *optional {
                continue;
            }
            let upto = |length: usize| names.get(..length).unwrap_or_default();
            let parent = root.follow(upto(length.saturating_sub(1))).fact;
            let is_set = !matches!(parent, Fact::Absent);
            strictly_lacks |= is_set && !matches!(root.follow(upto(length)).fact, Fact::Value(..) | Fact::Present(..));
        }
        if strictly_lacks {
            self.refuse("a field after an optional one");
        }
        Some(match root.follow(&names).fact {
            Fact::Nowhere => {
                self.refuse_because(lacking(&names));
                Ok(nothing())
            }
            Fact::Absent => other.map_or_else(|| Ok(boolean(false)), |other| self.closed(other)),
            Fact::Maybe(_) => {
                self.unknown = true;
                Ok(nothing())
            }
            Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(..) if is_test => Ok(boolean(true)),
            Fact::Value(..) | Fact::Object(_) | Fact::Around(_) | Fact::Present(..) => self.read(root, &names),
        })
    }
}

/// Returns true if the pattern of `matches` is a literal that both read in the same way.
fn has_plain_pattern(call: &CallExpr) -> bool {
    let Some(Expr::Literal(LiteralValue::String(text))) = call.args.last().map(|arg| &arg.expr) else { return false };
    value::pattern(text.inner()).is_some()
}

fn function(name: &str) -> String {
    let operator = name.starts_with(['_', '@', '!', '-']);
    if operator { format!("the operator `{}`", name.replace('_', "")) } else { format!("the function `{name}`") }
}

fn plain(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn boolean(value: bool) -> IdedExpr {
    plain(Expr::Literal(LiteralValue::Boolean(value.into())))
}

/// A placeholder of a part that is not evaluated.
fn nothing() -> IdedExpr {
    boolean(false)
}
