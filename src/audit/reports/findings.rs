//! Collects findings by namespace, as results of reports. What exceeds a bound is counted and not kept.
//!
//! A result shows no value of an object but a discriminator's.

use crate::audit::finding::{Impact, ObjectFinding};
use kube_unions_command::json::present;
use kube_unions_core::field_path::AboutField;
use kube_unions_core::names::{GroupKind, GroupVersionKind};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The `source` of results, by which tools choose reports.
pub(super) const SOURCE: &str = "kube-unions";

/// The `policy` of results.
pub(super) const POLICY: &str = "unions";

/// Most results of one report.
pub const MOST_RESULTS: usize = 1000;

/// Greatest size of the results of one report, in bytes. An etcd stores objects of 1.5 MiB.
const HEAVIEST: usize = 1 << 20;

/// Greatest size of the results of all reports, in bytes.
const HEAVIEST_OF_ALL: usize = 64 << 20;

/// The findings of an audit by namespace, those about objects without a namespace under an empty one.
#[derive(Debug)]
pub struct CollectedFindings {
    namespaces: ByNamespace,
    /// The size of the results that may still be kept, in bytes.
    room: usize,
}

pub(super) type ByNamespace = BTreeMap<Box<str>, NamespaceFindings>;

/// The findings of one report.
#[derive(Debug, Default)]
pub struct NamespaceFindings {
    /// Results in JSON, in the order of the audit.
    results: Vec<Box<str>>,
    bytes: usize,
    pub(super) fail: u64,
    pub(super) warn: u64,
    pub(super) error: u64,
    pub(super) left_out: u64,
}

/// The kinds that were not audited as a whole. What older reports say of their objects stays.
#[derive(Debug)]
pub struct Unaudited {
    /// True if there may be kinds with unions that are not known.
    lacking: bool,
    audited: BTreeSet<GroupKind>,
    failed: BTreeSet<GroupKind>,
}

/// The kind and the name of the object that a result is about.
type ResultSubject = (GroupKind, String);

impl Default for CollectedFindings {
    fn default() -> Self {
        Self { namespaces: BTreeMap::new(), room: HEAVIEST_OF_ALL }
    }
}

impl CollectedFindings {
    /// Adds a violation. A change of a valid object is left out.
    pub fn add(&mut self, finding: &ObjectFinding<'_>) {
        let (result, severity) = match finding.rule.impact {
            Impact::Invalid => ("fail", "medium"),
            Impact::WouldWarn | Impact::WouldAudit => ("warn", "low"),
            Impact::WouldChange => return,
        };
        let ObjectFinding { rule, kind, namespace, name, path, .. } = finding;
        let path = path.to_string();
        let object = present(json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "namespace": (!namespace.is_empty()).then_some(namespace),
            "name": name,
        }));
        let value = present(json!({
            "source": SOURCE,
            "policy": POLICY,
            "rule": rule.id,
            "result": result,
            "severity": severity,
            "message": AboutField { path: &path, text: finding.sentence() }.to_string(),
            "resources": [object],
            "properties": (!path.is_empty()).then(|| json!({"path": path})),
        }));
        self.keep(namespace, result, &value);
    }

    /// Adds a problem that kept something of a namespace from being audited.
    pub fn add_problem(&mut self, namespace: &str, problem: &str) {
        let value = json!({
            "source": SOURCE, "policy": POLICY, "rule": "not-audited", "result": "error", "message": problem,
        });
        self.keep(namespace, "error", &value);
    }

    fn keep(&mut self, namespace: &str, result: &str, value: &Value) {
        let of = self.namespaces.entry(namespace.into()).or_default();
        of.count(result);
        let text = value.to_string();
        if text.len() <= self.room && of.has_room(text.len()) {
            self.room -= text.len();
            of.bytes += text.len();
            of.results.push(text.into());
        } else {
            of.left_out += 1;
        }
    }

    /// Returns the findings about objects without a namespace, and the others.
    pub(super) fn take(mut self) -> (ByNamespace, ByNamespace) {
        let cluster = self.namespaces.remove_entry("");
        (cluster.into_iter().collect(), self.namespaces)
    }
}

impl NamespaceFindings {
    /// Returns true if one more result may be kept.
    fn has_room(&self, bytes: usize) -> bool {
        self.results.len() < MOST_RESULTS && self.bytes.saturating_add(bytes) <= HEAVIEST
    }

    fn count(&mut self, result: &str) {
        match result {
            "fail" => self.fail += 1,
            "warn" => self.warn += 1,
            _ => self.error += 1,
        }
    }

    /// Adds the results of a stored report about objects of kinds that were not audited, except for objects with new results.
    pub(super) fn keep_results_of(&mut self, stored: &Value, unaudited: &Unaudited) {
        if unaudited.is_nothing() {
            return;
        }
        let known: BTreeSet<ResultSubject> = self.results().iter().filter_map(subject).collect();
        for value in stored.get("results").and_then(Value::as_array).into_iter().flatten() {
            let Some(subject) = subject(value) else { continue };
            let result = value.get("result").and_then(Value::as_str).unwrap_or_default();
            let is_finding = ["fail", "warn"].contains(&result) && value.get("policy").is_some_and(|it| it == POLICY);
            if !is_finding || known.contains(&subject) || !unaudited.has(&subject.0) {
                continue;
            }
            self.count(result);
            let text = value.to_string();
            if self.has_room(text.len()) {
                self.bytes += text.len();
                self.results.push(text.into());
            } else {
                self.left_out += 1;
            }
        }
    }

    /// Returns the results that are kept.
    pub(super) fn results(&self) -> Vec<Value> {
        // INVARIANT: each text was written from a value.
        self.results.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fail + self.warn + self.error == 0
    }
}

impl Unaudited {
    /// `lacking`: true if there may be kinds with unions that are not known.
    pub fn new(lacking: bool) -> Self {
        Self { lacking, audited: BTreeSet::new(), failed: BTreeSet::new() }
    }

    pub(super) fn was_audited(&mut self, kind: &GroupVersionKind) {
        self.audited.insert(kind.group_kind());
    }

    pub(super) fn was_not_audited(&mut self, kind: &GroupVersionKind) {
        self.failed.insert(kind.group_kind());
    }

    fn is_nothing(&self) -> bool {
        !self.lacking && self.failed.is_empty()
    }

    fn has(&self, kind: &GroupKind) -> bool {
        self.failed.contains(kind) || self.lacking && !self.audited.contains(kind)
    }
}

fn subject(result: &Value) -> Option<ResultSubject> {
    let object = result.get("resources")?.get(0)?;
    let text = |field: &str| object.get(field).and_then(Value::as_str);
    let kind = text("kind")?;
    let group = text("apiVersion").and_then(|it| it.split_once('/')).map_or("", |(group, _)| group);
    Some((GroupKind::new(group, kind), text("name")?.to_owned()))
}

#[cfg(test)]
mod tests;
