//! Puts rules into a schema: replaces those that this crate made before, and leaves others alone.

use super::keywords;
use super::union;
use crate::options::RuleForm;
use serde_json::Value;
use std::collections::BTreeMap;

/// A list of rules in a schema.
struct RuleList {
    keyword: &'static str,
    /// Returns true if an item was made by this crate.
    is_ours: fn(&Value) -> bool,
}

const VALIDATIONS: RuleList = RuleList { keyword: "x-kubernetes-validations", is_ours: union::is_ours };
const ALL_OF: RuleList = RuleList { keyword: "allOf", is_ours: keywords::is_ours };

/// A change to a list in a schema: some items stay, in their order, and others follow them. Without any item, the list goes.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaEdit {
    /// The keys that lead from the schema to the list.
    pub path: Vec<String>,
    /// The positions of the items that stay, ascending.
    pub kept: Vec<usize>,
    /// The items that follow.
    pub added: Vec<Value>,
}

impl SchemaEdit {
    /// Makes the change to a schema.
    pub fn apply(&self, schema: &mut Value) {
        let Some((name, parents)) = self.path.split_last() else { return };
        let parent = parents.iter().try_fold(schema, |at, key| at.get_mut(key));
        let Some(parent) = parent.and_then(Value::as_object_mut) else { return };
        let before = parent.get(name).and_then(Value::as_array);
        let kept = self.kept.iter().filter_map(|position| before?.get(*position)).cloned();
        let items: Vec<_> = kept.chain(self.added.iter().cloned()).collect();
        if items.is_empty() {
            parent.shift_remove(name);
        } else {
            parent.insert(name.clone(), items.into());
        }
    }
}

/// Returns the changes that give a schema these rules, by the path of their object, and no others of this crate, in any form.
pub(super) fn edits(schema: &Value, form: RuleForm, wanted: BTreeMap<Vec<String>, Vec<Value>>) -> Vec<SchemaEdit> {
    let (list, other) = match form {
        RuleForm::Cel => (VALIDATIONS, ALL_OF),
        RuleForm::OpenApi | RuleForm::JsonSchema => (ALL_OF, VALIDATIONS),
    };
    let mut edits = edits_of(schema, &list, wanted);
    edits.extend(edits_of(schema, &other, BTreeMap::new()));
    edits
}

fn edits_of(schema: &Value, list: &RuleList, mut wanted: BTreeMap<Vec<String>, Vec<Value>>) -> Vec<SchemaEdit> {
    for path in objects_with_our_rules(schema, list) {
        wanted.entry(path).or_default();
    }
    let edit = |(mut path, added): (Vec<String>, Vec<Value>)| {
        let object = path.iter().try_fold(schema, |at, key| at.get(key));
        let present = object.and_then(|object| object.get(list.keyword)?.as_array());
        let (ours, others): (Vec<_>, Vec<_>) =
            present.into_iter().flatten().enumerate().partition(|(_, it)| (list.is_ours)(it));
        let is_same = ours.len() == added.len() && ours.iter().zip(&added).all(|((_, one), other)| *one == other);
        path.push(list.keyword.to_owned());
        let kept = others.into_iter().map(|(position, _)| position).collect();
        (!is_same).then_some(SchemaEdit { path, kept, added })
    };
    wanted.into_iter().filter_map(edit).collect()
}

/// Returns the paths of all objects that have rules of this crate in a list.
fn objects_with_our_rules(schema: &Value, list: &RuleList) -> Vec<Vec<String>> {
    let (mut found, mut waiting) = (Vec::new(), vec![(Vec::new(), schema)]);
    while let Some((path, node)) = waiting.pop() {
        let below = |keys: &[&str]| -> Vec<String> {
            path.iter().cloned().chain(keys.iter().map(|&key| key.to_owned())).collect()
        };
        let properties = node.get("properties").and_then(Value::as_object);
        waiting.extend(properties.into_iter().flatten().map(|(name, node)| (below(&["properties", name]), node)));
        for keyword in ["items", "additionalProperties"] {
            waiting.extend(node.get(keyword).filter(|node| node.is_object()).map(|node| (below(&[keyword]), node)));
        }
        if node.get(list.keyword).and_then(Value::as_array).is_some_and(|rules| rules.iter().any(list.is_ours)) {
            found.push(path);
        }
    }
    found
}
