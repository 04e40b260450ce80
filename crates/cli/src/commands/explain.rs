//! `explain`: shows the unions of a kind as a tree, from files or as the webhook would know them on a cluster.

use crate::input::builtin::{PresetsArg, SourceFiles};
use crate::input::connection::ClusterArgs;
use crate::input::kinds::{self, BuiltinUnionsArg, SourceArgs, or_cluster};
use crate::input::learn::learn;
use crate::input::manifest;
use crate::input::more_paths::take_more_paths;
use crate::input::values::{ReportFormat, only};
use crate::report::Verdict;
use crate::report::conclusion::kept_from;
use crate::report::json_list;
use crate::report::output::{self, Paint};
use crate::report::tree::{self, ChoiceItem};
use anyhow::bail;
use clap::Args;
use kube_unions_core::catalog::{Catalog, CatalogEntry, KindNames};
use kube_unions_core::declaration::{FaultOfVersions, Severity, Source};
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::near::nearest;
use kube_unions_core::union::{SelectedMember, Union};
use kube_unions_manifests::counts::{count, grouped};
use kube_unions_manifests::union_details;
use kube_unions_offline::{AddedUnions, BuiltInKinds};
use kube_unions_policies::{EveryWrite, TouchCondition};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use termtree::Tree;

#[derive(Debug, Args)]
// One value for each flag: the kind may follow. More paths are told by their looks.
#[command(mut_args(only("from", |from| or_cluster(from).num_args(1))), after_help = "\
A path after the kind selects the unions at and below it, or the union of a
member. Without --from the unions are those that the webhook would enforce on
the cluster. This takes the right to list CRDs and UnionDeclarations. Built-in
kinds are known without a cluster, with the unions of the presets.

Examples:
  kube-unions explain
  kube-unions explain rollout.spec.strategy
  kube-unions explain deploy.spec.strategy
  kube-unions explain --from crds/ rollout
  kubectl get crd -o yaml | kube-unions explain --from - -o json")]
