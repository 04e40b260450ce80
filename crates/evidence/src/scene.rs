//! The object that a rule judges, and the variables of the rule.

use crate::env::CelEnv;
use crate::facts::Fact;
use crate::selection::FieldSelection;
use cel::common::ast::IdedExpr;

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
}
