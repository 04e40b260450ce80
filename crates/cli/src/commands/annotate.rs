//! `annotate`: moves each `x-kubernetes-unions` in the schemas of CRDs into the annotation that clusters keep.
//!
//! It edits text, so comments, order and other documents stay as they are. It works as a Helm post-renderer and, because it
//! edits the items of any list, as a KRM function of kustomize.

use super::propose::ProposedContent;
use crate::input::crd::EditableCrd;
use crate::input::kinds::{self, BuiltinUnionsArg};
use crate::input::manifest::{self, Document, EditedFile, ManifestFile, PathArgs, Stream};
use crate::input::require::RequireArg;
use crate::input::values::only;
use crate::report::Verdict;
use crate::report::conclusion::Conclusion;
use crate::report::diagnostic::{self, Diagnostic};
use crate::report::difference;
use crate::report::output::{self, Paint};
use anyhow::bail;
use clap::Args;
use kube_unions_core::declaration::{AnnotationContent, Definition, FaultKind};
use kube_unions_manifests::counts::{count, grouped};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

const PATHS: &str = "Files and folders with manifests, `-` is standard input [default: standard input]";

#[derive(Debug, Args)]
#[command(mut_args(only("paths", |paths| paths.help(PATHS))), after_help = "\
The API server drops `x-kubernetes-unions` from the schema of a CRD, but keeps annotations. Other documents pass unchanged. \
Annotating twice changes nothing.

Examples:
  # Annotate the CRDs of a kustomization
  kubectl kustomize . | kube-unions annotate | kubectl apply -f -

  # Annotate the CRDs of a chart
  helm install shop ./shop --post-renderer kube-unions \\
    --post-renderer-args annotate

  # Declare the unions of the CRD that a generator wrote from its rules
  kube-unions annotate --propose crd.yaml | kubectl apply -f -

  # Fail in CI if a CRD is not annotated
  kube-unions annotate --check config/crd/bases

Exit codes:
  0  every declaration is valid (with --check also: nothing would change)
  1  a declaration has an error, as `lint` reports it, or would change, or with --require: there is none; the \
output is complete
  2  an input could not be read")]
pub(crate) struct AnnotateArgs {
    #[command(flatten)]
    paths: PathArgs,
    #[command(flatten)]
    edits: AnnotateEdits,
    #[command(flatten)]
    require: RequireArg,
}

/// What becomes of a CRD.
#[derive(Debug, Args, Clone, Copy, Default)]
struct AnnotateEdits {
    /// Print no manifests; exit with 1 if a CRD would change
    #[arg(long)]
    check: bool,
    /// Also declare the unions that validations of a CRD enforce, as `propose` finds them
    ///
    /// An object that has a declaration already keeps it alone. What a rule keeps from changing is left out, because the unions of
    /// an annotation are always normalised; so is what is in doubt.
    #[arg(long)]
    propose: bool,
}

/// Messages for standard error.
#[derive(Default)]
struct Messages {
    /// Messages that set the exit code to 1.
    errors: Vec<String>,
    notices: Vec<String>,
    /// The lines of a check about documents of one file.
    changed: Vec<String>,
    counts: AnnotateCounts,
}

/// The number of things in the input.
#[derive(Default)]
struct AnnotateCounts {
    definitions: usize,
    /// The declarations in schemas and annotations.
    declarations: usize,
    /// The declarations that are moved.
    moved: usize,
    /// The declarations that validations propose.
    proposed: usize,
}

pub(super) fn run(arguments: &AnnotateArgs) -> anyhow::Result<Verdict> {
    let mut paths = arguments.paths.all();
    if paths.is_empty() {
        if std::io::stdin().is_terminal() {
            bail!("no input: name files or folders, or pipe manifests into the command");
        }
        paths.push(PathBuf::from("-"));
    }
    let manifests = manifest::files(&paths);
    manifest::fail_on(&manifests.problems)?;

    let (mut stream, mut messages) = (Stream::default(), Messages::default());
    for file in &manifests.files {
        let edited = annotate(file, arguments.edits, &mut messages)?;
        stream.push(&edited.text, edited.format);
    }
    for line in messages.notices.iter().chain(&messages.errors) {
        output::note(line);
    }
    if !arguments.edits.check {
        output::print(stream.into_text())?;
    }
    let Messages { errors, counts, .. } = messages;
    let nothing = if manifests.files.iter().all(|file| file.documents().is_empty()) {
        Some(manifest::empty(&paths))
    } else {
        (errors.is_empty() && counts.declarations == 0).then(|| counts.found())
    };
    let moved = if arguments.edits.check { "to move" } else { "moved" };
    let mut summary = format!("{}, {} {moved}", counts.found(), grouped(counts.moved));
    if arguments.edits.propose {
        summary.extend([format!(", {} proposed", grouped(counts.proposed))]);
    }
    let nothing = nothing.map(|found| format!("nothing to annotate: {found}"));
    Conclusion::new(arguments.require, nothing, !errors.is_empty(), summary).end()
}

