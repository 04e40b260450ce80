//! Evidence that cannot be read, or that is unusually large.

use serde_json::{Value, json};

use super::player::{APPLIER, OTHER};
use super::rows::{Enforcement, group};
use super::server::Server;
use crate::client_side::{ANNOTATION, MANAGER, annotated};
use crate::cluster::some_or_all;
use crate::http::Answer;

/// Our own kind on an API server.
struct Things {
    server: &'static Server,
    api_version: String,
    collection: String,
}

impl Things {
    fn new(server: &'static Server, enforcement: Enforcement) -> Self {
        let api_version = format!("{}/v1", group(enforcement));
        let collection = format!("/apis/{api_version}/namespaces/default/things");
        Self { server, api_version, collection }
    }

    fn object(&self, name: &str, plain: &Value) -> Value {
        json!({"apiVersion": self.api_version, "kind": "Thing",
            "metadata": {"name": name, "namespace": "default"}, "spec": {"plain": plain}})
    }

    fn create(&self, object: &Value) {
        let answer = self.server.send("POST", &format!("{}?{MANAGER}", self.collection), "application/json", object);
        assert!(answer.is_success(), "{answer:?}");
    }

    fn apply(&self, manager: &str, object: &Value) -> Answer {
        let name = object["metadata"]["name"].as_str().unwrap();
        self.server.apply_as(manager, &format!("{}/{name}", self.collection), object)
    }

    /// Sets member `b` as the field manager of `kubectl apply`, and leaves the annotation alone.
    fn set_b(&self, name: &str) -> Answer {
        let path = format!("{}/{name}?{MANAGER}", self.collection);
        self.server.send("PATCH", &path, "application/merge-patch+json", &json!({"spec": {"plain": {"b": "x"}}}))
    }

    fn plain(&self, name: &str) -> Value {
        let object = self.server.stored(&format!("{}/{name}", self.collection)).expect("the object is stored");
        object["spec"]["plain"].clone()
    }
}

/// Returns annotations that are no evidence, and whether they have the text of a named member in them.
fn annotations(things: &Things) -> Vec<(&'static str, String, bool)> {
    let good = annotated(&things.object("x", &json!({"a": "x", "b": "x"})));
    let good = good["metadata"]["annotations"][ANNOTATION].as_str().unwrap().to_owned();
    let of = |change: &dyn Fn(&mut Value)| {
        let mut manifest: Value = serde_json::from_str(&good).unwrap();
        change(&mut manifest);
        manifest.to_string()
    };
    vec![
        ("empty", String::new(), false),
        ("no-json", "{not json".to_owned(), false),
        ("no-object", json!(["a", "b"]).to_string(), false),
        ("null", "null".to_owned(), false),
        ("deep", "[".repeat(100_000), false),
        ("without-fields", of(&|it| it["spec"] = json!(7)), false),
        ("cut", good.trim_end().trim_end_matches('}').to_owned(), true),
        ("of-another-kind", of(&|it| it["kind"] = json!("Other")), true),
        ("of-another-version", of(&|it| it["apiVersion"] = json!("other.example/v1")), true),
    ]
}

/// Stores `a` with each annotation, sets `b`, and expects that `a` is cleared as without an annotation.
fn unreadable_annotations(server: &'static Server, enforcement: Enforcement) {
    let things = Things::new(server, enforcement);
    for (about, text, has_members) in annotations(&things) {
        let name = format!("annotation-{about}");
        let mut object = things.object(&name, &json!({"a": "x"}));
        object["metadata"]["annotations"] = json!({});
        object["metadata"]["annotations"][ANNOTATION] = json!(text);
        things.create(&object);
        let answer = things.set_b(&name);
        // A policy can only look for the text of a member.
        if has_members && enforcement == Enforcement::Policies {
            assert_eq!(answer.status, 422, "{about}: {answer:?}");
        } else {
            assert!(answer.is_success(), "{about}: {answer:?}");
            assert_eq!(things.plain(&name), json!({"b": "x"}), "{about}");
        }
    }
    // The same request contradicts an annotation that can be read.
    let mut object = annotated(&things.object("annotation-good", &json!({"a": "x", "b": "x"})));
    object["spec"]["plain"] = json!({"a": "x"});
    things.create(&object);
    let answer = things.set_b("annotation-good");
    assert_eq!(answer.status, 422, "{answer:?}");
    assert_eq!(things.plain("annotation-good"), json!({"a": "x"}));
}

#[test]
fn an_annotation_that_cannot_be_read_is_no_evidence() {
    Server::for_each(unreadable_annotations);
}

/// Has many managers own a part of an object, and expects the answers that one manager gets.
fn many_managers(server: &'static Server, enforcement: Enforcement) {
    let things = Things::new(server, enforcement);
    let path = format!("{}/many-managers", things.collection);
    assert!(things.apply(APPLIER, &things.object("many-managers", &json!({"a": "x"}))).is_success());
    // Each applies a label.
    let managers = some_or_all(20, 60);
    for number in 0..managers {
        let mut object = things.object("many-managers", &Value::Null);
        object.as_object_mut().unwrap().remove("spec");
        object["metadata"]["labels"] = json!({format!("l{number}"): "x"});
        let applied = things.apply(&format!("manager{number}"), &object);
        assert!(applied.is_success(), "{applied:?}");
        let update = json!({"metadata": {"annotations": {format!("a{number}"): "x"}}});
        let updated = format!("{path}?fieldManager=controller{number}");
        let updated = server.send("PATCH", &updated, "application/merge-patch+json", &update);
        assert!(updated.is_success(), "{updated:?}");
    }
    let stored = server.stored(&path).unwrap();
    assert!(stored["metadata"]["managedFields"].as_array().unwrap().len() > managers, "{stored}");

    let both = things.object("many-managers", &json!({"a": "x", "b": "x"}));
    let refused = things.apply(APPLIER, &both);
    let words = "the applied manifest sets `a` and `b`; keep one";
    assert!(refused.body["message"].as_str().is_some_and(|message| message.contains(words)), "{refused:?}");
    let switched = things.apply(OTHER, &things.object("many-managers", &json!({"b": "x"})));
    assert!(switched.is_success(), "{switched:?}");
    assert_eq!(things.plain("many-managers"), json!({"b": "x"}));
}

#[test]
fn many_managers_change_no_answer() {
    Server::for_each(many_managers);
}
