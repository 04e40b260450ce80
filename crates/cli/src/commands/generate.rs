//! `generate`: declares on CRDs the unions that markers in Go sources describe.
//!
//! [`sources`] reads Go files, `kube-unions-go` derives the unions, [`crd`](crate::input::crd) plans the edits of a CRD and [`manifest`]
//! makes them, and [`report`] prints the result.

mod arguments;
mod finding;
mod report;
mod sources;

pub(super) use self::arguments::GenerateArgs;

use self::finding::{CrdSubject, ReportedFinding};
use self::report::Report;
use crate::input::crd::EditableCrd;
use crate::input::manifest::{self, Document, Edit, Problem, Stream};
use crate::input::values::FindingsFormat;
use crate::report::conclusion::Conclusion;
use crate::report::difference;
use crate::report::{Verdict, output};
use anyhow::bail;
use kube_unions_core::declaration::{AnnotationContent, Declared, Definition, DefinitionVersion, Severity};
use kube_unions_core::names::GroupKind;
use kube_unions_core::schema::Place;
use kube_unions_go::{BuildContext, Derivation, FindingKind, GoFinding, KindVersion, Packages, Position};
use kube_unions_manifests::counts::count;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

pub(super) fn run(arguments: &GenerateArgs) -> anyhow::Result<Verdict> {
    let (write, check) = (arguments.write, arguments.check);
    let paths = arguments.crds.paths();
    if write && paths.iter().any(|path| path == Path::new("-")) {
        bail!("cannot write to standard input: remove --write or name files");
    }
    let build = BuildContext::with_tags(arguments.tags.iter().map(String::as_str));
    let sources = sources::read(&arguments.go, &build)?;
    let crds = manifest::files(&paths);
    let problems = [sources.problems, crds.problems].concat();
    // Without sources, a report would only say that no struct was found.
    if sources.packages.files() == 0 {
        manifest::fail_on(&problems)?;
    }

    let selected = match arguments.crds.selected(&crds.files) {
        Err(_) if !problems.is_empty() => return manifest::fail_on(&problems).map(|()| Verdict::Accepted),
        selected => selected?,
    };
    let mut run = GenerateRun {
        arguments,
        packages: &sources.packages,
        selected,
        report: Report::default(),
        problems,
        changed: Vec::new(),
    };
    let mut edited = Vec::new();
    for file in &crds.files {
        let of_file = manifest::edit_crds(file, |document| run.edits(document))?;
        if check {
            run.changed.extend(difference::of_edit(file, &of_file));
        }
        edited.push(of_file);
    }
    let GenerateRun { mut report, problems, changed, .. } = run;
    if report.definitions == 0 && problems.is_empty() {
        bail!("{}", arguments.crds.nothing_to_do(&crds.files));
    }
    report.add_unused(&sources.packages, arguments.crds.kind.is_empty());
    report.sort();
    report.allow(arguments);
    let is_stale = check && !changed.is_empty();
    let definitions = count(report.definitions, "CRD");
    let is_nothing = report.is_empty() && !is_stale && problems.is_empty();
    let unused = if report.has(FindingKind::UnsupportedMarker) { " that are used" } else { "" };
    let nothing = is_nothing.then(|| format!("nothing to declare: no markers of unions{unused} for {definitions}"));
    let rejected = is_stale || report.has_errors();
    let lines = problems.iter().map(Problem::to_string).collect();
    let conclusion = Conclusion::new(arguments.require, nothing, rejected, String::new());
    let conclusion = conclusion.beside(lines, manifest::fail_on(&problems).err());

    // A reader of the report may close the pipe of the CRDs, so the report comes first.
    edited.iter().flat_map(|file| &file.notices).for_each(output::note);
    report.print(arguments.output, write || check, &conclusion)?;
    changed.iter().filter(|_| check).for_each(output::note);
    if write {
        for (file, edited) in crds.files.iter().zip(&edited) {
            manifest::write_back(&file.path, &edited.text)?;
        }
    } else if !check {
        let mut stream = Stream::default();
        for file in &edited {
            stream.push(&file.text, file.format);
        }
        output::print(stream.into_text())?;
    }
    // A report for programs on standard error stays alone there.
    let is_told = !is_nothing || write || check || arguments.output == FindingsFormat::Text;
    if is_told { conclusion.end() } else { Ok(conclusion.verdict) }
}

/// The state of a run: inputs, and results so far.
struct GenerateRun<'a> {
    arguments: &'a GenerateArgs,
    packages: &'a Packages,
    /// The kinds of `--kind`, `None` for all.
    selected: Option<BTreeSet<GroupKind>>,
    report: Report,
    problems: Vec<Problem>,
    /// A line for each CRD that changes.
    changed: Vec<String>,
}

