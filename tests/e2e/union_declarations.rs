//! `UnionDeclaration`s of custom resources that somebody else owns: conditions, and bad ones among good ones.

use serde_json::{Value, json};

use crate::builtin::{condition, verdict, wait_for_verdict};
use crate::support::cluster::{AnyCluster, Cluster};
use crate::support::kind::{self, Kind, parse};
use crate::support::kubectl::Kubectl;
use crate::support::webhook::Webhook;
use fixtures::reviews::{self, declaration};
use fixtures::wait::{SETTLED, eventually};

#[test]
fn a_declaration_takes_effect_when_its_kind_appears_and_ends_when_it_is_deleted() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let kind = Kind::new(cluster, "source");
    let kubectl = kind.kubectl();
    let name = format!("early.{}", kind.group());
    let unions = json!([{"path": "spec", "fieldsToDiscriminateBy": {"git": "Git", "bucket": "Bucket", "oci": "OCI"}}]);
    kubectl.apply(&declaration(&name, kind.group(), "Source", &json!({"unions": unions})).to_string()).accepted();
    let early = wait_for_verdict(kind.client(), &name);
    assert_eq!((&*early.status, &*early.reason), ("Unknown", "TargetNotFound"), "{early:?}");
    assert_eq!(columns(kubectl, &name)[2..4], ["0/1", "Unknown"]);
    assert!(early.message.contains("Source"), "the condition names the kind that is missing: {early:?}");

    kind.apply_definition_without_unions();
    assert!(
        eventually(SETTLED, || verdict(kind.client(), &name).is_some_and(|verdict| verdict.status == "True")),
        "it is accepted once there is a schema: {:?}",
        verdict(kind.client(), &name)
    );
    assert_eq!(columns(kubectl, &name)[2..4], ["1/1", "True"]);
    kind.enforce();
    kind.apply("x", &json!({"git": {"url": "https://example.com/a.git"}})).accepted();
    let bucket = json!({"spec": {"bucket": {"name": "b"}}});
    kind.merge("x", &bucket).accepted().warned(&["spec.git: cleared because `bucket` was set"]);
    assert!(kind.spec("x")["git"].is_null() && kind.spec("x")["bucket"] == json!({"name": "b"}), "{}", kind.spec("x"));

    kubectl.run(&["delete", "uniondeclaration", &name]).accepted();
    let both = kind.object("y", &json!({"git": {"url": "https://example.com/a.git"}, "bucket": {"name": "b"}}));
    assert!(eventually(SETTLED, || kind.post_dry(&both).unwrap().is_success()), "nothing is refused any more");
}

#[test]
fn one_that_is_bad_says_why_and_the_good_ones_stay_in_force() {
    // One where declarations that can't be right are stored: no webhook is asked about them.
    let Some(cluster) = Cluster::shared() else { return };
    let kind = Kind::new(cluster, "rollout");
    let kubectl = kind.kubectl();
    let mut crd = parse(&kind.without_unions());
    let spec = &mut kind::spec(&mut crd)["properties"];
    spec["kept"] = json!({
        "type": "object",
        "properties": {"a": {"type": "object"}},
    });
    kind.apply_definition_text(&crd.to_string());
    let declare = |name: &str, of: &str, spec: &Value| {
        kubectl.apply(&declaration(name, kind.group(), of, spec).to_string()).accepted();
    };
    let strategy = |more: Value| {
        let mut members = json!({
            "RollingUpdate": {"name": "rollingUpdate", "optional": true}, "Recreate": {},
            "Canary": {"name": "canary"}, "BlueGreen": {"name": "blueGreen"},
        });
        json_patch::merge(&mut members, &more);
        json!({"unions": [{"path": "spec.strategy", "discriminator": "type", "fieldMembers": members}]})
    };
    let good = format!("a-good.{}", kind.group());
    declare(&good, "Rollout", &strategy(json!({})));
    assert_eq!(wait_for_verdict(kind.client(), &good).status, "True");
    kind.enforce();
    let still_in_force = || {
        let invalid = kind.object("x", &json!({"strategy": {"type": "Canary"}}));
        assert_eq!(kind.post_dry(&invalid).unwrap().status, 422, "the good one is in force");
    };
    still_in_force();

    let list = |path: &str| json!({"unions": [{"path": path, "fieldsToDiscriminateBy": {"a": "A"}}]});
    let mut of_version = list("spec.kept");
    of_version["target"]["versions"] = json!(["v9"]);
    let rows = [
        ("unparsable", "Rollout", list("spec..strategy["), "False", "spec..strategy["),
        ("contradicting", "Rollout", strategy(json!({"Canary": {"optional": true}})), "False", "spec.strategy"),
        ("not-in-enum", "Rollout", strategy(json!({"Unheard": {"name": "canary"}})), "False", "Unheard"),
        // A place, a kind or a version that the cluster lacks is not an error.
        ("nowhere", "Rollout", list("spec.nowhere"), "True", "no `spec.nowhere`"),
        ("no-kind", "Nothing", list("spec.kept"), "Unknown", "Nothing"),
        ("no-version", "Rollout", of_version, "True", "no version `v9`"),
    ];
    for (name, of, spec, accepted, words) in rows {
        let name = format!("{name}.{}", kind.group());
        declare(&name, of, &spec);
        let mut verdict = wait_for_verdict(kind.client(), &name);
        assert_eq!(verdict.status, accepted, "{name}: {verdict:?}");
        if accepted != "False" {
            verdict = condition(kind.client(), &name, "InForce").expect("both conditions are written at once");
            assert!(verdict.status == "False" && verdict.message.starts_with("0 of 1 "), "{name}: {verdict:?}");
        }
        assert!(!verdict.reason.is_empty() && verdict.message.contains(words), "{name}: {verdict:?}");
        still_in_force();
        kubectl.run(&["delete", "uniondeclaration", &name]).accepted();
    }
    assert_eq!(wait_for_verdict(kind.client(), &good).status, "True");
}

