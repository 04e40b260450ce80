//! Patches a custom resource by a strategic merge patch, which the API server itself answers with 415.
//!
//! ```sh
//! cargo run --example patch-custom-resource -- gateways.samples.kube-unions.dev default dns \
//!   '{"spec": {"exposure": {"$retainKeys": ["type"], "type": "Internal"}}}'
//! ```
//!
//! `patch` is the part to copy into a controller.

use anyhow::{Context, bail};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::{Client, Error};
use kube_unions_core::declaration::Definition;
use serde_json::Value;
use std::env;
use strategic_merge_patch::Patcher;

/// Number of attempts while others change the object.
const ATTEMPTS: usize = 100;

/// Reads the object, patches it, and writes it with the `resourceVersion` that was read. If somebody else changed it meanwhile,
/// the API server answers 409, and the patch is applied to the new object.
async fn patch(api: &Api<DynamicObject>, rules: &Patcher, name: &str, patch: &Value) -> anyhow::Result<DynamicObject> {
    for _ in 0..ATTEMPTS {
        let live = serde_json::to_value(api.get(name).await?)?;
        let patched = serde_json::from_value(rules.apply(&live, patch)?)?;
        match api.replace(name, &PostParams::default(), &patched).await {
            Err(Error::Api(status)) if status.is_conflict() => {}
            written => return Ok(written?),
        }
    }
    bail!("others changed `{name}` during each of {ATTEMPTS} attempts")
}

/// Returns the resource of a CRD and its merge rules, which contain the unions that the CRD declares.
async fn described(client: &Client, definition: &str) -> anyhow::Result<(ApiResource, Patcher)> {
    let definitions = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&definitions));
    let definition = Definition::from_json(&serde_json::to_string(&definitions.get(definition).await?)?)?;
    let version = definition.versions().iter().find(|version| version.served).context("no version is served")?;
    let kind = GroupVersionKind::gvk(definition.group(), &version.name, definition.kind());
    let plural = &definition.resource().context("the CRD has no plural")?.plural;
    Ok((ApiResource::from_gvk_with_plural(&kind, plural), Patcher::for_resource(definition.kind(), &version.schema)?))
}

#[allow(clippy::print_stdout, reason = "it is a program for the terminal")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [definition, namespace, name, change] = arguments.as_slice() else {
        bail!("give the name of a CRD, a namespace, the name of an object, and a patch in JSON");
    };
    let client = Client::try_default().await?;
    let (resource, rules) = described(&client, definition).await?;
    let api = Api::namespaced_with(client, namespace, &resource);
    let patched = patch(&api, &rules, name, &serde_json::from_str(change)?).await?;
    println!("{}", serde_json::to_string_pretty(&patched)?);
    Ok(())
}
