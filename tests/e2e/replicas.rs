//! Replicas come to the same catalog whatever each of them has seen on the way.

use fixtures::crds;
use fixtures::dice::Dice;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::registration::with_rights;
use crate::support::cluster::{Cluster, say, some_or_all};
use crate::support::http::Client;
use crate::support::webhook::Webhook;
use fixtures::wait::eventually;

const SETTLED: Duration = Duration::from_mins(1);

const GROUP: &str = "replicas.example";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DECLARATIONS: &str = "/apis/kube-unions.dev/v1alpha1/uniondeclarations";

/// Names the seed of a run that is to be repeated.
const SEED: &str = "KUBE_UNIONS_E2E_SEED";

/// Returns dice of the seed that is given, or of one that is told.
pub(crate) fn dice() -> Dice {
    let given = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    let seed = given.unwrap_or_else(|| u64::from(now()));
    say(&format!("{SEED}={seed}"));
    Dice(seed)
}

/// Creates or changes an object, or tries to: what is wrong is refused while a webhook looks at it.
fn apply(client: &Client, collection: &str, object: &Value) {
    let name = object["metadata"]["name"].as_str().unwrap();
    let path = format!("{collection}/{name}?fieldManager=e2e&force=true");
    let answer = client.send("PATCH", &path, "application/apply-patch+yaml", object.to_string().as_bytes()).unwrap();
    // 409: its CRD is being deleted.
    assert!(answer.is_success() || [409, 422].contains(&answer.status), "{answer:?}");
}

/// A CRD of the kind of that number, with one of several annotations. Half of them are wrong.
fn definition(kind: usize, annotation: usize) -> Value {
    let union = |other: &str| json!([{"fields-to-discriminateBy": {"a": "A", other: "B"}}]);
    let text = match annotation {
        0 => json!({"v1": {"/properties/one": union("b")}}).to_string(),
        1 => json!({"v1": {"/properties/one": union("b"), "/properties/two": union("c")}}).to_string(),
        2 => json!({"v1": {"/properties/one": union("typo"), "/properties/two": union("b")}}).to_string(),
        3 => json!({"v1": {"/properties/one": 7, "/properties/nowhere": union("b")}}).to_string(),
        4 => "{".to_owned(),
        _ => json!({"v2": {"/properties/one": union("b")}}).to_string(),
    };
    let field = json!({"type": "string"});
    let object = json!({"type": "object", "properties": {"a": field, "b": field, "c": field}});
    let schema = json!({"type": "object", "properties": {"one": object, "two": object, "three": object}});
    crds::annotated(GROUP, &format!("Kind{kind}"), &[crds::version("v1", &schema)], &text)
}

/// A declaration of the kind of that number, or of a built-in type, right or wrong.
fn declaration(name: usize, kind: usize, content: usize) -> Value {
    let (target, path, right) = if kind < 3 {
        (json!({"group": GROUP, "kind": format!("Kind{kind}")}), "three", ["a", "b"])
    } else {
        (json!({"group": "apps", "kind": "Deployment"}), "spec.strategy", ["rollingUpdate", "type"])
    };
    let unions = match content {
        0 => json!([{"path": path, "fieldsToDiscriminateBy": {right[0]: "A", right[1]: "B"}}]),
        1 => json!([{"path": path, "fieldsToDiscriminateBy": {right[0]: "A", "typo": "B"}}]),
        _ => json!([{"path": "nowhere", "fieldsToDiscriminateBy": {"a": "A"}},
            {"path": path, "fieldsToDiscriminateBy": {right[0]: "C", right[1]: "D"}}]),
    };
    json!({"apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration",
        "metadata": {"name": format!("declaration-{name}")}, "spec": {"target": target, "unions": unions}})
}

fn change(client: &Client, dice: &mut Dice) {
    match dice.below(8) {
        0..4 => apply(client, DEFINITIONS, &definition(dice.below(3), dice.below(6))),
        4 => {
            client.delete(&format!("{DEFINITIONS}/kind{}s.{GROUP}", dice.below(3))).unwrap();
        }
        5 | 6 => apply(client, DECLARATIONS, &declaration(dice.below(4), dice.below(4), dice.below(3))),
        _ => {
            client.delete(&format!("{DECLARATIONS}/declaration-{}", dice.below(4))).unwrap();
        }
    }
}

