//! The report of `generate`: its unions and findings, and which findings count.
//!
//! [`text`] and [`json`] print it, the latter also as SARIF.

mod json;
mod text;

use super::GenerateArgs;
use super::baseline::{Baseline, BaselineEntry};
use super::finding::{CrdSubject, ReportedFinding, Standing};
use crate::cli::input::values::FindingsFormat;
use crate::cli::report::output::{self, Paint};
use kube_unions_core::declaration::Definition;
use kube_unions_go::{Derivation, GoFinding, Packages, Position};
use std::collections::{BTreeMap, BTreeSet};

/// The unions and findings of a run.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Number of processed CRDs.
    pub(super) definitions: usize,
    /// Names of the processed CRDs.
    pub(super) names: BTreeSet<String>,
    kinds: Vec<ReportedKind>,
    findings: Vec<ReportedFinding>,
    /// Entries of the baseline that no longer occur.
    stale: Vec<BaselineEntry>,
}

/// A version of a kind whose struct was found.
#[derive(Debug)]
struct ReportedKind {
    group: String,
    version: String,
    kind: String,
    /// Name of the CRD.
    definition: String,
    source: Position,
    derivation: Derivation,
}

impl Report {
    pub(super) fn add_finding(&mut self, finding: ReportedFinding) {
        self.findings.push(finding);
    }

    /// Adds the unions and findings of one version of a kind.
    pub(super) fn add(&mut self, definition: &Definition, subject: &CrdSubject, mut derivation: Derivation) {
        let findings = std::mem::take(&mut derivation.findings).into_iter();
        self.findings.extend(findings.map(|finding| ReportedFinding::of(finding, Some(subject.clone()))));
        if let Some(source) = derivation.source.clone() {
            self.kinds.push(ReportedKind {
                group: definition.group().to_owned(),
                version: subject.version.clone().unwrap_or_default(),
                kind: definition.kind().to_owned(),
                definition: definition.name().to_owned(),
                source,
                derivation,
            });
        }
    }

    /// Adds the markers without effect. If only some kinds were selected, those of other kinds are ignored.
    pub(super) fn add_unused(&mut self, packages: &Packages, all_kinds: bool) {
        let derivations: Vec<&Derivation> = self.kinds.iter().map(|kind| &kind.derivation).collect();
        let used = (!all_kinds).then_some(&*derivations);
        let mut unused = [packages.misplaced_markers(used), packages.unread_types(used)].concat();
        let known: BTreeSet<&Position> = self.findings.iter().map(|reported| &reported.finding.position).collect();
        unused.retain(|finding| !known.contains(&finding.position));
        if all_kinds {
            unused.extend(packages.unreached_structs(&derivations));
        }
        self.findings.extend(unused.into_iter().map(|finding| ReportedFinding::of(finding, None)));
    }

    pub(super) fn sort(&mut self) {
        self.kinds.sort_by(|one, other| {
            (&one.group, &one.kind, &one.version).cmp(&(&other.group, &other.kind, &other.version))
        });
        let key = |it: &ReportedFinding| {
            let GoFinding { position, path, severity, kind, message } = it.finding.clone();
            (position, severity, kind, message, it.subject.clone(), path)
        };
        self.findings.sort_by_cached_key(key);
        self.findings.dedup_by(|one, other| one.finding == other.finding && one.subject == other.subject);
    }

    /// Takes the allowed and the known findings out of the count, and updates the baseline. If there are more findings of an entry
    /// than are known, all of them count. If an input could not be read, the run is not complete: its findings are unknown.
    pub(super) fn compare(&mut self, arguments: &GenerateArgs, is_complete: bool) -> anyhow::Result<()> {
        let is_allowed = |kind| arguments.allow.contains(&kind) || (arguments.allow_ambiguous && kind.is_ambiguous());
        for reported in self.findings.iter_mut().filter(|reported| is_allowed(reported.finding.kind)) {
            reported.standing = Standing::Allowed;
        }
        let Some(path) = &arguments.baseline else { return Ok(()) };
        let mut baseline = Baseline::read(path, arguments.update_baseline)?;
        let mut found: BTreeMap<BaselineEntry, usize> = BTreeMap::new();
        for reported in self.findings.iter().filter(|reported| reported.is_recorded()) {
            let count = found.entry(baseline.entry(reported)).or_default();
            *count = count.saturating_add(1);
        }
        let scope = (!arguments.kind.is_empty()).then_some(&self.names);
        if arguments.update_baseline && is_complete {
            baseline.update(path, &found, scope)?;
        }
        for reported in self.findings.iter_mut().filter(|reported| reported.is_recorded()) {
            let entry = baseline.entry(reported);
            if found.get(&entry).is_some_and(|count| *count <= baseline.count(&entry)) {
                reported.standing = Standing::Known;
            }
        }
        self.stale = if is_complete { baseline.stale(&found, scope) } else { Vec::new() };
        Ok(())
    }

    /// Returns true if an error counts.
    pub(super) fn has_errors(&self) -> bool {
        self.findings.iter().any(ReportedFinding::is_counted_error)
    }

    /// Returns true if there are neither unions nor findings that count.
    pub(super) fn is_empty(&self) -> bool {
        let counts = |finding: &ReportedFinding| finding.is_worth_a_count();
        self.kinds.iter().all(|kind| kind.derivation.unions.is_empty()) && !self.findings.iter().any(counts)
    }

    /// Returns true if the baseline has entries that no longer occur.
    pub(super) fn is_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    fn number_of(&self, standing: Standing) -> usize {
        self.findings.iter().filter(|reported| reported.standing == standing && reported.is_worth_a_count()).count()
    }

    /// Prints the report. `problems` are the inputs that could not be read, and `code` is the exit code.
    pub(super) fn print(
        &self,
        format: FindingsFormat,
        to_stdout: bool,
        problems: &[String],
        code: u8,
    ) -> anyhow::Result<()> {
        let paint = || if to_stdout { Paint::of(&std::io::stdout()) } else { Paint::of(&std::io::stderr()) };
        let text = match format {
            FindingsFormat::Text => self.text(paint()),
            FindingsFormat::Json => self.json()?,
            FindingsFormat::Sarif => self.sarif(problems, code)?,
        };
        if to_stdout {
            return output::tell(text);
        }
        text.lines().for_each(output::note);
        Ok(())
    }
}
