//! An account that may create CRDs and nothing else cannot change how other kinds are checked.

use fixtures::crds;
use fixtures::reviews::declaration;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::registration::with_rights;
use crate::support::cluster::Cluster;
use crate::support::http::Client;
use fixtures::wait::{SETTLED, eventually};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// An account that may create and get CRDs.
const AUTHOR: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: crd-author, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: crd-author}
rules:
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: crd-author}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crd-author}
subjects: [{kind: ServiceAccount, name: crd-author, namespace: default}]
";

/// Returns a CRD whose objects have a union of two fields at `place`. A version is a name, and true if the version is served.
fn crd(group: &str, plural: &str, kind: &str, versions: &[(&str, bool)], place: &str, fields: [&str; 2]) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut schema = json!({"type": "object", "properties": {fields[0]: any, fields[1]: any}});
    let mut pointer = String::new();
    if !place.is_empty() {
        schema = json!({"type": "object", "properties": {place: schema}});
        pointer = format!("/properties/{place}");
    }
    let union = json!({pointer: [{"fields-to-discriminateBy": {fields[0]: "A", fields[1]: "B"}}]});
    let unions: Value = versions.iter().map(|(name, _)| ((*name).to_owned(), union.clone())).collect();
    let versions = versions.iter().enumerate().map(|(number, (name, served))| {
        json!({"name": name, "served": served, "storage": number == 0, "schema": {"openAPIV3Schema": schema}})
    });
    let versions: Vec<Value> = versions.collect();
    let mut crd = crds::annotated(group, kind, &versions, &unions.to_string());
    crd["metadata"]["name"] = format!("{plural}.{group}").into();
    crd["metadata"]["annotations"]["api-approved.kubernetes.io"] = "unapproved, testing".into();
    crd["spec"]["names"]["plural"] = plural.into();
    crd
}

#[track_caller]
fn create(author: &Client, crd: &Value) {
    let answer = author.post(DEFINITIONS, crd).expect("the API server answers");
    assert_eq!(answer.status, 201, "{answer:?}");
}

/// Returns the resources that both configurations send to the webhook, without declarations: `group/version/resource`.
pub(crate) fn registered(client: &Client) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/kube-unions");
        let configuration = client.get(&path).expect("the API server answers").body;
        for webhook in configuration["webhooks"].as_array().into_iter().flatten() {
            let name = webhook["name"].as_str().unwrap_or_default();
            if !name.starts_with("mutate.") && !name.starts_with("validate.") {
                continue;
            }
            for rule in webhook["rules"].as_array().into_iter().flatten() {
                let texts = |field: &str| -> Vec<String> { serde_json::from_value(rule[field].clone()).unwrap() };
                for (group, version) in texts("apiGroups").iter().zip(texts("apiVersions")) {
                    all.extend(texts("resources").iter().map(|resource| format!("{group}/{version}/{resource}")));
                }
            }
        }
    }
    all
}

#[track_caller]
fn wait_until_registered(cluster: &Cluster, wanted: &[&str]) {
    let wanted: BTreeSet<String> = wanted.iter().map(|&it| it.to_owned()).collect();
    let client = cluster.control_plane.client();
    if !eventually(SETTLED, || registered(client) == wanted) {
        assert_eq!(registered(client), wanted, "\n{}", cluster.webhook.log());
    }
}