#[test]
fn what_an_older_crd_lacks_is_left_out_and_comes_back_with_the_upgrade() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let kind = Kind::new(cluster, "rollout");
    let kubectl = kind.kubectl();
    let mut newer = parse(&kind.without_unions());
    let object = json!({"type": "object"});
    kind::spec(&mut newer)["properties"]["kept"] =
        json!({"type": "object", "properties": {"a": object, "b": object, "c": object}});
    let mut older = newer.clone();
    let strategy = &mut kind::spec(&mut older)["properties"]["strategy"]["properties"];
    strategy.as_object_mut().unwrap().remove("blueGreen").expect("the sample has it");
    kind.apply_definition_text(&older.to_string());

    let name = format!("library.{}", kind.group());
    let unions = json!([
        {"path": "spec.strategy", "discriminator": "type", "fieldMembers": {
            "RollingUpdate": {"name": "rollingUpdate", "optional": true}, "Recreate": {},
            "Canary": {"name": "canary"}, "BlueGreen": {"name": "blueGreen"}}},
        {"path": "spec.kept", "fieldsToDiscriminateBy": {"a": "A", "b": "B"}},
        {"path": "spec.kept", "fieldsToDiscriminateBy": {"c": "C", "unborn": "Unborn"}},
    ]);
    let spec = json!({"target": {"versions": ["v1"]}, "unions": unions});
    kubectl.apply(&declaration(&name, kind.group(), "Rollout", &spec).to_string()).accepted();
    assert_eq!(wait_for_verdict(kind.client(), &name).status, "True");
    let printed = kubectl.run(&["get", "ud", &name]).accepted().stdout;
    let header: Vec<_> = printed.lines().next().expect("kubectl prints a header").split_whitespace().collect();
    assert_eq!(header, ["NAME", "GROUP", "TARGET", "UNIONS", "ACCEPTED", "INFORCE", "AGE"]);
    assert_eq!(columns(kubectl, &name), [kind.group(), "Rollout", "2/3", "True", "True"]);
    let in_force = condition(kind.client(), &name, "InForce").expect("both conditions are written at once");
    assert_eq!((&*in_force.status, &*in_force.reason), ("True", "UnionsInForce"));
    for words in
        ["2 of 3 unions are in force", "spec.strategy.type (v1)", "`blueGreen`", "selects no member", "`unborn`"]
    {
        assert!(in_force.message.contains(words), "{words}: {in_force:?}");
    }

    kind.enforce();
    let dry = |spec: &Value| kind.post_dry(&kind.object("x", spec)).unwrap().status;
    let (both, green) = (json!({"kept": {"a": {}, "b": {}}}), json!({"strategy": {"type": "BlueGreen"}}));
    assert_eq!(dry(&both), 422, "a whole union is in force");
    assert_eq!(dry(&json!({"strategy": {"type": "Canary"}})), 422, "the rest of the other one is in force");
    assert_eq!(dry(&green), 201, "the value selects no member");

    kubectl.apply(&newer.to_string()).accepted();
    assert!(eventually(SETTLED, || dry(&green) == 422), "the member is in force after the upgrade");
    let told = || condition(kind.client(), &name, "InForce").is_some_and(|it| !it.message.contains("`blueGreen`"));
    assert!(eventually(SETTLED, told), "{:?}", condition(kind.client(), &name, "InForce"));
    assert_eq!(columns(kubectl, &name), [kind.group(), "Rollout", "2/3", "True", "True"]);
    kubectl.run(&["delete", "uniondeclaration", &name]).accepted();
}

/// Returns what `kubectl get` prints in the columns GROUP, TARGET, UNIONS, ACCEPTED and INFORCE.
fn columns(kubectl: &Kubectl, name: &str) -> [String; 5] {
    let printed = kubectl.run(&["get", "ud", name, "--no-headers"]).accepted().stdout;
    let cells: Vec<_> = printed.split_whitespace().skip(1).take(5).map(str::to_owned).collect();
    cells.try_into().unwrap_or_else(|cells| panic!("too few cells: {cells:?}"))
}

#[test]
fn what_built_in_types_publish_counts_only_where_an_enum_confirms_its_values() {
    let Some(cluster) = Cluster::shared() else { return };
    let webhook =
        Webhook::of_cluster(&cluster.control_plane.webhook_kubeconfig(), &["--builtin-unions=openapi"]).unwrap();
    let named = |value: &str| eventually(SETTLED, || webhook.log().contains(value));
    // Not in the enum of `type`, and a discriminator that has no enum.
    assert!(named("`LocalhostProfile`") && named("`Queuing`"), "{}", webhook.log());

    let profile = json!({"type": "Localhost", "localhostProfile": "profiles/audit.json"});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "default"},
        "spec": {"securityContext": {"seccompProfile": profile}, "containers": [{"name": "c", "image": "i"}]},
    });
    let review = reviews::review("1", "CREATE", Some(&pod), None);
    for phase in ["/mutate", "/validate"] {
        let answer = webhook.client().post(phase, &review).unwrap().body;
        assert_eq!(answer["response"], json!({"uid": "1", "allowed": true}), "{phase}");
    }
}
