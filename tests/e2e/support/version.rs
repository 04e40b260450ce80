//! The version of Kubernetes that the tests run on, and the features that older versions lack.

use std::process::Command;
use std::sync::LazyLock;

use crate::support::assets;
use crate::support::cluster::say;
use kube_unions_policies::KubernetesVersion;
use serde_json::Value;

/// A feature of an API server that some tests need.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Feature {
    /// `MutatingAdmissionPolicy` in `v1`.
    MutatingPolicies,
    /// The pod template of a `StatefulSet` is validated.
    StatefulSetTemplateValidation,
    /// The field `fileKeyRef` of a variable's source.
    FileKeyRef,
    /// `resource.k8s.io/v1`.
    ResourceClaims,
    /// The causes of failed rules of a CRD do not have the type of the value.
    CausesWithoutType,
    /// The `OpenAPI` documents of workloads have a union without a discriminator, which can be in force as it is published.
    WorkloadsWithUnions,
}

impl Feature {
    /// Returns true if the API server of this run has the feature.
    pub(crate) fn is_served(self) -> bool {
        version() >= self.since()
    }

    fn since(self) -> KubernetesVersion {
        match self {
            Self::StatefulSetTemplateValidation | Self::FileKeyRef | Self::ResourceClaims => {
                KubernetesVersion::new(1, 34)
            }
            Self::CausesWithoutType => KubernetesVersion::new(1, 35),
            Self::MutatingPolicies | Self::WorkloadsWithUnions => KubernetesVersion::new(1, 36),
        }
    }
}

/// Returns true if the API server of this run lacks a feature, and prints that the test is left out.
pub(crate) fn lacks(feature: Feature) -> bool {
    if !feature.is_served() {
        let (version, since) = (version(), feature.since());
        say(&format!("left out, because Kubernetes {version} has no {feature:?}, which {since} brings"));
    }
    !feature.is_served()
}

/// Returns the version of the kube-apiserver of this run.
pub(crate) fn version() -> KubernetesVersion {
    static VERSION: LazyLock<KubernetesVersion> = LazyLock::new(|| {
        let assets = assets::control_plane().unwrap_or_else(|message| panic!("{message}"));
        let output = Command::new(assets.join("kube-apiserver")).arg("--version").output().unwrap();
        // Kubernetes v1.36.4
        let text = String::from_utf8(output.stdout).unwrap();
        let version = text.trim().strip_prefix("Kubernetes ").and_then(|version| version.parse().ok());
        version.unwrap_or_else(|| panic!("kube-apiserver has no version: {text}"))
    });
    *VERSION
}

/// Returns true if the API server of this run has the kind of a built-in object.
pub(crate) fn is_served(object: &Value) -> bool {
    object["apiVersion"] != "resource.k8s.io/v1" || Feature::ResourceClaims.is_served()
}
