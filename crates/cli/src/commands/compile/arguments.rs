//! The arguments of `compile`, the forms that unions are compiled to, and the options of policies that follow from them.

use crate::input::builtin::PresetsArg;
use crate::input::connection::ClusterArgs;
use crate::input::kinds::{SourceArgs, or_cluster};
use crate::input::values::namespace;
use crate::input::values::only;
use anyhow::bail;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use kube_unions_core::names::is_dns_subdomain;
use kube_unions_core::schema::Actions;
use kube_unions_policies::{KubernetesVersion, PolicyOptions, PolicyRatcheting, RuleForm};
use std::path::{Path, PathBuf};

/// The greatest length of the prefix of names, so that it leaves room for resource and group.
const LONGEST_PREFIX: usize = 28;

#[derive(Debug, Args)]
#[command(
    mut_args(only("from", or_cluster)),
    after_help = "\
The API server runs admission policies itself: there is no webhook to deploy, and none that can be down. A \
MutatingAdmissionPolicy clears the members that are not chosen. ValidatingAdmissionPolicies reject objects that violate a union. \
Every policy comes with its binding, so the output can be applied as it is. The same unions always give the same output.

With --to cel, the rules stand in the CRDs themselves. They reject in the words of built-in validation, and clear nothing. \
Comments and the rules of the author stay as they are. Prints the CRDs only; --write keeps the other documents of a file. \
Compiling twice changes nothing. With --to openapi, the CRDs say the same in keywords that have no estimated cost, in the poor \
messages of these keywords. Either form replaces the rules of the other.

With --to json-schema, editors and CI know the unions before a cluster does: yaml-language-server, kubeconform and others find the \
schema of a kind in the directory of --output-dir by its name.

With --to kustomize, prints the document that a kustomization names as `openapi: path:`. Its patches then merge the lists of custom \
resources by their keys, as those of Deployments. kustomize reads one document, in place of its own, so this one has the rules of \
built-in kinds as well. Standard error names each place that kustomize merges in another way than the schema asks for, and what to \
write in a patch.

Standard error names every union that cannot be expressed, with the reason and with what to use instead.

Exit codes:
  0  every union was compiled (with --check: and everything is up to date)
  1  a union was left out, a declaration has an error, or nothing has unions; --allow-partial turns the first two into 0
     (with --check also: something is missing, differs or is stale)
  2  wrong usage, or input that cannot be read

