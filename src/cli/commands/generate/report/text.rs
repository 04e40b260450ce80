//! The report as lines for people. Findings that differ only in their CRD are one line.

use super::Report;
use crate::cli::commands::generate::finding::{ReportedFinding, Standing};
use crate::cli::report::diagnostic::painted;
use crate::cli::report::output::{self, Paint};
use crate::cli::report::tree;
use kube_unions_go::{FoundBy, GoFinding, MarkedUnion, Position};
use kube_unions_manifests::counts::count;
use kube_unions_manifests::union_details;
use std::collections::BTreeMap;
use std::fmt::Write;
use termtree::Tree;

/// The number of places of a finding that a line names.
const MOST_PLACES: usize = 3;

/// The number of stale entries that the text lists.
const MOST_STALE: usize = 10;

/// The number of notes of one kind that the text lists.
const MOST_NOTES: usize = 5;

impl Report {
    pub(super) fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        let kinds: Vec<_> = self.kinds.iter().filter(|kind| !kind.derivation.unions.is_empty()).collect();
        for kind in &kinds {
            let Position { file, line, .. } = &kind.source;
            let details = format!("{}/{}, {}:{line}", kind.group, kind.version, file.display());
            let root = output::line(&format!("{} {}", paint.strong(&kind.kind), paint.faint(&details))).into_owned();
            let branches = kind.derivation.unions.iter().map(|union| branch(union, paint));
            text.push_str(&Tree::new(root).with_leaves(branches).to_string());
            text.push('\n');
        }
        self.write_findings(&mut text, paint);
        for entry in self.stale.iter().take(MOST_STALE) {
            let _ = writeln!(text, "{} no longer found: {}", paint.faint("baseline:"), output::line(&entry.line()));
        }
        if !self.stale.is_empty() {
            let more = self.stale.len().saturating_sub(MOST_STALE);
            let more = if more > 0 { format!("{more} more; ") } else { String::new() };
            let _ = writeln!(text, "{} {more}remove them with --update-baseline", paint.faint("baseline:"));
        }

        let unions: usize = kinds.iter().map(|kind| kind.derivation.unions.len()).sum();
        let errors = self.findings.iter().filter(|reported| reported.is_counted_error()).count();
        let (versions, errors) = (count(kinds.len(), "version"), count(errors, "error"));
        let _ = write!(text, "{} in {versions} of a kind, {errors}", count(unions, "union"));
        for (standing, words) in [(Standing::Allowed, "allowed"), (Standing::Known, "in the baseline")] {
            let number = self.number_of(standing);
            if number > 0 {
                let _ = write!(text, ", {number} {words}");
            }
        }
        text.push('\n');
        text
    }

    /// Writes the findings that are not in the baseline, and the number of notes that it leaves out.
    fn write_findings(&self, text: &mut String, paint: Paint) {
        fn key(reported: &ReportedFinding) -> impl PartialEq + '_ {
            let GoFinding { position, severity, kind, message, .. } = &reported.finding;
            (reported.standing, severity, kind, position, message)
        }
        let mut notes: BTreeMap<&str, usize> = BTreeMap::new();
        for group in self.findings.chunk_by(|one, other| key(one) == key(other)) {
            let Some(first) = group.first().filter(|first| first.standing != Standing::Known) else { continue };
            if !first.is_worth_a_count() {
                let listed = notes.entry(first.finding.kind.name()).or_default();
                *listed = listed.saturating_add(1);
                if *listed > MOST_NOTES {
                    continue;
                }
            }
            write_group(text, first, group, paint);
        }
        for (kind, number) in notes {
            let more = number.saturating_sub(MOST_NOTES);
            if more > 0 {
                let more = count(more, "more note");
                let _ = writeln!(text, "{} {more} [{kind}]; -o json lists them", paint.faint("note:"));
            }
        }
    }
}

/// Writes `file:line:column: Kind version path: severity: message [kind] (CRD file)`, the format of compilers, which editors
/// understand. The places of several findings are on a line of their own.
fn write_group(text: &mut String, first: &ReportedFinding, group: &[ReportedFinding], paint: Paint) {
    let finding = &first.finding;
    let is_allowed = first.standing == Standing::Allowed && first.is_worth_a_count();
    let severity = if is_allowed { paint.faint("allowed:") } else { painted(first.finding.severity, paint) };
    let place = if group.len() == 1 { first.place() } else { String::new() };
    let place = if place.is_empty() { place } else { format!("{place}: ") };
    let position = paint.strong(&format!("{}:", finding.position));
    let kind = paint.faint(&format!("[{}]", finding.kind));
    text.push_str(&output::line(&format!("{position} {place}{severity} {} {kind}", finding.message)));
    if let [only] = group {
        // The position of a finding about the CRD itself is in its file already.
        let file = only.subject.as_ref().map(|subject| &*subject.file).filter(|file| **file != *finding.position.file);
        if let Some(file) = file {
            let _ = write!(text, " ({})", output::line(&file.display().to_string()));
        }
        text.push('\n');
        return;
    }
    let places = group.iter().take(MOST_PLACES).map(|reported| match &reported.subject {
        Some(subject) => format!("{} ({})", reported.place(), subject.file.display()),
        None => reported.place(),
    });
    let more = group.len().saturating_sub(MOST_PLACES);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let places = places.collect::<Vec<_>>().join(", ");
    let _ = writeln!(text, "\n    at {} places: {}{more}", group.len(), output::line(&places));
}

fn branch(union: &MarkedUnion, paint: Paint) -> Tree<String> {
    let form = format!("{} form", union_details::form(union.form));
    let discriminator = union_details::discriminator(union.discriminator.as_deref());
    let source = format!("{}:{}", union.source.file.display(), union.source.line);
    let evidence = match union.found_by {
        FoundBy::Names => Some("members by name"),
        FoundBy::OneOf => Some("members listed on the struct"),
        FoundBy::Markers => None,
    };
    let unset: Vec<&str> = union.empty_is_unset.iter().map(|name| &**name).collect();
    let options: Vec<String> = union_details::options(union.required, &unset).collect();
    let details = [&*form, &*discriminator].into_iter().chain(options.iter().map(String::as_str));
    let details: Vec<&str> = details.chain(evidence).chain([&*union.go_type, &*source]).collect();
    let below = if union.discriminator.is_none() {
        union.members().into_iter().map(|member| output::line(member).into_owned()).collect()
    } else {
        tree::choices(super::json::leaves(union))
    };
    Tree::new(tree::headline(&union.place.to_string(), &details, paint)).with_leaves(below)
}
