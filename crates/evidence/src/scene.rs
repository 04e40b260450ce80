//! The object that a rule judges, its variables, and the fields that an expression selects of them.

use crate::env::CelEnv;
use crate::facts::Fact;
use crate::rule::OLD;
use cel::common::ast::operators as op;
use cel::common::ast::{Expr, IdedExpr, LiteralValue};

/// The object that a rule judges, `self`, and the functions that the rule may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'f, 's> {
    pub(crate) object: Fact<'f, 's>,
    /// The object before the update, `oldSelf`. `None`: a create.
    pub(crate) old: Option<Fact<'f, 's>>,
    pub(crate) env: &'f CelEnv,
    /// The variable of the innermost macro that is judged here, not by the library.
    pub(crate) bound: Option<&'f BoundVariable<'f, 's>>,
}

/// The variable of a macro over a list, for the item that is known.
#[derive(Debug)]
pub(crate) struct BoundVariable<'f, 's> {
    pub(crate) name: &'f str,
    pub(crate) item: Fact<'f, 's>,
    pub(crate) outer: Option<&'f BoundVariable<'f, 's>>,
}

impl<'f, 's> Scene<'f, 's> {
    /// Returns the knowledge of `self` or of a bound variable, and the fields that lead from it to a value. `None` if the value
    /// is something else.
    pub(crate) fn path<'e>(&self, expression: &'e IdedExpr) -> Option<(Fact<'f, 's>, Vec<&'e str>)> {
        let selection = FieldSelection::plain(expression)?;
        Some((self.variable(selection.variable)?, selection.names()))
    }

    /// Returns the knowledge of a field that is surely set.
    pub(crate) fn surely_set(&self, expression: &IdedExpr) -> Option<Fact<'f, 's>> {
        let (root, path) = self.path(expression)?;
        let reached = root.follow(&path);
        (!reached.parent_maybe && !reached.parent_absent).then_some(reached.fact)
    }

    pub(crate) fn variable(&self, name: &str) -> Option<Fact<'f, 's>> {
        let mut bound = self.bound;
        while let Some(binding) = bound {
            if binding.name == name {
                return Some(binding.item);
            }
            bound = binding.outer;
        }
        match name {
            "self" => Some(self.object),
            OLD => self.old,
            _ => None,
        }
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
            if let Expr::Ident(variable) = &at.expr {
                fields.reverse();
                return Some(Self { variable, fields });
            } else if let Expr::Select(select) = &at.expr {
                if select.test {
                    return None;
                }
                fields.push((select.field.as_str(), false));
                at = &select.operand;
            } else {
                let Expr::Call(call) = &at.expr else { return None };
                if let (Some(target), "value", []) = (&call.target, call.func_name.as_str(), &*call.args)
                    && matches!(&target.expr, Expr::Ident(name) if name == OLD)
                {
                    // The old object is there if `optionalOldSelf` makes it optional, and the write is an update.
                    at = target;
                    continue;
                }
                let [operand, field] = &*call.args else { return None };
                let Expr::Literal(LiteralValue::String(name)) = &field.expr else { return None };
                if call.func_name != op::OPT_SELECT {
                    return None;
                }
                fields.push((name.inner(), true));
                at = operand;
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
