//! `generate`: CRDs in, CRDs out, with the unions declared that the Go types behind them mark.

mod plan;
mod report;
mod sources;

use self::plan::GeneratePlan;
use self::report::{Report, ReportedFinding};
use super::manifest::{self, Document, ManifestFile, Problem, Stream};
use super::{ReportFormat, Verdict, kinds, output};
use anyhow::{Context, bail};
use clap::Args;
use kube_unions_core::declaration::{Definition, DefinitionVersion};
use kube_unions_go::{BuildContext, Derivation, FindingReason, GoFinding, KindVersion, Packages, Position, Severity};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Arguments of `generate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Markers are read in every spelling: +union, +unionDiscriminator, +unionMember[=Name][,optional], +unionDeprecated, \
+unionDiscriminatedBy=Field, their +k8s: family, and JSON arguments. Sources are parsed, never run; no Go tool chain is needed.

The CRDs go to standard output and the report to standard error; with --write or --check the report goes to standard output. \
What the markers leave open is left out, and so is what can be no union; the rest is declared all the same.

  kube-unions generate --go ./api config/crd/bases --write
  kube-unions generate --go ./api --go ../common config/crd/bases/*.yaml | kubectl apply -f -

Exit codes:
  0  every union that is marked is declared
  1  something was left out (with --check also: something would change)
  2  something could not be read; the rest was done all the same")]
pub(super) struct GenerateArgs {
    /// A folder with Go sources, searched through, or a file of them; may be given several times
    ///
    /// As the go command does, hidden folders and those called testdata or vendor are passed over where they are not named
    /// themselves, and so are tests and files that build constraints leave out.
    // One value each: what follows are CRDs.
    #[arg(long, required = true, num_args = 1, value_name = "DIR")]
    go: Vec<PathBuf>,
    /// Only this kind, such as `Rollout` or `Rollout.example.com`, in any case; may be given several times [default: all]
    #[arg(long, num_args = 1, value_name = "KIND")]
    kind: Vec<String>,
    /// Files and folders with CRDs, `-` is standard input; other documents pass unchanged
    #[arg(required = true, value_name = "CRD")]
    paths: Vec<PathBuf>,
    /// BuildContext tags that hold, beside those of Linux on amd64
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    tags: Vec<String>,
    /// Declare in the schema, as `x-kubernetes-unions`, instead of the annotation that clusters keep
    #[arg(long)]
    in_schema: bool,
    /// Do not count what is ambiguous for the exit code; it is left out in any case
    #[arg(long)]
    allow_ambiguous: bool,
    #[command(flatten)]
    destination: Destination,
    /// Format of the report
    #[arg(short, long, value_enum, default_value_t)]
    output: ReportFormat,
}

/// What becomes of the CRDs, if they do not go to standard output.
#[derive(Debug, Clone, Copy, Args)]
struct Destination {
    /// Write the CRDs back to their files
    #[arg(short, long, conflicts_with = "check")]
    write: bool,
    /// Print the report only, and exit with 1 if any CRD would change
    #[arg(long)]
    check: bool,
}

pub(super) fn run(arguments: &GenerateArgs) -> anyhow::Result<Verdict> {
    let Destination { write, check } = arguments.destination;
    if write && arguments.paths.iter().any(|path| path == Path::new("-")) {
        bail!("standard input can't be written back to: leave out --write, or name files");
    }
    let build = BuildContext::with_tags(arguments.tags.iter().map(String::as_str));
    let read = sources::read(&arguments.go, &build)?;
    let crds = manifest::files(&arguments.paths);
    let mut problems = read.problems;
    problems.extend(crds.problems);

    let mut generating =
        Generating { arguments, packages: &read.packages, report: Report::default(), problems, would_change: false };
    let mut texts = Vec::new();
    for source in &crds.files {
        texts.push(generating.source(source)?);
    }
    let Generating { mut report, problems, would_change, .. } = generating;
    if report.definitions == 0 && problems.is_empty() {
        bail!("{}", nothing_to_do(arguments));
    }
    report.remark(&read.packages, arguments.kind.is_empty());

    report.sort();
    // The report first: it is there even if nobody reads the CRDs.
    report.print(arguments.output, write || check)?;
    if write {
        for (source, text) in crds.files.iter().zip(&texts) {
            rewrite(&source.path, text)?;
        }
    } else if !check {
        let mut stream = Stream::default();
        for (source, text) in crds.files.iter().zip(&texts) {
            let format = source.sections.first().map_or(manifest::Format::Yaml, |section| section.format);
            stream.push(text, format);
        }
        output::print(stream.into_text())?;
    }
    manifest::fail_on(&problems)?;
    let left_out = report.left_out(arguments.allow_ambiguous);
    Ok(Verdict::rejected_if(left_out || (check && would_change)))
}

fn nothing_to_do(arguments: &GenerateArgs) -> String {
    let paths = manifest::list(&arguments.paths);
    if arguments.kind.is_empty() {
        return format!("no CustomResourceDefinition in {paths}");
    }
    let kinds: Vec<String> = arguments.kind.iter().map(|kind| format!("`{kind}`")).collect();
    format!("no CustomResourceDefinition of {} in {paths}", kinds.join(" or "))
}

/// The work on CRDs, and what came of it so far.
struct Generating<'a> {
    arguments: &'a GenerateArgs,
    packages: &'a Packages,
    report: Report,
    problems: Vec<Problem>,
    would_change: bool,
}

impl Generating<'_> {
    /// The text of a file with the unions of its CRDs declared.
    fn source(&mut self, source: &ManifestFile) -> anyhow::Result<String> {
        let mut text = String::new();
        for section in &source.sections {
            let mut edits = Vec::new();
            for document in source.documents_of(section).iter().filter(|document| document.is_definition()) {
                edits.extend(self.definition(document)?);
            }
            if edits.is_empty() {
                text.push_str(&section.text);
                continue;
            }
            self.would_change = true;
            let edited = manifest::edit(section, &edits)?;
            if edited.rewritten {
                let notice = "a document was written anew, its comments are lost: anchors or merge keys reach what had to change";
                output::note(format_args!("{}: {notice}", source.path.display()));
            }
            text.push_str(&edited.text);
        }
        text.push_str(&source.tail);
        Ok(text)
    }

    /// The edits of one CRD.
    fn definition(&mut self, document: &Document) -> anyhow::Result<Vec<manifest::Edit>> {
        let mut definition = match Definition::from_json(&document.text) {
            Ok(definition) => definition,
            Err(error) => {
                self.problems.push(Problem::of_document(document, "", error.to_string()));
                return Ok(Vec::new());
            }
        };
        if !self.is_asked(&definition) {
            return Ok(Vec::new());
        }
        self.report.definitions += 1;
        let versions = definition.take_versions();
        let names: Vec<Box<str>> = versions.iter().map(|version| version.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let mut outcomes = Vec::new();
        for version in versions {
            let name = version.name.clone();
            let (group, kind) = (definition.group(), definition.kind());
            let declared = declared_objects(&version);
            let asked = KindVersion { group, kind, version: &name, versions: &names };
            let mut outcome = self.packages.unions(asked, version);
            outcome.findings.iter_mut().for_each(|finding| settle(finding, &declared));
            outcomes.push((name, outcome));
        }
        for finding in self.missing(document, &definition, &outcomes) {
            self.report.say(ReportedFinding::of(finding, Some(&definition), None));
        }
        let plan = GeneratePlan::of(document, &outcomes, self.arguments.in_schema)?;
        for finding in plan.findings {
            self.report.say(ReportedFinding::of(at_document(document, finding), Some(&definition), None));
        }
        for (version, outcome) in outcomes {
            self.report.add(&definition, &version, outcome);
        }
        Ok(plan.edits)
    }

    fn is_asked(&self, definition: &Definition) -> bool {
        let asked = &self.arguments.kind;
        asked.is_empty() || asked.iter().any(|asked| kinds::is_meant(asked, definition.group(), definition.kind()))
    }

    /// The versions that no struct was found for: an error where there is none for the whole kind.
    fn missing(
        &self,
        document: &Document,
        definition: &Definition,
        outcomes: &[(Box<str>, Derivation)],
    ) -> Vec<GoFinding> {
        let (kind, group) = (definition.kind(), definition.group());
        let is_there = |outcome: &Derivation| outcome.source.is_some() || !outcome.findings.is_empty();
        let finding = |severity, message| {
            at_document(
                document,
                GoFinding { position: None, path: String::new(), severity, reason: FindingReason::Kind, message },
            )
        };
        if !outcomes.iter().any(|(_, outcome)| is_there(outcome)) {
            let files = self.packages.files();
            let message = format!(
                "no struct `{kind}` of the group `{group}` in the {files} Go files; give its folder by --go, or name the kinds that are meant by \
                 --kind"
            );
            return vec![finding(Severity::Error, message)];
        }
        let missing = outcomes.iter().filter(|(_, outcome)| !is_there(outcome));
        let message = |version: &str| {
            format!("no struct `{kind}` of the version `{version}` in the Go files: its unions are not declared")
        };
        missing.map(|(version, _)| finding(Severity::Warning, message(version))).collect()
    }
}

/// The objects whose unions the CRD declares by itself.
fn declared_objects(version: &DefinitionVersion) -> BTreeSet<String> {
    let mut objects = BTreeSet::new();
    for (place, declared) in version.declarations() {
        let path = place.to_string();
        let around = place.parent().map(|parent| parent.to_string());
        let is_map = declared.iter().any(|declared| declared.value.is_object());
        objects.insert(if is_map { around.unwrap_or(path) } else { path });
    }
    objects
}

/// What the markers leave open is settled where the CRD says it by other means.
fn settle(finding: &mut GoFinding, declared: &BTreeSet<String>) {
    if finding.reason == FindingReason::Ambiguous && declared.contains(&finding.path) {
        finding.severity = Severity::Note;
        finding.reason = FindingReason::Declared;
        finding.message.push_str("; what the CRD itself declares there stays");
    }
}

/// The same, at a CRD's place if it has none.
fn at_document(document: &Document, finding: GoFinding) -> GoFinding {
    let (line, column) = document.position("").unwrap_or((1, 1));
    let own = || Position { file: document.file.as_path().into(), line, column };
    GoFinding { position: finding.position.clone().or_else(|| Some(own())), ..finding }
}

/// Writes a file anew if its text changed: another one beside it first, so that there is never half a file.
fn rewrite(file: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("cannot write `{}`", file.display());
    let before = std::fs::read(file).with_context(context)?;
    if before == text.as_bytes() {
        return Ok(());
    }
    // A link stays one: what it leads to is written.
    let file = file.canonicalize().with_context(context)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.join(format!(".{name}.{}.new", std::process::id()));
    let written = std::fs::write(&beside, text)
        .and_then(|()| std::fs::set_permissions(&beside, std::fs::metadata(&file)?.permissions()))
        .and_then(|()| std::fs::rename(&beside, &file));
    if written.is_err() {
        // What is left of it is of no use; the first error is the one to tell.
        let _ = std::fs::remove_file(&beside);
    }
    written.with_context(context)
}
