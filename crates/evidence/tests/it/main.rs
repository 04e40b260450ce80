//! The crate through its public interface.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets an unexpected state stops"
)]

mod limits;
mod meaning;
mod proposals;
mod samples;
mod suggestions;
mod tables;
mod transitions;

use kube_unions_evidence::{Decision, TruthTable, UnionFields};
use serde_json::{Value, json};

/// Returns the union of `a`, `b` and the discriminator `type` with `A` and `B`.
pub(crate) fn union() -> UnionFields {
    let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let (values, members) = (names(["A", "B"]), names(["a", "b"]));
    UnionFields { discriminator: Some("type".to_owned()), values, members, ..UnionFields::default() }
}

/// Returns the same union without a discriminator.
pub(crate) fn plain() -> UnionFields {
    UnionFields { discriminator: None, values: Vec::new(), ..union() }
}

/// Returns an object schema with the fields of [`union`] and others, and these rules.
pub(crate) fn schema(rules: &[&str]) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
        "type": {"type": "string"},
        "a": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "size": {"type": "integer"}, "mode": {"type": "string", "default": "x"}}},
        "b": {"type": "object", "properties": {"name": {"type": "string"}}},
        "other": {"type": "string"},
        "third": {"type": "object"},
        "count": {"type": "integer", "default": 1},
        "foo-bar": {"type": "string"}}})
}

/// Returns one letter for a decision: allowed, rejected, undecided, or missing.
pub(crate) fn letter(table: &TruthTable, value: Option<&str>, members: &[&str]) -> char {
    match table.decision(value, members) {
        Some(Decision::Allowed) => '+',
        Some(Decision::Rejected { .. }) => '-',
        Some(Decision::Undecided { .. }) => '?',
        None => ' ',
    }
}

/// Returns the decisions on no member, `a`, `b` and both.
pub(crate) fn row(table: &TruthTable, value: Option<&str>) -> String {
    [&[][..], &["a"], &["b"], &["a", "b"]].into_iter().map(|members| letter(table, value, members)).collect()
}
