//! What `generate` found and what it left out, for people and for programs.

use crate::cli::ReportFormat;
use crate::cli::output::{self, Paint};
use crate::cli::tree::{self, Branch, Leaf};
use kube_unions_core::declaration::Definition;
use kube_unions_go::{Derivation, FindingReason, GoFinding, MarkedUnion, Packages, Position, Severity};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

/// Everything there is to say.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// How many CRDs were worked on.
    pub(super) definitions: usize,
    kinds: Vec<ReportedKind>,
    said: Vec<ReportedFinding>,
}

/// A version of a kind whose struct was found.
#[derive(Debug)]
struct ReportedKind {
    group: String,
    version: String,
    kind: String,
    definition: String,
    source: Position,
    outcome: Derivation,
}

/// A finding, and of which kind it is.
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

    /// `file:line:column: Kind version path: severity: message`, as compilers write it, so that editors find the place.
    fn line(&self, paint: Paint) -> String {
        let GoFinding { position, path, severity, message, .. } = &self.finding;
        let place = position.as_ref().map_or_else(String::new, |position| format!("{position}:"));
        let about =
            [self.kind.as_deref(), self.version.as_deref(), Some(path.as_str()).filter(|path| !path.is_empty())];
        let about: Vec<&str> = about.into_iter().flatten().collect();
        let about = if about.is_empty() { String::new() } else { format!("{}: ", about.join(" ")) };
        let severity = match severity {
            Severity::Error => paint.error("error:"),
            Severity::Warning => paint.warning("warning:"),
            Severity::Note => paint.faint("note:"),
        };
        format!("{} {about}{severity} {message}", paint.strong(&place))
    }
}

impl Report {
    pub(super) fn say(&mut self, said: ReportedFinding) {
        self.said.push(said);
    }

    /// Adds what the sources say of one version of a kind.
    pub(super) fn add(&mut self, definition: &Definition, version: &str, mut outcome: Derivation) {
        let findings = std::mem::take(&mut outcome.findings);
        self.said
            .extend(findings.into_iter().map(|finding| ReportedFinding::of(finding, Some(definition), Some(version))));
        if let Some(source) = outcome.source.clone() {
            self.kinds.push(ReportedKind {
                group: definition.group().to_owned(),
                version: version.to_owned(),
                kind: definition.kind().to_owned(),
                definition: definition.name().to_owned(),
                source,
                outcome,
            });
        }
    }

    /// Adds what is to be said of the sources apart from any kind. Where only some kinds were asked for, what they do not reach is
    /// nothing to speak of.
    pub(super) fn remark(&mut self, packages: &Packages, all: bool) {
        let known: BTreeSet<Position> = self.said.iter().filter_map(|said| said.finding.position.clone()).collect();
        let mut outcomes = self.kinds.iter().map(|found| &found.outcome);
        let misplaced = packages.misplaced(if all { None } else { Some(&mut outcomes) }).into_iter();
        let misplaced =
            misplaced.filter(|finding| finding.position.as_ref().is_none_or(|position| !known.contains(position)));
        self.said.extend(misplaced.map(|finding| ReportedFinding::of(finding, None, None)));
        if all {
            let unreached = packages.unreached(self.kinds.iter().map(|found| &found.outcome));
            self.said.extend(unreached.into_iter().map(|finding| ReportedFinding::of(finding, None, None)));
        }
    }

    pub(super) fn sort(&mut self) {
        self.kinds.sort_by(|one, other| {
            (&one.group, &one.kind, &one.version).cmp(&(&other.group, &other.kind, &other.version))
        });
        let key = |said: &ReportedFinding| (said.finding.clone(), said.definition.clone(), said.version.clone());
        self.said.sort_by_key(key);
        self.said.dedup();
    }

    /// Whether anything was left out that counts.
    pub(super) fn left_out(&self, allow_ambiguous: bool) -> bool {
        let counts = |finding: &GoFinding| {
            finding.severity == Severity::Error && !(allow_ambiguous && finding.reason == FindingReason::Ambiguous)
        };
        self.said.iter().any(|said| counts(&said.finding))
    }

    pub(super) fn print(&self, format: ReportFormat, to_stdout: bool) -> anyhow::Result<()> {
        let text = match format {
            ReportFormat::Text => {
                self.text(if to_stdout { Paint::of(&std::io::stdout()) } else { Paint::of(&std::io::stderr()) })
            }
            ReportFormat::Json => serde_json::to_string_pretty(&self.wire())? + "\n",
        };
        if to_stdout {
            output::print(text)
        } else {
            output::note(text.trim_end());
            Ok(())
        }
    }

    fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        for found in self.kinds.iter().filter(|found| !found.outcome.unions.is_empty()) {
            let Position { file, line, .. } = &found.source;
            let of = format!("{}/{}, {}:{line}", found.group, found.version, file.display());
            let root = format!("{} {}", paint.strong(&found.kind), paint.faint(&of));
            let branches: Vec<Branch> = found.outcome.unions.iter().map(|union| branch(union, paint)).collect();
            text.push_str(&tree::draw(&root, &branches));
            text.push('\n');
        }
        for said in &self.said {
            text.push_str(&said.line(paint));
            text.push('\n');
        }
        let unions: usize = self.kinds.iter().map(|found| found.outcome.unions.len()).sum();
        let left_out = self.said.iter().filter(|said| said.finding.severity == Severity::Error).count();
        let with_unions = self.kinds.iter().filter(|found| !found.outcome.unions.is_empty()).count();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{} in {}, {left_out} left out or in error",
            counted(unions, "union"),
            counted(with_unions, "version of a kind"),
        );
        text
    }

    fn wire(&self) -> WireReport<'_> {
        WireReport {
            kinds: self.kinds.iter().map(WireKind::of).collect(),
            findings: self.said.iter().map(WireFinding::of).collect(),
        }
    }
}

fn counted(number: usize, what: &str) -> String {
    match (number, what.split_once(' ')) {
        (1, _) => format!("1 {what}"),
        (_, Some((first, rest))) => format!("{number} {first}s {rest}"),
        (_, None) => format!("{number} {what}s"),
    }
}

fn branch(union: &MarkedUnion, paint: Paint) -> Branch {
    let form = format!("{} form", tree::form(union.form));
    let discriminator = tree::discriminator(union.discriminator.as_deref());
    let source = format!("{}:{}", union.source.file.display(), union.source.line);
    let details = [&*form, &*discriminator, &*union.go_type, &*source];
    let below = if union.discriminator.is_none() {
        union.members().into_iter().map(str::to_owned).collect()
    } else {
        tree::choices(leaves(union))
    };
    Branch { line: tree::headline(&union.place.to_string(), &details, paint), leaves: below }
}

fn leaves(union: &MarkedUnion) -> impl Iterator<Item = Leaf<'_>> + Clone {
    union.choices.iter().map(|(value, selected)| Leaf {
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
    /// The name of the CRD.
    definition: &'r str,
    #[serde(flatten)]
    source: WirePosition,
    unions: Vec<WireUnion<'r>>,
}

#[derive(Debug, Serialize)]
struct WirePosition {
    file: PathBuf,
    line: usize,
    column: usize,
}

#[derive(Debug, Serialize)]
struct WireUnion<'r> {
    path: String,
    form: &'static str,
    discriminator: Option<&'r str>,
    members: Vec<&'r str>,
    choices: Vec<Leaf<'r>>,
    #[serde(rename = "type")]
    go_type: &'r str,
    #[serde(flatten)]
    source: WirePosition,
}

#[derive(Debug, Serialize)]
struct WireFinding<'r> {
    file: Option<PathBuf>,
    line: Option<usize>,
    column: Option<usize>,
    definition: Option<&'r str>,
    version: Option<&'r str>,
    path: &'r str,
    severity: &'static str,
    reason: &'static str,
    message: &'r str,
}

impl From<&Position> for WirePosition {
    fn from(position: &Position) -> Self {
        Self { file: position.file.to_path_buf(), line: position.line, column: position.column }
    }
}

impl<'r> WireKind<'r> {
    fn of(found: &'r ReportedKind) -> Self {
        Self {
            group: &found.group,
            version: &found.version,
            kind: &found.kind,
            definition: &found.definition,
            source: (&found.source).into(),
            unions: found.outcome.unions.iter().map(WireUnion::of).collect(),
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
            source: (&union.source).into(),
        }
    }
}

impl<'r> WireFinding<'r> {
    fn of(said: &'r ReportedFinding) -> Self {
        let GoFinding { position, path, severity, reason, message } = &said.finding;
        Self {
            file: position.as_ref().map(|position| position.file.to_path_buf()),
            line: position.as_ref().map(|position| position.line),
            column: position.as_ref().map(|position| position.column),
            definition: said.definition.as_deref(),
            version: said.version.as_deref(),
            path,
            severity: severity.name(),
            reason: reason.name(),
            message,
        }
    }
}
