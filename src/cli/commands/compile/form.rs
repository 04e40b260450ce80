//! The forms that unions are compiled to, and the flags that each of them takes.

use super::arguments::{CompileArgs, CompileRatcheting};
use anyhow::bail;
use clap::ValueEnum;
use kube_unions_policies::{KubernetesVersion, RuleForm};
use std::path::Path;

/// The forms that unions are compiled to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum CompileForm {
    /// Both kinds of policies
    #[default]
    Policies,
    /// `MutatingAdmissionPolicies`, which clear members and deduce discriminators
    Map,
    /// `ValidatingAdmissionPolicies`, which reject
    Vap,
    /// CRDs with validation rules in their schemas (`x-kubernetes-validations`)
    Cel,
    /// CRDs with keywords in their schemas (`allOf`, `not`, `enum`), which have no cost, and poor messages
    Openapi,
    /// JSON schemas (draft-07) for editors and CI
    JsonSchema,
    /// The OpenAPI document from which kustomize learns how custom resources merge
    Kustomize,
}

/// What a form writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    Policies { mutate: bool, validate: bool },
    Crds(RuleForm),
    JsonSchemas,
    KustomizeDocument,
}

/// The forms, with the first version of Kubernetes that takes what they write; `None` if every supported version does.
const FORMS: [(CompileForm, Writes, Option<KubernetesVersion>); 7] = [
    (CompileForm::Policies, Writes::Policies { mutate: true, validate: true }, Some(KubernetesVersion::new(1, 36))),
    (CompileForm::Map, Writes::Policies { mutate: true, validate: false }, Some(KubernetesVersion::new(1, 36))),
    (CompileForm::Vap, Writes::Policies { mutate: false, validate: true }, Some(KubernetesVersion::new(1, 30))),
    (CompileForm::Cel, Writes::Crds(RuleForm::Cel), Some(KubernetesVersion::new(1, 29))),
    (CompileForm::Openapi, Writes::Crds(RuleForm::OpenApi), None),
    (CompileForm::JsonSchema, Writes::JsonSchemas, None),
    (CompileForm::Kustomize, Writes::KustomizeDocument, None),
];

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

impl CompileForm {
    /// Returns what the form writes.
    pub(super) fn writes(self) -> Writes {
        FORMS.into_iter().find(|(form, ..)| *form == self).map_or(Writes::KustomizeDocument, |(_, writes, _)| writes)
    }

    /// Returns the name on the command line.
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Returns the names of the forms that an API server of a version takes.
pub(super) fn forms_of(server: KubernetesVersion) -> String {
    names(FORMS.into_iter().filter(|(.., since)| since.is_none_or(|since| server >= since)))
}

fn names(forms: impl Iterator<Item = (CompileForm, Writes, Option<KubernetesVersion>)>) -> String {
    forms.map(|(form, ..)| form.name()).collect::<Vec<_>>().join(", ")
}

/// Fails if a flag was given that the form does not take.
pub(super) fn check_flags(arguments: &CompileArgs) -> anyhow::Result<()> {
    let writes = arguments.to.writes();
    if let Some(flag) = FLAGS.iter().find(|flag| (flag.is_given)(arguments) && !(flag.fits)(writes)) {
        let fitting = names(FORMS.into_iter().filter(|(_, writes, _)| (flag.fits)(*writes)));
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
