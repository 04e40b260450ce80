//! `--enforcement=policies`: `serve` keeps compiled policies in the cluster, and registers its webhook for the rest.
//!
//! The names of the webhook configurations are fixed: every test has a cluster of its own.

mod edits;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::registration::with_rights;
use crate::support::cluster::Cluster;
use crate::support::http::Client;
use crate::support::kind::Kind;
use crate::support::version::{Feature, lacks};
use crate::support::webhook::Webhook;
use crate::takeover;
use fixtures::crds;
use fixtures::reviews::declaration;
use fixtures::wait::eventually;

/// The deadline of work in the background, far above the usual time.
const SETTLED: Duration = Duration::from_mins(1);

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const POLICIES: [&str; 4] = [
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
];

/// The rights that the enforcement by policies needs beside those of the registration.
pub(crate) const RIGHTS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kube-unions-policies}
rules:
- apiGroups: [admissionregistration.k8s.io]
  resources:
  - mutatingadmissionpolicies
  - mutatingadmissionpolicybindings
  - validatingadmissionpolicies
  - validatingadmissionpolicybindings
  verbs: [get, list, watch, create, update, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kube-unions-policies}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kube-unions-policies}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: kube-unions}]
";

const MODE: [&str; 3] = ["--enforcement=policies", "--registration-delay=0s", "--handover-delay=2s"];

fn start() -> Option<Cluster> {
    if lacks(Feature::MutatingPolicies) {
        return None;
    }
    Cluster::registering(&format!("{}---{RIGHTS}", with_rights()), &MODE)
}

/// Returns the policies and bindings that `serve` keeps, as `resource/name`, each with the object.
pub(crate) fn policies(client: &Client) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for plural in POLICIES {
        let path = format!("{ADMISSION}/{plural}?labelSelector=kube-unions.dev%2Fmaintained-by%3Dserve");
        let list = client.get(&path).expect("the API server answers");
        assert!(list.is_success(), "{list:?}");
        for item in list.body["items"].as_array().expect("a list has items") {
            all.push((format!("{plural}/{}", item["metadata"]["name"].as_str().unwrap()), item.clone()));
        }
    }
    all
}

/// Returns the kinds that have policies, as `group/Kind`.
pub(crate) fn kinds(client: &Client) -> BTreeSet<String> {
    let kind = |(_, object): &(String, Value)| {
        object["metadata"]["annotations"]["kube-unions.dev/kind"].as_str().unwrap_or("none").to_owned()
    };
    policies(client).iter().map(kind).collect()
}

/// Returns the groups whose objects the API server sends to the webhook.
fn registered(client: &Client) -> BTreeSet<String> {
    let resources = takeover::registered(client).into_iter();
    resources.map(|resource| resource.split('/').next().unwrap_or_default().to_owned()).collect()
}

fn set<const N: usize>(items: [&str; N]) -> BTreeSet<String> {
    items.map(str::to_owned).into()
}

#[track_caller]
fn wait(cluster: &Cluster, what: &str, condition: impl FnMut() -> bool) {
    assert!(eventually(SETTLED, condition), "waited in vain until {what}:\n{}", cluster.webhook.log());
}

/// Waits until policies enforce so many kinds, and the webhook none.
#[track_caller]
fn wait_until_covered(cluster: &Cluster, kinds: i64) {
    wait_until_covered_but(cluster, &[], kinds);
}

/// Waits until policies enforce so many kinds, and the webhook those of these groups.
#[track_caller]
fn wait_until_covered_but(cluster: &Cluster, groups: &[&str], kinds: i64) {
    let client = cluster.control_plane.client();
    let covered = || cluster.webhook.metric("kube_unions_policy_kinds_covered") == kinds;
    wait(cluster, "the webhook has the rest", || covered() && registered(client).iter().eq(groups));
}

/// Returns a CRD whose unions no policy can express: a member has a control character in its name.
fn inexpressible(group: &str) -> Value {
    let member = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let spec = json!({"type": "object", "properties": {"type": {"type": "string"}, "a\u{1}": member, "b": member}});
    let union = json!([{"discriminator": "type", "fields-to-discriminateBy": {"a\u{1}": "A", "b": "B"}}]);
    let annotation = json!({"v1": {"/properties/spec": union}}).to_string();
    crds::annotated(
        group,
        "Odd",
        &[crds::version("v1", &json!({"type": "object", "properties": {"spec": spec}}))],
        &annotation,
    )
}

