//! A real API server accepts everything that the chart renders.

use std::collections::BTreeSet;

use serde_json::{Deserializer, Value, json};

use super::helm::Helm;
use super::is_hook;
use super::rendering::{Row, rows};
use crate::support::cluster::Cluster;
use crate::support::kind::parse;
use crate::support::kubectl::Kubectl;
use crate::support::version::Feature;
use fixtures::crds::{crd, version};
use fixtures::wait::{SETTLED, for_some};

/// The kinds of other projects whose objects the chart renders.
const OTHERS: &str = include_str!("crds.yaml");

/// The namespaces of these tests, with their Pod Security level: one for all rows, one for pods in the network of their nodes.
const NAMESPACES: [(&str, &str); 2] = [("chart-dry-run", "restricted"), ("chart-dry-run-hosts", "privileged")];

/// Fields that an API server fills in and a chart cannot: they depend on the cluster, belong to another writer, or repeat
/// another field under an old name.
const OF_THE_CLUSTER: [&str; 7] = [
    "Service: /spec/clusterIP",
    "Service: /spec/clusterIPs",
    "Service: /spec/ipFamilies",
    "Service: /spec/ipFamilyPolicy",
    "Deployment: /spec/template/spec/serviceAccount",
    "CronJob: /spec/jobTemplate/spec/template/spec/serviceAccount",
    // With autoscaling only: rows.yaml says when the chart sets it.
    "Deployment: /spec/replicas",
];

#[test]
fn every_object_of_every_row_is_accepted_without_a_warning_and_nothing_is_filled_in_that_could_have_been_written() {
    let Some((kubectl, helm)) = prepared() else { return };
    let (mut rendered, mut whats, mut known) = (Vec::new(), Vec::new(), BTreeSet::new());
    for row in rows().iter().filter(|row| is_served(row)) {
        // An object of several rows is created once.
        for object in self::rendered(&helm, row).into_iter().filter(|object| known.insert(object.to_string())) {
            whats.push(row.what.clone());
            rendered.push(object);
        }
    }
    let mut renamed = rendered.clone();
    for object in &mut renamed {
        // Created, not applied, so that objects of other tests do not matter.
        object["metadata"]["name"] = format!("dry-{}", object["metadata"]["name"].as_str().unwrap()).into();
    }
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": renamed}).to_string();
    let args = ["create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"];
    let stored = kubectl.run_with(&args, &objects).accepted().warned(&[]).stdout;
    let stored: Vec<Value> = Deserializer::from_str(&stored).into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(rendered.len(), stored.len());
    let mut filled = Vec::new();
    for ((rendered, stored), what) in rendered.iter().zip(&stored).zip(&whats).filter(|((it, _), _)| !is_hook(it)) {
        let kind = rendered["kind"].as_str().unwrap();
        let mut at_paths = Vec::new();
        for (field, value) in stored.as_object().unwrap() {
            if !matches!(field.as_str(), "metadata" | "status") {
                compare(kind, &format!("/{field}"), rendered.get(field), value, &mut at_paths);
            }
        }
        at_paths.retain(|line| !OF_THE_CLUSTER.contains(&line.as_str()));
        filled.extend(at_paths.iter().map(|line| format!("{what}: {line}")));
    }
    assert!(filled.is_empty(), "{}", filled.join("\n"));
}

#[test]
fn the_network_of_nodes_needs_the_privileged_level() {
    let Some((kubectl, helm)) = prepared() else { return };
    let values = json!({"hostNetwork": true, "webhook": {"port": 10260}});
    let objects = helm.render(&values);
    let objects: Vec<_> = objects.iter().filter(|object| object["kind"] == "Deployment").collect();
    for ((namespace, level), is_warned) in NAMESPACES.into_iter().zip([true, false]) {
        let mut deployment = objects[0].clone();
        deployment["metadata"]["namespace"] = namespace.into();
        let applied = kubectl.run_with(&["apply", "--dry-run=server", "-f", "-"], &deployment.to_string()).accepted();
        assert_eq!(applied.stderr.contains("host namespaces (hostNetwork=true)"), is_warned, "{level}: {applied:#?}");
    }
}

/// Collects the paths whose stored value differs from the rendered one.
fn compare(kind: &str, at: &str, rendered: Option<&Value>, stored: &Value, filled: &mut Vec<String>) {
    match (rendered, stored) {
        (Some(Value::Object(rendered)), Value::Object(stored)) => {
            for (field, value) in stored {
                compare(kind, &format!("{at}/{}", field.replace('/', "~1")), rendered.get(field), value, filled);
            }
        }
        (Some(Value::Array(rendered)), Value::Array(stored)) if rendered.len() == stored.len() => {
            for (index, value) in stored.iter().enumerate() {
                compare(kind, &format!("{at}/{index}"), rendered.get(index), value, filled);
            }
        }
        (rendered, stored) if rendered == Some(stored) => {}
        // Older API servers print `creationTimestamp: null`.
        (None, Value::Null) => {}
        _ => filled.push(format!("{kind}: {at}")),
    }
}

/// Returns true if the API server of this run has the kinds of a row.
fn is_served(row: &Row) -> bool {
    row.values["policies"]["presets"] != true || Feature::MutatingPolicies.is_served()
}

/// Returns a row's objects, those of a namespace in one of these tests.
fn rendered(helm: &Helm, row: &Row) -> Vec<Value> {
    let (namespace, _) = NAMESPACES[usize::from(row.values["hostNetwork"] == true)];
    let mut objects = helm.render(&row.values);
    for object in objects.iter_mut().filter(|object| object["metadata"]["namespace"].is_string()) {
        object["metadata"]["namespace"] = namespace.into();
    }
    objects
}

/// Returns the CRD of a kind of others.
fn definition(kind: &Value) -> Value {
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": kind["spec"]}});
    crd(kind["group"].as_str().unwrap(), kind["kind"].as_str().unwrap(), &[version("v1", &schema)])
}

/// A kubectl, the namespace, and the kinds of others.
fn prepared() -> Option<(Kubectl, Helm)> {
    let cluster = Cluster::shared()?;
    let kubectl = cluster.control_plane.kubectl("chart");
    for (name, level) in NAMESPACES {
        let labels = json!({"pod-security.kubernetes.io/enforce": level, "pod-security.kubernetes.io/warn": level});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        // Tests that run side by side may both be first.
        kubectl.run_with(&["apply", "--server-side", "-f", "-"], &namespace.to_string()).accepted();
    }
    let kinds = parse(OTHERS);
    let definitions: Vec<Value> = kinds.as_array().unwrap().iter().map(definition).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": definitions});
    kubectl.run_with(&["apply", "--server-side", "-f", "-"], &list.to_string()).accepted();
    for definition in definitions {
        let (group, plural) = (&definition["spec"]["group"], &definition["spec"]["names"]["plural"]);
        let path = format!("/apis/{}/v1/{}", group.as_str().unwrap(), plural.as_str().unwrap());
        let client = cluster.control_plane.client();
        for_some(SETTLED, || client.get(&path).is_ok_and(|answer| answer.is_success()).then_some(()))
            .unwrap_or_else(|| panic!("{path} is never served"));
    }
    Some((kubectl, Helm::offline()?))
}
