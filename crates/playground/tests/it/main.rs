//! The engine's answers about the samples, and about inputs with faults.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets an unexpected state stops")]

mod objects;

use fixtures::files::root;
use kube_unions_manifests::ManifestFile;
use kube_unions_playground::answer;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Asks the engine, as the page does.
fn ask(definitions: &str, old: &str, new: &str) -> Value {
    ask_by("replace", definitions, old, new)
}

/// Asks the engine about another way of the write.
fn ask_by(way: &str, definitions: &str, old: &str, new: &str) -> Value {
    ask_question(&json!({"definitions": definitions, "old": old, "new": new, "way": way}))
}

fn ask_question(question: &Value) -> Value {
    serde_json::from_str(&answer(&question.to_string())).unwrap()
}

/// Returns the only document of a text.
fn document(text: &str) -> Value {
    let file = ManifestFile::read("text".into(), text.as_bytes().to_vec()).unwrap();
    serde_json::from_str(&file.documents()[0].text).unwrap()
}

fn rollout() -> String {
    fs::read_to_string(root().join("manifests/samples/rollout/crd.yaml")).unwrap()
}

#[test]
fn every_sample_is_answered_as_the_file_beside_it_says() {
    let (mut normalized, mut rejected) = (0, 0);
    for folder in fs::read_dir(root().join("manifests/samples")).unwrap().map(|entry| entry.unwrap().path()) {
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let definitions = format!("{}---\n{}", read("crd.yaml"), read("declaration.yaml"));
        for name in names(&folder) {
            let new = read(&format!("{name}.new.yaml"));
            let answer = ask(&definitions, &read(&format!("{name}.old.yaml")), &new);
            let want = document(&read(&format!("{name}.want.yaml")));
            let place = format!("{}/{name}: {answer:#}", folder.display());
            if let Some(causes) = want.get("causes") {
                let wanted: Vec<_> =
                    causes.as_array().unwrap().iter().map(|it| (&it["field"], &it["message"])).collect();
                let found = answer["verdict"]["causes"].as_array().unwrap();
                let found: Vec<_> = found.iter().map(|it| (&it["path"], &it["message"])).collect();
                assert_eq!(found, wanted, "{place}");
                assert_eq!(answer["verdict"]["outcome"], "denied", "{place}");
                rejected += 1;
            } else {
                assert_eq!(document(answer["normalized"]["text"].as_str().unwrap()), want, "{place}");
                // Without a change there is no patch.
                let patch = answer["jsonPatch"].as_str().filter(|patch| !patch.is_empty()).unwrap_or("[]");
                let patch: json_patch::Patch = serde_json::from_str(patch).unwrap();
                let mut patched = document(&new);
                json_patch::patch(&mut patched, &patch).unwrap();
                assert_eq!(patched, want, "{place}");
                assert_eq!(answer["verdict"]["outcome"], "allowed", "{place}");
                normalized += 1;
            }
        }
    }
    assert!(normalized >= 10 && rejected >= 10, "only {normalized} and {rejected} samples");
}

/// Returns the names of the samples of a folder that are normalised or rejected.
fn names(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().into_iter().flatten();
    let files = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    files.filter_map(|file| Some(file.strip_suffix(".new.yaml")?.to_owned())).collect()
}

#[test]
fn a_union_shows_the_settings_that_are_not_the_default() {
    let read = |name: &str| fs::read_to_string(root().join("manifests/samples/declared").join(name)).unwrap();
    let (crd, declaration) = (read("crd.yaml"), read("declaration.yaml"));
    let set = declaration
        .replace("  unions:", "  validationActions: [Warn]\n  normalization: Disabled\n  unions:")
        .replace("- path: spec\n", "- path: spec\n    required: true\n    emptyIsUnset: [ca]\n");
    let details = |declaration: &str| {
        let answer = ask(&format!("{crd}---\n{declaration}"), "", "");
        assert_eq!(answer["problems"], json!([]));
        let unions = answer["unions"][0]["unions"].as_array().unwrap();
        json!(unions.iter().map(|union| &union["details"]).collect::<Vec<_>>())
    };
    let challenge = ["2022 form", "discriminator `challenge`", "from declaration issuer"];
    let issuer = ["2019 form", "no discriminator", "from declaration issuer"];
    assert_eq!(details(&declaration), json!([issuer, challenge]));
    let settings = ["Warn", "not normalised", "required", "empty is unset: ca"];
    let both = [[&issuer[..], &settings].concat(), [&challenge[..], &settings[..2]].concat()];
    assert_eq!(details(&set), json!(both));
}

