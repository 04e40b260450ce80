//! CRDs with many versions: a few of those are registered, and everything of others.

use serde_json::{Map, Value, json};

use super::{KINDS, SETTLED, get, post_bad, wait_for_some, with_rights};
use crate::support::cluster::{Cluster, say, some_or_all};
use crate::support::kind::{Kind, parse};
use fixtures::crds;
use fixtures::wait::eventually;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns a CRD with unions at `spec` and at `status` of all its versions, but of one only at `spec`.
fn greedy(number: usize, versions: usize) -> Value {
    let names = || (0..versions).map(|number| if number == 0 { "v1".to_owned() } else { format!("v{number:0>62}") });
    let part = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let schema = json!({"type": "object", "properties": {"spec": part, "status": part}});
    let version = |name: String| {
        let mut version = crds::version(&name, &schema);
        version["subresources"] = json!({"status": {}});
        version
    };
    let union = json!([{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]);
    let unions = names().map(|name| {
        let mut places = json!({"/properties/spec": union});
        if name != "v1" {
            places["/properties/status"] = union.clone();
        }
        (name, places)
    });
    let annotation = Value::from(unions.collect::<Map<_, _>>()).to_string();
    let all: Vec<Value> = names().map(version).collect();
    crds::annotated(&format!("greedy{number}.example"), "Greedy", &all, &annotation)
}

#[test]
fn crds_with_many_versions_keep_no_other_from_being_registered() {
    let Some(mut cluster) = Cluster::registering(&with_rights(), &["--registration-delay=0s"]) else { return };
    // An API server takes in a CRD of a thousand versions, but only in half a minute.
    let (definitions, versions) = some_or_all((2, 100), (3, 1_100));
    let group = {
        let rollouts = Kind::new(&cluster, "rollout");
        rollouts.apply_definition_without_unions();
        rollouts.group().to_owned()
    };
    // The webhook refuses a CRD with so many versions when it is applied. Nothing does while it is away.
    wait_for_some("it registers", || get(&cluster, KINDS[1]).body["webhooks"].as_array().map(drop));
    cluster.webhook.stop();
    for number in 0..definitions {
        let answer =
            cluster.control_plane.client().post(CRDS, &greedy(number, versions)).expect("the API server answers");
        assert_eq!(answer.status, 201, "{:?}", answer.body["message"]);
    }
    cluster.webhook.resume().unwrap();

    // kubectl would ask for all versions.
    let rollouts = Kind::in_group(&cluster, "rollout", group);
    let annotations = parse(&rollouts.annotated())["metadata"]["annotations"].clone();
    let definition = format!("{CRDS}/{}", rollouts.definition_name());
    let patch = json!({"metadata": {"annotations": annotations}}).to_string();
    let answer = rollouts.client().send("PATCH", &definition, "application/merge-patch+json", patch.as_bytes());
    assert_eq!(answer.expect("the API server answers").status, 200);
    let rules = || -> Vec<Value> {
        let webhooks = get(&cluster, KINDS[0]).body["webhooks"].as_array().cloned().unwrap_or_default();
        webhooks.into_iter().flat_map(|webhook| webhook["rules"].as_array().cloned().unwrap_or_default()).collect()
    };
    let all_are_registered = || {
        let groups: Vec<Value> = rules().into_iter().map(|rule| rule["apiGroups"][0].clone()).collect();
        let is_greedy = |group: &&Value| group.as_str().is_some_and(|group| group.starts_with("greedy"));
        groups.contains(&json!(rollouts.group())) && groups.iter().filter(is_greedy).count() == definitions
    };
    assert!(eventually(4 * SETTLED, all_are_registered), "{}", cluster.webhook.log());
    let most = rules().iter().map(|rule| rule["apiVersions"].as_array().unwrap().len()).max();
    assert_eq!(most, Some(64));
    assert!(eventually(SETTLED, || post_bad(&rollouts, "default") == 422), "{}", cluster.webhook.log());

    let log = cluster.webhook.log();
    let fault = format!("{versions} versions are served, and 64 are told apart");
    let told = log.lines().filter(|line| line.contains(&fault) && line.contains("WARN")).count();
    say(&format!("{told} faults for {definitions} CRDs, {} bytes of rules", json!(rules()).to_string().len()));
    assert!(told >= definitions, "{log}");
}