Examples:
  # Apply the policies for the unions that a cluster declares
  kube-unions compile | kubectl apply -f -

  # Compile the unions of files, for a cluster that only validates
  kube-unions compile --to vap --kubernetes-version 1.35 --from crds/ \\
    > policies.yaml

  # Write rules into the CRDs of controller-gen, and fail in CI if one is stale
  kube-unions compile --to cel --from config/crd/bases --write
  kube-unions compile --to cel --from config/crd/bases --check

  # Write the JSON schemas of a folder of CRDs for editors and CI
  kube-unions compile --to json-schema --from crds/ --output-dir schemas/

  # Write the JSON schema of Deployments, with the unions of the presets
  kube-unions compile --to json-schema --kind deploy > deployment.json

  # Tell kustomize how the lists of custom resources merge
  kube-unions compile --to kustomize --from crds/ > openapi.json

  # Fail in CI if the policies of a folder are not those of its CRDs
  kube-unions compile --to policies --from crds/ --check policies/

  # Fail if the policies of a cluster are not those of its unions
  kube-unions compile --to policies --check"
)]
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
pub(crate) struct CompileArgs {
    /// The form to compile to
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(super) to: CompileForm,
    #[command(flatten)]
    pub(super) sources: SourceArgs,
    #[command(flatten)]
    pub(super) presets: PresetsArg,
    /// Write the JSON schema of this kind only, named as in kubectl; built-in kinds need neither --from nor a cluster; repeat for several
    #[arg(long, num_args = 1, value_name = "KIND")]
    pub(super) kind: Vec<String>,
    /// Write the JSON schemas of all built-in kinds with unions, and need neither --from nor a cluster
    #[arg(long, conflicts_with = "kind")]
    pub(super) built_in: bool,
    /// Compile for this version of Kubernetes [default: the version of the cluster; 1.36 if none is asked]
    #[arg(long, value_name = "VERSION")]
    pub(super) kubernetes_version: Option<KubernetesVersion>,
    /// Allow or deny a write that leaves an invalid union unchanged
    #[arg(long, default_value = "enabled", value_parser = one_of(&[
        ("enabled", "Allow the write", PolicyRatcheting::Enabled),
        ("warn", "Allow the write, with a warning by a policy that is evaluated at every update", PolicyRatcheting::Warn),
        ("disabled", "Deny the write", PolicyRatcheting::Disabled),
    ]))]
    pub(super) ratcheting: PolicyRatcheting,
    /// Deny, only warn about, or only audit an object that violates a union [default: as each union declares]
    #[arg(long, value_parser = one_of(&[
        ("deny", "Deny the write", Actions::DENY),
        ("warn", "Allow the write, with a warning", Actions::WARN),
        ("audit", "Allow the write, and write the violation to the audit log", Actions::Audit),
    ]))]
    pub(super) action: Option<Actions>,
    /// Leave the objects of these namespaces alone
    #[arg(long, num_args = 1.., value_name = "NAME", value_parser = namespace)]
    pub(super) exclude_namespace: Vec<String>,
    /// Begin the name of every policy with this
    #[arg(long, value_name = "PREFIX", default_value = "unions-", value_parser = name_prefix)]
    pub(super) name_prefix: String,
    /// Exit with 0 even if a union was left out or a declaration has an error
    #[arg(long)]
    pub(super) allow_partial: bool,
    /// Print no policies; compare them with the file or folder PATH, `-` for standard input [default: with the cluster]
    ///
    /// Exits with 1 if a policy is missing, differs, or is stale: it has the prefix of --name-prefix, but no union needs it.
    /// With --to cel and openapi, takes no PATH, and exits with 1 if a CRD of --from or of the cluster would change.
    #[arg(long, num_args = 0..=1, value_name = "PATH")]
    #[expect(clippy::option_option, reason = "clap's type of a flag with an optional value")]
    pub(super) check: Option<Option<PathBuf>>,
    /// Write the CRDs of --to cel and openapi back to their files
    #[arg(short, long, conflicts_with = "check")]
    pub(super) write: bool,
    /// Write the JSON schemas to this directory, each as `GROUP/KIND_VERSION.json` [default: print that of the only kind]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) output_dir: Option<PathBuf>,
    /// Name the policies as a directory of static manifests asks for (`staticManifestsDir`)
    ///
    /// The API server reads such a directory when it starts, and no client can change its policies (KEP-5793).
    #[arg(long = "static")]
    pub(super) static_manifests: bool,
    /// An OpenAPI document with other kinds, as `kustomize openapi fetch` saves it, for --to kustomize
    ///
    /// Its rules take precedence over those of built-in kinds. Those of --from take precedence over both.
    #[arg(long, value_name = "FILE")]
    pub(super) add_to: Option<PathBuf>,
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
}

/// Returns the parser of a flag with these values: each with its name and its help.
fn one_of<T: Clone + Send + Sync + 'static>(
    rows: &'static [(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let values = rows.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    let value = |name: String| rows.iter().find(|row| *row.0 == name).map(|(.., value)| value.clone());
    PossibleValuesParser::new(values).try_map(move |name| value(name).ok_or("no such value"))
}

impl CompileArgs {
    /// Returns true if the command needs the built-in kinds.
    pub(super) fn is_about_built_in(&self) -> bool {
        self.built_in || !self.kind.is_empty()
    }