#[test]
fn a_declaration_of_a_misspelt_kind_is_named_once() {
    let definitions = "apiVersion: kube-unions.dev/v1alpha1\nkind: UnionDeclaratoin\nmetadata: {name: own}\n";
    let answer = ask(definitions, "", "{apiVersion: example.com/v1, kind: Rollout, metadata: {name: a}}");
    let problems = answer["problems"].as_array().unwrap().iter().filter(|it| it["input"] == "definitions");
    let lines: Vec<_> = problems.map(|it| &it["line"]).collect();
    assert_eq!(lines, [&json!(1)], "{answer:#}");
}

#[test]
fn a_problem_has_the_line_of_its_input() {
    let misspelt = rollout().replace("x-kubernetes-unions:", "x-kubernetes-union:");
    let line = misspelt.lines().position(|line| line.contains("x-kubernetes-union:")).unwrap() + 1;
    let object = "apiVersion: samples.kube-unions.dev/v1\nkind: Rollout\na: 1\na: 2\n";
    let answer = ask(&misspelt, "", object);
    let problems: Vec<_> = answer["problems"].as_array().unwrap().iter().collect();
    let places: Vec<_> = problems.iter().map(|it| (&it["input"], &it["line"], &it["severity"])).collect();
    let expected = [
        (json!("definitions"), json!(line), json!("error")),
        (json!("new"), json!(2), json!("warning")),
        (json!("new"), json!(4), json!("warning")),
    ];
    let expected: Vec<_> = expected.iter().map(|(input, line, severity)| (input, line, severity)).collect();
    assert_eq!(places, expected, "{answer:#}");
    assert_eq!(problems[2]["message"], "duplicate key `a`: the last one counts, as for kubectl and Helm");
}

#[test]
fn inputs_that_do_not_belong_together_are_named() {
    let object = |kind: &str, name: &str| {
        format!("apiVersion: samples.kube-unions.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n")
    };
    for (definitions, old, new, message) in [
        ("kind: List\n", String::new(), String::new(), "nothing here describes a kind"),
        (&rollout(), object("Rollout", "a"), object("Rollout", "b"), "not used: its metadata.name is `a`"),
        (&rollout(), String::new(), object("Rolout", "b"), "did you mean `Rollout` of `samples.kube-unions.dev/v1`?"),
        (&rollout(), String::new(), object("Store", "b"), "is not among the definitions; paste its CRD"),
        (&rollout(), String::new(), "a: 1\n".to_owned(), "not an object: `apiVersion` or `kind` is missing"),
        (&rollout(), String::new(), " ".repeat(3 << 20), "and the playground reads at most 2097152"),
    ] {
        let answer = ask(definitions, &old, &new);
        let problems = answer["problems"].as_array().unwrap();
        assert_eq!(problems.len(), 1, "{problems:#?}");
        assert!(problems[0]["message"].as_str().unwrap().contains(message), "{problems:#?}");
        assert_eq!(answer["verdict"]["outcome"], "notJudged", "{message}");
        assert!(answer["verdict"]["message"].as_str().unwrap().contains(message), "{answer:#}");
    }
}

#[test]
fn a_question_that_is_not_one_is_a_problem() {
    let answer: Value = serde_json::from_str(&answer("{\"definitions\": 1}")).unwrap();
    assert_eq!(answer["problems"].as_array().unwrap().len(), 1);
    assert_eq!(answer["verdict"]["outcome"], "notJudged");
}

