//! `--matrix`: finds the unions of a chart in which a user cannot choose another member than the defaults do.
//!
//! [`unions`] finds the unions of the rendering that have a member, [`overrides`] the places in the values where the member may come from, and
//! what a user writes there to choose another one. The chart is rendered with each. A union that has the other member then is either
//! valid, or the default stands beside it. [`template`] writes the lines of a template that remove the default, and [`report`] prints.

mod overrides;
pub(super) mod report;
mod template;
mod unions;

use self::overrides::{NaiveOverride, overrides};
use self::unions::{RenderedUnion, unions_of};
use super::defaults::values_of_files;
use super::helm::{HelmChart, NOT_TRIED};
use super::values::ValuesPath;
use crate::commands::preview::Kinds;
use crate::input::kinds::entry_of;
use crate::input::manifest::{Document, line_about};
use kube_unions_core::field_path::pointer;
use kube_unions_core::schema::Schema;
use kube_unions_offline::InvalidUnion;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ptr;

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
    /// True if the union is valid then.
    works: bool,
}

/// The object of a document with unions.
struct JudgedObject<'d> {
    document: &'d Document,
    schema: &'d Schema,
    unions: Vec<RenderedUnion<'d>>,
}

impl MatrixRow<'_> {
    /// Returns the choices that a user cannot make here.
    fn refused(&self) -> impl Iterator<Item = &OverrideCell> {
        self.cells.iter().filter(|cell| !cell.works)
    }
}

impl OverrideMatrix<'_> {
    /// Returns the number of overrides of which the union is valid, and the number of the others.
    pub(super) fn counts(&self) -> (usize, usize) {
        let cells = self.rows.iter().flat_map(|row| &row.cells);
        let (working, others): (Vec<_>, Vec<_>) = cells.partition(|cell| cell.works);
        (working.len(), others.len())
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
    let again: Vec<_> = again.iter().map(Document::identity).collect();
    let mut objects = BTreeMap::new();
    for document in rendered.iter().rev() {
        match judged(kinds, document) {
            Ok(None) => {}
            Ok(Some(_)) if !again.contains(&document.identity()) => {
                let why =
                    "has another name in each rendering, so it cannot be found again: give its name in the values";
                matrix.problems.push(line_about(document, why));
            }
            Ok(Some(object)) => drop(objects.insert(identity(document), object)),
            Err(error) => matrix.problems.push(line_about(document, &format!("cannot be judged: {error:#}"))),
        }
    }
    matrix.unions = objects.values().map(|object| object.unions.len()).sum();
    let values = values_of_files(chart)?;
    let of_unions = objects.values().flat_map(|object| object.unions.iter().map(|union| (union, object.schema)));
    let mut tried = overrides(&values, of_unions);
    if tried.len() > MOST_OVERRIDES {
        matrix.problems.push(format!("the chart has more than {MOST_OVERRIDES} overrides: the others were not tried"));
        tried.truncate(MOST_OVERRIDES);
    }
    let mut rows: BTreeMap<_, MatrixRow<'d>> = BTreeMap::new();
    // The overrides at a place that no union has. A place that one member comes from is that of the others: it is not left.
    let mut futile: BTreeMap<ValuesPath, Option<usize>> = BTreeMap::new();
    for naive in tried {
        let of_place = futile.entry(naive.path.clone()).or_insert(Some(0));
        if *of_place == Some(MOST_FUTILE) {
            matrix.unreached += 1;
            continue;
        }
        let file = match chart.with_more_values(&naive.values()) {
            Ok(Some(file)) => file,
            Ok(None) => {
                matrix.refused += 1;
                continue;
            }
            Err(error) => {
                matrix.problems.push(format!("{error:#}: {NOT_TRIED}"));
                break;
            }
        };
        let mut is_reached = false;
        for document in &file.documents() {
            let Some(object) = objects.get(&identity(document)).filter(|it| it.document.text != document.text) else {
                continue;
            };
            for (union, works) in reached(kinds, object, document, &naive)? {
                is_reached = true;
                let member = union.union.members().next();
                let key = (identity(object.document), union.path.clone(), member, naive.path.clone());
                let row = rows.entry(key).or_insert_with(|| MatrixRow {
                    document: object.document,
                    union: union.clone(),
                    values: naive.path.clone(),
                    has_default: naive.has_default,
                    cells: Vec::new(),
                });
                row.cells.push(OverrideCell { choice: naive.choice.clone(), sets: naive.values(), works });
            }
        }
        if is_reached {
            *of_place = None;
        } else {
            *of_place = of_place.map(|times| times + 1);
            matrix.unreached += 1;
        }
    }
    matrix.rows = rows.into_values().collect();
    matrix.rows.iter_mut().for_each(|row| row.cells.sort_by(|one, other| one.choice.cmp(&other.choice)));
    Ok(matrix)
}

fn identity(document: &Document) -> [Option<String>; 4] {
    document.identity().map(|field| field.value.map(str::to_owned))
}

/// Returns the unions of a document that have a member or a value. `None`: its kind has no unions.
fn judged<'d>(kinds: &'d Kinds, document: &'d Document) -> anyhow::Result<Option<JudgedObject<'d>>> {
    let Some(entry) = entry_of(&kinds.assembly.catalog, document) else { return Ok(None) };
    let kind = kinds.kind(entry)?;
    let written = kind.read(document)?;
    let completed = kind.completed(written.clone())?;
    let mut unions = unions_of(entry, &written, &completed);
    unions.retain(|union| !union.members.is_empty() || union.writes_value);
    Ok(Some(JudgedObject { document, schema: kind.schema(), unions }))
}

/// Returns the unions that have the choice of an override and had not before, and whether they are valid.
fn reached<'o, 'd>(
    kinds: &'d Kinds,
    object: &'o JudgedObject<'d>,
    document: &Document,
    naive: &NaiveOverride,
) -> anyhow::Result<Vec<(&'o RenderedUnion<'d>, bool)>> {
    let Some(entry) = entry_of(&kinds.assembly.catalog, document) else { return Ok(Vec::new()) };
    let kind = kinds.kind(entry)?;
    let written = kind.read(document)?;
    let completed = kind.completed(written.clone())?;
    let now = unions_of(entry, &written, &completed);
    let mut reached = Vec::new();
    for union in &object.unions {
        let Some(now) = now.iter().find(|now| now.address == union.address && ptr::eq(now.union, union.union)) else {
            continue;
        };
        if naive.is_chosen_by(now) && !naive.is_chosen_by(union) {
            reached.push((union, now));
        }
    }
    if reached.is_empty() {
        return Ok(Vec::new());
    }
    let invalid = kind.invalid(document, &completed)?;
    let is_valid = |now: &RenderedUnion<'_>| {
        let is_of = |it: &InvalidUnion<'_>| {
            ptr::eq(it.union, now.union) && pointer(it.address.tokens(&completed)) == now.path.to_pointer()
        };
        !invalid.iter().any(|it| it.has_too_many() && is_of(it))
    };
    Ok(reached.into_iter().map(|(union, now)| (union, is_valid(now))).collect())
}
