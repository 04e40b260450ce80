//! A kind with two unions. The program prints its CRD, ready to apply:
//!
//! ```sh
//! cargo run --package kube-unions-author --example rollout | kubectl apply -f -
//! ```

use kube::CustomResource;
use kube_unions_author::EnumUnion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io;

/// Desired rollout of an application.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "rust.samples.kube-unions.dev", version = "v1", kind = "Rollout", namespaced)]
pub struct RolloutSpec {
    /// Number of pods.
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Source of the manifests.
    pub source: Option<Source>,
    /// Strategy by which new pods replace old ones.
    pub strategy: Option<Strategy>,
}

/// The type selects the settings: changing it clears the settings of the other types.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
#[schemars(transform = EnumUnion)]
pub enum Strategy {
    /// Some traffic goes to the new pods first.
    Canary {
        /// Settings of `Canary`.
        canary: Canary,
        /// Service of the pods that stay.
        #[serde(skip_serializing_if = "Option::is_none")]
        stable_service: Option<String>,
    },
    /// All traffic switches to the new pods at once. It needs no settings.
    BlueGreen {
        /// Settings of `BlueGreen`.
        #[serde(skip_serializing_if = "Option::is_none")]
        blue_green: Option<BlueGreen>,
    },
    /// All old pods are deleted before new ones are created. It has no settings.
    Recreate,
}

/// Settings of a canary.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Canary {
    /// The share of traffic for the new pods, in percent.
    #[schemars(range(min = 0, max = 100))]
    pub weight: i32,
}

/// Settings of blue and green.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlueGreen {
    /// Service of the new pods before the switch.
    pub preview_service: Option<String>,
}

/// Each variant is a field, and one of them is set. Setting another variant clears it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = EnumUnion)]
pub enum Source {
    /// A repository.
    Git(Git),
    /// A bucket of an object store.
    Bucket(Bucket),
}

/// A repository.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Git {
    /// URL to clone.
    pub url: String,
}

/// A bucket of an object store.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Bucket {
    /// Name of the bucket.
    pub name: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let crd = kube_unions_author::crd::<Rollout>()?;
    serde_json::to_writer_pretty(io::stdout(), &crd)?;
    Ok(())
}
