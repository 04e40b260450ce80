//! `compile`: turns unions into objects that the API server runs itself, so that no webhook is needed, and into the forms of other
//! tools.
//!
//! [`arguments`] has the table of forms, and that of the flags they take. [`source`] learns the unions, from files or a cluster. The
//! crate `kube-unions-policies` compiles them. This module prints them, or compares them with those of files or of
//! the cluster (`--check`). [`crds`] puts rules into
//! CRDs and writes schemas for editors, and [`kustomize`] writes the document for kustomize.

mod arguments;
mod crds;
mod kustomize;
mod source;

pub(super) use self::arguments::CompileArgs;
pub(super) use self::kustomize::run as print_for_kustomize;

use self::arguments::Writes;
use self::source::CompileSource;
use crate::input::connection::block_on;
use crate::input::manifest::{self, Document};
use crate::input::require::RequireArg;
use crate::input::values::ObjectFormat;
use crate::report::{Verdict, output};
use anyhow::{Context, bail};
use kube::Client;
use kube_unions_api::{DiscoveredResource, Pages};
use kube_unions_manifests::counts::count;
use kube_unions_policies::{CompiledKinds, KubernetesVersion, PolicyObject, PolicyOptions, Refusal};
use kube_unions_webhook::controllers::{MAINTAINED_BY, PolicyResource};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(super) fn run(arguments: &CompileArgs) -> anyhow::Result<Verdict> {
    arguments::check(arguments)?;
    block_on(compile(arguments))
}

async fn compile(arguments: &CompileArgs) -> anyhow::Result<Verdict> {
    let writes = arguments.to.writes();
    if writes == Writes::KustomizeDocument {
        let (from, add_to) = (&arguments.sources.from, arguments.add_to.as_deref());
        return kustomize::run(from, add_to, ObjectFormat::Json, RequireArg::default());
    }
    let source = CompileSource::read(arguments).await?;
    // As `lint` does.
    source.faults.iter().for_each(output::note);
    let options = arguments.options(source.version);
    match writes {
        Writes::Policies { .. } => policies(arguments, &source, &options).await,
        Writes::Crds(_) => crds::run(arguments, &source, &options).await,
        Writes::JsonSchemas | Writes::KustomizeDocument => crds::write_schemas(arguments, &source, &options).await,
    }
}

async fn policies(arguments: &CompileArgs, source: &CompileSource, options: &PolicyOptions) -> anyhow::Result<Verdict> {
    if source.catalog.entries().is_empty() {
        output::note(crds::NO_UNIONS);
        return Ok(Verdict::Rejected);
    }
    if options.static_manifests && options.server < KubernetesVersion::DEFAULT {
        bail!("--static needs Kubernetes 1.36 or newer: {} reads no directory of static manifests", options.server);
    }
    print_beta_note(options);

    let compiled = CompiledKinds::of(&source.catalog, options);
    Refusal::lines(&compiled.refusals).iter().for_each(output::note);
    if (options.mutate && !options.server.has_mutating_policies()) || !options.server.has_validating_policies() {
        let forms = arguments::forms_of(options.server);
        output::hint(format_args!("Kubernetes {} takes these forms: {forms}", options.server));
    }
    if compiled.objects.is_empty() && compiled.refusals.is_empty() {
        output::hint("these unions need no such policy: nothing of them can be cleared or deduced");
    }
    let verdict = match &arguments.check {
        None => {
            output::print(yaml(&compiled))?;
            Verdict::Accepted
        }
        Some(path) => compare(&compiled, options, path.as_deref(), source.client.as_ref()).await?,
    };
    let partial = !compiled.refusals.is_empty() || source.has_errors;
    Ok(Verdict::rejected_if(verdict == Verdict::Rejected || (partial && !arguments.allow_partial)))
}

/// Returns the policies as a stream of YAML documents.
fn yaml(compiled: &CompiledKinds) -> String {
    compiled.objects.iter().map(PolicyObject::to_yaml).collect::<Vec<_>>().join("---\n")
}

/// Says that the policies use an API that clusters do not have unless an administrator enables it.
fn print_beta_note(options: &PolicyOptions) {
    if options.mutate && options.server.mutating_policies_are_beta() {
        output::hint(format_args!(
            "MutatingAdmissionPolicy is beta in Kubernetes {}: enable the feature gate MutatingAdmissionPolicy and the \
             API admissionregistration.k8s.io/v1beta1 in the API server",
            options.server
        ));
    }
}

/// The API group of policies.
const GROUP: &str = "admissionregistration.k8s.io";

/// A policy or binding in a file or in the cluster.
struct PresentPolicy {
    /// The file with line and column, and a colon; empty for the cluster.
    place: String,
    kind: String,
    name: String,
    object: Value,
}

