//! The engine's answers about the samples, and about inputs with faults.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets an unexpected state stops")]

use fixtures::files::root;
use kube_unions_manifests::ManifestFile;
use kube_unions_playground::answer;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Asks the engine, as the page does.
fn ask(definitions: &str, old: &str, new: &str) -> Value {
    let question = json!({"definitions": definitions, "old": old, "new": new});
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
                rejected += 1;
            } else {
                assert_eq!(document(answer["normalized"]["text"].as_str().unwrap()), want, "{place}");
                // Without a change there is no patch.
                let patch = answer["jsonPatch"].as_str().filter(|patch| !patch.is_empty()).unwrap_or("[]");
                let patch: json_patch::Patch = serde_json::from_str(patch).unwrap();
                let mut patched = document(&new);
                json_patch::patch(&mut patched, &patch).unwrap();
                assert_eq!(patched, want, "{place}");
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
fn a_problem_has_the_line_of_its_input() {
    let misspelt = rollout().replace("x-kubernetes-unions:", "x-kubernetes-union:");
    let line = misspelt.lines().position(|line| line.contains("x-kubernetes-union:")).unwrap() + 1;
    let answer = ask(&misspelt, "", "a: 1\na: 2\n");
    let problems: Vec<_> = answer["problems"].as_array().unwrap().iter().collect();
    let places: Vec<_> = problems.iter().map(|it| (&it["input"], &it["line"], &it["severity"])).collect();
    let expected = [(json!("definitions"), json!(line), json!("error")), (json!("new"), json!(2), json!("error"))];
    let expected: Vec<_> = expected.iter().map(|(input, line, severity)| (input, line, severity)).collect();
    assert_eq!(places, expected, "{answer:#}");
    assert_eq!(problems[1]["message"], "duplicate key `a`");
}

#[test]
fn inputs_that_do_not_belong_together_are_named() {
    let object = |kind: &str, name: &str| {
        format!("apiVersion: samples.kube-unions.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n")
    };
    for (definitions, old, new, message) in [
        ("", String::new(), String::new(), "empty: paste a CustomResourceDefinition, or pick a sample"),
        ("kind: List\n", String::new(), String::new(), "nothing here describes a kind"),
        (&rollout(), object("Rollout", "a"), object("Rollout", "b"), "not used: its metadata.name is `a`"),
        (&rollout(), String::new(), object("Rolout", "b"), "did you mean `Rollout` of `samples.kube-unions.dev/v1`?"),
        (&rollout(), String::new(), object("Store", "b"), "is not among the definitions; paste its CRD"),
        (&rollout(), String::new(), format!("{0}---\n{0}", object("Rollout", "b")), "more than one object: give one"),
        (&rollout(), String::new(), "a: 1\n".to_owned(), "not an object: `apiVersion` or `kind` is missing"),
        (&rollout(), String::new(), " ".repeat(3 << 20), "and the playground reads at most 2097152"),
    ] {
        let answer = ask(definitions, &old, &new);
        let problems = answer["problems"].as_array().unwrap();
        assert_eq!(problems.len(), 1, "{problems:#?}");
        assert!(problems[0]["message"].as_str().unwrap().contains(message), "{problems:#?}");
    }
}

#[test]
fn a_question_that_is_not_one_is_a_problem() {
    let answer: Value = serde_json::from_str(&answer("{\"definitions\": 1}")).unwrap();
    assert_eq!(answer["problems"].as_array().unwrap().len(), 1);
    assert_eq!(answer["verdict"], Value::Null);
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
