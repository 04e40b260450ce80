//! Finds the nulls with which a user chooses a member where the default stands beside it otherwise. Every answer was tried.

use super::overrides::NaiveOverride;
use super::reached::{ChoiceOutcome, DefaultObject, ReachedUnion, RowKey, identity, reached, row_key};
use crate::commands::chart::helm::HelmChart;
use crate::commands::chart::values::{UnwantedMembers, ValuesAdvice, ValuesPath, ValuesSearch, with_nulls};
use crate::commands::preview::Kinds;
use crate::input::manifest::{Document, RenderedFile};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr;

/// Renders a chart with overrides and nulls.
pub(super) struct NullSearch<'s, 'd> {
    chart: &'s HelmChart<'s>,
    pub(super) kinds: &'d Kinds,
    search: ValuesSearch<'s>,
    /// The nulls that are tried first at a place: those that helped one of its unions, or the likeliest of those that did not.
    likely: BTreeMap<ValuesPath, Vec<Vec<ValuesPath>>>,
    /// The rows for which every null was tried, and the members that had to go.
    searched: BTreeSet<(RowKey<'d>, Vec<&'d str>)>,
    /// The last rendering, and its values.
    last: Option<(Value, Option<Vec<Document>>)>,
}

impl<'s, 'd> NullSearch<'s, 'd> {
    pub(super) fn new(chart: &'s HelmChart<'s>, kinds: &'d Kinds, values: &Value) -> Self {
        let search = ValuesSearch::new(chart, values);
        Self { chart, kinds, search, likely: BTreeMap::new(), searched: BTreeSet::new(), last: None }
    }

    /// Returns what it takes beside an override so that a union has its choice alone.
    pub(super) fn outcome(
        &mut self,
        naive: &NaiveOverride,
        object: &DefaultObject<'d>,
        union: &ReachedUnion<'_, 'd>,
    ) -> anyhow::Result<ChoiceOutcome> {
        for nulls in self.likely.get(&naive.path).cloned().unwrap_or_default() {
            if self.is_valid_with(&nulls, naive, object, union)? {
                return Ok(ChoiceOutcome::NeedsNulls(nulls));
            }
        }
        let members = naive.excluded(&union.now);
        if !self.searched.insert((row_key(object, union.union, naive), members.clone())) {
            return Ok(ChoiceOutcome::DefaultStays);
        }
        let pointer = union.now.path.to_pointer();
        let unwanted = UnwantedMembers { document: object.document, pointer: &pointer, members, place: &naive.path };
        let (nulls, is_found) = match self.search.advice(&unwanted, &naive.values())? {
            ValuesAdvice::Nulls(nulls) => (nulls, true),
            ValuesAdvice::Futile(mut tried) => {
                tried.truncate(1);
                (tried, false)
            }
            ValuesAdvice::NotFound => return Ok(ChoiceOutcome::DefaultStays),
        };
        let likely = self.likely.entry(naive.path.clone()).or_default();
        if !likely.contains(&nulls) {
            likely.push(nulls.clone());
        }
        if is_found && self.is_valid_with(&nulls, naive, object, union)? {
            return Ok(ChoiceOutcome::NeedsNulls(nulls));
        }
        Ok(ChoiceOutcome::DefaultStays)
    }

    /// Returns true if a union has the choice of an override alone, with these nulls as well.
    fn is_valid_with(
        &mut self,
        nulls: &[ValuesPath],
        naive: &NaiveOverride,
        object: &DefaultObject<'d>,
        union: &ReachedUnion<'_, 'd>,
    ) -> anyhow::Result<bool> {
        let kinds = self.kinds;
        let documents = self.rendered(with_nulls(naive.values(), nulls))?;
        let is_same = |document: &&Document| identity(document) == identity(object.document);
        let Some(document) = documents.iter().flat_map(|it| it.iter()).find(is_same) else { return Ok(false) };
        let reached = reached(kinds, object, document, naive)?;
        Ok(reached.iter().any(|it| ptr::eq(it.union, union.union) && it.is_valid))
    }

    /// Renders the chart with more values. The unions of an override mostly need the same nulls, so the last rendering is kept.
    fn rendered(&mut self, values: Value) -> anyhow::Result<Option<&[Document]>> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != values) {
            let file = self.chart.with_more_values(&values)?;
            self.last = Some((values, file.as_ref().map(RenderedFile::documents)));
        }
        Ok(self.last.as_ref().and_then(|(_, documents)| documents.as_deref()))
    }
}