pub(crate) struct ExplainArgs {
    /// The kind as in kubectl: plural, singular, short name or kind, alone or with .GROUP or .VERSION.GROUP, and a path of
    /// fields [default: all]
    #[arg(value_name = "KIND[.PATH]")]
    kinds: Vec<String>,
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    presets: PresetsArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: ReportFormat,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// The message for a catalog without unions.
pub(super) const NO_UNIONS: &str = "no kind has unions; `kube-unions lint` reports faults in declarations";

pub(super) fn run(mut arguments: ExplainArgs) -> anyhow::Result<Verdict> {
    let more = take_more_paths(&mut arguments.kinds, !arguments.sources.from.is_empty(), "--from")?;
    arguments.sources.from.extend(more);
    if let [one, another, ..] = &*arguments.kinds {
        bail!("`{one}` and `{another}`: explain shows one kind at a time, or all");
    }
    let arguments = &arguments;
    let mut unread = 0;
    let read = if arguments.sources.from.is_empty() {
        on_cluster(arguments).map(|catalog| (catalog, "with unions on the cluster".to_owned()))
    } else {
        arguments.cluster.refuse_beside_files()?;
        let sources = SourceFiles::read(&arguments.sources)?;
        let problems = sources.unread.clone();
        let catalog = sources.assemble(arguments.presets, &BTreeSet::new())?.assembly.catalog;
        problems.iter().for_each(output::error);
        unread = problems.len();
        Ok((catalog, format!("with unions in {}", manifest::list(&arguments.sources.from))))
    };
    let shown = read.and_then(|(catalog, place)| match catalog.entries() {
        [] => Ok(None),
        entries => {
            if arguments.kinds.is_empty() {
                output::summary(summary(&catalog));
            }
            arguments.shown(entries, &place).map(Some)
        }
    });
    let text = match shown {
        Ok(Some(text)) => text,
        unknown => match (built_in(arguments)?, unknown) {
            (Some(text), _) => text,
            (None, Err(error)) => return Err(error),
            (None, Ok(_)) => {
                output::note(NO_UNIONS);
                return kept_from(unread, "explained").map_or(Ok(Verdict::Rejected), Err);
            }
        },
    };
    output::print_text(text)?;
    kept_from(unread, "explained").map_or(Ok(Verdict::Accepted), Err)
}

impl ExplainArgs {
    /// Returns the unions that the user asks for.
    fn shown(&self, entries: &[CatalogEntry], place: &str) -> anyhow::Result<String> {
        let selected = select(entries, self.kinds.first().map(String::as_str), place)?;
        Ok(match self.output {
            ReportFormat::Text => {
                let paint = Paint::of(&std::io::stdout());
                let trees: Vec<String> = selected.iter().map(|kind| tree(kind, entries, paint)).collect();
                trees.join("\n")
            }
            ReportFormat::Json => {
                json_list::pretty(&selected.iter().map(|kind| json_of(kind, entries)).collect::<Vec<_>>())?
            }
        })
    }
}

/// Returns the unions of a built-in kind that neither files nor a cluster tell. A cluster that the user names tells all.
fn built_in(arguments: &ExplainArgs) -> anyhow::Result<Option<String>> {
    let Some(asked) = arguments.kinds.first().filter(|_| arguments.cluster.refuse_beside_files().is_ok()) else {
        return Ok(None);
    };
    let (built_in, published) = (BuiltInKinds::read()?, BuiltinUnionsArg::Ignored);
    let added = AddedUnions { published: published.into(), presets: arguments.presets.are_used() };
    let catalog = kinds::assemble(built_in.enforced(Vec::new(), None, added), published).catalog;
    let shown = match arguments.shown(catalog.entries(), "with unions among the built-in kinds") {
        Ok(shown) => Some(shown),
        Err(error) if error.is::<kinds::asked::UnknownKind>() => None,
        // The kind is known, and has no union at the path.
        Err(error) => return Err(error),
    };
    if shown.is_some() {
        let version = built_in.version();
        output::hint(format_args!("`{asked}` as Kubernetes {version} has it, with the unions of the presets"));
    }
    Ok(shown)
}

/// Returns the summary, for example `2 kinds, 5 unions: 3 from schema, 2 from annotation`, and the number of faults.
fn summary(catalog: &Catalog) -> String {
    let mut sources: BTreeMap<Source, usize> = BTreeMap::new();
    for union in catalog.entries().iter().flat_map(|entry| entry.plan().unions()) {
        *sources.entry(union.source()).or_default() += 1;
    }
    let sources: Vec<String> =
        sources.into_iter().map(|(source, number)| format!("{} from {source}", grouped(number))).collect();
    let faults =
        FaultOfVersions::group(catalog.faults()).iter().filter(|it| it.fault.severity() == Severity::Error).count();
    let faults = match faults {
        0 => String::new(),
        some => format!("; {}: `kube-unions lint` names each", count(some, "fault")),
    };
    let (kinds, unions) = (count(catalog.entries().len(), "kind"), count(catalog.union_count(), "union"));
    format!("{kinds}, {unions}: {}{faults}", sources.join(", "))
}

/// Learns the unions of a cluster, and warns of those that cannot be learnt.
fn on_cluster(arguments: &ExplainArgs) -> anyhow::Result<Catalog> {
    let learnt = arguments.cluster.run(async |client| learn(&client, arguments.sources.builtin_unions).await)?;
    for (subject, reason) in &learnt.lacking {
        output::warn(format_args!("{subject}: {reason}"));
    }
    Ok(learnt.catalog)
}

fn tree(SelectedKind { entry, unions, is_whole }: &SelectedKind<'_>, entries: &[CatalogEntry], paint: Paint) -> String {
    let gvk = entry.gvk();
    let branch = |union: &&Union| Tree::new(headline(union, paint)).with_leaves(leaves(union));
    let branches = unions.iter().map(branch);
    let root = output::line(&format!("{} {}", paint.strong(&gvk.kind), paint.faint(&gvk.api_version()))).into_owned();
    // It is about the kind, and not about one of its unions.
    let sent = is_whole.then(|| format!("needs a review: {}", sent(&condition(entry, entries))));
    let sent = sent.map(|text| Tree::new(output::line(&paint.faint(&text)).into_owned()));
    Tree::new(root).with_leaves(branches.chain(sent)).to_string()
}

/// Returns the condition of the writes of a kind that need a review. It is that of all versions. An API server may send more: the entry of a
/// kind can be one that others share.
fn condition(entry: &CatalogEntry, entries: &[CatalogEntry]) -> Result<TouchCondition, EveryWrite> {
    let versions = entries.iter().filter(|other| other.gvk().group_kind() == entry.gvk().group_kind());
    TouchCondition::of(versions.map(|version| &**version.plan()))
}

/// Returns the writes that need a review, in words.
fn sent(condition: &Result<TouchCondition, EveryWrite>) -> String {
    match condition {
        Err(why) => format!("every write, because {why}"),
        Ok(condition) => match condition.fields().filter(|_| !condition.looks_into_fields()) {
            None => "creates, and updates that touch a union".to_owned(),
            Some(fields) => {
                let fields: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
                format!("creates, and updates that change {}", fields.join(" or "))
            }
        },
    }
}

fn headline(union: &Union, paint: Paint) -> String {
    let details = union_details::details(union);
    let details: Vec<&str> = details.iter().map(String::as_str).collect();
    tree::headline(union.path(), &details, paint)
}

/// Returns the lines below a union: its choices, or its members if it has no discriminator.
fn leaves(union: &Union) -> Vec<String> {
    if union.discriminator().is_none() {
        let groups = union.groups().map(|group| group.collect::<Vec<_>>().join(", "));
        return groups.map(|group| output::line(&group).into_owned()).collect();
    }
    let is_optional = |member: &SelectedMember| union_details::is_shown_optional(union, member);
    tree::choices(union.choices().iter().map(|choice| ChoiceItem::of(choice, is_optional)))
}

fn json_of(SelectedKind { entry, unions, .. }: &SelectedKind<'_>, entries: &[CatalogEntry]) -> Value {
    let GroupVersionKind { group, version, kind } = entry.gvk();
    let condition = condition(entry, entries);
    let union = |union: &&Union| {
        let choices = union.choices().iter().map(|choice| ChoiceItem::of(choice, SelectedMember::is_optional));
        json!({
            "path": union.path(),
            "form": union_details::form(union.form()),
            "discriminator": union.discriminator(),
            "source": union.source().to_string(),
            // The name of the UnionDeclaration, if one is the source.
            "declaration": union.declaration(),
            "validationActions": union.actions().names(),
            "normalization": union.normalization().name(),
            // True if an object must have a choice.
            "required": union.is_required(),
            // The members whose empty values count as not set.
            "emptyIsUnset": union.empty_is_unset().collect::<Vec<_>>(),
            "members": union.members().collect::<Vec<_>>(),
            "choices": choices.collect::<Vec<_>>(),
        })
    };
    let unions = unions.iter().map(union).collect::<Vec<_>>();
    // The condition of a write that needs a review, in CEL; null if every write does.
    let expression = condition.as_ref().ok().map(TouchCondition::expression);
    let sent = sent(&condition);
    json!({"group": group, "version": version, "kind": kind, "condition": expression, "sent": sent, "unions": unions})
}

/// A kind and its unions that the user asks for, at least one.
struct SelectedKind<'c> {
    entry: &'c CatalogEntry,
    unions: Vec<&'c Union>,
    /// False if the user asks for some of the unions.
    is_whole: bool,
}

