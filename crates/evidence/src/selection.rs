//! The fields that an expression selects.

use cel::common::ast::operators as op;
use cel::common::ast::{Expr, IdedExpr, LiteralValue};

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
