//! The messages of `normalize` for standard error.

use crate::input::builtin::{ServerWords, said};
use crate::input::kinds::entry_of;
use crate::input::manifest::{self, Document};
use crate::report::output::{self, Paint};
use kube_unions_core::admission::Review;
use kube_unions_core::catalog::Catalog;
use kube_unions_core::field_path::{AboutField, FieldPath};
use kube_unions_core::near::nearest;
use kube_unions_core::union::{Violation, ViolationKind};
use kube_unions_manifests::IdentityField;
use kube_unions_manifests::counts::grouped;
use kube_unions_offline::UndecidedUnions;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Notes that a manifest which is normalised contradicts itself, so that an apply of it is refused or changes nothing.
pub(super) fn print_contradictions(document: &Document, applied: &Review, undecided: &UndecidedUnions<'_>) {
    let let_through = applied.let_through().kept().iter().map(|(violation, _)| violation);
    let contradictions = applied.violations().kept().iter().chain(let_through);
    let is_meant = |it: &&Violation| it.kind.is_about_manifest() && !undecided.has(it);
    for violation in contradictions.filter(is_meant) {
        let place = manifest::place(document, &violation.path.to_pointer());
        output::hint(format_args!("{place} an apply of this file is judged otherwise (--applied): {violation}"));
    }
}

pub(super) type Identity<'d> = [IdentityField<'d>; 4];

/// Warns of an old object that none of the new ones replaces, and counts the others.
pub(super) fn print_unused(old: &BTreeMap<Identity<'_>, &Document>, new: &[Document], new_paths: &[PathBuf]) {
    let written: BTreeSet<Identity<'_>> = new.iter().map(Document::identity).collect();
    let mut unused = old.iter().filter(|(identity, _)| !written.contains(*identity)).map(|(_, old)| old);
    let Some(old) = unused.next() else { return };
    let others = match unused.count() {
        0 => String::new(),
        some => format!("; {} more like it", grouped(some)),
    };
    output::warn(format_args!(
        "{} not used: no object in {} has this apiVersion, kind, namespace and name{others}",
        manifest::place(old, ""),
        manifest::list(new_paths),
    ));
}

/// Names the unions of these objects that are never normalised, once for each kind and declaration.
pub(super) fn print_exceptions(catalog: &Catalog, objects: &[Document]) {
    let mut entries = BTreeMap::new();
    for object in objects {
        entries.extend(entry_of(catalog, object).map(|entry| (entry.gvk(), entry)));
    }
    for (kind, entry) in entries {
        let mut places: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
        for union in entry.plan().unions().iter().filter(|union| !union.is_normalized()) {
            places.entry(union.declaration().unwrap_or_default()).or_default().insert(union.path());
        }
        for (declaration, paths) in places {
            let paths: Vec<_> = paths.into_iter().map(|path| if path.is_empty() { "the root" } else { path }).collect();
            output::hint(format_args!(
                "{}: nothing is changed at {}: `{declaration}` has `normalization: Disabled`",
                kind.group_kind(),
                paths.join(", "),
            ));
        }
    }
}

/// Returns the question for a value that is almost a declared one, else nothing.
fn guess(violation: &Violation) -> Option<String> {
    let ViolationKind::UnknownValue { value, supported } = &violation.kind else { return None };
    let near = nearest(value, supported.iter().map(AsRef::as_ref))?;
    Some(format!("; did you mean `{near}`?"))
}

pub(in crate::commands) fn print_warnings(review: &Review, undecided: Option<&UndecidedUnions<'_>>) {
    let changes = review.changes().filter(|change| has_field(undecided, &change.path)).map(|it| it.to_string());
    let tolerated = review.let_through().kept().iter().map(|(violation, _)| violation);
    let undecided = tolerated.filter(|it| has(undecided, it)).map(ToString::to_string);
    let left_out: Vec<String> = changes.chain(undecided).collect();
    for warning in review.warnings().iter().filter(|warning| !left_out.iter().any(|it| warning.starts_with(it))) {
        let mut tolerated = review.let_through().kept().iter().map(|(violation, _)| violation);
        let about = tolerated.find(|violation| warning.starts_with(&violation.to_string()));
        let guess = about.and_then(guess).unwrap_or_default();
        output::warn(format_args!("{warning}{guess}"));
    }
}

/// Returns true for a violation of a union that cannot be judged.
fn has(undecided: Option<&UndecidedUnions<'_>>, violation: &Violation) -> bool {
    undecided.is_some_and(|undecided| undecided.has(violation))
}

/// Returns true for a field of a union that cannot be judged.
fn has_field(undecided: Option<&UndecidedUnions<'_>>, path: &FieldPath) -> bool {
    undecided.is_some_and(|undecided| undecided.has_path(path))
}

/// Prints warnings, violations that the audit log would have, and the denial in kubectl's words, with those of the API server behind each cause. Unions that cannot be judged are left out.
pub(in crate::commands) fn print_answer(
    document: &Document,
    review: &Review,
    words: &ServerWords,
    undecided: Option<&UndecidedUnions<'_>>,
) {
    print_warnings(review, undecided);
    let paint = Paint::of(&std::io::stderr());
    for violation in review.observed().kept().iter().filter(|it| !has(undecided, it)) {
        let guess = guess(violation).unwrap_or_default();
        output::note(format_args!("{} {violation}{guess}", paint.faint("Audit:")));
    }
    if review.observed().left_out() > 0 {
        output::note(format_args!("{} and {} more violations", paint.faint("Audit:"), review.observed().left_out()));
    }
    let (kind, name) = (document.kind.as_deref().unwrap_or_default(), document.name.as_deref().unwrap_or_default());
    let guesses: BTreeMap<String, String> =
        review.violations().kept().iter().filter_map(|it| Some((it.path.to_string(), guess(it)?))).collect();
    let cause = |(path, text): (&str, &str)| {
        let guess = guesses.get(path).map(String::as_str).unwrap_or_default();
        let words = words.get(path).map(|words| format!("\n  {}", said(words))).unwrap_or_default();
        format!("{}{guess}{words}", AboutField { path, text: &text })
    };
    // The last cause may count those that are not listed.
    let is_undecided = review.violations().kept().iter().map(|it| has(undecided, it)).chain(std::iter::repeat(false));
    let causes = review.causes().zip(is_undecided).filter(|(_, is_undecided)| !is_undecided);
    let causes: Vec<String> = causes.map(|(it, _)| cause(it)).collect();
    match causes.as_slice() {
        [] => {}
        [cause] => output::note(format_args!("The {kind} \"{name}\" is invalid: {cause}")),
        several => {
            output::note(format_args!("The {kind} \"{name}\" is invalid: "));
            for cause in several {
                output::note(format_args!("* {cause}"));
            }
        }
    }
}
