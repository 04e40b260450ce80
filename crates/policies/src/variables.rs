//! The variables of a policy.

use crate::cel::{fold, identifier};
use kube_unions_core::schema::cel_name::is_reserved;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The longest name of a variable, without the number that makes it distinct.
const LONGEST_NAME: usize = 60;

/// Constants up to this length are written where they are used.
const SHORT: usize = 90;

/// The variables of a policy, in the order of their definition. A variable may use the variables before it.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    /// Names and expressions.
    all: Vec<(String, String)>,
    names: BTreeSet<String>,
    /// What each variable is, by its name. Most names say it themselves.
    comments: BTreeMap<String, String>,
    /// The variable of each expression.
    known: HashMap<String, String>,
}

impl Variables {
    /// Adds a variable with a name similar to this one. Returns the expression that reads it. An expression that has a variable gets no
    /// other one.
    pub(crate) fn add(&mut self, name: &str, expression: &str, comment: &str) -> String {
        let expression = fold(expression);
        if let Some(known) = self.known.get(&expression) {
            return known.clone();
        }
        let mut base = identifier(name);
        base.truncate(LONGEST_NAME);
        // Identifiers begin with a letter.
        if !base.starts_with(|first: char| first.is_ascii_alphabetic()) {
            base.insert(0, 'x');
        }
        if is_reserved(&base) {
            base.push('_');
        }
        let mut name = base.clone();
        let mut number = 2_usize;
        while !self.names.insert(name.clone()) {
            name = format!("{base}{number}");
            number = number.saturating_add(1);
        }
        let reference = format!("variables.{name}");
        if !comment.is_empty() {
            self.comments.insert(name.clone(), comment.to_owned());
        }
        self.known.insert(expression.clone(), reference.clone());
        self.all.push((name, expression));
        reference
    }

    /// Returns a constant, as a variable of its own if it is long.
    pub(crate) fn constant(&mut self, name: &str, literal: String, comment: &str) -> String {
        if literal.len() <= SHORT { literal } else { self.add(name, &literal, comment) }
    }

    /// Returns the length of the longest expression, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.all.iter().map(|(_, expression)| expression.len()).max().unwrap_or_default()
    }

    /// Returns the variables that an expression needs, and what they are, by name.
    pub(crate) fn into_needed(self, expression: &str) -> (Vec<Value>, BTreeMap<String, String>) {
        let mut needed: BTreeSet<String> = references(expression).map(str::to_owned).collect();
        let mut kept = Vec::new();
        for (name, expression) in self.all.into_iter().rev() {
            if needed.contains(&name) {
                needed.extend(references(&expression).map(str::to_owned));
                kept.push(json!({"expression": expression, "name": name}));
            }
        }
        kept.reverse();
        (kept, self.comments)
    }
}

/// Returns the names of the variables that an expression reads.
fn references(expression: &str) -> impl Iterator<Item = &str> {
    let mut rest = expression;
    std::iter::from_fn(move || {
        // A name may end like the prefix: `variables.variables.size()`.
        let (_, after) = rest.split_once("variables.")?;
        let end = after.find(|it: char| !it.is_ascii_alphanumeric() && it != '_').unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        rest = after;
        Some(name)
    })
}

/// Returns words as the name of a variable: `old` and `backends` as `oldBackends`.
pub(crate) fn camel(words: &[&str]) -> String {
    let mut name = String::new();
    for word in words.iter().filter(|word| !word.is_empty()) {
        let mut letters = word.chars();
        match letters.next() {
            Some(first) if !name.is_empty() => name.extend(first.to_uppercase().chain(letters)),
            Some(first) => name.extend(std::iter::once(first).chain(letters)),
            None => {}
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_distinct() {
        let mut variables = Variables::default();
        let names: Vec<_> = ["a-b", "a.b", "", "1", "while", &"x".repeat(99)]
            .iter()
            .enumerate()
            .map(|(number, name)| variables.add(name, &number.to_string(), ""))
            .collect();
        let long = format!("variables.{}", "x".repeat(60));
        assert_eq!(
            names,
            ["variables.a_b", "variables.a_b2", "variables.x", "variables.x1", "variables.while_", &long]
        );
        assert_eq!(variables.add("again", "0", ""), "variables.a_b");
        assert_eq!(variables.constant("c", "[]".into(), ""), "[]");
        assert_eq!(variables.constant("c", "x".repeat(91), ""), "variables.c");
        assert_eq!(camel(&["old", "", "backends"]), "oldBackends");
    }

    #[test]
    fn names_that_end_like_the_prefix_are_read_as_a_whole() {
        let read = |expression| references(expression).collect::<Vec<_>>();
        assert_eq!(
            read("variables.variables.size() > variables.myvariables[variables.i]"),
            ["variables", "myvariables", "i"]
        );
    }
}
