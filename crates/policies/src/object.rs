//! The API objects of policies.

use crate::comments::PolicyComments;
use crate::version::MutatingApi;
use crate::yaml;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

/// A policy or its binding. A binding has the name of its policy.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyObject {
    /// A policy that normalises.
    MutatingPolicy(Box<MutatingAdmissionPolicy>, PolicyApi, PolicyComments),
    /// The binding of a policy that normalises.
    MutatingBinding(Box<MutatingAdmissionPolicyBinding>, PolicyApi),
    /// A policy that rejects or warns.
    ValidatingPolicy(Box<ValidatingAdmissionPolicy>, PolicyComments),
    /// The binding of a policy that rejects or warns.
    ValidatingBinding(Box<ValidatingAdmissionPolicyBinding>),
}

/// The version of the API of a mutating policy. `v1beta1` has the same fields as `v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyApi(pub(crate) MutatingApi);

impl PolicyObject {
    /// Returns the name.
    pub fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or_default()
    }

    /// Returns the kind, for example `MutatingAdmissionPolicy`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::MutatingPolicy(..) => "MutatingAdmissionPolicy",
            Self::MutatingBinding(..) => "MutatingAdmissionPolicyBinding",
            Self::ValidatingPolicy(..) => "ValidatingAdmissionPolicy",
            Self::ValidatingBinding(_) => "ValidatingAdmissionPolicyBinding",
        }
    }

    /// Returns the API version, for example `admissionregistration.k8s.io/v1`.
    pub fn api_version(&self) -> &'static str {
        match self {
            Self::MutatingPolicy(_, PolicyApi(MutatingApi::Beta), _)
            | Self::MutatingBinding(_, PolicyApi(MutatingApi::Beta)) => "admissionregistration.k8s.io/v1beta1",
            Self::MutatingPolicy(..)
            | Self::MutatingBinding(..)
            | Self::ValidatingPolicy(..)
            | Self::ValidatingBinding(_) => "admissionregistration.k8s.io/v1",
        }
    }

    /// Returns the metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::MutatingPolicy(policy, ..) => &policy.metadata,
            Self::MutatingBinding(binding, _) => &binding.metadata,
            Self::ValidatingPolicy(policy, _) => &policy.metadata,
            Self::ValidatingBinding(binding) => &binding.metadata,
        }
    }

    /// Returns the object as YAML, with comments for its reader.
    pub fn to_yaml(&self) -> String {
        let comments = match self {
            Self::MutatingPolicy(_, _, comments) | Self::ValidatingPolicy(_, comments) => Some(comments),
            Self::MutatingBinding(..) | Self::ValidatingBinding(_) => None,
        };
        yaml::write(&self.to_json(), comments)
    }

    /// Returns the object as JSON. Its keys are always in the same order.
    pub fn to_json(&self) -> Value {
        let object = match self {
            Self::MutatingPolicy(policy, ..) => serde_json::to_value(policy),
            Self::MutatingBinding(binding, _) => serde_json::to_value(binding),
            Self::ValidatingPolicy(policy, _) => serde_json::to_value(policy),
            Self::ValidatingBinding(binding) => serde_json::to_value(binding),
        };
        // These types have nothing that JSON cannot hold.
        let mut object = object.unwrap_or_default();
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), self.api_version().into());
        }
        object
    }
}
