//! `--matrix`: finds the unions of a chart in which a user cannot choose another member than the defaults do.
//!
//! [`unions`] finds the unions of the rendering that have a member, [`overrides`] the places in the values where the member may come from, and
//! what a user writes there to choose another one. The chart is rendered with each. A union that has the other member then is either
//! valid, or the default stands beside it. [`nulls`] then looks for a null that removes the default. Where none does, [`template`] writes the
//! lines of a template that do, and [`report`] prints.

mod nulls;
mod overrides;
mod reached;
pub(super) mod report;
mod samples;
mod template;
mod unions;

use self::nulls::NullSearch;
use self::overrides::{NaiveOverride, overrides};
use self::reached::{ChoiceOutcome, DefaultObject, DefaultObjects, RowKey, identity, judged, reached, row_key};
use self::unions::RenderedUnion;
use super::defaults::values_of_files;
use super::helm::{HelmChart, NOT_TRIED};
use super::values::ValuesPath;
use crate::commands::preview::Kinds;
use crate::input::manifest::{Document, Problem, line_about};
use kube_unions_manifests::misspelt::KnownKinds;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most renderings with an override. A chart has about fifty.
const MOST_OVERRIDES: usize = 2_000;

/// The most overrides at one place that no union has, before the place is left.
const MOST_FUTILE: usize = 12;

/// The choices that a user has in the unions of a chart.
#[derive(Debug, Default)]
pub(super) struct OverrideMatrix<'d> {
    pub(super) rows: Vec<MatrixRow<'d>>,
    /// Unions of the default rendering with a member.
    pub(super) unions: usize,
    /// Overrides that the chart refuses to render.
    pub(super) refused: usize,
    /// Overrides that no union of the rendering has.
    pub(super) unreached: usize,
    /// The reasons why something could not be judged, a line each.
    pub(super) problems: Vec<String>,
}

/// A union, and a place in the values where its members come from.
#[derive(Debug)]
pub(super) struct MatrixRow<'d> {
    document: &'d Document,
    union: RenderedUnion<'d>,
    /// The place in the values.
    values: ValuesPath,
    /// True if the default member comes from there. Otherwise the template has it.
    has_default: bool,
    cells: Vec<OverrideCell>,
}

/// A choice that a user made at a place in the values.
#[derive(Debug)]
struct OverrideCell {
    /// The member, or the value of the discriminator.
    choice: String,
    /// The values of the user.
    sets: Value,
    outcome: ChoiceOutcome,
}

/// The overrides of a matrix with each outcome.
#[derive(Debug, Default)]
pub(super) struct OutcomeCounts {
    pub(super) works: usize,
    pub(super) needs_nulls: usize,
    pub(super) default_stays: usize,
}

impl<'d> OverrideMatrix<'d> {
    /// Returns the overrides with each outcome.
    pub(super) fn counts(&self) -> OutcomeCounts {
        let mut counts = OutcomeCounts::default();
        for cell in self.rows.iter().flat_map(|row| &row.cells) {
            match cell.outcome {
                ChoiceOutcome::Works => counts.works += 1,
                ChoiceOutcome::NeedsNulls(_) => counts.needs_nulls += 1,
                ChoiceOutcome::DefaultStays => counts.default_stays += 1,
            }
        }
        counts
    }

    /// Returns the objects that every rendering has, and counts their unions.
    fn objects(&mut self, kinds: &'d Kinds, rendered: &'d [Document], again: &[Document]) -> DefaultObjects<'d> {
        let again: Vec<_> = again.iter().map(Document::identity).collect();
        let (mut objects, mut known) = (BTreeMap::new(), KnownKinds::new(kinds.assembly.kinds()));
        for document in rendered.iter().rev() {
            if let Some(problem) = Problem::of_untyped(document) {
                self.problems.push(problem.to_string());
                continue;
            }
            match judged(kinds, document) {
                Ok(None) => self.problems.extend(known.problem(document, |_| true).map(|it| it.to_string())),
                Ok(Some(_)) if !again.contains(&document.identity()) => {
                    let why =
                        "has another name in each rendering, so it cannot be found again: give its name in the values";
                    self.problems.push(line_about(document, why));
                }
                Ok(Some(object)) => drop(objects.insert(identity(document), object)),
                Err(error) => self.problems.push(line_about(document, &format!("cannot be judged: {error:#}"))),
            }
        }
        self.unions = objects.values().map(|object| object.unions.len()).sum();
        objects
    }
}

