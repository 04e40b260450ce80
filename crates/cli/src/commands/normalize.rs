//! `normalize`: prints objects as the webhook normalises them.
//!
//! The webhook's code answers an admission review for each object. The changes of the answer are made in the text of the object:
//! it keeps its comments and the order of its fields, and an object that needs no change is printed byte for byte. [`review`] answers an
//! admission review as it is.

pub(super) mod review;

use self::review::ReviewPhase;
use crate::input::builtin::{PresetsArg, SourceFiles, UnknownUnions};
use crate::input::kinds::{SourceArgs, entry_of};
use crate::input::manifest::{self, Document, Edit, Format, Stream};
use crate::input::require::RequireArg;
use crate::input::values::RatchetingArg;
use crate::report::Verdict;
use crate::report::conclusion::Conclusion;
use crate::report::output::{self, Paint};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use kube_unions_core::admission::{ApplyMethod, Phase, Ratcheting, Review, ReviewOutcome};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::field_path::AboutField;
use kube_unions_core::near::nearest;
use kube_unions_core::union::{Violation, ViolationKind};
use kube_unions_manifests::counts::{count, grouped};
use kube_unions_manifests::misspelt::KnownKinds;
use kube_unions_manifests::request::{AppliedManifest, ReviewedObject, own_edits};
use kube_unions_manifests::{IdentityField, Problem};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Warnings, violations, and the unions whose declaration turns normalisation off go to standard error.

Objects are judged with the defaults of the API server, which are not printed. Built-in kinds are known, with the unions of the \
presets, unless --from describes them. The API server itself refuses what violates a preset, so this command does.

With -o review, -f is an AdmissionReview in JSON or YAML, which has the objects and the operation. Prints the answer of the webhook.

Exit codes:
  0  every object is allowed
  1  an object is denied, or with --require: no object is of a kind with unions
  2  wrong usage, or input that cannot be read or answered

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
    let old = match &arguments.old {
        Some(path) => objects(std::slice::from_ref(path))?,
        None => Vec::new(),
    };
    let new = match objects(&arguments.filename) {
        Ok(new) => new,
        // A fault of the sources comes first.
        Err(error) => return Err(sources.assemble(*presets, &BTreeSet::new()).err().unwrap_or(error)),
    };
    let kinds = sources.assemble(*presets, &new.iter().map(Document::group_version_kind).collect())?;
    print_exceptions(&kinds.catalog, &new);
    // Objects whose kind is almost one that the files describe.
    let mut known = KnownKinds::new(kinds.kinds());
    new.iter().filter_map(|object| known.warning(object)).for_each(output::warn);
    // The first of several old objects with one identity counts.
    let old: BTreeMap<Identity<'_>, &Document> = old.iter().rev().map(|old| (old.identity(), old)).collect();
    print_unused(&old, &new, &arguments.filename);
    let (mut stream, mut counts, mut unknown) =
        (Stream::default(), NormalizeCounts::default(), UnknownUnions::new(&kinds));
    for document in &new {
        let old = old.get(&document.identity()).copied();
        let answered = || -> anyhow::Result<Review> {
            let old = old.map(|old| kinds.completed_document(old)).transpose()?;
            let (kind, new) = (document.group_version_kind(), kinds.completed_document(document)?);
            let manifest = arguments.applied.map(|way| AppliedManifest::Given(&document.text, way.into()));
            let object = ReviewedObject { kind: &kind, new: &new, old: old.as_ref(), subresource: None, manifest };
            let review = object.review(&kinds.catalog, Phase::Both, arguments.ratcheting.into())?;
            if arguments.applied.is_none() && review.outcome() == ReviewOutcome::Patched {
                let manifest = Some(AppliedManifest::Given(&document.text, ApplyMethod::ClientSide));
                let applied = ReviewedObject { manifest, ..object };
                print_contradictions(document, &applied.review(&kinds.catalog, Phase::Both, Ratcheting::Enabled)?);
            }
            Ok(review)
        };
        let review = answered().with_context(|| format!("{}: {}", document.file.display(), document.title()))?;
        print_answer(document, &review);
        if entry_of(&kinds.catalog, document).is_some() {
            counts.judged += 1;
        } else {
            counts.others += 1;
            unknown.add(document);
        }
        if review.outcome() == ReviewOutcome::Denied {
            counts.rejected += 1;
            continue;
        }
        let edits = own_edits(document, &review);
        counts.changed += usize::from(!edits.is_empty());
        let (text, format) = normalized(document, &edits, format)?;
        stream.push(&text, format);
    }
    stream.end_line();
    output::print(stream.into_text())?;
    unknown.print();
    let others = || format!("nothing to normalise: {} of kinds without unions", count(counts.others, "object"));
    let nothing = (counts.judged == 0 && counts.rejected == 0).then(others);
    Conclusion::new(arguments.require, nothing, counts.rejected > 0, counts.summary()).end()
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

