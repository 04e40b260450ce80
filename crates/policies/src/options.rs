//! The options of compiling: the version of the API server with its features, the treatment of violations, and the form of rules.

use kube_unions_core::schema::Actions;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

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

/// The version of an API server, without its patch release. Displays as `1.36`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubernetesVersion {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
}

/// A text is not the version of an API server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a Kubernetes version: write it like 1.36")]
pub struct KubernetesVersionError(String);

impl KubernetesVersion {
    /// The version that is compiled for unless another one is given: the first with stable mutating policies.
    pub const DEFAULT: Self = Self::new(1, 36);

    /// Returns a version.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Returns true if `ValidatingAdmissionPolicy` is stable.
    pub fn has_validating_policies(self) -> bool {
        self >= Self::new(1, 30)
    }

    /// Returns true if a `MutatingAdmissionPolicy` can be compiled for this version.
    pub fn has_mutating_policies(self) -> bool {
        self.mutating_api().is_some()
    }

    /// Returns true if `MutatingAdmissionPolicy` is beta in this version, and off unless an administrator enables it.
    pub fn mutating_policies_are_beta(self) -> bool {
        self.mutating_api() == Some("v1beta1")
    }

    /// Returns the version of the API of `MutatingAdmissionPolicy`. It is beta since 1.34, but the compiled expressions need the list
    /// functions.
    pub(crate) fn mutating_api(self) -> Option<&'static str> {
        self.has_list_functions().then_some(if self >= Self::new(1, 36) { "v1" } else { "v1beta1" })
    }

    /// Returns true if a new policy may use `flatten`, `sort` and `sortBy`. They came with 1.34, and an API server takes an
    /// expression in a new object only if the release before knew it as well, so that a downgrade is possible.
    pub(crate) fn has_list_functions(self) -> bool {
        self >= Self::new(1, 35)
    }

    /// Returns true if an unchanged part of a custom resource is exempt from the rules in its CRD (`CRDValidationRatcheting`).
    pub fn ratchets_rules(self) -> bool {
        self >= Self::new(1, 33)
    }

    /// Returns true if rules in a CRD may have `reason` and `fieldPath`, and `optionalOldSelf`.
    pub fn has_rules(self) -> bool {
        self >= Self::new(1, 29)
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor } = self;
        write!(f, "{major}.{minor}")
    }
}

impl FromStr for KubernetesVersion {
    type Err = KubernetesVersionError;

    /// Reads `1.36`, `v1.36.4`, or a version as providers write it: `1.36+`, `v1.36.4-gke.100`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || KubernetesVersionError(text.to_owned());
        let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
        let number = |part: Option<&str>| part?.trim_end_matches('+').parse::<u16>().ok().map(u32::from);
        let (major, minor) = (number(parts.next()), number(parts.next()));
        let rest_is_fine = parts.next().is_none_or(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
        match (major, minor) {
            (Some(major), Some(minor)) if rest_is_fine => Ok(Self { major, minor }),
            _ => Err(error()),
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn versions_are_read_as_people_and_providers_write_them() {
        for text in ["1.36", "v1.36", "1.36.4", "v1.36.4", "1.36+", "v1.36.4-gke.1234+x"] {
            assert_eq!(text.parse(), Ok(KubernetesVersion::new(1, 36)), "{text}");
        }
        for text in ["", "1", "1.", "one.two", "1.36.x", "1.-3", "1.99999999", "1.36 "] {
            assert!(text.parse::<KubernetesVersion>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_a_version_has_is_known() {
        let of = |minor| KubernetesVersion::new(1, minor);
        assert!(of(36).mutating_api() == Some("v1") && of(35).mutating_policies_are_beta());
        assert!(!of(34).has_mutating_policies() && of(30).has_validating_policies());
        assert!(!of(29).has_validating_policies() && of(29).has_rules());
    }
}
