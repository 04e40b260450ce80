//! `preview`: predicts which unions an apply of a new rendering leaves invalid, without a cluster.
//!
//! [`renderings`] pairs the objects, by [`hooks`] those that a client always creates, and [`report`] prints. In between, [`prediction`] makes the apply: [`apply_way`] has what the
//! client does, [`kind_rules`] what the API server does to the kind and the unions that are invalid afterwards, [`server_words`] what it says about them,
//! and [`immutable`] and [`transitions`] the changes that it refuses.
//! [`remedies`] makes the apply again, each time with one change.

mod apply_way;
mod declared_kinds;
mod duplicates;
mod hooks;
mod immutable;
mod kind_rules;
mod left_behind;
mod nulls;
mod prediction;
mod remedies;
mod rendered_object;
mod renderings;
mod report;
mod server_words;
mod transitions;
mod trial;

pub(super) use self::apply_way::ApplyWay;
pub(super) use self::kind_rules::{ApiServerAnswer, Kinds, ObjectKinds, PreviewedKind};
use self::nulls::OLD_EMPTY;
use self::prediction::PredictedFault;
use self::renderings::Renderings;
use self::trial::{ObjectRenderings, PreviewTrial};
use crate::input::kinds::entry_of;
use crate::input::manifest::{self, Document, Problem, line_about};
use crate::input::require::RequireArg;
use crate::input::values::FindingsFormat;
use crate::report::conclusion::{Conclusion, kept_from};
use crate::report::{Verdict, output};
use anyhow::{Context, bail};
use clap::Args;
use kube_unions_core::admission::Review;
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::declaration::LAST_APPLIED;
use kube_unions_core::field_path::FieldPath;
use kube_unions_manifests::counts::count;
use kube_unions_manifests::misspelt::is_meant_for_kinds;
use kube_unions_offline::LeftOver;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use strategic_merge_patch::MixedItem;

/// Arguments of `preview`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each finding is `file:line:column: object: path: severity: message`. Below it are the reason, and what helps. Everything that is said \
to help was tried.

Built-in kinds are known, with the unions of the presets. Custom resources take their CRD, by --from or in a rendering. An object \
is predicted from the old rendering and the API server's defaults, or read with --live. One that only the new rendering has is created.

Only unions are predicted, and the nulls of server-side applies: an apply may still fail for another reason, for example another immutable field.

Exit codes:
  0  every union is valid after the apply
  1  the apply is refused, or stores an invalid union; with --require also: there is nothing to judge
  2  wrong usage, or input that cannot be read; the rest was judged

Examples:
  helm template app ./chart --version 1.0 > old.yaml
  helm template app ./chart --version 2.0 > new.yaml
  kube-unions preview --old old.yaml --new new.yaml --as helm

  # A first install
  kube-unions preview --new new.yaml --as helm

  # Custom resources, by server-side apply to the object that a cluster has
  kubectl get widget demo -o yaml --show-managed-fields > live.yaml
  kube-unions preview --old old/ --new new/ --from crds/ \\
    --live live.yaml -o sarif > preview.sarif")]
pub(crate) struct PreviewArgs {
    /// The rendering that was applied last: files and folders, `-` is standard input. Without it, the apply creates every object
    #[arg(long, num_args = 1.., value_name = "PATH")]
    old: Vec<PathBuf>,
    /// The rendering that will be applied
    #[arg(long, required = true, num_args = 1.., value_name = "PATH")]
    new: Vec<PathBuf>,
    /// The way to apply it
    #[arg(long = "as", value_enum, default_value_t, value_name = "WAY")]
    way: ApplyWay,
    /// The namespace of objects without one [default: an object is the one of its name in the other rendering, if there is one]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Objects as a cluster has them [default: the old rendering with the defaults of the API server]
    #[arg(long, num_args = 1.., value_name = "PATH")]
    live: Vec<PathBuf>,
    /// The field manager of a server-side apply [default: that of the client, for ssa the one of `--live` whose fields are most like the old rendering]
    #[arg(long, requires = "live", value_name = "NAME")]
    field_manager: Option<String>,
    /// Files and folders with CRDs and `UnionDeclarations`
    #[arg(long, num_args = 1.., value_name = "PATH")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    require: RequireArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: FindingsFormat,
}

