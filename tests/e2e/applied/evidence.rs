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

/// A policy finds the fields of a union in the text of the first client-side apply, and nothing else for one of them.
#[test]
fn the_text_of_a_first_apply_tells_what_it_sets_in_a_union_and_nowhere_else() {
    let Some(server) = Server::with_policies() else { return };
    let deep = |depth: usize| (0..depth).fold(json!("}"), |inner, _| json!({"x": inner}));
    let both = || json!({"spec": {"plain": {"a": "x", "b": "x"}}});
    let with = |more: Value| {
        let mut manifest = json!({"spec": {"plain": {"b": "x"}}});
        json_patch::merge(&mut manifest, &more);
        manifest.to_string()
    };
    let and_both = |more: Value| {
        let mut manifest = more;
        json_patch::merge(&mut manifest, &both());
        manifest.to_string()
    };
    let note = |text: &str| json!({"metadata": {"annotations": {"note": text}}});
    let spaced = "{ \"spec\": { \"plain\": { \"a\": \"x\", \"b\": \"x\" } } }";
    let rows = [
        ("both members", both().to_string(), true),
        ("both, with an end of line", format!("{}\n", both()), true),
        ("both, behind a text with brackets and quotes", and_both(note("}\"{\\")), true),
        ("both, behind a text that ends in a backslash", and_both(note("\\")), true),
        ("both, behind letters of many bytes", and_both(note("ä€𝄞")), true),
        ("both, behind six objects inside one another", and_both(json!({"data": deep(6)})), true),
        ("both, behind another union", and_both(json!({"spec": {"mapped": {"a": "x"}}})), true),
        ("both, and the other one is an object", with(json!({"spec": {"plain": {"a": {"x": "y"}}}})), true),
        ("both, and the other one is an empty list", with(json!({"spec": {"plain": {"a": []}}})), true),
        ("both, behind an object that has it", with(json!({"spec": {"plain": {"c": {"a": "x"}, "a": "x"}}})), true),
        ("one member", with(json!({})), false),
        ("the other member is null", "{\"spec\":{\"plain\":{\"a\":null,\"b\":\"x\"}}}".to_owned(), false),
        ("a label of its name", with(json!({"metadata": {"labels": {"a": "x"}}})), false),
        ("a field of its name at the root", with(json!({"a": "x"})), false),
        ("a field of its name beside the union", with(json!({"spec": {"a": "x"}})), false),
        ("a field of its name in a member", with(json!({"spec": {"plain": {"c": {"a": "x"}}}})), false),
        ("a field of its name in a list", with(json!({"spec": {"plain": {"c": [{"a": "x"}]}}})), false),
        ("a value of its name", with(json!({"spec": {"plain": {"b": "a"}}})), false),
        ("a name that ends so", with(json!({"spec": {"plain": {"x\"a": "x"}}})), false),
        ("a name that begins so", with(json!({"spec": {"plain": {"a\"": "x"}}})), false),
        ("another union", with(json!({"spec": {"mapped": {"a": "x"}}})), false),
        ("the union of an item", with(json!({"spec": {"plainItems": [{"name": "x", "a": "x"}]}})), false),
        ("a key of a map like the union", with(json!({"spec": {"plainValues": {"plain": {"a": "x"}}}})), false),
        ("the union of the status", with(json!({"status": {"plain": {"a": "x"}}})), false),
        ("an annotation like the path", with(json!({"metadata": {"spec": {"plain": {"a": "x"}}}})), false),
        ("JSON in a text", with(note(&both().to_string())), false),
        ("JSON in a text that closes objects", with(note("}},\"spec\":{\"plain\":{\"a\":\"x\"")), false),
        ("JSON in JSON in a text", with(note(&json!(both().to_string()).to_string())), false),
        // A policy does not find these, and learns of them from the second apply on.
        ("both, with spaces", spaced.to_owned(), false),
        ("both, behind twelve objects inside one another", and_both(json!({"data": deep(12)})), false),
        ("both, in a text that is too long", and_both(note(&"x".repeat(60_000))), false),
    ];
    let mut wrong = Vec::new();
    for (number, (about, text, is_refused)) in rows.into_iter().enumerate() {
        let name = format!("first-apply-{number}");
        let stored = object(&name, &json!({"a": "x"}));
        let created = server.send("POST", &format!("{}?{MANAGER}", collection()), "application/json", &stored);
        assert!(created.is_success(), "{created:?}");
        let applied = json!({"metadata": {"annotations": {ANNOTATION: text}}, "spec": {"plain": {"b": "x"}}});
        let answer = server.send("PATCH", &format!("{}/{name}?{MANAGER}", collection()), MERGE, &applied);
        let (status, want) = if is_refused { (422, json!({"a": "x"})) } else { (200, json!({"b": "x"})) };
        let got = (answer.status, plain(server, &name));
        if got != (status, want) {
            wrong.push(format!("{about}: {got:?} {}", answer.body["message"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
