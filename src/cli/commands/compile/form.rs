//! The forms that unions are compiled to.

use clap::ValueEnum;
use kube_unions_policies::{KubernetesVersion, RuleForm};

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
pub(super) fn forms_that(fit: impl Fn(Writes) -> bool) -> String {
    names(FORMS.into_iter().filter(|(_, writes, _)| fit(*writes)))
}

/// Returns the names of the forms that an API server of a version takes.
pub(super) fn forms_of(server: KubernetesVersion) -> String {
    names(FORMS.into_iter().filter(|(.., since)| since.is_none_or(|since| server >= since)))
}

fn names(forms: impl Iterator<Item = (CompileForm, Writes, Option<KubernetesVersion>)>) -> String {
    forms.map(|(form, ..)| form.name()).collect::<Vec<_>>().join(", ")
}
