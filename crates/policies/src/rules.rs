//! Rules in the schema of a CRD, and JSON schemas with them.
//!
//! [`compile_rules`] returns the changes that give the schema of one version the rules of its unions. The rules reject what
//! the webhook rejects, with its field paths, reasons and words, as far as a rule can know them. There is one rule for each
//! member and condition. Every [`RuleForm`] writes the same rules.
//!
//! This module must not know files or clusters. `union` has the rules of one union, `expression` their conditions in CEL,
//! `keywords` their conditions in the keywords of schemas, `schema` the estimate of the API server, and `draft07` the schema of a CRD as a JSON schema.

mod draft07;
mod expression;
mod keywords;
mod schema;
mod union;

use crate::options::{PolicyOptions, PolicyRatcheting, RuleForm};
use crate::refusal::{Refusal, RefusalReason};
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::{Part, Plan, Union};
use schema::PlacedSchema;
use serde_json::Value;
use std::collections::BTreeMap;
use union::UnionRules;

/// Highest estimated cost of one rule that an API server accepts.
const MOST_FOR_A_RULE: u64 = 10_000_000;

/// Highest estimated cost of all rules of a version that an API server accepts.
const MOST_FOR_ALL: u64 = 100_000_000;

/// Longest text of all rules of a version. etcd stores at most 1.5 MiB for a CRD.
const LONGEST_TEXT: usize = 900 * 1024;

/// A list of rules in a schema: its keyword, and a function that returns true for an item that this crate made.
type RuleList = (&'static str, fn(&Value) -> bool);

const VALIDATIONS: RuleList = ("x-kubernetes-validations", union::is_ours);
const ALL_OF: RuleList = ("allOf", keywords::is_ours);

/// One version of a kind that a CRD defines.
#[derive(Debug, Clone, Copy)]
pub struct RulesTarget<'p> {
    /// The kind and the version.
    pub gvk: &'p GroupVersionKind,
    /// The unions of the version.
    pub plan: &'p Plan,
    /// `openAPIV3Schema` of the version, as it is in the CRD.
    pub schema: &'p Value,
}

/// The rules of a version, and the unions that they leave out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompiledRules {
    /// The changes to the schema. Empty if it has the rules.
    pub edits: Vec<SchemaEdit>,
    /// Everything that is left out, with the reason.
    pub refusals: Vec<Refusal>,
}

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

impl CompiledRules {
    /// Makes the changes to a schema.
    pub fn apply(&self, schema: &mut Value) {
        self.edits.iter().for_each(|edit| edit.apply(schema));
    }
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

/// Compiles the unions of a version to rules in its schema. Rules that this function made before are replaced, or removed if
/// their union is gone. Other rules stay as they are.
///
/// Rules differ from the webhook in these points, of all unions alike:
/// - They never change an object. An object that the webhook would normalise is rejected if it violates the union.
/// - The API server lets a violation through if nothing of the object that holds the union changed. The webhook lets it through
///   if the choice of the union did not change.
/// - They do not know which members a request added. Of several members without a discriminator, all but the first are wrong.
/// - An enum refuses an empty discriminator, unless `fieldMembers` has the empty value. One that may be null gets no enum,
///   because an enum refuses null. A rule lists its values instead.
/// - An enum that was written once belongs to the author: it has no mark, so it is neither changed nor removed.
/// - Keywords tell neither fields nor reasons, and need that the schema describes the fields. A JSON schema knows no object before,
///   so it refuses every violation.
/// - The API server spends at most a cost of 10,000,000 on the rules of one object, and rejects an object that needs more. Long
///   lists of large unions take time as well: 10,000 items with a union of 16 members are 330,000 evaluations, several seconds of
///   a processor.
/// - The estimate, of CEL alone, does not count the rules of the author, whose cost is unknown.
pub fn compile_rules(target: &RulesTarget<'_>, options: &PolicyOptions) -> CompiledRules {
    let refusal =
        |place: Option<&str>, reason| Refusal { gvk: target.gvk.clone(), place: place.map(str::to_owned), reason };
    let places: Vec<_> = [Part::Main, Part::Status].into_iter().flat_map(|part| target.plan.places(part)).collect();
    let mut refusals = Vec::new();
    let mut candidates = Vec::new();
    let form = options.rules;
    if form == RuleForm::Cel && !options.server.has_rules() && !places.is_empty() {
        refusals.push(refusal(None, RefusalReason::NoRules(options.server)));
    } else {
        for place in &places {
            let object = PlacedSchema::find(form, target.schema, &place.steps);
            for union in place.unions {
                match candidate(union, &object, options) {
                    Ok(candidate) => {
                        if form != RuleForm::JsonSchema && options.actions.unwrap_or(union.actions()).audits() {
                            refusals.push(refusal(Some(union.path()), RefusalReason::RulesDoNotAudit));
                        }
                        candidates.push(candidate);
                    }
                    Err(reason) => refusals.push(refusal(Some(union.path()), reason)),
                }
            }
        }
    }
    let (accepted, too_much) = within_limits(candidates);
    refusals.extend(too_much.into_iter().map(|(path, reason)| refusal(Some(path), reason)));
    let ratchets = options.ratcheting != PolicyRatcheting::Disabled;
    if form != RuleForm::JsonSchema && !accepted.is_empty() && ratchets != options.server.ratchets_rules() {
        let reason = if ratchets {
            RefusalReason::RulesDoNotRatchet(options.server)
        } else {
            RefusalReason::RulesRatchet(options.server)
        };
        refusals.push(refusal(None, reason));
    }
    refusals.sort();
    CompiledRules { edits: edits(target.schema, form, accepted), refusals }
}

/// Returns the JSON schema (draft-07) of the objects of a version, with the rules of its unions, and what it leaves out. Every
/// keyword of the CRD's schema stays that says nothing else in a JSON schema.
pub fn json_schema(target: &RulesTarget<'_>, options: &PolicyOptions) -> (Value, Vec<Refusal>) {
    let options = PolicyOptions { rules: RuleForm::JsonSchema, ..options.clone() };
    let compiled = compile_rules(target, &options);
    let mut schema = target.schema.clone();
    compiled.apply(&mut schema);
    (draft07::document(target.gvk, schema), compiled.refusals)
}

/// A union that rules can express, before the limits of a version are checked.
struct Candidate<'p> {
    /// The path of the object.
    path: &'p str,
    discriminator: Option<&'p str>,
    /// The keys that lead to the schema of the object.
    keys: Vec<String>,
    rules: UnionRules,
    /// The rules as items of a list.
    items: Vec<Value>,
    /// The estimated cost of all its rules, wherever the object occurs.
    cost: u64,
    /// The length of the rules' text.
    length: usize,
}

