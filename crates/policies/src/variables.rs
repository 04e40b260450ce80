//! The variables of a policy.

use crate::cel::identifier;
use k8s_openapi::api::admissionregistration::v1::Variable;
use std::collections::BTreeSet;

/// The longest name of a variable, without the number that makes it distinct.
const LONGEST_NAME: usize = 60;

/// Constants up to this length are written where they are used.
const SHORT: usize = 60;

/// The variables of a policy, in the order of their definition. A variable may use the variables before it.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    all: Vec<Variable>,
    names: BTreeSet<String>,
}

impl Variables {
    /// Adds a variable with a name similar to this one. Returns the expression that reads it.
    pub(crate) fn add(&mut self, name: &str, expression: String) -> String {
        let mut base = identifier(name);
        base.truncate(LONGEST_NAME);
        // Identifiers begin with a letter.
        if !base.starts_with(|first: char| first.is_ascii_alphabetic()) {
            base.insert(0, 'x');
        }
        let mut name = base.clone();
        let mut number = 2_usize;
        while !self.names.insert(name.clone()) {
            name = format!("{base}_{number}");
            number = number.saturating_add(1);
        }
        let reference = format!("variables.{name}");
        self.all.push(Variable { name, expression });
        reference
    }

    /// Returns a constant, as a variable of its own if it is long.
    pub(crate) fn constant(&mut self, name: &str, literal: String) -> String {
        if literal.len() <= SHORT { literal } else { self.add(name, literal) }
    }

    /// Returns the length of the longest expression, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.all.iter().map(|variable| variable.expression.len()).max().unwrap_or_default()
    }

    pub(crate) fn into_all(self) -> Vec<Variable> {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_distinct() {
        let mut variables = Variables::default();
        let names: Vec<_> = ["a-b", "a.b", "", "1", &"x".repeat(99)].map(|name| variables.add(name, "1".into())).into();
        let long = format!("variables.{}", "x".repeat(60));
        assert_eq!(names, ["variables.a_b", "variables.a_b_2", "variables.x", "variables.x1", &long]);
        assert_eq!(variables.constant("c", "[]".into()), "[]");
        assert_eq!(variables.constant("c", "x".repeat(61)), "variables.c");
    }
}
