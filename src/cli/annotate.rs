//! `annotate`: CRDs in, CRDs out, each `x-kubernetes-unions` moved into the annotation that clusters keep.
//!
//! Works on text, so that comments, order and other documents stay as they are; as a pipe it is a Helm post-renderer, and
//! since the items of any list are documents, `ResourceList` included, a KRM function for kustomize too.

mod plan;

use self::plan::AnnotatePlan;
use super::kinds::{self, BuiltinUnions};
use super::manifest::{self, Document, ManifestFile, Section, Stream};
use super::output::{self, Paint};
use super::{Verdict, diagnostic};
use anyhow::bail;
use clap::Args;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::PathBuf;

/// Arguments of `annotate`.
#[derive(Debug, Args)]
#[command(after_help = "\
The API server drops `x-kubernetes-unions` from the schema of a CRD, and keeps annotations. Documents of other kinds pass \
unchanged, and annotating twice changes nothing, so it serves as a pipe:

  kubectl kustomize . | kube-unions annotate | kubectl apply -f -
  helm install … --post-renderer kube-unions --post-renderer-args annotate

What is wrong with a declaration is reported as `lint` does, with exit code 1; the output is complete all the same.")]
pub(super) struct AnnotateArgs {
    /// Files and folders with manifests, `-` is standard input [default: standard input]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The same, as kubectl has it
    #[arg(short, long, value_name = "PATH")]
    filename: Vec<PathBuf>,
    /// Print nothing, and exit with 1 if anything would change
    #[arg(long)]
    check: bool,
}

/// What is said on the way.
#[derive(Default)]
struct Remarks {
    /// What makes the exit code 1.
    objections: Vec<String>,
    notices: Vec<String>,
}

pub(super) fn run(arguments: &AnnotateArgs) -> anyhow::Result<Verdict> {
    let mut paths: Vec<PathBuf> = arguments.paths.iter().chain(&arguments.filename).cloned().collect();
    if paths.is_empty() {
        if std::io::stdin().is_terminal() {
            bail!("nothing to read: name files or folders, or pipe manifests in");
        }
        paths.push(PathBuf::from("-"));
    }
    let reading = manifest::files(&paths);
    manifest::fail_on(&reading.problems)?;

    let (mut stream, mut remarks) = (Stream::default(), Remarks::default());
    for source in &reading.files {
        let text = annotate(source, arguments.check, &mut remarks)?;
        let format = source.sections.first().map_or(manifest::Format::Yaml, |section| section.format);
        stream.push(&text, format);
    }
    for line in remarks.notices.iter().chain(&remarks.objections) {
        output::note(line);
    }
    if !arguments.check {
        output::print(stream.into_text())?;
    }
    Ok(Verdict::rejected_if(!remarks.objections.is_empty()))
}

/// Returns a text of manifests, YAML or JSON, with its CRDs annotated; every other byte of it stays. What is wrong with the
/// declarations themselves is for `lint`.
pub fn annotated(text: &str) -> anyhow::Result<String> {
    let source = manifest::file(&PathBuf::from("-"), text.as_bytes().to_vec())?;
    annotate(&source, false, &mut Remarks::default())
}

/// The text of a file with its CRDs annotated.
fn annotate(source: &ManifestFile, check: bool, remarks: &mut Remarks) -> anyhow::Result<String> {
    let mut text = String::new();
    for section in &source.sections {
        let mut edits = Vec::new();
        for document in source.documents_of(section).iter().filter(|document| document.is_definition()) {
            let Some(plan) = AnnotatePlan::of(document)? else { continue };
            remarks.take(document, &plan);
            if check && !plan.edits.is_empty() {
                remarks.objections.push(place(document, "would change"));
            }
            edits.extend(plan.edits);
        }
        text.push_str(&edited(source, section, &edits, remarks)?);
    }
    text.push_str(&source.tail);
    Ok(text)
}

fn edited(
    source: &ManifestFile,
    section: &Section,
    edits: &[manifest::Edit],
    remarks: &mut Remarks,
) -> anyhow::Result<String> {
    if edits.is_empty() {
        return Ok(section.text.clone());
    }
    let edited = manifest::edit(section, edits)?;
    if edited.rewritten {
        let notice =
            "a document was written anew, its comments are lost: anchors or merge keys reach what had to change";
        remarks.notices.push(format!("{}: {notice}", source.path.display()));
    }
    Ok(edited.text)
}

impl Remarks {
    fn take(&mut self, document: &Document, plan: &AnnotatePlan) {
        let paint = Paint::of(&std::io::stderr());
        let assembly = kinds::assemble(vec![document.clone()], BuiltinUnions::Ignored);
        let mut said = BTreeSet::new();
        for found in diagnostic::diagnose(&assembly) {
            let line = found.line(paint);
            if said.insert(line.clone()) {
                let lines = if found.is_error() { &mut self.objections } else { &mut self.notices };
                lines.push(line);
            }
        }
        self.objections.extend(plan.objections.iter().map(|objection| place(document, objection)));
    }
}

fn place(document: &Document, message: &str) -> String {
    let (line, column) = document.position("").unwrap_or((1, 1));
    let name = document.name.as_deref().unwrap_or_default();
    format!("{}:{line}:{column}: {name}: {message}", document.file.display())
}