fn candidate<'p>(
    union: &'p Union,
    object: &Result<PlacedSchema<'_>, RefusalReason>,
    options: &PolicyOptions,
) -> Result<Candidate<'p>, RefusalReason> {
    if !options.actions.unwrap_or(union.actions()).denies() {
        return Err(RefusalReason::RulesOnlyReject);
    }
    let object = object.as_ref().map_err(Clone::clone)?;
    let rules = UnionRules::new(union, object)?;
    let occurrence = &object.occurrence;
    let is_cel = options.rules == RuleForm::Cel;
    let cost_of = |cost: u64| cost.saturating_mul(occurrence.times);
    let highest = rules.rules.iter().map(union::Rule::cost).max().map_or(0, cost_of);
    let all = rules.rules.iter().fold(0, |sum: u64, rule| sum.saturating_add(cost_of(rule.cost())));
    if is_cel && (highest > MOST_FOR_A_RULE || all > MOST_FOR_ALL) {
        let (cost, most) = if all > MOST_FOR_ALL { (all, MOST_FOR_ALL) } else { (highest, MOST_FOR_A_RULE) };
        let factor = cost.div_ceil(most);
        return Err(match &occurrence.container {
            Some((container, keyword)) => RefusalReason::TooExpensive {
                factor,
                container: container.clone(),
                keyword,
                bounded: occurrence.bounded,
            },
            None => RefusalReason::TooLong,
        });
    }
    let items: Vec<_> = rules.rules.iter().map(|rule| item(rule, object)).collect();
    let length = items.iter().map(|item| item.to_string().len()).sum();
    Ok(Candidate {
        path: union.path(),
        discriminator: union.discriminator(),
        keys: object.path.clone(),
        rules,
        items,
        cost: if is_cel { all } else { 0 },
        length,
    })
}

fn item(rule: &union::Rule, object: &PlacedSchema<'_>) -> Value {
    match object.form {
        RuleForm::Cel => rule.to_json(),
        RuleForm::OpenApi => keywords::of_openapi(rule, object),
        RuleForm::JsonSchema => keywords::of_json_schema(rule, object),
    }
}

/// Splits off the most expensive unions if all together exceed a limit of the API server.
fn within_limits(candidates: Vec<Candidate<'_>>) -> (Vec<Candidate<'_>>, Vec<(&str, RefusalReason)>) {
    let mut by_cost: Vec<_> = candidates.into_iter().enumerate().collect();
    by_cost.sort_by_key(|(_, candidate)| candidate.cost);
    let (mut cost, mut length) = (0_u64, 0_usize);
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for (position, candidate) in by_cost {
        let sums = (cost.saturating_add(candidate.cost), length.saturating_add(candidate.length));
        if sums.0 > MOST_FOR_ALL {
            refused.push((candidate.path, RefusalReason::TooExpensiveTogether));
        } else if sums.1 > LONGEST_TEXT {
            refused.push((candidate.path, RefusalReason::TooLong));
        } else {
            (cost, length) = sums;
            accepted.push((position, candidate));
        }
    }
    accepted.sort_by_key(|(position, _)| *position);
    (accepted.into_iter().map(|(_, candidate)| candidate).collect(), refused)
}

fn edits(schema: &Value, form: RuleForm, accepted: Vec<Candidate<'_>>) -> Vec<SchemaEdit> {
    let mut wanted: BTreeMap<Vec<String>, Vec<Value>> = BTreeMap::new();
    let mut enums = Vec::new();
    for Candidate { keys, rules, items, discriminator, .. } in accepted {
        if let (Some(name), Some(added)) = (discriminator, rules.values) {
            let path = keys.iter().cloned().chain(["properties", name, "enum"].map(str::to_owned)).collect();
            enums.push(SchemaEdit { path, kept: Vec::new(), added });
        }
        wanted.entry(keys).or_default().extend(items);
    }
    let mut edits = list_edits(schema, form, wanted);
    edits.extend(enums);
    edits.sort_by(|one, other| one.path.cmp(&other.path));
    edits
}

/// Returns the changes that give a schema these rules, by the path of their object, and no others of this crate, in any form.
fn list_edits(schema: &Value, form: RuleForm, wanted: BTreeMap<Vec<String>, Vec<Value>>) -> Vec<SchemaEdit> {
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
        let present = object.and_then(|object| object.get(list.0)?.as_array());
        let (ours, others): (Vec<_>, Vec<_>) =
            present.into_iter().flatten().enumerate().partition(|(_, it)| (list.1)(it));
        let is_same = ours.len() == added.len() && ours.iter().zip(&added).all(|((_, one), other)| *one == other);
        path.push(list.0.to_owned());
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
        if node.get(list.0).and_then(Value::as_array).is_some_and(|rules| rules.iter().any(list.1)) {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests;