#[test]
fn the_policies_are_those_of_the_command_line() {
    let answer = ask(&rollout(), "", "");
    let yaml = answer["policies"]["yaml"].as_str().unwrap();
    let file = ManifestFile::read("policies".into(), yaml.as_bytes().to_vec()).unwrap();
    let titles: Vec<String> = file.documents().iter().map(kube_unions_manifests::Document::title).collect();
    assert!(titles[0].starts_with("MutatingAdmissionPolicy/unions-rollouts."), "{titles:?}");
    assert_eq!(titles.len() % 2, 0, "each policy has a binding: {titles:?}");
    assert_eq!(answer["policies"]["refusals"], json!([]));
}

/// Returns an input of a sample of the page.
fn sample(name: &str, input: &str) -> String {
    fs::read_to_string(root().join(format!("site/samples/{name}/{input}.yaml"))).unwrap_or_default()
}

#[test]
fn an_apply_leaves_what_the_way_does_not_remove_and_normalisation_removes_it() {
    for (name, way, left) in [
        ("deployment", "ssa", "/spec/strategy/rollingUpdate"),
        ("deployment", "merge", "/spec/strategy/rollingUpdate"),
        ("volume", "ssa", "/spec/template/spec/volumes/0/emptyDir"),
        ("issuer", "merge", "/spec/selfSigned"),
    ] {
        let answer = ask_by(way, &sample(name, "definitions"), &sample(name, "old"), &sample(name, "new"));
        let place = format!("{name} by {way}: {answer:#}");
        assert_eq!(answer["problems"], json!([]), "{place}");
        let applied = document(answer["applied"].as_str().unwrap());
        assert!(applied.pointer(left).is_some(), "{place}");
        let normalized = document(answer["normalized"]["text"].as_str().unwrap());
        assert!(normalized.pointer(left).is_none(), "{place}");
        let removed: Value = serde_json::from_str(answer["jsonPatch"].as_str().unwrap()).unwrap();
        assert_eq!(removed, json!([{"op": "remove", "path": left}]), "{place}");
        assert_eq!(answer["verdict"]["outcome"], "allowed", "{place}");
    }
}

#[test]
fn what_is_told_of_an_applied_object_has_its_place_in_the_new_or_in_the_old_object() {
    let definitions = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com, annotations: {kube-unions.dev/unions: '{"v1": {"/properties/spec/properties/items/items": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]}}'}}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Box, plural: boxes}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              items:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, a: {type: integer}, b: {type: integer}}}
"#;
    let object = |items: &[&str]| {
        let items: Vec<String> = items.iter().map(|item| format!("  - {item}\n")).collect();
        let items = items.concat();
        // The old object has no managers, so an apply leaves its fields.
        format!(
            "apiVersion: example.com/v1\nkind: Box\nmetadata: {{name: x, managedFields: []}}\nspec:\n  items:\n{items}"
        )
    };
    for (way, old, new, told, input, line) in [
        // Only the old object has the field.
        ("ssa", &["{name: one}", "{name: two, a: 1}"][..], &["{name: two, b: 2}"][..], "changes", "old", 7),
        // The new object has it, at another index than the result.
        ("ssa", &["{name: one, a: 1}"], &["{name: two, a: 1, b: 2}"], "causes", "new", 6),
        // A list of a merge patch takes the place of the old one.
        ("merge", &["{name: one}"], &["{name: two}", "{name: three, a: 1, b: 2}"], "causes", "new", 7),
        ("replace", &["{name: one, a: 1}"], &["{name: two}", "{name: one, a: 1, b: 2}"], "changes", "new", 7),
    ] {
        let new = object(new).replace(", managedFields: []", "");
        let answer = ask_by(way, definitions, &object(old), &new);
        let told = if told == "causes" { &answer["verdict"]["causes"] } else { &answer["normalized"]["changes"] };
        let place = &told[0]["place"];
        assert_eq!((&place["input"], &place["line"]), (&json!(input), &json!(line)), "{way}, {input}: {answer:#}");
    }
}

#[test]
fn client_side_apply_of_a_custom_resource_removes_what_its_author_removed() {
    let (definitions, old, new) = (sample("issuer", "definitions"), sample("issuer", "old"), sample("issuer", "new"));
    for way in ["csa", "ssa"] {
        let answer = ask_by(way, &definitions, &old, &new);
        let applied = document(answer["applied"].as_str().unwrap());
        assert_eq!(applied["spec"], json!({"ca": {"secretName": "root-ca"}}), "{way}: {answer:#}");
        assert_eq!(answer["jsonPatch"], "", "{way}");
    }
    // Nothing is applied over no object, and an object is written as a whole.
    for (way, old) in [("ssa", ""), ("replace", &*old)] {
        assert_eq!(ask_by(way, &definitions, old, &new)["applied"], Value::Null, "{way}");
    }
}

