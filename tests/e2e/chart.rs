//! The Helm chart: its rendering, the answers of a real API server, and a release from its installation to its end.
//!
//! helm is the real one. A release is installed on a cluster with a node that plays a kubelet ([`ClusterWithNode`]).
//!
//! [`ClusterWithNode`]: crate::guide::ClusterWithNode

mod arguments;
mod clusters;
mod crds;
pub(crate) mod helm;
mod lifecycle;
mod manifests;
mod monitoring;
mod refusals;
mod rendering;
mod rights;
mod server;
mod trial;

use serde_json::Value;

/// The chart's folder.
pub(crate) const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/kube-unions");

/// The release's name and namespace.
pub(crate) const RELEASE: &str = "kube-unions";

/// The object `Kind/name`.
fn find<'a>(objects: &'a [Value], id: &str) -> Option<&'a Value> {
    objects.iter().find(|object| self::id(object) == id)
}

/// `Kind/name`.
fn id(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    format!("{}/{}", text("/kind"), text("/metadata/name"))
}

/// Returns true for a hook.
fn is_hook(object: &Value) -> bool {
    !object["metadata"]["annotations"]["helm.sh/hook"].is_null()
}

/// Returns the arguments of every container in it.
fn arguments(object: &Value) -> Vec<Vec<String>> {
    let specs =
        ["/spec/template/spec/containers", "/spec/jobTemplate/spec/template/spec/containers", "/spec/containers"];
    let containers = specs.iter().filter_map(|at| object.pointer(at)?.as_array()).flatten();
    let texts = |args: &Value| args.as_array().unwrap().iter().map(|arg| arg.as_str().unwrap().to_owned()).collect();
    containers.map(|container| texts(&container["args"])).collect()
}
