//! `compile`: turns unions into objects that the API server runs itself, so that no webhook is needed, and into the forms of other
//! tools.
//!
//! [`form`] is the table of forms, and [`flags`] that of the flags they take. [`source`] learns the unions, from files or a cluster. The crate `kube-unions-policies` compiles
//! them. [`check`] compares policies with files or with the cluster. [`crds`] puts rules into CRDs, [`json_schemas`] writes
//! schemas for editors, and [`kustomize`] the document for kustomize.

mod arguments;
mod check;
mod crds;
mod flags;
mod form;
mod json_schemas;
mod kustomize;
mod source;

pub(super) use self::arguments::CompileArgs;
pub(super) use self::kustomize::{KustomizeRequest, run as print_for_kustomize};

use self::form::Writes;
use self::source::CompileSource;
use crate::cli::input::connection::block_on;
use crate::cli::input::require::RequireArg;
use crate::cli::input::values::ObjectFormat;
use crate::cli::report::{Verdict, output};
use anyhow::bail;
use kube_unions_policies::{CompiledKinds, KubernetesVersion, PolicyObject, PolicyOptions, Refusal};

pub(super) fn run(arguments: &CompileArgs) -> anyhow::Result<Verdict> {
    flags::check(arguments)?;
    block_on(compile(arguments))
}

async fn compile(arguments: &CompileArgs) -> anyhow::Result<Verdict> {
    let writes = arguments.to.writes();
    if writes == Writes::KustomizeDocument {
        return kustomize::run(&KustomizeRequest {
            from: &arguments.sources.from,
            add_to: arguments.add_to.as_deref(),
            require: RequireArg::default(),
            output: ObjectFormat::Json,
        });
    }
    let source = CompileSource::read(arguments).await?;
    // As `lint` does.
    source.faults.iter().for_each(output::note);
    let options = arguments.options(source.version);
    match writes {
        Writes::Policies { .. } => policies(arguments, &source, &options).await,
        Writes::Crds(_) => crds::run(arguments, &source, &options).await,
        Writes::JsonSchemas | Writes::KustomizeDocument => json_schemas::run(arguments, &source, &options).await,
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
        let forms = form::forms_of(options.server);
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
        Some(path) => check::run(&compiled, options, path.as_deref(), source.client.as_ref()).await?,
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
