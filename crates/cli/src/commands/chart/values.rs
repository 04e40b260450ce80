//! Finds the nulls in the values that remove a member which the chart's defaults have. Every answer was tried: the chart was rendered with it.

use super::defaults::default_values;
use super::helm::HelmChart;
use super::judge::RenderedFault;
use kube_unions_offline::sets;
use serde_json::{Value, json};

/// The most renderings for one member.
const MOST_TRIES: usize = 16;

/// A path of names in the values of a chart.
pub(super) type ValuesPath = Vec<String>;

/// The advice for a fault.
#[derive(Debug)]
pub(super) enum ValuesAdvice {
    /// These values are null, and the union is valid.
    Nulls(Vec<ValuesPath>),
    /// The values have such a name, and a null there does not help.
    Futile(Vec<ValuesPath>),
    /// The default values have no such name.
    NotFound,
}

/// Renders a chart again and again.
#[derive(Debug)]
pub(super) struct ValuesSearch<'s> {
    chart: &'s HelmChart<'s>,
    /// Every path in the chart's default values.
    paths: Vec<ValuesPath>,
}

impl<'s> ValuesSearch<'s> {
    pub(super) fn new(chart: &'s HelmChart<'s>) -> anyhow::Result<Self> {
        let mut paths = Vec::new();
        collect(&default_values(chart)?, &mut Vec::new(), &mut paths);
        Ok(Self { chart, paths })
    }

    /// Returns what to write into the values for a fault.
    pub(super) fn advice(&self, fault: &RenderedFault<'_>) -> anyhow::Result<ValuesAdvice> {
        let mut nulls = Vec::new();
        for member in &fault.removed {
            let candidates = self.candidates(fault, member);
            if candidates.is_empty() {
                return Ok(ValuesAdvice::NotFound);
            }
            let mut found = None;
            for candidate in &candidates {
                let with = [&*nulls, std::slice::from_ref(candidate)].concat();
                if !self.has(&with, fault, member)? {
                    found = Some(candidate.clone());
                    break;
                }
            }
            match found {
                Some(path) => nulls.push(path),
                None => return Ok(ValuesAdvice::Futile(candidates)),
            }
        }
        Ok(ValuesAdvice::Nulls(nulls))
    }

    /// Returns true if the chart renders the member with these nulls as well. A chart that cannot be rendered with them has it.
    fn has(&self, nulls: &[ValuesPath], fault: &RenderedFault<'_>, member: &str) -> anyhow::Result<bool> {
        let Some(file) = self.chart.with_more_values(&null_values(nulls))? else { return Ok(true) };
        let documents = file.documents();
        let object = documents.iter().find(|document| document.identity() == fault.document.identity());
        let Some(object) = object else { return Ok(true) };
        let object: Value = serde_json::from_str(&object.text)?;
        Ok(object.pointer(&fault.pointer).is_none_or(|union| sets(Some(union), member)))
    }

    /// Returns the paths that end with the member, those first whose other names are most like the path of the union.
    fn candidates(&self, fault: &RenderedFault<'_>, member: &str) -> Vec<ValuesPath> {
        let field = fault.pointer.to_lowercase();
        let mut candidates: Vec<&ValuesPath> =
            self.paths.iter().filter(|path| path.last().is_some_and(|last| last == member)).collect();
        let others = |path: &ValuesPath| path.iter().filter(|name| !field.contains(&name.to_lowercase())).count();
        candidates.sort_by_key(|path| (others(path), path.len()));
        candidates.into_iter().take(MOST_TRIES).cloned().collect()
    }
}

/// Returns values with nulls.
pub(super) fn null_values<'p>(nulls: impl IntoIterator<Item = &'p ValuesPath>) -> Value {
    let mut values = json!({});
    for path in nulls {
        let mut at = &mut values;
        for name in path {
            if !at.is_object() {
                *at = json!({});
            }
            at = &mut at[name];
        }
        *at = Value::Null;
    }
    values
}

fn collect(values: &Value, path: &mut ValuesPath, paths: &mut Vec<ValuesPath>) {
    for (name, value) in values.as_object().into_iter().flatten() {
        path.push(name.clone());
        paths.push(path.clone());
        collect(value, path, paths);
        path.pop();
    }
}