#[test]
fn a_crd_never_takes_over_a_kind_that_is_served_already() {
    let setup = format!("{}---{AUTHOR}", with_rights());
    let Some(cluster) = Cluster::registering(&setup, &["--registration-delay=0s"]) else { return };
    let author = cluster.control_plane.account_client("default", "crd-author");
    let hostile = [
        crd(
            "rbac.authorization.k8s.io",
            "rolebindings",
            "RoleBinding",
            &[("v1", true), ("v2foo", true)],
            "",
            ["roleRef", "subjects"],
        ),
        crd(
            "networking.k8s.io",
            "networkpolicies",
            "NetworkPolicy",
            &[("v1", true), ("v1foo", true)],
            "spec",
            ["ingress", "egress"],
        ),
        crd(
            "coordination.k8s.io",
            "leases",
            "Foo",
            &[("v1", true), ("v2foo", true)],
            "spec",
            ["holderIdentity", "leaseDurationSeconds"],
        ),
        // Another resource of a kind that the server serves itself, in a version that sorts before the server's.
        crd("storage.k8s.io", "csinodes", "StorageClass", &[("v0", true)], "spec", ["a", "b"]),
        // A resource that no built-in version has: the server does not serve it either.
        crd("coordination.k8s.io", "foos", "Bar", &[("v2foo", true)], "spec", ["a", "b"]),
    ];
    for crd in &hostile {
        create(&author, crd);
    }
    // An approved group whose name looks like a built-in one: its CRDs count. It comes last, so that the webhook knows all others by then.
    create(&author, &crd("gateway.networking.k8s.io", "gateways", "Gateway", &[("v1", true)], "spec", ["a", "b"]));
    let only = ["gateway.networking.k8s.io/v1/gateways"];
    wait_until_registered(&cluster, &only);

    assert!(eventually(SETTLED, || cluster.webhook.metric("kube_unions_declaration_faults") == 5));
    assert_eq!(cluster.webhook.metric("kube_unions_own_groups_known"), 1);
    let log = cluster.webhook.log();
    for crd in &hostile {
        let (name, group) = (crd["metadata"]["name"].as_str().unwrap(), crd["spec"]["group"].as_str().unwrap());
        let told = |line: &str| line.contains(name) && line.contains("serves this group from its own code");
        assert!(log.lines().any(told), "{name} of {group}: {log}");
    }

    assert_eq!(registered(cluster.control_plane.client()), BTreeSet::from(only.map(str::to_owned)));

    // A declaration targets the API server's own kind and resource, whatever a CRD says about the kind.
    let fields = json!({"mountOptions": "Options", "allowedTopologies": "Topologies"});
    let spec = json!({"unions": [{"path": "", "fieldsToDiscriminateBy": fields}]});
    let declared = declaration("classes", "storage.k8s.io", "StorageClass", &spec);
    cluster.control_plane.kubectl("takeover").apply(&declared.to_string()).accepted();
    wait_until_registered(&cluster, &["gateway.networking.k8s.io/v1/gateways", "storage.k8s.io/v1/storageclasses"]);
    let path = "/apis/kube-unions.dev/v1alpha1/uniondeclarations/classes";
    let client = cluster.control_plane.client();
    let accepted = || client.get(path).unwrap().body["status"]["conditions"][0]["status"] == "True";
    assert!(eventually(SETTLED, accepted), "{}", cluster.webhook.log());
    second_crds(&cluster, &author, &["gateway.networking.k8s.io/v1/gateways", "storage.k8s.io/v1/storageclasses"]);
}

/// A second CRD of a kind, and versions that are not served, change nothing. `before` is registered already.
fn second_crds(cluster: &Cluster, author: &Client, before: &[&str]) {
    let faults = cluster.webhook.metric("kube_unions_declaration_faults");
    // The first by creation, the last by name.
    create(author, &crd("second.example", "widgets", "Widget", &[("v1", true), ("v2", false)], "spec", ["a", "b"]));
    wait_until_registered(cluster, &[before, &["second.example/v1/widgets"]].concat());
    let collection = "/apis/second.example/v1/namespaces/default/widgets?dryRun=All";
    let bad = json!({"apiVersion": "second.example/v1", "kind": "Widget", "metadata": {"name": "x"},
        "spec": {"a": {}, "b": {}}});
    let client = cluster.control_plane.client();
    let denied = || client.post(collection, &bad).is_ok_and(|answer| answer.status == 422);
    assert!(eventually(SETTLED, denied), "{}", cluster.webhook.log());

    create(author, &crd("second.example", "gadgets", "Widget", &[("v1", true)], "spec", ["a", "c"]));
    create(author, &crd("third.example", "others", "Other", &[("v1", true)], "spec", ["a", "b"]));
    wait_until_registered(cluster, &[before, &["second.example/v1/widgets", "third.example/v1/others"]].concat());
    let both = |line: &str| {
        ["gadgets.second.example", "`widgets.second.example`", "NamesAccepted"].iter().all(|word| line.contains(word))
    };
    assert!(eventually(SETTLED, || cluster.webhook.log().lines().any(both)), "{}", cluster.webhook.log());
    assert_eq!(cluster.webhook.metric("kube_unions_declaration_faults"), faults + 1);
    assert!(denied(), "{}", cluster.webhook.log());
}