impl AnnotateCounts {
    fn found(&self) -> String {
        format!("{}, {}", count(self.definitions, "CRD"), count(self.declarations, "declaration"))
    }
}

/// Returns a text of manifests, YAML or JSON, with its CRDs annotated. Every other byte stays as it is. Faults of the
/// declarations are ignored.
pub fn annotated(text: &str) -> anyhow::Result<String> {
    let file = manifest::file(Path::new("-"), text.as_bytes().to_vec())?;
    Ok(annotate(&file, AnnotateEdits::default(), &mut Messages::default())?.text)
}

/// Annotates the CRDs of a file.
fn annotate(file: &ManifestFile, how: AnnotateEdits, messages: &mut Messages) -> anyhow::Result<EditedFile> {
    let edited = manifest::edit_crds(file, |document| {
        let crd = EditableCrd::read(document)?;
        messages.counts.definitions += 1;
        messages.counts.declarations += crd.places().len();
        let misplaced = match crd.misplaced() {
            Ok(misplaced) => misplaced,
            Err(problem) => {
                messages.errors.push(manifest::line_about(document, &problem));
                return Ok(Vec::new());
            }
        };
        let proposed = if how.propose { messages.proposals(document, &crd)? } else { AnnotationContent::new() };
        if crd.extensions.is_empty() && misplaced.is_none() && proposed.is_empty() {
            // Only `lint` is strict with the declarations of the annotation.
            messages.add(Diagnostic::of_misspellings(document));
            return Ok(Vec::new());
        }
        let misplaced_places =
            misplaced.iter().flat_map(|(content, _)| content.values()).map(BTreeMap::len).sum::<usize>();
        messages.counts.declarations += misplaced_places;
        let (marked, removed) = misplaced.unzip();
        let mut marked = marked.unwrap_or_default();
        for (version, places) in proposed {
            marked.entry(version).or_default().extend(places);
        }
        if marked.is_empty() {
            messages.add_diagnostics(document);
        } else {
            messages.add_diagnostics(&crd.annotated(&marked)?);
        }
        let (mut edits, problem) = crd.move_to_annotation(&marked)?;
        edits.extend(removed);
        messages.errors.extend(problem.map(|problem| manifest::line_about(document, &problem)));
        if !edits.is_empty() {
            messages.counts.moved += crd.extensions.len() + misplaced_places;
        }
        if how.check && !edits.is_empty() {
            messages.changed.push(difference::would_change(document));
        }
        Ok(edits)
    })?;
    messages.notices.extend_from_slice(&edited.notices);
    if how.check {
        messages.changed.extend(difference::of_edit(file, &edited));
    }
    messages.errors.append(&mut messages.changed);
    Ok(edited)
}

impl Messages {
    /// Returns the unions that the validations of a CRD enforce and that nothing declares. Notes what is left out.
    fn proposals(&mut self, document: &Document, crd: &EditableCrd<'_>) -> anyhow::Result<AnnotationContent> {
        let ProposedContent { content, left_out } = match Definition::from_json(&document.text) {
            Ok(definition) => ProposedContent::find(document, &definition, crd)?,
            Err(error) => {
                self.errors.push(manifest::line_about(document, &error.to_string()));
                return Ok(AnnotationContent::new());
            }
        };
        self.notices.extend(left_out.iter().map(|line| manifest::line_about(document, line)));
        let proposed = content.values().map(BTreeMap::len).sum::<usize>();
        self.counts.declarations += proposed;
        self.counts.proposed += proposed;
        Ok(content)
    }

    /// Adds what `lint` reports about a CRD.
    fn add_diagnostics(&mut self, document: &Document) {
        let assembly = kinds::assemble(vec![document.clone()], BuiltinUnionsArg::Ignored);
        let found = diagnostic::diagnose(&assembly).into_iter();
        self.add(found.filter(|diagnostic| diagnostic.rule != FaultKind::MisplacedAnnotation));
    }

    fn add(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        let paint = Paint::of(&std::io::stderr());
        let mut known = BTreeSet::new();
        for found in diagnostics {
            let line = diagnostic::line(&found, paint);
            if known.insert(line.clone()) {
                let lines = if found.is_error() { &mut self.errors } else { &mut self.notices };
                lines.push(line);
            }
        }
    }
}
