//! The report of `generate`: its unions and findings, and which findings count.
//!
//! It is lines for people, where findings that differ only in their CRD are one line, JSON with every finding, or SARIF, where findings
//! that are allowed are suppressed results.

use super::GenerateArgs;
use super::finding::{CrdSubject, ReportedFinding, Standing};
use crate::input::values::FindingsFormat;
use crate::report::conclusion::Conclusion;
use crate::report::diagnostic::painted;
use crate::report::output::{self, Paint};
use crate::report::sarif::{FilePlace, SarifFinding};
use crate::report::tree::{self, ChoiceItem, MemberItem};
use crate::report::{findings, json_list};
use kube_unions_core::declaration::Definition;
use kube_unions_go::{Derivation, FindingKind, FoundBy, GoFinding, MarkedUnion, Packages, Position};
use kube_unions_manifests::counts::count;
use kube_unions_manifests::union_details;
use kube_unions_offline::HelpPage;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
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

    /// Takes the allowed findings out of the count.
    pub(super) fn allow(&mut self, arguments: &GenerateArgs) {
        let is_allowed = |kind| arguments.allow.contains(&kind) || (arguments.allow_ambiguous && kind.is_ambiguous());
        for reported in self.findings.iter_mut().filter(|reported| is_allowed(reported.finding.kind)) {
            reported.standing = Standing::Allowed;
        }
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

    /// Returns true if there is a finding of a kind.
    pub(super) fn has(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|reported| reported.finding.kind == kind)
    }

    /// Prints the report, to standard error if there are manifests on standard output.
    pub(super) fn print(&self, format: FindingsFormat, to_stdout: bool, conclusion: &Conclusion) -> anyhow::Result<()> {
        let paint = if to_stdout { Paint::of(&std::io::stdout()) } else { Paint::of(&std::io::stderr()) };
        let json = || {
            let kinds: Vec<Value> = self.kinds.iter().map(kind).collect();
            let findings: Vec<Value> = self.findings.iter().map(finding).collect();
            json_list::pretty(&json!({"kinds": kinds, "findings": findings}))
        };
        let (rules, results) =
            (FindingKind::ALL.iter().map(|rule| (rule.row(), HelpPage::GENERATE)), self.findings.iter().map(result));
        let text = findings::report(format, paint, conclusion, |paint| self.text(paint), json, rules, results)?;
        if to_stdout {
            return output::print_text(text);
        }
        text.lines().for_each(output::note);
        Ok(())
    }
}

/// Returns the choices of a union.
fn leaves(union: &MarkedUnion) -> impl Iterator<Item = ChoiceItem<'_>> + Clone {
    union.choices.iter().map(|(value, selected)| {
        let member = selected.iter().map(|selected| MemberItem {
            name: &selected.name,
            optional: selected.optional,
            evidence: selected.by_rule.then_some("rule"),
        });
        ChoiceItem { value, members: member.collect() }
    })
}

fn kind(kind: &ReportedKind) -> Value {
    let ReportedKind { group, version, kind, definition, source, derivation } = kind;
    let Position { file, line, column } = source;
    json!({
        "group": group,
        "version": version,
        "kind": kind,
        "definition": definition,
        "file": file.display().to_string(),
        "line": line,
        "column": column,
        "unions": derivation.unions.iter().map(union).collect::<Vec<_>>(),
    })
}

fn union(union: &MarkedUnion) -> Value {
    let Position { file, line, column } = &union.source;
    json!({
        "path": union.place.to_string(),
        "form": union_details::form(union.form),
        "discriminator": union.discriminator,
        "members": union.members(),
        "choices": leaves(union).collect::<Vec<_>>(),
        "required": union.required,
        "emptyIsUnset": union.empty_is_unset,
        // The way in which the members were found.
        "evidence": union.found_by,
        "type": union.go_type,
        "file": file.display().to_string(),
        "line": line,
        "column": column,
    })
}

fn finding(reported: &ReportedFinding) -> Value {
    let GoFinding { position: Position { file, line, column }, path, severity, kind, message } = &reported.finding;
    let subject = reported.subject.as_ref();
    json!({
        "file": file.display().to_string(),
        "line": line,
        "column": column,
        "definition": subject.map(|subject| &subject.definition),
        // The file with the CRD, and its position there.
        "definitionFile": subject.map(|subject| subject.file.display().to_string()),
        "definitionLine": subject.map(|subject| subject.position.0),
        "version": subject.and_then(|subject| subject.version.as_deref()),
        "path": path,
        "severity": severity.name(),
        "rule": kind.name(),
        // `new`, or `allowed` by `--allow`.
        "standing": reported.standing,
        "message": message,
    })
}

fn result(reported: &ReportedFinding) -> SarifFinding<'_> {
    let finding = &reported.finding;
    let (rule, message, position) = (finding.kind.name(), finding.message.clone(), &finding.position);
    let place = FilePlace { file: &position.file, position: Some((position.line, position.column)) };
    let crd = reported.subject.iter().filter(|subject| *subject.file != *position.file);
    let related = crd.map(|subject| {
        let place = FilePlace { file: &subject.file, position: Some(subject.position) };
        (place, format!("The CRD {}", subject.definition))
    });
    SarifFinding {
        related: related.collect(),
        suppressed: match reported.standing {
            Standing::New => None,
            Standing::Allowed => Some("allowed by --allow"),
        },
        ..SarifFinding::new(rule, finding.severity, &finding.path, reported.place(), message, Some(place))
    }
}

/// The number of places of a finding that a line names.
const MOST_PLACES: usize = 3;

/// The number of notes of one kind that the text lists.
const MOST_NOTES: usize = 5;

impl Report {
    fn text(&self, paint: Paint) -> String {
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

        let unions: usize = kinds.iter().map(|kind| kind.derivation.unions.len()).sum();
        let errors = self.findings.iter().filter(|reported| reported.is_counted_error()).count();
        let (versions, errors) = (count(kinds.len(), "version"), count(errors, "error"));
        let _ = write!(text, "{} in {versions} of a kind, {errors}", count(unions, "union"));
        let is_allowed = |it: &&ReportedFinding| it.standing == Standing::Allowed && it.is_worth_a_count();
        let allowed = self.findings.iter().filter(is_allowed).count();
        if allowed > 0 {
            let _ = write!(text, ", {allowed} allowed");
        }
        text.push('\n');
        text
    }

    /// Writes the findings, and the number of notes that it leaves out.
    fn write_findings(&self, text: &mut String, paint: Paint) {
        fn key(reported: &ReportedFinding) -> impl PartialEq + '_ {
            let GoFinding { position, severity, kind, message, .. } = &reported.finding;
            (reported.standing, severity, kind, position, message)
        }
        let mut notes: BTreeMap<&str, usize> = BTreeMap::new();
        for group in self.findings.chunk_by(|one, other| key(one) == key(other)) {
            let Some(first) = group.first() else { continue };
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
        tree::choices(leaves(union))
    };
    Tree::new(tree::headline(&union.place.to_string(), &details, paint)).with_leaves(below)
}