/// Renders a chart with each override. `rendered` are the objects of its rendering, and `again` those of another one with the same values.
pub(super) fn matrix<'d>(
    chart: &HelmChart<'_>,
    kinds: &'d Kinds,
    rendered: &'d [Document],
    again: &[Document],
) -> anyhow::Result<OverrideMatrix<'d>> {
    let mut matrix = OverrideMatrix::default();
    let objects = matrix.objects(kinds, rendered, again);
    let values = values_of_files(chart)?;
    let of_unions = objects.values().flat_map(|object| object.unions.iter().map(|union| (union, object.schema)));
    let mut tried = overrides(&values, of_unions);
    if tried.len() > MOST_OVERRIDES {
        matrix.problems.push(format!("the chart has more than {MOST_OVERRIDES} overrides: the others were not tried"));
        tried.truncate(MOST_OVERRIDES);
    }
    let mut rows: BTreeMap<RowKey<'d>, MatrixRow<'d>> = BTreeMap::new();
    let mut search = NullSearch::new(chart, kinds, &values);
    // The overrides at a place that no union has. A place that one member comes from is that of the others: it is not left.
    let mut futile: BTreeMap<ValuesPath, Option<usize>> = BTreeMap::new();
    for naive in tried {
        let of_place = futile.entry(naive.path.clone()).or_insert(Some(0));
        if *of_place == Some(MOST_FUTILE) {
            matrix.unreached += 1;
            continue;
        }
        let cells = match chart.with_more_values(&naive.values()) {
            Ok(Some(file)) => cells(&mut search, &objects, &file.documents(), &naive),
            Ok(None) => {
                matrix.refused += 1;
                continue;
            }
            Err(error) => Err(error),
        };
        let cells = match cells {
            Ok(cells) => cells,
            Err(error) => {
                matrix.problems.push(format!("{error:#}: {NOT_TRIED}"));
                break;
            }
        };
        if cells.is_empty() {
            *of_place = of_place.map(|times| times + 1);
            matrix.unreached += 1;
        } else {
            *of_place = None;
        }
        for (object, union, outcome) in cells {
            let row = rows.entry(row_key(object, union, &naive)).or_insert_with(|| MatrixRow {
                document: object.document,
                union: union.clone(),
                values: naive.path.clone(),
                has_default: naive.has_default,
                cells: Vec::new(),
            });
            row.cells.push(OverrideCell { choice: naive.choice.clone(), sets: naive.values(), outcome });
        }
    }
    matrix.rows = rows.into_values().collect();
    matrix.rows.iter_mut().for_each(|row| row.cells.sort_by(|one, other| one.choice.cmp(&other.choice)));
    Ok(matrix)
}

/// Returns the unions that an override reaches in a rendering, and the changes with which its choice is made there.
fn cells<'o, 'd>(
    search: &mut NullSearch<'_, 'd>,
    objects: &'o DefaultObjects<'d>,
    documents: &[Document],
    naive: &NaiveOverride,
) -> anyhow::Result<Vec<(&'o DefaultObject<'d>, &'o RenderedUnion<'d>, ChoiceOutcome)>> {
    let mut cells = Vec::new();
    for document in documents {
        let object = objects.get(&identity(document)).filter(|it| it.document.text != document.text);
        let Some(object) = object else { continue };
        for reached in reached(search.kinds, object, document, naive)? {
            let outcome =
                if reached.is_valid { ChoiceOutcome::Works } else { search.outcome(naive, object, &reached)? };
            cells.push((object, reached.union, outcome));
        }
    }
    Ok(cells)
}
