//! A kind with two unions, from its types to its CRD. It prints the CRD, ready for a cluster:
//!
//! ```sh
//! cargo run --features schemars --example rollout | kubectl apply -f -
//! ```

use kube::CustomResource;
use kube_unions_author::{AtMostOne, Union};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io;

/// How an application is brought to a cluster.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "rust.samples.kube-unions.dev", version = "v1", kind = "Rollout", namespaced)]
struct RolloutSpec {
    /// How many pods there are.
    #[schemars(range(min = 0))]
    replicas: Option<i32>,
    /// Where the manifests come from.
    source: Option<Source>,
    /// How old pods make room for new ones.
    strategy: Option<Strategy>,
}

/// The type decides: changing it clears the settings of the other types. `BlueGreen` needs no settings, and `Recreate` has none.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = Union::by("type").member("Canary", "canary").optional("BlueGreen", "blueGreen").empty("Recreate"))]
struct Strategy {
    /// Which strategy it is.
    r#type: StrategyType,
    /// Settings of `Canary`.
    canary: Option<Canary>,
    /// Settings of `BlueGreen`.
    blue_green: Option<BlueGreen>,
}

/// A strategy.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
enum StrategyType {
    /// Some traffic goes to the new pods first.
    Canary,
    /// All traffic changes over at once.
    BlueGreen,
    /// All old pods go before any new one comes.
    Recreate,
}

/// Settings of a canary.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Canary {
    /// The share of traffic for the new pods, in percent.
    #[schemars(range(min = 0, max = 100))]
    weight: i32,
}

/// Settings of blue and green.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BlueGreen {
    /// The service through which the new pods can be seen before.
    preview_service: Option<String>,
}

/// Each variant is a field, and one of them is set. Setting another one clears it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = AtMostOne::new().member("Git", "git").member("Bucket", "bucket"))]
enum Source {
    /// A repository.
    Git(Git),
    /// A bucket of an object store.
    Bucket(Bucket),
}

/// A repository.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Git {
    /// Where it is cloned from.
    url: String,
}

/// A bucket of an object store.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Bucket {
    /// Its name.
    name: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let crd = kube_unions_author::crd::<Rollout>()?;
    serde_json::to_writer_pretty(io::stdout(), &crd)?;
    Ok(())
}
