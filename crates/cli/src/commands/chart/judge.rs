//! Judges the objects of a rendering, and what the chart's defaults have in common with it.

use super::values::{UnwantedMembers, ValuesAdvice};
use crate::commands::preview::{ApiServerAnswer, Kinds, PreviewedKind, undecided};
use crate::input::kinds::entry_of;
use crate::input::manifest::{Document, Edit, Problem, Section, applied, edit_in_place, line_about};
use kube_unions_core::field_path::{pointer, pointer_tokens};
use kube_unions_manifests::misspelt::KnownKinds;
use kube_unions_manifests::request::{edits_below, own_edits};
use kube_unions_offline::{HelpPage, InvalidUnion, LeftOver, RefusedField};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An invalid union of a rendered object.
#[derive(Debug)]
pub(super) struct RenderedFault<'d> {
    pub(super) document: &'d Document,
    /// The path of the violation.
    pub(super) field: String,
    pub(super) violation: String,
    pub(super) answer: ApiServerAnswer,
    /// A part of the message of the API server.
    pub(super) words: Option<String>,
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
    /// The members that normalisation removes, or the one that a null in the values does. Empty: neither makes the union valid.
    pub(super) removed: Vec<String>,
    /// The members of which a null in the values may remove one, if normalisation removes none: two at most.
    pub(super) removable: Vec<String>,
    /// True if they cannot be removed from the text: an anchor or a merge key shares it with another place.
    pub(super) by_hand: bool,
}

/// Most objects of a document that are edited one after the other, if they cannot all be edited.
const MOST_TRIED: usize = 100;

impl<'d> RenderedFault<'d> {
    /// Returns what the API server refuses beside the unions.
    fn of_field(document: &'d Document, refused: RefusedField) -> Self {
        let is_of_wrong_type = refused.is_of_wrong_type();
        let mut tokens = pointer_tokens(&refused.path.to_pointer()).unwrap_or_default();
        let removable = tokens.pop().filter(|_| !is_of_wrong_type);
        Self {
            document,
            field: refused.path.to_string(),
            field_pointer: refused.path.to_pointer(),
            words: Some(refused.words().to_owned()),
            violation: refused.message,
            answer: ApiServerAnswer::Refused,
            help: refused.help,
            pointer: pointer(tokens.iter().map(String::as_str)),
            of_chart: Vec::new(),
            of_values: Vec::new(),
            sets_value: false,
            removed: Vec::new(),
            removable: removable.into_iter().collect(),
            by_hand: false,
        }
    }

    /// Returns true if `--fix manifests` makes the union valid.
    pub(super) fn is_mended(&self) -> bool {
        !self.removed.is_empty() && !self.by_hand
    }

    /// Returns true if an edit removes one of the members.
    fn is_edited_by(&self, edit: &Edit) -> bool {
        let [document, union] =
            [&self.document.pointer, &self.pointer].map(|it| pointer_tokens(it).unwrap_or_default());
        let object = [document, union].concat();
        edit.path().split_last().is_some_and(|(name, parents)| parents == object && self.removed.contains(name))
    }

    /// Returns members that a null in the values has to remove.
    pub(super) fn unwanted<'m>(&'m self, members: &'m [String]) -> UnwantedMembers<'m> {
        let members = members.iter().map(String::as_str).collect();
        UnwantedMembers { document: self.document, pointer: &self.pointer, members, place: &[] }
    }
}

/// The faults of a rendering, and the texts that mend them.
#[derive(Debug, Default)]
pub(super) struct JudgedRendering<'d> {
    pub(super) faults: Vec<RenderedFault<'d>>,
    /// The texts of the sections that normalisation changes.
    pub(super) texts: BTreeMap<*const Section, String>,
    /// Objects of kinds with unions.
    pub(super) judged: usize,
    /// Objects of other kinds.
    pub(super) others: usize,
    /// Unions with something left over in place of a choice.
    pub(super) undecided: usize,
    /// The reasons why objects could not be judged, a line each.
    pub(super) problems: Vec<String>,
    /// The edits that make unions valid, by section.
    edits: BTreeMap<*const Section, (&'d Section, Vec<Edit>)>,
}

/// Judges each object as its create. `defaults` are the objects of the chart's defaults.
pub(super) fn judge<'d>(kinds: &'d Kinds, defaults: &'d [Document], rendered: &'d [Document]) -> JudgedRendering<'d> {
    let defaults: BTreeMap<_, &Document> = defaults.iter().rev().map(|it| (it.identity(), it)).collect();
    let (mut judged, mut known) = (JudgedRendering::default(), KnownKinds::new(kinds.assembly.kinds()));
    for document in rendered {
        if let Some(problem) = Problem::of_untyped(document) {
            judged.problems.push(problem.to_string());
            continue;
        }
        let Some(entry) = entry_of(&kinds.assembly.catalog, document) else {
            match known.problem(document, |_| true) {
                Some(problem) => judged.problems.push(problem.to_string()),
                None => judged.others += 1,
            }
            continue;
        };
        let default = defaults.get(&document.identity()).copied();
        match kinds.kind(entry).and_then(|kind| faults_of(kind, default, document)) {
            Ok(JudgedDocument { faults, edits: own, left_over }) => {
                judged.judged += 1;
                judged.undecided += left_over.len();
                judged.problems.extend(left_over);
                judged.faults.extend(faults);
                if !own.is_empty() {
                    judged.edits_of(document).extend(own);
                }
            }
            Err(error) => judged.problems.push(line_about(document, &format!("cannot be judged: {error:#}"))),
        }
    }
    judged
}