fn create(client: &Client, crd: &Value) {
    let answer = client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
    let answer = answer.expect("the API server answers");
    assert_eq!(answer.status, 201, "{answer:?}");
}

fn written(webhook: &Webhook) -> i64 {
    webhook.metric("kube_unions_policy_writes_total{outcome=\"applied\"}")
}

#[test]
fn policies_follow_a_crd_that_appears_changes_and_goes_and_the_webhook_has_the_rest_if_there_is_one() {
    let Some(mut cluster) = start() else { return };
    let client = &cluster.control_plane.new_client();
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    let expected = format!("{}/Rollout", rollouts.group());
    wait_until_covered(&cluster, 1);
    assert_eq!(kinds(client), set([&expected]));
    rollouts.enforce();
    // `compile` has fewer policies and namespaces, unless it is told.
    let kubeconfig = format!("--kubeconfig={}", cluster.control_plane.admin_kubeconfig().display());
    let excluded = ["--exclude-namespace", "kube-system", "kube-unions"];
    for (ratcheting, number) in [("--ratcheting=enabled", 2), ("--ratcheting=warn", 3)] {
        let check = [&["compile", "--to=policies", "--check", ratcheting, &kubeconfig][..], &excluded].concat();
        let checked = crate::support::webhook::kube_unions(&check, "").accepted();
        assert_eq!(checked.stdout, format!("{number} policies of 1 kind are up to date\n"));
    }
    // The API server learns of the webhook's end in the background.
    wait(&cluster, "no write goes through the webhook", || {
        let before = cluster.webhook.reviews(rollouts.group(), "mutate");
        rollouts.enforce();
        cluster.webhook.reviews(rollouts.group(), "mutate") == before
    });

    create(client, &inexpressible("odd.example"));
    wait(&cluster, "the webhook has the rest", || registered(client) == set(["odd.example"]));
    assert_eq!(kinds(client), set([&expected]));
    wait(&cluster, "that is counted", || cluster.webhook.metric("kube_unions_policy_kinds_refused") == 1);

    // The union goes, and comes back.
    let before = policies(client);
    rollouts.kubectl().apply(&rollouts.without_unions()).accepted();
    wait(&cluster, "the policies go", || kinds(client).is_empty());
    rollouts.apply_definition();
    let specs = |all: Vec<(String, Value)>| -> Vec<_> {
        all.into_iter().map(|(name, object)| (name, object["spec"].clone())).collect()
    };
    wait(&cluster, "the same policies come back", || specs(policies(client)) == specs(before.clone()));

    rollouts.kubectl().run(&["delete", "crd", &rollouts.definition_name()]).accepted();
    wait(&cluster, "the policies go with the CRD", || kinds(client).is_empty());

    // Without a webhook, a kind that cannot be expressed is reported.
    rollouts.apply_definition();
    wait_until_covered_but(&cluster, &["odd.example"], 1);
    drop(rollouts);
    cluster.webhook.stop();
    let without = cluster.webhook.replica(&["--webhook=never"]).unwrap();
    let metric = |name: &str| without.metric(&format!("kube_unions_{name}"));
    let is_so = || registered(client).is_empty() && metric("policy_kinds_refused") == 1;
    assert!(eventually(SETTLED, is_so), "{}", without.log());
    assert!(without.log().contains("odd.example/v1, Kind=Odd"), "{}", without.log());
    let in_force = || metric("policies_desired") > 0 && metric("policies_desired") == metric("policies_in_sync");
    assert!(eventually(SETTLED, in_force), "{}", without.log());
    assert_eq!(kinds(client), set([&expected]));
}

/// Another writer has a name that `serve` wants.
fn objects_of_others_are_left_alone(cluster: &mut Cluster, group: &str) {
    let client = cluster.control_plane.new_client();
    let (name, object) = policies(&client).into_iter().find(|(name, _)| name.starts_with(POLICIES[2])).unwrap();
    let path = format!("{ADMISSION}/{name}");
    cluster.webhook.stop();
    let foreign = json!({"metadata": {"labels": {"kube-unions.dev/maintained-by": null}},
                         "spec": {"matchConstraints": {"objectSelector": {"matchLabels": {"of": "others"}}}}});
    let foreign = client.send("PATCH", &path, "application/merge-patch+json", foreign.to_string().as_bytes());
    let foreign = foreign.expect("the API server answers").body;
    assert_ne!(foreign["spec"], object["spec"]);
    cluster.webhook.resume().unwrap();
    wait(cluster, "the webhook has the kind", || registered(&client) == set([group]));
    assert!(cluster.webhook.log().contains("belongs to another writer"), "{}", cluster.webhook.log());
    let now = client.get(&path).expect("the API server answers").body;
    assert_eq!(now["metadata"]["resourceVersion"], foreign["metadata"]["resourceVersion"]);
    let answer = client.delete(&path).expect("the API server answers");
    assert!(answer.is_success(), "{answer:?}");
    wait_until_covered(cluster, 1);
}

