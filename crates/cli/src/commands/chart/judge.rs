//! Judges the objects of a rendering, and what the chart's defaults have in common with it.

use super::values::UnwantedMembers;
use crate::commands::preview::{ApiServerAnswer, Kinds, PreviewedKind, undecided};
use crate::input::kinds::entry_of;
use crate::input::manifest::{Document, Edit, Problem, applied, line_about};
use kube_unions_core::field_path::{pointer, pointer_tokens};
use kube_unions_manifests::left_over;
use kube_unions_manifests::request::{edits_below, own_edits};
use kube_unions_offline::{HelpPage, InvalidUnion, LeftOver};
use serde_json::Value;
use std::collections::BTreeMap;

/// An invalid union of a rendered object.
#[derive(Debug)]
pub(super) struct RenderedFault<'d> {
    pub(super) document: &'d Document,
    /// The path of the violation.
    pub(super) field: String,
    pub(super) violation: String,
    pub(super) answer: ApiServerAnswer,
    pub(super) help: HelpPage,
    /// The JSON Pointer of the field.
    pub(super) field_pointer: String,
    /// The JSON Pointer of the union's object.
    pub(super) pointer: String,
    /// The set members that the chart renders without the values as well.
    pub(super) of_chart: Vec<String>,
    /// The other set members.
    pub(super) of_values: Vec<String>,
    /// True if the values set another value of the discriminator.
    pub(super) sets_value: bool,
    /// The members that normalisation removes. Empty: it does not make the union valid.
    pub(super) removed: Vec<String>,
}

impl RenderedFault<'_> {
    /// Returns what a null in the values has to remove.
    pub(super) fn unwanted(&self) -> UnwantedMembers<'_> {
        let members = self.removed.iter().map(String::as_str).collect();
        UnwantedMembers { document: self.document, pointer: &self.pointer, members, place: &[] }
    }
}

/// The faults of a rendering, and the edits that mend them.
#[derive(Debug, Default)]
pub(super) struct JudgedRendering<'d> {
    pub(super) faults: Vec<RenderedFault<'d>>,
    /// The documents that normalisation changes.
    pub(super) edits: Vec<(&'d Document, Vec<Edit>)>,
    /// Objects of kinds with unions.
    pub(super) judged: usize,
    /// Objects of other kinds.
    pub(super) others: usize,
    /// Unions with something left over in place of a choice.
    pub(super) undecided: usize,
    /// The reasons why objects could not be judged, a line each.
    pub(super) problems: Vec<String>,
}

/// Judges each object as its create. `defaults` are the objects of the chart's defaults.
pub(super) fn judge<'d>(kinds: &'d Kinds, defaults: &'d [Document], rendered: &'d [Document]) -> JudgedRendering<'d> {
    let defaults: BTreeMap<_, &Document> = defaults.iter().rev().map(|it| (it.identity(), it)).collect();
    let mut judged = JudgedRendering::default();
    for document in rendered {
        if let Some(problem) = Problem::of_untyped(document) {
            judged.problems.push(problem.to_string());
            continue;
        }
        let mut kind = [&document.kind, &document.api_version].into_iter().flatten();
        if let Some(advice) = kind.find_map(|text| left_over(text)) {
            judged.problems.push(line_about(document, &format!("of no kind: {advice}")));
            continue;
        }
        let Some(entry) = entry_of(&kinds.assembly.catalog, document) else {
            judged.others += 1;
            continue;
        };
        let default = defaults.get(&document.identity()).copied();
        match kinds.kind(entry).and_then(|kind| faults_of(kind, default, document)) {
            Ok(JudgedDocument { faults, edits, left_over }) => {
                judged.judged += 1;
                judged.undecided += left_over.len();
                judged.problems.extend(left_over);
                judged.faults.extend(faults);
                judged.edits.extend((!edits.is_empty()).then_some((document, edits)));
            }
            Err(error) => judged.problems.push(line_about(document, &format!("cannot be judged: {error:#}"))),
        }
    }
    judged
}

