//! Faults of a schema, collected on the way through it.

use kube_unions_core::field_path::pointer;

/// A fault of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaFault {
    /// The tokens of the JSON Pointer of the faulty keyword, or of the node that lacks one, from the root of the schema.
    pub tokens: Vec<String>,
    /// The number of tokens that lead to the node with the fault.
    pub depth: usize,
    /// The fault, and how to repair it.
    pub message: String,
}

impl SchemaFault {
    /// Returns the JSON Pointer of the fault from the root of the schema.
    pub fn pointer(&self) -> String {
        pointer(&self.tokens)
    }
}

/// Collects faults.
#[derive(Debug, Default)]
pub(super) struct RefusalReader {
    /// The way to the current node.
    tokens: Vec<String>,
    /// True inside of a list whose items have no keys, so that no item has an old one.
    pub(super) is_in_list: bool,
    /// True below `additionalProperties`, where the API server does not look at values of defaults.
    pub(super) is_in_map: bool,
    pub(super) found: Vec<SchemaFault>,
}

impl RefusalReader {
    pub(super) fn refuse(&mut self, below: &[&str], what: &str, remedy: &str) {
        self.tell(below, format!("the API server refuses {what}; {remedy}"));
    }

    pub(super) fn tell(&mut self, below: &[&str], message: String) {
        let tokens = self.tokens.iter().cloned().chain(below.iter().map(|&token| token.to_owned())).collect();
        self.found.push(SchemaFault { tokens, depth: self.tokens.len(), message });
    }

    pub(super) fn at(&mut self, tokens: &[&str], read: impl FnOnce(&mut Self)) {
        let length = self.tokens.len();
        self.tokens.extend(tokens.iter().map(|&token| token.to_owned()));
        read(self);
        self.tokens.truncate(length);
    }
}
