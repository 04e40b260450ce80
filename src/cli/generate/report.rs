//! The report of `generate`, as text and as JSON.

use crate::cli::ReportFormat;
use crate::cli::output::{self, Paint};
use crate::cli::tree::{self, ChoiceItem};
use kube_unions_core::declaration::Definition;
use kube_unions_go::{Derivation, FindingReason, GoFinding, MarkedUnion, Packages, Position, Severity};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use termtree::Tree;

/// The unions and findings of a run.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Number of processed CRDs.
    pub(super) definitions: usize,
    kinds: Vec<ReportedKind>,
    findings: Vec<ReportedFinding>,
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

/// A finding with the kind that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReportedFinding {
    finding: GoFinding,
    kind: Option<String>,
    definition: Option<String>,
    version: Option<String>,
}

impl ReportedFinding {
    pub(super) fn of(finding: GoFinding, definition: Option<&Definition>, version: Option<&str>) -> Self {
        Self {
            finding,
            kind: definition.map(|definition| definition.kind().to_owned()),
            definition: definition.map(|definition| definition.name().to_owned()),
            version: version.map(str::to_owned),
        }
    }

    /// Returns `file:line:column: Kind version path: severity: message`, the format of compilers, which editors understand.
    fn line(&self, paint: Paint) -> String {
        let GoFinding { position, path, severity, message, .. } = &self.finding;
        let subject = [self.kind.as_deref(), self.version.as_deref(), Some(&**path)];
        let subject: Vec<&str> = subject.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        let subject = if subject.is_empty() { String::new() } else { format!("{}: ", subject.join(" ")) };
        let severity = match severity {
            Severity::Error => paint.error("error:"),
            Severity::Warning => paint.warning("warning:"),
            Severity::Note => paint.faint("note:"),
        };
        format!("{} {subject}{severity} {message}", paint.strong(&format!("{position}:")))
    }
}

impl Report {
    pub(super) fn add_finding(&mut self, finding: ReportedFinding) {
        self.findings.push(finding);
    }

    /// Adds the unions and findings of one version of a kind.
    pub(super) fn add(&mut self, definition: &Definition, version: &str, mut derivation: Derivation) {
        let findings = std::mem::take(&mut derivation.findings).into_iter();
        self.findings.extend(findings.map(|finding| ReportedFinding::of(finding, Some(definition), Some(version))));
        if let Some(source) = derivation.source.clone() {
            self.kinds.push(ReportedKind {
                group: definition.group().to_owned(),
                version: version.to_owned(),
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
        let mut unused = packages.misplaced_markers((!all_kinds).then_some(&derivations));
        let known: BTreeSet<&Position> = self.findings.iter().map(|reported| &reported.finding.position).collect();
        unused.retain(|finding| !known.contains(&finding.position));
        if all_kinds {
            unused.extend(packages.unreached_structs(&derivations));
        }
        self.findings.extend(unused.into_iter().map(|finding| ReportedFinding::of(finding, None, None)));
    }

    pub(super) fn sort(&mut self) {
        self.kinds.sort_by(|one, other| {
            (&one.group, &one.kind, &one.version).cmp(&(&other.group, &other.kind, &other.version))
        });
        self.findings.sort_by_key(|it| (it.finding.clone(), it.definition.clone(), it.version.clone()));
        self.findings.dedup();
    }

    /// Returns true if the report has errors. With `allow_ambiguous`, ambiguous unions do not count.
    pub(super) fn has_errors(&self, allow_ambiguous: bool) -> bool {
        let is_allowed = |finding: &GoFinding| allow_ambiguous && finding.reason == FindingReason::Ambiguous;
        self.errors().any(|reported| !is_allowed(&reported.finding))
    }

    fn errors(&self) -> impl Iterator<Item = &ReportedFinding> {
        self.findings.iter().filter(|reported| reported.finding.severity == Severity::Error)
    }

    pub(super) fn print(&self, format: ReportFormat, to_stdout: bool) -> anyhow::Result<()> {
        let paint = || if to_stdout { Paint::of(&std::io::stdout()) } else { Paint::of(&std::io::stderr()) };
        let text = match format {
            ReportFormat::Text => self.text(paint()),
            ReportFormat::Json => serde_json::to_string_pretty(&self.wire())? + "\n",
        };
        if to_stdout {
            return output::print(text);
        }
        output::note(text.trim_end());
        Ok(())
    }

    fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        let kinds: Vec<_> = self.kinds.iter().filter(|kind| !kind.derivation.unions.is_empty()).collect();
        for kind in &kinds {
            let Position { file, line, .. } = &kind.source;
            let details = format!("{}/{}, {}:{line}", kind.group, kind.version, file.display());
            let root = format!("{} {}", paint.strong(&kind.kind), paint.faint(&details));
            let branches = kind.derivation.unions.iter().map(|union| branch(union, paint));
            text.push_str(&Tree::new(root).with_leaves(branches).to_string());
            text.push('\n');
        }
        for reported in &self.findings {
            text.push_str(&reported.line(paint));
            text.push('\n');
        }
        let unions = count(kinds.iter().map(|kind| kind.derivation.unions.len()).sum(), "union", "unions");
        let versions = count(kinds.len(), "version of a kind", "versions of a kind");
        let errors = count(self.errors().count(), "error", "errors");
        // Writing to a string does not fail.
        let _ = writeln!(text, "{unions} in {versions}, {errors}");
        text
    }

    fn wire(&self) -> WireReport<'_> {
        WireReport {
            kinds: self.kinds.iter().map(WireKind::of).collect(),
            findings: self.findings.iter().map(WireFinding::of).collect(),
        }
    }
}

fn count(number: usize, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

fn branch(union: &MarkedUnion, paint: Paint) -> Tree<String> {
    let form = format!("{} form", tree::form(union.form));
    let discriminator = tree::discriminator(union.discriminator.as_deref());
    let source = format!("{}:{}", union.source.file.display(), union.source.line);
    let details = [&*form, &*discriminator, &*union.go_type, &*source];
    let below = if union.discriminator.is_none() {
        union.members().into_iter().map(str::to_owned).collect()
    } else {
        tree::choices(leaves(union))
    };
    Tree::new(tree::headline(&union.place.to_string(), &details, paint)).with_leaves(below)
}

fn leaves(union: &MarkedUnion) -> impl Iterator<Item = ChoiceItem<'_>> + Clone {
    union.choices.iter().map(|(value, selected)| ChoiceItem {
        value,
        member: selected.as_ref().map(|selected| &*selected.name),
        optional: selected.as_ref().is_some_and(|selected| selected.optional),
    })
}

#[derive(Debug, Serialize)]
struct WireReport<'r> {
    kinds: Vec<WireKind<'r>>,
    findings: Vec<WireFinding<'r>>,
}