/// Returns the kinds and unions that a user asks for; all for no argument.
///
/// The longest part of the argument that names a kind is the kind, so that `deployments.apps` has no path. A path selects the
/// unions at it and below it. A path into a union, for example to one of its members, selects this union.
fn select<'c>(entries: &'c [CatalogEntry], asked: Option<&str>, place: &str) -> anyhow::Result<Vec<SelectedKind<'c>>> {
    let find = |kind: &str| kinds::asked::entries(entries, &[kind.to_owned()], place);
    let Some(asked) = asked else { return Ok(entries.iter().map(SelectedKind::whole).collect()) };
    let unknown = match find(asked) {
        Ok(found) => return Ok(found.into_iter().map(SelectedKind::whole).collect()),
        Err(unknown) => unknown,
    };
    let names: Vec<KindNames<'_>> = entries.iter().map(KindNames::of).collect();
    if KindNames::suggest(&names, asked).is_some() {
        return Err(unknown.into());
    }
    for (dot, _) in asked.rmatch_indices('.') {
        let (kind, path) = (asked.get(..dot).unwrap_or_default(), asked.get(dot + 1..).unwrap_or_default());
        if let Ok(found) = find(kind) {
            let selected: Vec<_> = found.iter().filter_map(|entry| SelectedKind::at(entry, path)).collect();
            match selected.is_empty() {
                false => return Ok(selected),
                true if is_path(path, &found) => return no_union(asked, path, &found),
                // It is a version or a group that the kind does not have.
                true => return Err(unknown.into()),
            }
        }
    }
    if let Some((kind, _)) = asked.split_once('.') {
        find(kind)?;
    }
    Err(unknown.into())
}