impl GenerateRun<'_> {
    /// Returns the edits that declare the unions of a CRD, and adds them to the report.
    fn edits(&mut self, document: &Document) -> anyhow::Result<Vec<Edit>> {
        if document.made.is_some() {
            // No Go type has the fields.
            return Ok(Vec::new());
        }
        let mut definition = match Definition::from_json(&document.text) {
            Ok(definition) => definition,
            Err(error) => {
                self.problems.push(Problem::of_document(document, "", error.to_string()));
                return Ok(Vec::new());
            }
        };
        let (group, kind) = (definition.group().to_owned(), definition.kind().to_owned());
        if self.selected.as_ref().is_some_and(|selected| !selected.contains(definition.group_kind())) {
            return Ok(Vec::new());
        }
        self.report.definitions += 1;
        let json: Value = serde_json::from_str(&document.text)?;
        let versions = definition.take_versions();
        let names: Vec<Box<str>> = versions.iter().map(|version| version.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let subject = |version: Option<&str>| CrdSubject {
            definition: definition.name().to_owned(),
            kind: kind.clone(),
            version: version.map(str::to_owned),
            file: document.file.clone(),
            position: document.position("").unwrap_or((1, 1)),
        };
        let (mut derivations, mut marked) = (Vec::new(), AnnotationContent::new());
        for version in versions {
            let name = version.name.clone();
            let declared = declared_objects(&version);
            let kind = KindVersion { group: &group, kind: &kind, version: &name, versions: &names };
            let schema = json.pointer(&format!("/spec/versions/{}/schema/openAPIV3Schema", version.position));
            let mut derivation = self.packages.unions(kind, version, schema.unwrap_or(&Value::Null));
            derivation.findings.iter_mut().for_each(|finding| resolve(finding, &declared));
            let places = derivation.declarations().into_iter().map(|(place, value)| (place.to_pointer(), value));
            marked.insert(name.to_string(), places.collect());
            derivations.push((name, derivation));
        }
        let crd = EditableCrd::read(document)?;
        let (edits, problem) =
            if self.arguments.in_schema { crd.move_to_schema(&marked)? } else { crd.move_to_annotation(&marked)? };

        let problem = problem.map(|message| finding_at(document, FindingKind::RefusedCrd, message));
        for finding in self.missing_structs(document, &definition, &derivations).into_iter().chain(problem) {
            self.report.add_finding(ReportedFinding::of(finding, Some(subject(None))));
        }
        for (version, derivation) in derivations {
            self.report.add(&definition, &subject(Some(&version)), derivation);
        }
        if !edits.is_empty() {
            self.changed.push(difference::would_change(document));
        }
        Ok(edits)
    }

    /// Reports versions without a struct: an error if no version has one, else a warning.
    fn missing_structs(
        &self,
        document: &Document,
        definition: &Definition,
        derivations: &[(Box<str>, Derivation)],
    ) -> Vec<GoFinding> {
        let kind = definition.kind();
        let is_found = |derivation: &Derivation| derivation.source.is_some() || !derivation.findings.is_empty();
        if !derivations.iter().any(|(_, derivation)| is_found(derivation)) {
            let (group, files) = (definition.group(), self.packages.files());
            let message = format!(
                "no struct `{kind}` of the group `{group}` in {files} Go files: add its folder with --go, or select other kinds \
                 with --kind"
            );
            return vec![finding_at(document, FindingKind::KindNotFound, message)];
        }
        let missing = derivations.iter().filter(|(_, derivation)| !is_found(derivation));
        let message =
            |version: &str| format!("no struct `{kind}` of the version `{version}`: its unions are not declared");
        missing.map(|(version, _)| finding_at(document, FindingKind::VersionNotFound, message(version))).collect()
    }
}

/// Returns the paths of the objects whose unions the CRD itself declares.
fn declared_objects(version: &DefinitionVersion) -> BTreeSet<String> {
    let object = |(place, declared): (Place, Vec<Declared>)| {
        let is_map = declared.iter().any(|declared| declared.value.is_object());
        place.parent().filter(|_| is_map).unwrap_or(place).to_string()
    };
    version.declarations().into_iter().map(object).collect()
}

/// Downgrades an ambiguity if the CRD itself declares the union.
fn resolve(finding: &mut GoFinding, declared: &BTreeSet<String>) {
    if finding.kind.is_ambiguous() && declared.contains(&finding.path) {
        finding.severity = Severity::Note;
        finding.kind = FindingKind::DeclaredInCrd;
        finding.message.push_str("; the declaration in the CRD stays");
    }
}

/// Returns a finding about a CRD itself.
fn finding_at(document: &Document, kind: FindingKind, message: String) -> GoFinding {
    let (line, column) = document.position("").unwrap_or((1, 1));
    let position = Position { file: document.file.as_path().into(), line, column };
    GoFinding { position, path: String::new(), severity: kind.severity(), kind, message }
}