impl<'d> JudgedRendering<'d> {
    /// Returns the advice about each fault. `advice` also returns the removable member that a null in the values removes.
    pub(super) fn advise(
        &mut self,
        mut advice: impl FnMut(&RenderedFault<'d>) -> Option<(ValuesAdvice, Option<String>)>,
    ) -> Vec<Option<ValuesAdvice>> {
        let mut all = Vec::new();
        let mut faults = std::mem::take(&mut self.faults);
        for fault in &mut faults {
            let (advice, removed) = advice(fault).unzip();
            if let Some(member) = removed.flatten() {
                let tokens = [pointer_tokens(&fault.pointer).unwrap_or_default(), vec![member.clone()]].concat();
                let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
                self.edits_of(fault.document).push(Edit::Remove(fault.document.path_in_text(&tokens)));
                fault.removed = vec![member];
            }
            all.push(advice);
        }
        self.faults = faults;
        all
    }

    /// Makes the edits.
    pub(super) fn mend(&mut self) {
        for (section, edits) in std::mem::take(&mut self.edits).into_values() {
            self.edit(section, &edits);
        }
    }

    fn edits_of(&mut self, document: &'d Document) -> &mut Vec<Edit> {
        let section = &document.section;
        &mut self.edits.entry(Arc::as_ptr(section)).or_insert_with(|| (section, Vec::new())).1
    }

    /// Makes the edits of a section in its text. What cannot be removed there is left to the user.
    fn edit(&mut self, section: &Section, edits: &[Edit]) {
        let (text, impossible) = edited_text(section, edits);
        self.texts.extend(text.map(|text| (std::ptr::from_ref(section), text)));
        if !impossible.is_empty() {
            for fault in self
                .faults
                .iter_mut()
                .filter(|fault| Arc::as_ptr(&fault.document.section) == std::ptr::from_ref(section))
            {
                fault.by_hand = impossible.iter().any(|edit| fault.is_edited_by(edit));
            }
        }
    }
}

/// Makes edits in the text of a section. Returns the text if it changes, and the edits that cannot be made. Those of one object belong
/// together.
fn edited_text<'e>(section: &Section, edits: &'e [Edit]) -> (Option<String>, Vec<&'e Edit>) {
    if let Some(text) = edit_in_place(section, edits) {
        return (Some(text), Vec::new());
    }
    let mut objects: BTreeMap<&[String], Vec<&Edit>> = BTreeMap::new();
    for edit in edits {
        objects.entry(edit.path().split_last().map_or(&[], |(_, parents)| parents)).or_default().push(edit);
    }
    let (mut text, mut made, mut impossible) = (None, Vec::new(), Vec::new());
    for (tried, edits) in objects.into_values().enumerate() {
        let more: Vec<Edit> = made.iter().chain(edits.iter().copied()).cloned().collect();
        match (tried < MOST_TRIED).then(|| edit_in_place(section, &more)).flatten() {
            Some(edited) => (text, made) = (Some(edited), more),
            None => impossible.extend(edits),
        }
    }
    (text, impossible)
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
    let fields = kind.refused_fields(None, &completed);
    // The API server decodes no such object, so it judges nothing else.
    let is_decoded = !fields.iter().any(RefusedField::is_of_wrong_type);
    let invalid = if is_decoded { kind.invalid(document, &completed)? } else { Vec::new() };
    let refused = fields.into_iter().map(|field| RenderedFault::of_field(document, field));
    if invalid.is_empty() {
        return Ok(JudgedDocument { faults: refused.collect(), left_over: undecided, ..JudgedDocument::default() });
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
        let removed: Vec<String> = removed.map(|name| (*name).to_owned()).collect();
        let is_settled = !removed.is_empty() || invalid.members.len() > 2;
        let removable =
            of_chart.iter().chain(&of_values).filter(|_| !is_settled).map(|name| (*name).to_owned()).collect();
        let value = |object: Option<&Value>| Some(object?.get(invalid.union.discriminator()?)?.clone());
        RenderedFault {
            document,
            field: invalid.violation.path.to_string(),
            field_pointer: invalid.violation.path.to_pointer(),
            violation: invalid.violation.message(),
            answer: kind.enforcement(invalid),
            words: kind.server_words(invalid).map(str::to_owned),
            help: kind.help(invalid),
            pointer: pointer(invalid.address.tokens(&completed)),
            sets_value: before.is_some() && value(before) != value(invalid.address.find(&completed)),
            removed,
            removable,
            of_chart: of_chart.into_iter().map(str::to_owned).collect(),
            of_values: of_values.into_iter().map(str::to_owned).collect(),
            by_hand: false,
        }
    };
    let edits = if still.len() < invalid.len() { edits } else { Vec::new() };
    Ok(JudgedDocument { faults: invalid.iter().map(fault).chain(refused).collect(), edits, left_over: undecided })
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
