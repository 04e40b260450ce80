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
            name_prefix: "unions-".to_owned(),
            labels: BTreeMap::new(),
        }
    }
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
