//! Recognises pod templates by their shape.

use crate::candidates::VisitedObject;
use crate::node::SchemaNode;

/// Returns the paths of pod templates.
pub(crate) fn paths(objects: &[VisitedObject<'_>]) -> Vec<String> {
    let templates = objects.iter().filter(|it| !it.odd && !it.place.steps().is_empty() && is_pod_template(it.node));
    templates.map(|object| object.place.to_string()).collect()
}

/// Returns true for an object whose `spec` has the fields of a pod, with containers.
fn is_pod_template(node: SchemaNode<'_>) -> bool {
    let has = |node: SchemaNode<'_>, names: &[&str]| names.iter().all(|name| node.property(name).is_some());
    let spec = node.property("spec").filter(|spec| has(*spec, &["containers", "restartPolicy", "volumes"]));
    let containers = spec.and_then(|spec| spec.property("containers")?.get("items"));
    containers.is_some_and(|it| has(SchemaNode(it), &["env", "image", "livenessProbe", "name", "volumeMounts"]))
}
