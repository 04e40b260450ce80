//! `compile`: turns unions into objects that the API server runs itself, so that no webhook is needed.
//!
//! [`source`] learns the unions, from files or a cluster. The crate `kube-unions-policies` compiles them. [`check`] compares the result with
//! files or with the cluster. [`crds`] puts rules into CRDs instead.

mod arguments;
mod check;
mod crds;
mod source;

pub(super) use self::arguments::CompileArgs;

use self::arguments::CompileForm;
use self::source::CompileSource;
use crate::cli::input::connection::block_on;
use crate::cli::report::{Verdict, output};
use kube_unions_policies::{CompiledKinds, PolicyObject, PolicyOptions, Refusal};

pub(super) fn run(arguments: &CompileArgs) -> anyhow::Result<Verdict> {
    crds::check_flags(arguments, arguments.to == CompileForm::Cel)?;
    block_on(compile(arguments))
}

async fn compile(arguments: &CompileArgs) -> anyhow::Result<Verdict> {
    let source = CompileSource::read(arguments).await?;
    // As `lint` does.
    source.faults.iter().for_each(output::note);
    if arguments.to == CompileForm::Cel {
        return crds::run(arguments, &source, &arguments.options(source.version)).await;
    }
    if source.catalog.entries().is_empty() {
        output::note(crds::NO_UNIONS);
        return Ok(Verdict::Rejected);
    }
    let options = arguments.options(source.version);
    print_beta_note(&options);

    let compiled = CompiledKinds::of(&source.catalog, &options);
    Refusal::lines(&compiled.refusals).iter().for_each(output::note);
    if compiled.objects.is_empty() && compiled.refusals.is_empty() {
        output::hint("these unions need no such policy: nothing of them can be cleared or deduced");
    }
    let verdict = match &arguments.check {
        None => {
            output::print(yaml(&compiled))?;
            Verdict::Accepted
        }
        Some(path) => check::run(&compiled, &options, path.as_deref(), source.client.as_ref()).await?,
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
