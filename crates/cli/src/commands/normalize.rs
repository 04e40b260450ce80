//! `normalize`: prints objects as the webhook normalises them.
//!
//! The webhook's code answers an admission review for each object. The changes of the answer are made in the text of the object:
//! it keeps its comments and the order of its fields, and an object that needs no change is printed byte for byte. [`review`] answers an
//! admission review as it is.

mod messages;
pub(super) mod review;

pub(super) use self::messages::{print_answer, print_warnings};

use self::messages::{Identity, print_contradictions, print_exceptions, print_unused};
use self::review::ReviewPhase;
use super::preview;
use crate::input::builtin::{OfflineKinds, PresetsArg, ServerWords, SourceFiles, UnknownUnions};
use crate::input::kinds::{SourceArgs, entry_of};
use crate::input::manifest::{self, Document, Edit, Format, RenderedFile, Section, Stream};
use crate::input::require::RequireArg;
use crate::input::values::RatchetingArg;
use crate::report::Verdict;
use crate::report::conclusion::{Conclusion, kept_from};
use crate::report::output;
use anyhow::bail;
use clap::{Args, ValueEnum};
use kube_unions_core::admission::{ApplyMethod, Phase, Ratcheting, Review, ReviewOutcome};
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::pointer_tokens;
use kube_unions_core::union::Violation;
use kube_unions_manifests::Problem;
use kube_unions_manifests::counts::{count, grouped};
use kube_unions_manifests::misspelt::KnownKinds;
use kube_unions_manifests::request::{AppliedManifest, ReviewedObject, own_edits};
use kube_unions_offline::UndecidedUnions;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Args)]
#[command(after_help = "\
Warnings, violations, and the unions whose declaration turns normalisation off go to standard error.

Objects are judged with the defaults of the API server, which are not printed. Built-in kinds are known, with the unions of the \
presets, unless --from describes them. The API server itself refuses what violates a preset, so this command does.

With -o review, -f is an AdmissionReview in JSON or YAML, which has the objects and the operation. Prints the answer of the webhook.

Exit codes:
  0  every object is allowed
  1  an object is denied, or with --require: no object is of a kind with unions
  2  wrong usage, or input that cannot be read or answered; the rest was judged

Examples:
  kube-unions normalize -f deployment.yaml
  kube-unions normalize --from crds/ -f rollout.yaml
  kube-unions normalize --from crds/ --old stored.yaml -f changed.yaml -o json
  kube-unions normalize --from crds/ --old old.yaml -f new.yaml --applied
  cat rollout.yaml | kube-unions normalize --from crds/ -f -
  kube-unions normalize --from crds/ -f review.json -o review
  kube-unions normalize --from crds/ -f review.json -o review --phase mutate")]
pub(crate) struct NormalizeArgs {
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    presets: PresetsArg,
    /// The stored objects, for an update [default: none, for a create]
    ///
    /// They are matched by apiVersion, kind, namespace and name.
    #[arg(long, value_name = "OLD")]
    old: Option<PathBuf>,
    /// The objects to normalise; `-` is standard input
    #[arg(short, long, required = true, num_args = 1, value_name = "NEW")]
    filename: Vec<PathBuf>,
    /// Judge the objects as manifests that are applied: a field that a manifest sets is not cleared
    ///
    /// This is how `kubectl apply`, Flux, Argo CD and Helm 4 write them. Without it, they are judged as `kubectl replace` writes them. After a
    /// server-side apply, nothing tells which empty lists a manifest sets.
    #[arg(long, value_enum, value_name = "METHOD", num_args = 0..=1, require_equals = true, default_missing_value = "client-side")]
    applied: Option<ApplyMethodArg>,
    /// Allow or deny a write that leaves an invalid union unchanged
    #[arg(long, value_enum, default_value_t)]
    ratcheting: RatchetingArg,
    /// Output format [default: the format of the input]
    #[arg(short, long, value_enum)]
    output: Option<NormalizeFormat>,
    /// The phase of admission, for -o review [default: both, one after the other]
    #[arg(long, value_enum)]
    phase: Option<ReviewPhase>,
    #[command(flatten)]
    require: RequireArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NormalizeFormat {
    Yaml,
    Json,
    /// The answer to the `AdmissionReview` of -f
    Review,
}

/// The way in which manifests are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ApplyMethodArg {
    /// `kubectl apply`, Argo CD by default
    ClientSide,
    /// `kubectl apply --server-side`, Flux, Helm 4
    ServerSide,
}