impl<'c> SelectedKind<'c> {
    fn whole(entry: &'c CatalogEntry) -> Self {
        Self { entry, unions: entry.plan().unions().iter().collect(), is_whole: true }
    }

    fn at(entry: &'c CatalogEntry, path: &str) -> Option<Self> {
        let (asked, all) = (fields(path), entry.plan().unions());
        let mut unions: Vec<_> = all.iter().filter(|union| fields(union.path()).starts_with(&asked)).collect();
        if unions.is_empty() {
            unions = all.iter().filter(|union| is_into(union, &asked)).collect();
        }
        (!unions.is_empty()).then_some(Self { entry, unions, is_whole: false })
    }
}

/// Returns true if the path leads to or through a member, or to the discriminator.
fn is_into(union: &Union, asked: &[&str]) -> bool {
    let next = asked.strip_prefix(&*fields(union.path())).and_then(<[_]>::first);
    next.is_some_and(|next| union.discriminator() == Some(next) || union.members().any(|member| member == *next))
}

/// Returns true if the text begins as the path of a field does.
fn is_path(text: &str, kinds: &[&CatalogEntry]) -> bool {
    let mut unions = kinds.iter().flat_map(|entry| entry.plan().unions());
    fields(text).first().is_some_and(|first| {
        ["metadata", "spec", "status"].contains(first)
            || unions.any(|union| fields(union.path()).first() == Some(first))
    })
}

/// Returns the fields of a path, without the `[*]` of lists and maps.
fn fields(path: &str) -> Vec<&str> {
    path.split(['.', '[', ']']).filter(|field| !matches!(*field, "" | "*")).collect()
}

fn no_union<'c>(asked: &str, path: &str, kinds: &[&'c CatalogEntry]) -> anyhow::Result<Vec<SelectedKind<'c>>> {
    let unions = || kinds.iter().flat_map(|entry| entry.plan().unions()).map(Union::path);
    let mut paths: Vec<&str> = unions().collect();
    paths.sort_unstable();
    paths.dedup();
    let near = nearest(path, paths.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
    let listed: Vec<_> = paths.iter().map(|path| if path.is_empty() { "the root" } else { *path }).collect();
    bail!(
        "no kind `{asked}`, and no union at `{path}` of {}; there are: {}{}",
        kinds::asked::list(kinds.iter().map(|entry| entry.gvk())),
        listed.join(", "),
        near.unwrap_or_default()
    )
}
