//! Evidence that a policy cannot read, or that is unusually large. `bad_input` of `kube-unions-core` has the same for the webhook.

use serde_json::{Value, json};

use super::player::{APPLIER, OTHER};
use super::rows::{Enforcement, group};
use super::server::Server;
use crate::support::client_side::{ANNOTATION, MANAGER, annotated};
use crate::support::cluster::some_or_all;
use fixtures::crds::custom_resource;

const MERGE: &str = "application/merge-patch+json";

fn collection() -> String {
    format!("/apis/{}/v1/namespaces/default/things", group(Enforcement::Policies))
}

fn object(name: &str, plain: &Value) -> Value {
    custom_resource(group(Enforcement::Policies), "Thing", name, &json!({"spec": {"plain": plain}}))
}

fn plain(server: &Server, name: &str) -> Value {
    server.stored(&format!("{}/{name}", collection())).expect("the object is stored")["spec"]["plain"].clone()
}

#[test]
fn an_annotation_that_a_policy_cannot_read_is_no_evidence_but_for_the_text_of_members() {
    let Some(server) = Server::with_policies() else { return };
    let good = annotated(&object("x", &json!({"a": "x", "b": "x"})));
    let good = good["metadata"]["annotations"][ANNOTATION].as_str().unwrap();
    let changed = |field: &str, value: Value| {
        let mut manifest: Value = serde_json::from_str(good).unwrap();
        manifest[field] = value;
        manifest.to_string()
    };
    // A policy can only look for the text of a member.
    for (about, text, is_refused) in [
        ("good", good.to_owned(), true),
        ("empty", String::new(), false),
        ("no-json", "{not json".to_owned(), false),
        ("no-object", json!(["a", "b"]).to_string(), false),
        ("null", "null".to_owned(), false),
        ("deep", "[".repeat(100_000), false),
        ("without-fields", changed("spec", json!(7)), false),
        ("cut", good.trim_end().trim_end_matches('}').to_owned(), true),
        ("of-another-kind", changed("kind", json!("Other")), true),
        ("of-another-version", changed("apiVersion", json!("other.example/v1")), true),
    ] {
        let name = format!("annotation-{about}");
        let mut stored = object(&name, &json!({"a": "x"}));
        stored["metadata"]["annotations"] = json!({ANNOTATION: text});
        let created = server.send("POST", &format!("{}?{MANAGER}", collection()), "application/json", &stored);
        assert!(created.is_success(), "{created:?}");
        // The field manager of `kubectl apply` adds the other member, and leaves the annotation alone.
        let path = format!("{}/{name}?{MANAGER}", collection());
        let answer = server.send("PATCH", &path, MERGE, &json!({"spec": {"plain": {"b": "x"}}}));
        let (status, want) = if is_refused { (422, json!({"a": "x"})) } else { (200, json!({"b": "x"})) };
        assert_eq!((answer.status, plain(server, &name)), (status, want), "{about}: {answer:?}");
    }
}

#[test]
fn many_managers_change_no_answer_of_a_policy() {
    let Some(server) = Server::with_policies() else { return };
    let path = format!("{}/many-managers", collection());
    let apply = |manager: &str, plain: &Value| server.apply_as(manager, &path, &object("many-managers", plain));
    assert!(apply(APPLIER, &json!({"a": "x"})).is_success());
    // Each owns a label, or an annotation.
    let managers = some_or_all(20, 60);
    for number in 0..managers {
        let mut labelled = object("many-managers", &Value::Null);
        labelled.as_object_mut().unwrap().remove("spec");
        labelled["metadata"]["labels"] = json!({format!("l{number}"): "x"});
        let applied = server.apply_as(&format!("manager{number}"), &path, &labelled);
        assert!(applied.is_success(), "{applied:?}");
        let update = json!({"metadata": {"annotations": {format!("a{number}"): "x"}}});
        let updated = server.send("PATCH", &format!("{path}?fieldManager=controller{number}"), MERGE, &update);
        assert!(updated.is_success(), "{updated:?}");
    }
    let stored = server.stored(&path).unwrap();
    assert!(stored["metadata"]["managedFields"].as_array().unwrap().len() > managers, "{stored}");

    let refused = apply(APPLIER, &json!({"a": "x", "b": "x"}));
    let words = "the applied manifest sets `a` and `b`; keep one";
    assert!(refused.body["message"].as_str().is_some_and(|message| message.contains(words)), "{refused:?}");
    let switched = apply(OTHER, &json!({"b": "x"}));
    assert!(switched.is_success(), "{switched:?}");
    assert_eq!(plain(server, "many-managers"), json!({"b": "x"}));
}