/// The faults of an object.
#[derive(Debug, Default)]
struct JudgedDocument<'d> {
    faults: Vec<RenderedFault<'d>>,
    /// The edits that mend those which the defaults explain.
    edits: Vec<Edit>,
    /// The unions that cannot be judged, a line each.
    left_over: Vec<String>,
}

/// Judges an object of a kind with unions.
fn faults_of<'d>(
    kind: PreviewedKind<'d>,
    default: Option<&Document>,
    document: &'d Document,
) -> anyhow::Result<JudgedDocument<'d>> {
    let written: Value = kind.read(document)?;
    let completed = kind.completed(written.clone())?;
    let left_over = kind.left_over(document, &completed)?;
    let undecided = left_over.iter().map(|it| undecided(document, it)).collect();
    let invalid = kind.invalid(document, &completed)?;
    if invalid.is_empty() {
        return Ok(JudgedDocument { left_over: undecided, ..JudgedDocument::default() });
    }
    let default = default.map(|default| kind.read(default).and_then(|default| kind.completed(default))).transpose()?;
    let (edits, mended) = match &default {
        Some(default) => mended(kind, document, [default, &completed], &left_over)?,
        None => (Vec::new(), completed.clone()),
    };
    let still = kind.invalid(document, &kind.completed(mended.clone())?)?;
    let fault = |invalid: &InvalidUnion<'d>| {
        let before = default.as_ref().and_then(|default| invalid.address.find(default));
        let is_of_chart = |name: &&str| before.is_some_and(|before| before.get(*name).is_some());
        let (of_chart, of_values): (Vec<&str>, Vec<&str>) = invalid.members.iter().partition(|name| is_of_chart(name));
        let after = invalid.address.find(&mended);
        let is_mended = !still.iter().any(|other| other.is_same(invalid));
        let removed =
            invalid.members.iter().filter(|name| is_mended && after.is_none_or(|after| after.get(**name).is_none()));
        let value = |object: Option<&Value>| Some(object?.get(invalid.union.discriminator()?)?.clone());
        RenderedFault {
            document,
            field: invalid.violation.path.to_string(),
            field_pointer: invalid.violation.path.to_pointer(),
            violation: invalid.violation.message(),
            answer: kind.enforcement(invalid),
            help: kind.help(invalid),
            pointer: pointer(invalid.address.tokens(&completed)),
            sets_value: before.is_some() && value(before) != value(invalid.address.find(&completed)),
            removed: removed.map(|name| (*name).to_owned()).collect(),
            of_chart: of_chart.into_iter().map(str::to_owned).collect(),
            of_values: of_values.into_iter().map(str::to_owned).collect(),
        }
    };
    let edits = if still.len() < invalid.len() { edits } else { Vec::new() };
    Ok(JudgedDocument { faults: invalid.iter().map(fault).collect(), edits, left_over: undecided })
}

/// Returns the edits of normalisation, for an update from the chart's defaults, and the object afterwards. A union with something left over
/// stays as it is.
fn mended(
    kind: PreviewedKind<'_>,
    document: &Document,
    [default, new]: [&Value; 2],
    left_over: &[LeftOver<'_>],
) -> anyhow::Result<(Vec<Edit>, Value)> {
    let review = kind.review(document, Some(default), new, None)?;
    let base = pointer_tokens(&document.pointer).unwrap_or_default();
    let kept: Vec<Vec<String>> = left_over.iter().map(|it| it.tokens(new)).collect();
    let without = |mut edits: Vec<Edit>, base: &[String]| {
        edits.retain(|edit| {
            let path = edit.path().get(base.len()..).unwrap_or_default();
            !kept.iter().any(|kept| path.starts_with(kept))
        });
        edits
    };
    let edits = without(own_edits(document, &review), &base);
    Ok((edits, applied(new.clone(), &without(edits_below(&[], &review), &[]))))
}