#[derive(Debug, Serialize)]
struct WireKind<'r> {
    group: &'r str,
    version: &'r str,
    kind: &'r str,
    definition: &'r str,
    #[serde(flatten)]
    source: WirePosition<'r>,
    unions: Vec<WireUnion<'r>>,
}

#[derive(Debug, Serialize)]
struct WirePosition<'r> {
    file: &'r Path,
    line: usize,
    column: usize,
}

#[derive(Debug, Serialize)]
struct WireUnion<'r> {
    path: String,
    form: &'static str,
    discriminator: Option<&'r str>,
    members: Vec<&'r str>,
    choices: Vec<ChoiceItem<'r>>,
    #[serde(rename = "type")]
    go_type: &'r str,
    #[serde(flatten)]
    source: WirePosition<'r>,
}

#[derive(Debug, Serialize)]
struct WireFinding<'r> {
    #[serde(flatten)]
    position: WirePosition<'r>,
    definition: Option<&'r str>,
    version: Option<&'r str>,
    path: &'r str,
    severity: Severity,
    reason: FindingReason,
    message: &'r str,
}

impl<'r> WirePosition<'r> {
    fn of(position: &'r Position) -> Self {
        Self { file: &position.file, line: position.line, column: position.column }
    }
}

impl<'r> WireKind<'r> {
    fn of(kind: &'r ReportedKind) -> Self {
        Self {
            group: &kind.group,
            version: &kind.version,
            kind: &kind.kind,
            definition: &kind.definition,
            source: WirePosition::of(&kind.source),
            unions: kind.derivation.unions.iter().map(WireUnion::of).collect(),
        }
    }
}

impl<'r> WireUnion<'r> {
    fn of(union: &'r MarkedUnion) -> Self {
        Self {
            path: union.place.to_string(),
            form: tree::form(union.form),
            discriminator: union.discriminator.as_deref(),
            members: union.members(),
            choices: leaves(union).collect(),
            go_type: &union.go_type,
            source: WirePosition::of(&union.source),
        }
    }
}

impl<'r> WireFinding<'r> {
    fn of(reported: &'r ReportedFinding) -> Self {
        let GoFinding { position, path, severity, reason, message } = &reported.finding;
        Self {
            position: WirePosition::of(position),
            definition: reported.definition.as_deref(),
            version: reported.version.as_deref(),
            path,
            severity: *severity,
            reason: *reason,
            message,
        }
    }
}