/// Compares policies with those in a file or folder, or with those of the cluster. Prints a line for each difference.
async fn compare(
    compiled: &CompiledKinds,
    options: &PolicyOptions,
    path: Option<&Path>,
    client: Option<&Client>,
) -> anyhow::Result<Verdict> {
    let present = match (path, client) {
        (Some(path), _) => of_files(path, options)?,
        (None, client) => of_cluster(client.context("no cluster")?, options).await?,
    };
    let lines = differences(compiled, options, &present);
    if lines.is_empty() {
        let policies = compiled.objects.iter().filter(|object| !object.kind().ends_with("Binding")).count();
        let verb = if policies == 1 { "is" } else { "are" };
        let (policies, kinds) = (count(policies, "policy"), count(compiled.kinds, "kind"));
        output::print_text(format!("{policies} of {kinds} {verb} up to date\n"))?;
    } else {
        let lines: Vec<_> = lines.iter().map(|line| output::line(line)).collect();
        output::print_text(lines.join("\n") + "\n")?;
    }
    Ok(Verdict::rejected_if(!lines.is_empty()))
}

/// Returns the resources to compare: those that the options compile.
fn resources(options: &PolicyOptions) -> impl Iterator<Item = PolicyResource> {
    let (mutate, validate) = (options.mutate, options.validate);
    PolicyResource::ALL.into_iter().filter(move |resource| if mutates(*resource) { mutate } else { validate })
}

fn mutates(resource: PolicyResource) -> bool {
    matches!(resource, PolicyResource::MutatingPolicy | PolicyResource::MutatingBinding)
}

/// Returns a line for each object that is missing, differs, is there twice, or is stale.
fn differences(compiled: &CompiledKinds, options: &PolicyOptions, present: &[PresentPolicy]) -> Vec<String> {
    let mut lines = Vec::new();
    for wanted in &compiled.objects {
        let mut found = present.iter().filter(|present| present.is(wanted));
        match found.next() {
            None => lines.push(format!("{}/{}: missing", wanted.kind(), wanted.name())),
            Some(first) => {
                let difference = wanted.difference_from(&first.object);
                lines.extend(difference.map(|path| first.line(&format!("differs at {path}"))));
            }
        }
        lines.extend(found.map(|again| again.line("defined more than once")));
    }
    let prefix = options.name_prefix.as_str();
    // `serve` removes its own policies. It has more of them: those that warn of a violation left unchanged.
    let unwanted = |present: &&PresentPolicy| {
        let is_stray = present.name.starts_with(prefix) && !present.is_maintained();
        is_stray && !compiled.objects.iter().any(|wanted| present.is(wanted))
    };
    lines.extend(present.iter().filter(unwanted).map(|stale| stale.line("stale, no union needs it")));
    lines
}

/// Reads the policies of a file or folder. Documents of other kinds are skipped.
fn of_files(path: &Path, options: &PolicyOptions) -> anyhow::Result<Vec<PresentPolicy>> {
    let manifests = manifest::files(&[PathBuf::from(path)]);
    manifest::fail_on(&manifests.problems)?;
    let documents = manifests.documents();
    let policies = documents.filter(|document| {
        let kind = document.kind.as_deref();
        document.group_version().0 == GROUP && resources(options).any(|it| Some(it.kind()) == kind)
    });
    policies.map(PresentPolicy::of_document).collect()
}

/// Lists the policies of the cluster.
async fn of_cluster(client: &Client, options: &PolicyOptions) -> anyhow::Result<Vec<PresentPolicy>> {
    let mut present = Vec::new();
    for policies in resources(options) {
        let beta = options.server.mutating_policies_are_beta() && mutates(policies);
        let resource = DiscoveredResource {
            group: GROUP.into(),
            version: if beta { "v1beta1" } else { "v1" }.into(),
            kind: policies.kind().into(),
            plural: policies.plural().into(),
            singular: "".into(),
            short_names: Vec::new(),
            namespaced: false,
        };
        present.extend(listed(client, &resource).await.with_context(|| format!("cannot list {}", resource.plural))?);
    }
    Ok(present)
}

/// Lists the objects of a resource, none if the API server does not serve it.
async fn listed(client: &Client, resource: &DiscoveredResource) -> anyhow::Result<Vec<PresentPolicy>> {
    let mut present = Vec::new();
    let mut pages = Pages::of(client, resource, None)?;
    loop {
        let page = match pages.next().await {
            Ok(Some(page)) => page,
            Ok(None) => return Ok(present),
            Err(error) if error.code() == Some(404) => return Ok(present),
            Err(error) => return Err(error.into()),
        };
        for object in page.objects() {
            present.push(PresentPolicy {
                place: String::new(),
                kind: resource.kind.to_string(),
                name: object.name.to_owned(),
                object: serde_json::from_str(object.text)?,
            });
        }
    }
}

impl PresentPolicy {
    fn of_document(document: Document) -> anyhow::Result<Self> {
        let object = serde_json::from_str(&document.text)
            .with_context(|| format!("{}: {} cannot be read", document.file.display(), document.title()))?;
        Ok(Self {
            place: manifest::place(&document, "") + " ",
            kind: document.kind.unwrap_or_default(),
            name: document.name.unwrap_or_default(),
            object,
        })
    }

    fn is(&self, wanted: &PolicyObject) -> bool {
        (wanted.kind(), wanted.name()) == (&*self.kind, &*self.name)
    }

    /// Returns true if `serve` keeps the object up to date.
    fn is_maintained(&self) -> bool {
        self.object
            .pointer("/metadata/labels")
            .and_then(|labels| labels.get(MAINTAINED_BY))
            .is_some_and(|by| by == "serve")
    }

    fn line(&self, message: &str) -> String {
        format!("{}{}/{}: {message}", self.place, self.kind, self.name)
    }
}