    /// Returns true if the command reads the unions or the policies of a cluster.
    pub(super) fn needs_cluster(&self) -> bool {
        (self.sources.from.is_empty() && !self.is_about_built_in())
            || (self.check == Some(None) && matches!(self.to.writes(), Writes::Policies { .. }))
    }

    /// Returns the options of policies. `of_cluster` is the version of the cluster.
    pub(super) fn options(&self, of_cluster: Option<KubernetesVersion>) -> PolicyOptions {
        let (mutate, validate, rules) = match self.to.writes() {
            Writes::Policies { mutate, validate } => (mutate, validate, RuleForm::default()),
            Writes::Crds(rules) => (false, false, rules),
            Writes::JsonSchemas | Writes::KustomizeDocument => (false, false, RuleForm::JsonSchema),
        };
        PolicyOptions {
            server: self.kubernetes_version.or(of_cluster).unwrap_or(KubernetesVersion::DEFAULT),
            mutate,
            validate,
            rules,
            static_manifests: self.static_manifests,
            ratcheting: self.ratcheting,
            actions: self.action,
            excluded_namespaces: self.exclude_namespace.clone(),
            name_prefix: self.name_prefix.clone(),
            ..PolicyOptions::default()
        }
    }
}

/// Parses the prefix of names: the beginning of a DNS subdomain (RFC 1123).
fn name_prefix(text: &str) -> Result<String, String> {
    // With an empty prefix, --check would take every policy of a cluster for one of ours.
    if (1..=LONGEST_PREFIX).contains(&text.len()) && is_dns_subdomain(&format!("{text}x")) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "invalid prefix {text:?}: use up to {LONGEST_PREFIX} lower-case letters, digits, `-` and `.`, for example unions-"
    ))
}

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

/// The documents that a form writes.
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

impl CompileForm {
    /// Returns what the form writes.
    pub(super) fn writes(self) -> Writes {
        FORMS.into_iter().find(|(form, ..)| *form == self).map_or(Writes::KustomizeDocument, |(_, writes, _)| writes)
    }

    /// Returns the name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Returns the names of the forms that write this.
fn forms_that(fit: impl Fn(Writes) -> bool) -> String {
    names(FORMS.into_iter().filter(|(_, writes, _)| fit(*writes)))
}

/// Returns the names of the forms that an API server of a version takes.
pub(super) fn forms_of(server: KubernetesVersion) -> String {
    names(FORMS.into_iter().filter(|(.., since)| since.is_none_or(|since| server >= since)))
}

fn names(forms: impl Iterator<Item = (CompileForm, Writes, Option<KubernetesVersion>)>) -> String {
    forms.map(|(form, ..)| form.name()).collect::<Vec<_>>().join(", ")
}

/// A flag that not every form takes.
struct FormFlag {
    name: &'static str,
    is_given: fn(&CompileArgs) -> bool,
    fits: fn(Writes) -> bool,
    /// Says why others do not take it.
    reason: &'static str,
}

const FLAGS: [FormFlag; 11] = [
    FormFlag {
        name: "--built-in",
        is_given: |arguments| arguments.built_in,
        fits: |writes| writes == Writes::JsonSchemas,
        reason: "the presets have the policies of built-in kinds",
    },
    FormFlag {
        name: "--kind",
        is_given: |arguments| !arguments.kind.is_empty(),
        fits: |writes| writes == Writes::JsonSchemas,
        reason: "other forms are of all kinds",
    },
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
        is_given: |arguments| arguments.ratcheting != PolicyRatcheting::default(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_the_beginning_of_a_name_of_an_object() {
        for text in ["unions-", "team.example.com-", "u", "a."] {
            assert_eq!(name_prefix(text), Ok(text.to_owned()));
        }
        for text in ["", "-", "A", "a..", ".", "a_", "a b", "é", &"a".repeat(LONGEST_PREFIX + 1)] {
            let error = name_prefix(text).unwrap_err();
            assert!(error.contains(&format!("{text:?}: use ")), "{error}");
        }
    }
}