pub(super) fn run(arguments: &PreviewArgs) -> anyhow::Result<Verdict> {
    let read = [&arguments.from, &arguments.new, &arguments.old, &arguments.live];
    let read = read.map(|paths| manifest::rendering(paths));
    let problems = read.iter().flat_map(|it| it.problems.iter().chain(it.unread()));
    let mut problems: Vec<String> = problems.map(ToString::to_string).collect();
    let files = read.iter().flat_map(|it| &it.files);
    let duplicates: Vec<String> = files.flat_map(|it| &it.duplicates).map(ToString::to_string).collect();
    let [_, _, old, _] = &read;
    let is_old_read = old.problems.is_empty() && old.unread().next().is_none();
    let [from, new, old, live] = read.each_ref().map(manifest::Rendered::documents);
    let objects = ObjectKinds::of([&new, &old, &live].into_iter().flatten());
    let of_new = new.iter().map(|document| document.group_version_kind().group_kind()).collect();
    let kinds = Kinds::read_for(describing([&from, &new, &old]), arguments.way, &objects, &of_new)?;
    problems.extend(kinds.assembly.problems.iter().map(ToString::to_string));
    problems.extend(nothing_described(&arguments.from, &from, problems.is_empty()));
    let faults = kinds.assembly.catalog.errors();
    if faults > 0 {
        let them = if faults == 1 { "it" } else { "them" };
        problems.push(format!("{} in declarations of unions: `kube-unions lint` names {them}", count(faults, "fault")));
    }
    if new.is_empty() && problems.is_empty() {
        bail!("{}", manifest::empty(&arguments.new));
    }
    let Renderings { pairs, mut counts, problems: unfit, mut warnings, .. } =
        Renderings::pair(&kinds, arguments.way, [&old, &new, &live], arguments.namespace.as_deref());
    problems.extend(unfit);
    if old.is_empty() && is_old_read && !arguments.old.is_empty() {
        warnings.push(format!("{}: every object is created", manifest::empty(&arguments.old)));
    }
    if live.is_empty() && problems.is_empty() && !arguments.live.is_empty() {
        warnings.push(format!("{}: predicted from the old rendering", manifest::empty(&arguments.live)));
    }
    let mut predicted: Vec<PredictedFault<'_>> = Vec::new();
    let (mut without_managers, mut without_last_applied) = (0, 0);
    for (entry, documents) in pairs {
        let manager = arguments.field_manager.as_deref();
        let trial = kinds.kind(entry).and_then(|kind| PreviewTrial::new(kind, arguments.way, manager, documents));
        warnings.extend(kinds.assembly.misspelt_fields(documents.new));
        match trial.and_then(|trial| Ok((trial.predict()?, trial.left_over()?, trial))) {
            Ok((unions, left_over, trial)) => {
                without_managers += usize::from(trial.lacks_managers());
                without_last_applied += usize::from(trial.lacks_last_applied());
                counts.left_over += left_over.len();
                problems.extend(left_over.iter().map(|(document, it)| undecided(document, it)));
                let message = |field: &FieldPath| format!("{field} becomes null; {OLD_EMPTY}");
                warnings.extend(trial.nulled().iter().map(|field| line_about(documents.new, &message(field))));
                let mixed = |item: &MixedItem| mixed_item(arguments.way, documents.new, item);
                warnings.extend(trial.mixed_items().iter().map(mixed));
                predicted.extend(unions);
            }
            Err(error) => {
                problems.push(line_about(documents.new, &format!("cannot be predicted: {error:#}")));
                *counts.judged(&documents) -= 1;
            }
        }
    }
    if without_managers > 0 {
        let objects = count(without_managers, "live object");
        warnings.push(format!(
            "{objects} without field managers, so that everything stays: read with `--show-managed-fields`"
        ));
    }
    if without_last_applied > 0 {
        let objects = count(without_last_applied, "live object");
        warnings.push(format!("{objects} without the annotation `{LAST_APPLIED}`: `kubectl apply` removes nothing"));
    }
    for union in &predicted {
        *match union.enforcement {
            ApiServerAnswer::Refused => &mut counts.refused,
            ApiServerAnswer::RefusedNull => &mut counts.refused_nulls,
            ApiServerAnswer::RefusedObject => &mut counts.refused_objects,
            ApiServerAnswer::Immutable => &mut counts.refused_changes,
            ApiServerAnswer::Stored => &mut counts.stored,
            ApiServerAnswer::Unknown(_) => &mut counts.undecided,
        } += 1;
    }
    let is_nothing = counts.compared + counts.only_in_new + counts.hooks == 0 && problems.is_empty();
    let none =
        || format!("nothing to preview: no object of a kind with unions in the new rendering{}", counts.not_judged());
    let failure = kept_from(problems.len(), "judged");
    let conclusion =
        Conclusion::new(arguments.require, is_nothing.then(none), !predicted.is_empty(), counts.sentence());
    let conclusion = conclusion.beside(problems, failure);
    report::print(arguments.way, &predicted, arguments.output, &counts, &conclusion)?;
    kinds.hints.iter().for_each(output::hint);
    duplicates.iter().chain(&warnings).for_each(output::warn);
    conclusion.problems.iter().for_each(output::error);
    conclusion.end()
}

