//! The samples of `manifests/samples`: their definitions, and the names of their files. The session `test.md` runs them beside each
//! other, so that every file does what its name says.

use fixtures::files::{files, parse};
use serde_json::Value;
use std::collections::BTreeSet;

const FOLDERS: [&str; 8] = ["backup", "declared", "gateway", "monitor", "pipeline", "rollout", "route", "source"];

#[test]
fn every_folder_has_a_definition_and_objects_of_all_three_sorts_and_nothing_else() {
    let all = files("manifests/samples", "yaml");
    let names: BTreeSet<(&str, &str)> = all.iter().map(|(path, _)| path.split_once('/').expect("a sample")).collect();
    let folders: BTreeSet<&str> = names.iter().map(|(folder, _)| *folder).collect();
    assert_eq!(folders, BTreeSet::from(FOLDERS));
    let mut sorts = BTreeSet::new();
    for (folder, name) in &names {
        let (stem, part) =
            name.trim_end_matches(".yaml").split_once('.').unwrap_or((name.trim_end_matches(".yaml"), ""));
        let sort = stem.split('-').next().unwrap();
        match (sort, part) {
            // The session runs the suites.
            ("crd" | "declaration" | "suite" | "valid", "") => {}
            ("normalized" | "rejected", "old" | "new" | "want") => {
                let other = |part: &str| names.contains(&(folder, &*format!("{stem}.{part}.yaml")));
                assert!(other("new") && other("want"), "{folder}/{stem} lacks a part");
            }
            _ => panic!("{folder}/{name} is exercised by no test"),
        }
        sorts.insert((folder, sort));
    }
    for (folder, sort) in
        FOLDERS.iter().flat_map(|folder| ["crd", "valid", "normalized", "rejected"].map(|sort| (folder, sort)))
    {
        assert!(sorts.contains(&(folder, sort)), "{folder} has nothing {sort}");
    }
}

/// A reader of a schema learns what each field is for, and an API server takes it as structural.
#[test]
fn every_field_of_a_definition_has_a_type_and_a_description() {
    for (path, text) in files("manifests/samples", "yaml").iter().filter(|(path, _)| path.ends_with("/crd.yaml")) {
        let definition: Value = parse(path, text);
        for version in definition["spec"]["versions"].as_array().unwrap() {
            assert!(version["additionalPrinterColumns"].is_array(), "{path}");
            describe(&version["schema"]["openAPIV3Schema"], path);
        }
    }
}

fn describe(schema: &Value, path: &str) {
    assert!(schema["type"].is_string(), "{path} has no type");
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        assert!(property["description"].is_string() || name == "metadata", "{path} has no description");
        describe(property, &path);
    }
    if schema["type"] == "array" {
        assert!(schema["x-kubernetes-list-type"].is_string(), "{path} does not say what list it is");
        describe(&schema["items"], &format!("{path}[*]"));
    }
    if let Some(values) = schema.get("additionalProperties") {
        describe(values, &format!("{path}.*"));
    }
}