impl From<ApplyMethodArg> for ApplyMethod {
    fn from(method: ApplyMethodArg) -> Self {
        match method {
            ApplyMethodArg::ClientSide => Self::ClientSide,
            ApplyMethodArg::ServerSide => Self::ServerSide,
        }
    }
}

/// The number of objects.
#[derive(Default)]
struct NormalizeCounts {
    /// Objects of kinds with unions.
    judged: usize,
    changed: usize,
    rejected: usize,
    /// Objects of kinds without unions.
    others: usize,
}

pub(super) fn run(arguments: &NormalizeArgs) -> anyhow::Result<Verdict> {
    let NormalizeArgs { sources, presets, old, filename, applied, ratcheting, output, phase, .. } = arguments;
    let format = match output {
        Some(NormalizeFormat::Review) => {
            let [review] = filename.as_slice() else { bail!("give one AdmissionReview to answer with -o review") };
            if old.is_some() || applied.is_some() {
                bail!(
                    "--old and --applied do not go with -o review: an AdmissionReview has the old object and the manifest"
                );
            }
            return review::run(sources, *presets, review, *phase, *ratcheting);
        }
        _ if phase.is_some() => bail!("--phase goes with -o review: objects pass both phases"),
        Some(NormalizeFormat::Yaml) => Some(Format::Yaml),
        Some(NormalizeFormat::Json) => Some(Format::Json),
        None => None,
    };
    let sources = SourceFiles::read(sources)?;
    let mut problems: Vec<String> = sources.unread.iter().map(ToString::to_string).collect();
    let given = || -> anyhow::Result<[GivenObjects; 2]> {
        let old = arguments.old.as_ref().map(|path| GivenObjects::read(std::slice::from_ref(path))).transpose()?;
        Ok([old.unwrap_or_default(), GivenObjects::read(&arguments.filename)?])
    };
    let [old, new] = match given() {
        Ok(given) => given,
        // A fault of the sources comes first.
        Err(error) => return Err(sources.assemble(*presets, &BTreeSet::new()).err().unwrap_or(error)),
    };
    let offline = sources.assemble(*presets, &new.documents.iter().map(Document::group_version_kind).collect())?;
    let kinds = &offline.assembly;
    problems.extend(old.problems.iter().chain(&new.problems).map(ToString::to_string));
    print_exceptions(&kinds.catalog, &new.documents);
    // Objects whose kind is almost one that the files describe.
    let mut known = KnownKinds::new(kinds.kinds());
    let near = |object| known.warning(object).into_iter().chain(kinds.misspelt_fields(object));
    let near: Vec<String> = new.documents.iter().flat_map(near).collect();
    old.duplicates.iter().chain(&new.duplicates).for_each(output::warn);
    near.iter().for_each(output::warn);
    // The first of several old objects with one identity counts.
    let of_old: BTreeMap<Identity<'_>, &Document> =
        old.documents.iter().rev().map(|old| (old.identity(), old)).collect();
    print_unused(&of_old, &new.documents, &arguments.filename);
    let (stream, counts, unknown) = (Stream::default(), NormalizeCounts::default(), UnknownUnions::new(kinds));
    let mut run = NormalizeRun {
        arguments,
        offline: &offline,
        known,
        format,
        unread_files: &new.unread_files,
        stream,
        counts,
        unknown,
        problems,
    };
    for file in new.unread_files.iter().filter(|_| format == Some(Format::Json)) {
        output::warn(format_args!("{}: not printed: what cannot be read has no JSON", file.display()));
    }
    let mut unread = new.unread.iter().peekable();
    for (index, document) in new.documents.iter().enumerate() {
        while let Some((_, section)) = unread.next_if(|(before, _)| *before <= index) {
            run.pass_on(section);
        }
        run.add(document, of_old.get(&document.identity()).copied())?;
    }
    unread.for_each(|(_, section)| run.pass_on(section));
    let NormalizeRun { mut stream, counts, unknown, problems, .. } = run;
    stream.end_line();
    output::print(stream.into_text())?;
    unknown.print();
    let others = || format!("nothing to normalise: {} of kinds without unions", count(counts.others, "object"));
    let is_nothing = counts.judged == 0 && counts.rejected == 0 && problems.is_empty();
    let failure = kept_from(problems.len(), "judged");
    let conclusion = Conclusion::new(arguments.require, is_nothing.then(others), counts.rejected > 0, counts.summary());
    let conclusion = conclusion.beside(problems, failure);
    conclusion.problems.iter().for_each(output::error);
    conclusion.end()
}