#[test]
fn server_side_apply_goes_by_the_managers_of_a_stored_object() {
    let owned = json!({"f:spec": {"f:selfSigned": {}}});
    let entry = json!({
        "manager": "other", "operation": "Update", "apiVersion": "cert-manager.io/v1", "fieldsType": "FieldsV1", "fieldsV1": owned,
    });
    let mut stored = document(&sample("issuer", "old"));
    stored["metadata"]["managedFields"] = json!([entry]);
    let answer = ask_by("ssa", &sample("issuer", "definitions"), &stored.to_string(), &sample("issuer", "new"));
    let applied = document(answer["applied"].as_str().unwrap());
    assert_eq!(applied["spec"], json!({"selfSigned": {}, "ca": {"secretName": "root-ca"}}), "{answer:#}");
    assert_eq!(applied.pointer("/metadata/managedFields"), None);
    assert_eq!(answer["normalized"]["changes"].as_array().unwrap().len(), 1, "{answer:#}");
}

#[test]
fn an_apply_that_fails_is_a_problem_and_nothing_is_judged() {
    let new = sample("deployment", "new").replace("replicas: 2", "replica: 2");
    let answer = ask_by("ssa", &sample("deployment", "definitions"), &sample("deployment", "old"), &new);
    let problems = answer["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{answer:#}");
    assert!(problems[0]["message"].as_str().unwrap().contains("does not fit the schema"), "{answer:#}");
    assert_eq!(answer["verdict"]["outcome"], "notJudged");
}

#[test]
fn a_write_is_not_judged_by_definitions_with_an_error_unless_it_is_denied() {
    let issuers = sample("issuer", "definitions");
    let outcome = |beside: &str, spec: &str| {
        let new = format!("apiVersion: cert-manager.io/v1\nkind: Issuer\nmetadata: {{name: a}}\nspec: {spec}\n");
        let answer = ask(&format!("{beside}---\n{issuers}"), "", &new);
        answer["verdict"]["outcome"].as_str().unwrap().to_owned()
    };
    let faulty = rollout().replace("x-kubernetes-unions:", "x-kubernetes-union:");
    assert_eq!(outcome(&rollout(), "{selfSigned: {}}"), "allowed");
    assert_eq!(outcome(&rollout(), "{selfSigned: {}, ca: {}}"), "denied");
    assert_eq!(outcome(&faulty, "{selfSigned: {}}"), "notJudged");
    assert_eq!(outcome(&faulty, "{selfSigned: {}, ca: {}}"), "denied");
}

#[test]
fn unions_that_openapi_documents_publish_are_ignored() {
    let openapi = sample("deployment", "definitions");
    let (openapi, _) = openapi.split_once("---\n").unwrap();
    let unions = "strategy:\n              x-kubernetes-unions: [{discriminator: type, fields-to-discriminateBy: {rollingUpdate: RollingUpdate}}]";
    let published = openapi.replacen("strategy:", unions, 1);
    let unions = |definitions: &str| {
        let answer = ask(definitions, "", &sample("deployment", "new"));
        assert_eq!(answer["verdict"]["outcome"], "allowed", "{answer:#}");
        assert_eq!(answer["problems"], json!([]));
        answer["unions"].clone()
    };
    assert!(!unions(openapi).to_string().contains("from the schema"));
    assert_eq!(unions(openapi), unions(&published));
}

#[test]
fn a_text_that_cannot_be_read_is_told_apart() {
    let object = sample("issuer", "new");
    let is_readable = |definitions: &str, new: &str| ask(definitions, "", new)["isReadable"].as_bool().unwrap();
    assert!(is_readable(&rollout(), &object));
    assert!(is_readable("kind: List\n", "a: 1\n"));
    assert!(!is_readable(&rollout(), &format!("{object}  half")));
    assert!(!is_readable("a: [\n", &object));
}