/// Predicts server-side applies by a field manager. `from`, `old`, `new` and `live` are documents as the command reads them.
///
/// Returns for each name the object that the API server stores without kube-unions, and the answer of kube-unions.
///
/// # Errors
/// Documents that cannot be read. An apply that cannot be predicted, or that the API server refuses for a null, is an error of its own.
pub fn predicted_applies(
    from: &str,
    [old, new, live]: [&str; 3],
    manager: &str,
) -> anyhow::Result<BTreeMap<String, anyhow::Result<(Value, Review)>>> {
    let parse = |text: &str| manifest::parse(Path::new("documents"), text.as_bytes().to_vec());
    let (old, new, live) = (parse(old)?, parse(new)?, parse(live)?);
    let objects = ObjectKinds::of([&new, &old, &live].into_iter().flatten());
    let kinds = Kinds::read(parse(from)?, ApplyWay::Ssa, &objects)?;
    let predicted = |(entry, documents): (&CatalogEntry, ObjectRenderings<'_>)| {
        let trial = PreviewTrial::new(kinds.kind(entry)?, ApplyWay::Ssa, Some(manager), documents);
        trial.and_then(|trial| trial.written_with_kube_unions())
    };
    let pairs = Renderings::pair(&kinds, ApplyWay::Ssa, [&old, &new, &live], None).pairs.into_iter();
    Ok(pairs.map(|pair| (pair.1.new.name.clone().unwrap_or_default(), predicted(pair))).collect())
}

/// Returns an object of a built-in kind with the defaults that a preview expects of the API server.
///
/// # Errors
/// The text is no object.
pub fn with_built_in_defaults(object: &str) -> anyhow::Result<Value> {
    let mut documents = manifest::parse(Path::new("object"), object.as_bytes().to_vec())?;
    let kinds = Kinds::read(Vec::new(), ApplyWay::Replace, &ObjectKinds::of(&documents))?;
    let document = documents.pop().context("no object")?;
    let entry = entry_of(&kinds.assembly.catalog, &document).context("no built-in kind with unions")?;
    let kind = kinds.kind(entry)?;
    kind.completed(kind.read(&document)?)
}

/// Returns the line about a union that cannot be judged.
pub(super) fn undecided(document: &Document, left_over: &LeftOver<'_>) -> String {
    let LeftOver { path, advice, .. } = left_over;
    let message = format!("{}: {path}: undecided: {advice}", document.title());
    Problem::of_document(document, &path.to_pointer(), message).to_string()
}

/// Returns the warning of an item that a client-side apply does not store as it is written.
fn mixed_item(way: ApplyWay, document: &Document, item: &MixedItem) -> String {
    let (place, name) =
        (manifest::place(document, &item.path.to_pointer()), document.name.as_deref().unwrap_or_default());
    let (path, key, way) = (&item.path, &item.key, way.words());
    let effect = if item.is_deleted {
        format!("{way} deletes the items with this `{key}`, because the new rendering drops one of them")
    } else {
        format!("{way} does not store all items with this `{key}` as they are written")
    };
    format!(
        "{place} {name}: {path}: {effect}: the API server merges the list by `{key}` alone; server-side apply does not mix them up"
    )
}

/// Returns the problem of the files of `--from`, if there are any and nothing in them is about kinds. `is_read` tells whether all of them could be
/// read.
pub(super) fn nothing_described(paths: &[PathBuf], from: &[Document], is_read: bool) -> Option<String> {
    let is_missing = is_read && !paths.is_empty() && !from.iter().any(is_meant_for_kinds);
    let why = || match from {
        [] => manifest::empty(paths),
        _ => format!("no CustomResourceDefinition in {}, and no UnionDeclaration", manifest::list(paths)),
    };
    is_missing.then(why)
}

/// Returns the documents that describe kinds. The first of several with one name counts.
pub(super) fn describing(all: [&[Document]; 3]) -> Vec<Document> {
    let mut names = BTreeSet::new();
    let [from, renderings @ ..] = all;
    let mut found: Vec<Document> = from.iter().filter(|it| is_meant_for_kinds(it)).cloned().collect();
    names.extend(found.iter().map(|document| (document.kind.clone(), document.name.clone())));
    for document in renderings.into_iter().flatten().filter(|it| it.is_definition() || it.is_declaration()) {
        if names.insert((document.kind.clone(), document.name.clone())) {
            found.push(document.clone());
        }
    }
    found
}