/// Notes that a manifest which is normalised contradicts itself, so that an apply of it is refused or changes nothing.
fn print_contradictions(document: &Document, applied: &Review) {
    let let_through = applied.let_through().kept().iter().map(|(violation, _)| violation);
    let contradictions = applied.violations().kept().iter().chain(let_through);
    for violation in contradictions.filter(|violation| violation.kind.is_about_manifest()) {
        let place = manifest::place(document, &violation.path.to_pointer());
        output::hint(format_args!("{place} an apply of this file is judged otherwise (--applied): {violation}"));
    }
}

/// Reads files of objects.
fn objects(paths: &[PathBuf]) -> anyhow::Result<Vec<Document>> {
    let documents = manifest::read(paths)?;
    if documents.is_empty() {
        bail!("{}", manifest::empty(paths));
    }
    match documents.iter().find_map(Problem::of_untyped) {
        Some(problem) => Err(problem.into()),
        None => Ok(documents),
    }
}

type Identity<'d> = [IdentityField<'d>; 4];

/// Warns of an old object that none of the new ones replaces, and counts the others.
fn print_unused(old: &BTreeMap<Identity<'_>, &Document>, new: &[Document], new_paths: &[PathBuf]) {
    let written: BTreeSet<Identity<'_>> = new.iter().map(Document::identity).collect();
    let mut unused = old.iter().filter(|(identity, _)| !written.contains(*identity)).map(|(_, old)| old);
    let Some(old) = unused.next() else { return };
    let others = match unused.count() {
        0 => String::new(),
        some => format!("; {} more like it", grouped(some)),
    };
    output::warn(format_args!(
        "{} not used: no object in {} has this apiVersion, kind, namespace and name{others}",
        manifest::place(old, ""),
        manifest::list(new_paths),
    ));
}

/// Names the unions of these objects that are never normalised, once for each kind and declaration.
fn print_exceptions(catalog: &Catalog, objects: &[Document]) {
    let mut entries = BTreeMap::new();
    for object in objects {
        entries.extend(entry_of(catalog, object).map(|entry| (entry.gvk(), entry)));
    }
    for (kind, entry) in entries {
        let mut places: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
        for union in entry.plan().unions().iter().filter(|union| !union.is_normalized()) {
            places.entry(union.declaration().unwrap_or_default()).or_default().insert(union.path());
        }
        for (declaration, paths) in places {
            let paths: Vec<_> = paths.into_iter().map(|path| if path.is_empty() { "the root" } else { path }).collect();
            output::hint(format_args!(
                "{}: nothing is changed at {}: `{declaration}` has `normalization: Disabled`",
                kind.group_kind(),
                paths.join(", "),
            ));
        }
    }
}

/// Returns the question for a value that is almost a declared one, else nothing.
fn guess(violation: &Violation) -> Option<String> {
    let ViolationKind::UnknownValue { value, supported } = &violation.kind else { return None };
    let near = nearest(value, supported.iter().map(AsRef::as_ref))?;
    Some(format!("; did you mean `{near}`?"))
}

pub(super) fn print_warnings(review: &Review) {
    for warning in review.warnings() {
        let mut tolerated = review.let_through().kept().iter().map(|(violation, _)| violation);
        let about = tolerated.find(|violation| warning.starts_with(&violation.to_string()));
        let guess = about.and_then(guess).unwrap_or_default();
        output::warn(format_args!("{warning}{guess}"));
    }
}

/// Prints warnings, violations that the audit log would have, and the denial in kubectl's words.
pub(super) fn print_answer(document: &Document, review: &Review) {
    print_warnings(review);
    let paint = Paint::of(&std::io::stderr());
    for violation in review.observed().kept() {
        let guess = guess(violation).unwrap_or_default();
        output::note(format_args!("{} {violation}{guess}", paint.faint("Audit:")));
    }
    if review.observed().left_out() > 0 {
        output::note(format_args!("{} and {} more violations", paint.faint("Audit:"), review.observed().left_out()));
    }
    let (kind, name) = (document.kind.as_deref().unwrap_or_default(), document.name.as_deref().unwrap_or_default());
    let guesses: BTreeMap<String, String> =
        review.violations().kept().iter().filter_map(|it| Some((it.path.to_string(), guess(it)?))).collect();
    let cause = |(path, text): (&str, &str)| {
        let guess = guesses.get(path).map(String::as_str).unwrap_or_default();
        format!("{}{guess}", AboutField { path, text: &text })
    };
    let causes: Vec<String> = review.causes().map(cause).collect();
    match causes.as_slice() {
        [] => {}
        [cause] => output::note(format_args!("The {kind} \"{name}\" is invalid: {cause}")),
        several => {
            output::note(format_args!("The {kind} \"{name}\" is invalid: "));
            for cause in several {
                output::note(format_args!("* {cause}"));
            }
        }
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
