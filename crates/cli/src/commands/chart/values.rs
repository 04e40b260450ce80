//! Finds the nulls in the values that remove a member which the chart's defaults have. Every answer was tried: the chart was rendered with it.

use super::helm::HelmChart;
use crate::input::manifest::Document;
use kube_unions_offline::sets;
use serde_json::{Value, json};

/// The most renderings for one member.
const MOST_TRIES: usize = 16;

/// A path of names in the values of a chart.
pub(super) type ValuesPath = Vec<String>;

/// The members of a union of a rendered object that are to go.
#[derive(Debug)]
pub(super) struct UnwantedMembers<'u> {
    pub(super) document: &'u Document,
    /// The JSON Pointer of the union's object.
    pub(super) pointer: &'u str,
    pub(super) members: Vec<&'u str>,
    /// The place in the values where they may come from. Empty: it is not known.
    pub(super) place: &'u [String],
}

/// The advice for a union.
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
    /// Every path in the chart's values.
    paths: Vec<ValuesPath>,
}

impl<'s> ValuesSearch<'s> {
    /// Takes a chart and the values that nulls can remove.
    pub(super) fn new(chart: &'s HelmChart<'s>, values: &Value) -> Self {
        let mut paths = Vec::new();
        collect(values, &mut Vec::new(), &mut paths);
        Self { chart, paths }
    }

    /// Returns what to write into the values, beside `more`, so that members go.
    pub(super) fn advice(&self, unwanted: &UnwantedMembers<'_>, more: &Value) -> anyhow::Result<ValuesAdvice> {
        let mut nulls = Vec::new();
        for member in &unwanted.members {
            let candidates = self.candidates(unwanted, member);
            if candidates.is_empty() {
                return Ok(ValuesAdvice::NotFound);
            }
            let mut found = None;
            for candidate in &candidates {
                let with = [&*nulls, std::slice::from_ref(candidate)].concat();
                if !self.has(&with_nulls(more.clone(), &with), unwanted, member)? {
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

    /// Returns the null that removes one of the members, and its name. `None`: there is none.
    pub(super) fn null_for_one(
        &self,
        members: &UnwantedMembers<'_>,
    ) -> anyhow::Result<Option<(ValuesAdvice, Option<String>)>> {
        for member in &members.members {
            let advice = self.advice(&UnwantedMembers { members: vec![*member], ..*members }, &json!({}))?;
            if matches!(advice, ValuesAdvice::Nulls(_)) {
                return Ok(Some((advice, Some((*member).to_owned()))));
            }
        }
        Ok(None)
    }

    /// Returns true if the chart renders the member with these values as well. A chart that cannot be rendered with them has it.
    fn has(&self, values: &Value, unwanted: &UnwantedMembers<'_>, member: &str) -> anyhow::Result<bool> {
        let Some(file) = self.chart.with_more_values(values)? else { return Ok(true) };
        let documents = file.documents();
        let object = documents.iter().find(|document| document.identity() == unwanted.document.identity());
        let Some(object) = object else { return Ok(true) };
        let object: Value = serde_json::from_str(&object.text)?;
        Ok(object.pointer(unwanted.pointer).is_none_or(|union| sets(Some(union), member)))
    }

    /// Returns the paths that end with the member: first those at the place, then those whose other names are most like the path of the union.
    fn candidates(&self, unwanted: &UnwantedMembers<'_>, member: &str) -> Vec<ValuesPath> {
        let field = unwanted.pointer.to_lowercase();
        let mut candidates: Vec<&ValuesPath> =
            self.paths.iter().filter(|path| path.last().is_some_and(|last| last == member)).collect();
        let others = |path: &ValuesPath| path.iter().filter(|name| !field.contains(&name.to_lowercase())).count();
        let is_elsewhere = |path: &ValuesPath| !path.starts_with(unwanted.place);
        candidates.sort_by_key(|path| (is_elsewhere(path), others(path), path.len()));
        candidates.into_iter().take(MOST_TRIES).cloned().collect()
    }
}

pub(super) fn null_values<'p>(nulls: impl IntoIterator<Item = &'p ValuesPath>) -> Value {
    with_nulls(json!({}), nulls)
}

/// Returns values with nulls in them.
pub(super) fn with_nulls<'p>(mut values: Value, nulls: impl IntoIterator<Item = &'p ValuesPath>) -> Value {
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