/// The objects of files, and what is between them.
#[derive(Default)]
struct GivenObjects {
    documents: Vec<Document>,
    /// The texts that cannot be read, each with the number of documents before it.
    unread: Vec<(usize, Arc<Section>)>,
    /// The files that have such texts.
    unread_files: BTreeSet<PathBuf>,
    problems: Vec<Problem>,
    duplicates: Vec<Problem>,
}

impl GivenObjects {
    /// Reads files of objects. Fails if there is none.
    fn read(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let read = manifest::rendering(paths);
        manifest::fail_on(&read.problems)?;
        let mut given = Self::default();
        for RenderedFile { file, unread, duplicates } in read.files {
            for section in &file.sections {
                if section.is_unread {
                    given.unread.push((given.documents.len(), Arc::clone(section)));
                }
                given.documents.extend(file.documents_of(section));
            }
            given.unread_files.extend(unread.iter().map(|problem| problem.file.clone()));
            given.problems.extend(unread);
            given.duplicates.extend(duplicates);
        }
        let untyped: Vec<Problem> = given.documents.iter().filter_map(Problem::of_untyped).collect();
        if untyped.len() == given.documents.len() {
            given.problems.extend(untyped);
            manifest::fail_on(&given.problems)?;
            bail!("{}", manifest::empty(paths));
        }
        given.problems.extend(untyped);
        Ok(given)
    }
}

/// The state of a run.
struct NormalizeRun<'n> {
    arguments: &'n NormalizeArgs,
    offline: &'n OfflineKinds,
    known: KnownKinds<'n>,
    format: Option<Format>,
    unread_files: &'n BTreeSet<PathBuf>,
    stream: Stream,
    counts: NormalizeCounts,
    unknown: UnknownUnions<'n>,
    /// The reasons why objects are not judged, a line each.
    problems: Vec<String>,
}

impl NormalizeRun<'_> {
    /// Prints a text that cannot be read as it is, unless all is to be JSON.
    fn pass_on(&mut self, section: &Section) {
        if self.format != Some(Format::Json) {
            self.stream.push(&section.text, section.format);
        }
    }

    /// Judges an object and prints it. One that cannot be judged is printed as it is.
    fn add(&mut self, document: &Document, old: Option<&Document>) -> anyhow::Result<()> {
        let Some(entry) = entry_of(&self.offline.assembly.catalog, document) else {
            match self.known.problem(document, |_| true) {
                Some(problem) => self.problems.push(problem.to_string()),
                // The problem of a document without a type is known.
                None if Problem::of_untyped(document).is_some() => {}
                None => {
                    self.counts.others += 1;
                    self.unknown.add(document);
                }
            }
            return self.print(document, &[]);
        };
        let (review, undecided, words) = match self.answered(entry, document, old) {
            Ok(answered) => answered,
            Err(error) => {
                self.problems.push(manifest::line_about(document, &format!("cannot be judged: {error:#}")));
                return self.print(document, &[]);
            }
        };
        self.problems.extend(undecided.left_over.iter().map(|it| preview::undecided(document, it)));
        print_answer(document, &review, &words, Some(&undecided));
        self.counts.judged += 1;
        if is_denied(&review, &undecided) {
            self.counts.rejected += 1;
            return Ok(());
        }
        let base = pointer_tokens(&document.pointer).unwrap_or_default();
        let mut edits = own_edits(document, &review);
        edits.retain(|edit| !undecided.has_field(edit.path().get(base.len()..).unwrap_or_default()));
        self.counts.changed += usize::from(!edits.is_empty());
        self.print(document, &edits)
    }

    /// Returns the answer to the write of an object, the unions that it does not decide, which alone deny nothing, and the API server's words.
    fn answered<'e>(
        &self,
        entry: &'e CatalogEntry,
        document: &Document,
        old: Option<&Document>,
    ) -> anyhow::Result<(Review, UndecidedUnions<'e>, ServerWords)> {
        let kinds = &self.offline.assembly;
        let catalog = &kinds.catalog;
        let old = old.map(|old| kinds.completed_document(old)).transpose()?;
        let new = kinds.completed_document(document)?;
        let manifest = self.arguments.applied.map(|way| AppliedManifest::Given(&document.text, way.into()));
        let object = ReviewedObject { kind: entry.gvk(), new: &new, old: old.as_ref(), subresource: None, manifest };
        let ratcheting = self.offline.ratcheting(entry.gvk(), self.arguments.ratcheting.into());
        let mut review = object.review(catalog, Phase::Both, ratcheting)?;
        let undecided = UndecidedUnions::of(entry, &new.text, violations(&review));
        if review.outcome() == ReviewOutcome::Denied && !is_denied(&review, &undecided) {
            // A denial has no changes.
            review = object.review(catalog, Phase::Mutate, ratcheting)?;
        }
        if self.arguments.applied.is_none() && review.outcome() == ReviewOutcome::Patched {
            let manifest = Some(AppliedManifest::Given(&document.text, ApplyMethod::ClientSide));
            let applied = ReviewedObject { manifest, ..object }.review(catalog, Phase::Both, Ratcheting::Enabled)?;
            print_contradictions(document, &applied, &undecided);
        }
        let (review, words) = self.offline.with_refusals(review, old.as_ref(), &new, Some(&undecided));
        Ok((review, undecided, words))
    }

    /// Prints an object. With `-o json`, a file is printed as a whole or not at all.
    fn print(&mut self, document: &Document, edits: &[Edit]) -> anyhow::Result<()> {
        if self.format == Some(Format::Json) && self.unread_files.contains(&document.file) {
            return Ok(());
        }
        let (text, format) = normalized(document, edits, self.format)?;
        self.stream.push(&text, format);
        Ok(())
    }
}