/// The policies of a second kind follow what its declaration says of violations and normalisation.
fn follow_a_declaration(cluster: &Cluster) {
    let client = cluster.control_plane.client();
    let sources = Kind::new(cluster, "source");
    sources.apply_definition_without_unions();
    let works = || -> BTreeSet<String> {
        let of_kind = |name: &str| name.contains("bindings/") && name.contains(sources.group());
        let bindings = policies(client).into_iter().filter(|(name, _)| of_kind(name));
        let work = |(name, object): (String, Value)| {
            let actions = object["spec"]["validationActions"].as_array().into_iter().flatten();
            let actions: Vec<_> = actions.map(|action| action.as_str().unwrap_or_default()).collect();
            format!("{} {}", name.rsplit_once(sources.group()).map_or("", |(_, work)| work), actions.join("+"))
        };
        bindings.map(work).collect()
    };
    let (observe, both) = (["-audit Audit"], ["-normalize ", "-warn-audit Warn+Audit"]);
    for (normalization, actions, wanted) in
        [("Disabled", json!(["Audit"]), set(observe)), ("Enabled", json!(["Warn", "Audit"]), set(both))]
    {
        let spec = json!({"normalization": normalization, "validationActions": actions,
            "unions": [{"path": "spec", "fieldsToDiscriminateBy": {"git": "Git", "bucket": "Bucket", "oci": "OCI"}}]});
        let declared = declaration(&format!("observe.{}", sources.group()), sources.group(), "Source", &spec);
        sources.kubectl().apply(&declared.to_string()).accepted();
        wait(cluster, &format!("the policies are {wanted:?}"), || works() == wanted);
        wait_until_covered(cluster, 2);
    }
    sources.kubectl().run(&["delete", "uniondeclarations", "--all"]).accepted();
    sources.delete_definition();
    wait_until_covered(cluster, 1);
}

#[test]
fn two_replicas_write_each_object_once_and_declarations_other_writers_and_a_switch_to_the_webhook_are_followed() {
    let Some(mut cluster) = start() else { return };
    let other = cluster.webhook.replica(&[]).unwrap();
    let rollouts = Kind::new(&cluster, "rollout");
    rollouts.apply_definition();
    let client = cluster.control_plane.new_client();
    wait_until_covered(&cluster, 1);
    let count = i64::try_from(policies(&client).len()).unwrap();
    assert_eq!(written(&cluster.webhook) + written(&other), count, "\n{}---\n{}", cluster.webhook.log(), other.log());
    drop(other);

    let group = rollouts.group().to_owned();
    follow_a_declaration(&cluster);
    objects_of_others_are_left_alone(&mut cluster, &group);
    cluster.webhook.stop();
    let webhook = cluster.webhook.replica(&["--enforcement=webhook", "--remove-policies"]).unwrap();
    assert!(eventually(SETTLED, || registered(&client) == set([&group])), "{}", webhook.log());
    assert!(eventually(SETTLED, || policies(&client).is_empty()), "{}", webhook.log());
    assert_eq!(registered(&client), set([&group]));
    drop(webhook);

    cluster.webhook.resume().unwrap();
    wait_until_covered(&cluster, 1);
    cluster.webhook.stop();

    let kubeconfig = cluster.control_plane.admin_kubeconfig();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let removal = ["unregister", "--kubeconfig", kubeconfig, "--installation=else/else"];
    crate::support::webhook::kube_unions(&removal, "").accepted();
    assert!(!policies(&client).is_empty(), "another installation keeps them");
    let output = crate::support::webhook::kube_unions(&removal[..3], "").accepted();
    assert!(policies(&client).is_empty());
    assert!(output.stderr.contains("deleted ValidatingAdmissionPolicyBinding `unions-"), "{output:?}");
}
