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