fn digest(replica: &Webhook) -> i64 {
    replica.metric("kube_unions_catalog_digest")
}

fn versions(client: &Client) -> Vec<Value> {
    ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
        .map(|plural| format!("/apis/admissionregistration.k8s.io/v1/{plural}/kube-unions"))
        .map(|path| client.get(&path).unwrap().body["metadata"]["resourceVersion"].clone())
        .into()
}

/// True if the API server has worked off what was done to the CRDs: none is being deleted, each one is established, and the
/// OpenAPI document, which replicas read for a missing CRD, has their kinds and no others.
fn are_definitions_settled(client: &Client) -> bool {
    let established = |crd: &Value| {
        let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|it| it["type"] == "Established" && it["status"] == "True")
    };
    let definitions = client.get(DEFINITIONS).unwrap().body;
    let all: Vec<_> =
        definitions["items"].as_array().unwrap().iter().filter(|crd| crd["spec"]["group"] == GROUP).collect();
    let kinds = all.iter().map(|crd| crd["spec"]["names"]["kind"].as_str().unwrap().to_owned()).collect();
    all.iter().all(|crd| crd["metadata"]["deletionTimestamp"].is_null() && established(crd))
        && described_kinds(client) == kinds
}

/// Returns the kinds of the group that the OpenAPI document of the API server describes, without the kinds of lists.
fn described_kinds(client: &Client) -> BTreeSet<String> {
    let answer = client.get(&format!("/openapi/v3/apis/{GROUP}/v1")).unwrap();
    let schemas = answer.body["components"]["schemas"].as_object().cloned().unwrap_or_default();
    let kinds = schemas.values().filter_map(|schema| schema["x-kubernetes-group-version-kind"].as_array());
    let of_group = kinds.flatten().filter(|kind| kind["group"] == GROUP).filter_map(|kind| kind["kind"].as_str());
    of_group.filter(|kind| kind.starts_with("Kind") && !kind.ends_with("List")).map(str::to_owned).collect()
}

#[test]
fn replicas_agree_once_changes_stop_and_write_no_registration_any_more() {
    let Some(mut cluster) = Cluster::registering(&with_rights(), &["--registration-delay=0s"]) else { return };
    let mut second = cluster.webhook.replica(&[]).unwrap();
    let client = cluster.control_plane.new_client();
    let mut dice = dice();
    // The attack itself: an annotation that was good, is broken, and one replica has seen nothing but the broken one.
    apply(&client, DEFINITIONS, &definition(0, 1));
    assert!(eventually(SETTLED, || cluster.webhook.metric("kube_unions_registered") == 1));
    cluster.webhook.stop();
    apply(&client, DEFINITIONS, &definition(0, 2));
    cluster.webhook.resume().unwrap();
    let agree = |first: &Webhook, second: &Webhook| eventually(SETTLED, || digest(first) == digest(second));
    assert!(agree(&cluster.webhook, &second), "{}\n---\n{}", cluster.webhook.log(), second.log());

    for _ in 0..some_or_all(25, 60) {
        match dice.below(12) {
            // The faulty object is stored while that replica is away.
            0 | 1 => {
                cluster.webhook.stop();
                for _ in 0..=dice.below(4) {
                    change(&client, &mut dice);
                }
                cluster.webhook.resume().unwrap();
            }
            2 => {
                second.stop();
                change(&client, &mut dice);
                second.resume().unwrap();
            }
            _ => change(&client, &mut dice),
        }
    }

    let settled = |first: &Webhook, second: &Webhook| {
        digest(first) == digest(second)
            && [first, second].iter().all(|replica| replica.metric("kube_unions_registered") == 1)
    };
    assert!(eventually(SETTLED, || are_definitions_settled(&client)), "the API server settles");
    // One that starts now has seen nothing of all that. It comes to what the other one has, and writes nothing.
    let mut written = None;
    for _ in 0..3 {
        second.stop();
        second.resume().unwrap();
        let done = eventually(SETTLED, || settled(&cluster.webhook, &second));
        assert!(done, "{}\n---\n{}", cluster.webhook.log(), second.log());
        let versions = versions(&client);
        assert_eq!(*written.get_or_insert_with(|| versions.clone()), versions, "{}", second.log());
        std::mem::swap(&mut cluster.webhook, &mut second);
    }
}
