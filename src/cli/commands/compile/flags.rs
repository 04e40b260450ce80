//! The flags that not every form takes.

use super::arguments::{CompileArgs, CompileRatcheting};
use super::form::{Writes, forms_that};
use anyhow::bail;
use std::path::Path;

/// A flag that not every form takes.
struct FormFlag {
    name: &'static str,
    is_given: fn(&CompileArgs) -> bool,
    fits: fn(Writes) -> bool,
    /// Says why others do not take it.
    reason: &'static str,
}

const FLAGS: [FormFlag; 9] = [
    FormFlag {
        name: "--write",
        is_given: |arguments| arguments.write,
        fits: |writes| matches!(writes, Writes::Crds(_)),
        reason: "nothing else stands in the files of --from",
    },
    FormFlag {
        name: "--exclude-namespace",
        is_given: |arguments| !arguments.exclude_namespace.is_empty(),
        fits: |writes| matches!(writes, Writes::Policies { .. }),
        reason: "a schema is one for all namespaces",
    },
    FormFlag {
        name: "--static",
        is_given: |arguments| arguments.static_manifests,
        fits: |writes| matches!(writes, Writes::Policies { mutate, validate } if mutate != validate),
        reason: "an API server reads each kind of policy from a directory of its own",
    },
    FormFlag {
        name: "--output-dir",
        is_given: |arguments| arguments.output_dir.is_some(),
        fits: |writes| writes == Writes::JsonSchemas,
        reason: "other forms are printed",
    },
    FormFlag {
        name: "--add-to",
        is_given: |arguments| arguments.add_to.is_some(),
        fits: |writes| writes == Writes::KustomizeDocument,
        reason: "kustomize alone reads one document for all kinds",
    },
    FormFlag {
        name: "--check",
        is_given: |arguments| arguments.check.is_some(),
        fits: |writes| matches!(writes, Writes::Policies { .. } | Writes::Crds(_)),
        reason: "write other forms again, and compare the files",
    },
    FormFlag {
        name: "--check with a PATH",
        is_given: |arguments| matches!(arguments.check, Some(Some(_))),
        fits: |writes| matches!(writes, Writes::Policies { .. }),
        reason: "CRDs are those of --from or of the cluster",
    },
    FormFlag {
        name: "--ratcheting",
        is_given: |arguments| arguments.ratcheting != CompileRatcheting::default(),
        fits: |writes| matches!(writes, Writes::Policies { .. } | Writes::Crds(_)),
        reason: "only an API server knows the object before",
    },
    FormFlag {
        name: "--action",
        is_given: |arguments| arguments.action.is_some(),
        fits: |writes| writes != Writes::KustomizeDocument,
        reason: "kustomize judges nothing",
    },
];

/// Fails if a flag was given that the form does not take.
pub(super) fn check(arguments: &CompileArgs) -> anyhow::Result<()> {
    let writes = arguments.to.writes();
    if let Some(flag) = FLAGS.iter().find(|flag| (flag.is_given)(arguments) && !(flag.fits)(writes)) {
        let fitting = forms_that(flag.fits);
        bail!("{} does not go with --to {}, but with {fitting}: {}", flag.name, arguments.to.name(), flag.reason);
    }
    let reads_stdin =
        arguments.sources.from.is_empty() || arguments.sources.from.iter().any(|path| path == Path::new("-"));
    if arguments.write && reads_stdin {
        bail!("--write needs files: name files and folders with --from");
    }
    if arguments.static_manifests && arguments.check == Some(None) {
        bail!("name the directory behind --check: an API server shows no static manifests to its clients");
    }
    if writes == Writes::KustomizeDocument && arguments.sources.from.is_empty() {
        bail!(
            "--to kustomize needs --from, for example `kubectl get crd -o yaml | kube-unions compile --to kustomize --from -`"
        );
    }
    Ok(())
}
