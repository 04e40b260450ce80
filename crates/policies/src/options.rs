//! The options of compiling.

use crate::version::KubernetesVersion;
use kube_unions_core::schema::Actions;
use std::collections::BTreeMap;

/// Options of [`compile`](crate::compile()).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyOptions {
    /// The API server that the policies are for.
    pub server: KubernetesVersion,
    /// Compile a `MutatingAdmissionPolicy`, which normalises. It leaves out unions that are only judged.
    pub mutate: bool,
    /// Compile `ValidatingAdmissionPolicies`, which reject, warn and audit.
    pub validate: bool,
    /// The treatment of a violation if the request did not change the choice of the union.
    pub ratcheting: PolicyRatcheting,
    /// The treatment of an object that violates a union, instead of the actions of its declaration.
    pub actions: Option<Actions>,
    /// Namespaces whose objects are left alone.
    pub excluded_namespaces: Vec<String>,
    /// The form of the rules that [`compile_rules`](crate::compile_rules) makes.
    pub rules: RuleForm,
    /// Policies are read from a directory of static manifests (KEP-5793), where every name has the suffix
    /// [`STATIC_SUFFIX`].
    pub static_manifests: bool,
    /// The beginning of the name of every object.
    pub name_prefix: String,
    /// Labels of every object.
    pub labels: BTreeMap<String, String>,
}

impl Default for PolicyOptions {
    fn default() -> Self {
        Self {
            server: KubernetesVersion::DEFAULT,
            mutate: true,
            validate: true,
            ratcheting: PolicyRatcheting::default(),
            actions: None,
            excluded_namespaces: Vec::new(),
            rules: RuleForm::default(),
            static_manifests: false,
            name_prefix: "unions-".to_owned(),
            labels: BTreeMap::new(),
        }
    }
}

/// The suffix of the names of static manifests. The API server accepts no object with such a name from a client.
pub const STATIC_SUFFIX: &str = ".static.k8s.io";

/// The form of the rules in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RuleForm {
    /// CEL in `x-kubernetes-validations` of a CRD.
    #[default]
    Cel,
    /// Keywords of `OpenAPI` in `allOf` of a CRD. They have no estimated cost, and no message of their own.
    OpenApi,
    /// `if` and `then` in `allOf` of a JSON schema, with `errorMessage`.
    JsonSchema,
}

/// The treatment of a violation that a request leaves as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PolicyRatcheting {
    /// It is let through.
    #[default]
    Enabled,
    /// It is let through, with a warning by a policy that is evaluated at every update.
    Warn,
    /// It is denied.
    Disabled,
}

/// The faults of a union that a binding reacts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WantedFaults {
    All,
    /// Those of a choice that the request made.
    New,
    /// Those of a choice that was there before.
    Old,
}

impl PolicyRatcheting {
    /// Returns the faults of a union that a binding reacts to, and the end of their text. `None` if the binding is not for this union.
    pub(crate) fn wanted(self, declared: Actions, binding: Actions) -> Option<(WantedFaults, &'static str)> {
        let lets_through = self != Self::Disabled;
        match (declared, binding) {
            (Actions::Deny { .. }, Actions::Deny { .. }) if declared == binding => {
                Some((if lets_through { WantedFaults::New } else { WantedFaults::All }, ""))
            }
            // A fault that was there before is a warning. The audit log has it in any case.
            (Actions::Deny { audit }, Actions::Warn { audit: audits })
                if audit == audits && (self == Self::Warn || audit && lets_through) =>
            {
                Some((WantedFaults::Old, "; let through because the union did not change"))
            }
            (Actions::Warn { .. }, Actions::Warn { .. }) if declared == binding => {
                Some((WantedFaults::All, "; let through because its declaration only warns"))
            }
            (Actions::Audit, Actions::Audit) => Some((WantedFaults::All, "")),
            (Actions::Deny { .. } | Actions::Warn { .. } | Actions::Audit, _) => None,
        }
    }
}