/// Returns true if an answer denies the object for something that it decides.
fn is_denied(review: &Review, undecided: &UndecidedUnions<'_>) -> bool {
    let denying = review.violations().kept();
    // Other causes count violations that are not listed, or are about fields that the API server refuses.
    let has_others = review.causes().count() > denying.len();
    let is_undecided = !has_others && denying.iter().all(|violation| undecided.has(violation));
    review.outcome() == ReviewOutcome::Denied && !is_undecided
}

/// Returns the violations of an answer, whatever it does about them.
fn violations(review: &Review) -> impl Iterator<Item = &Violation> {
    let let_through = review.let_through().kept().iter().map(|(violation, _)| violation);
    review.violations().kept().iter().chain(let_through).chain(review.observed().kept())
}

impl NormalizeCounts {
    /// Returns the summary, for example `2 objects: 1 changed, 0 rejected; 3 of kinds without unions`.
    fn summary(&self) -> String {
        let Self { judged, changed, rejected, others } = *self;
        let others = match others {
            0 => String::new(),
            some => format!("; {} of kinds without unions", grouped(some)),
        };
        let (judged, changed, rejected) = (count(judged, "object"), grouped(changed), grouped(rejected));
        format!("{judged}: {changed} changed, {rejected} rejected{others}")
    }
}

/// Returns the text of the normalised object, and its format.
fn normalized(document: &Document, edits: &[Edit], wanted: Option<Format>) -> anyhow::Result<(String, Format)> {
    let format = wanted.unwrap_or(document.section.format);
    let alone = document.pointer.is_empty();
    if alone && format == document.section.format {
        let text = if edits.is_empty() {
            document.section.text.clone()
        } else {
            let edited = manifest::edit(&document.section, edits)?;
            if edited.rewritten {
                output::note(format_args!(
                    "{}: comments are lost: anchors reach the changed fields",
                    document.file.display()
                ));
            }
            edited.text
        };
        return Ok((text, format));
    }
    let json = if edits.is_empty() {
        document.text.clone()
    } else {
        let list = manifest::edited_value(&document.section, edits)?;
        list.pointer(&document.pointer).unwrap_or(&Value::Null).to_string()
    };
    Ok(match format {
        Format::Json => (manifest::pretty(&json) + "\n", format),
        Format::Yaml => (manifest::to_yaml(&json)?, format),
    })
}
