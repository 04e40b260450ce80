//! The samples of `manifests/samples`: their definitions, and the names of their files. The session `test.md` runs them beside each
//! other, so that every file does what its name says.

use fixtures::files::{files, parse};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const FOLDERS: [&str; 8] = ["backup", "declared", "gateway", "monitor", "pipeline", "rollout", "route", "source"];

/// The files of one sample, by their names.
struct Sample {
    folder: String,
    files: BTreeMap<String, String>,
}

impl Sample {
    fn all() -> Vec<Self> {
        let mut samples: BTreeMap<String, Self> = BTreeMap::new();
        for (path, text) in files("manifests/samples", "yaml") {
            let (folder, name) = path.split_once('/').unwrap_or_else(|| panic!("{path} belongs to no sample"));
            let sample = samples
                .entry(folder.to_owned())
                .or_insert_with(|| Self { folder: folder.to_owned(), files: BTreeMap::new() });
            sample.files.insert(name.to_owned(), text);
        }
        samples.into_values().collect()
    }

    fn definition(&self) -> Value {
        let text = self.files.get("crd.yaml").unwrap_or_else(|| panic!("{} has no CRD", self.folder));
        parse(&self.folder, text)
    }

    /// The stems of the files that begin and end so.
    fn stems<'a>(&'a self, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
        self.files.keys().filter(move |name| name.starts_with(begin)).filter_map(move |name| name.strip_suffix(end))
    }
}

#[test]
fn every_folder_has_a_definition_and_objects_of_all_three_sorts_and_nothing_else() {
    let samples = Sample::all();
    let folders: Vec<_> = samples.iter().map(|sample| sample.folder.as_str()).collect();
    assert_eq!(folders, FOLDERS);
    for sample in samples {
        let mut used = BTreeSet::from(["crd.yaml", "declaration.yaml"].map(str::to_owned));
        used.extend(sample.stems("valid-", ".yaml").map(|stem| format!("{stem}.yaml")));
        for sort in ["normalized-", "rejected-"] {
            for stem in sample.stems(sort, ".want.yaml") {
                used.extend(["old", "new", "want"].map(|part| format!("{stem}.{part}.yaml")));
            }
            assert!(sample.stems(sort, ".want.yaml").count() > 0, "{} has nothing {sort}", sample.folder);
        }
        assert!(sample.stems("valid-", ".yaml").count() > 0, "{} has nothing valid", sample.folder);
        // The session runs these.
        used.insert("suite.yaml".to_owned());
        for name in sample.files.keys() {
            assert!(used.contains(name), "{}/{name} is exercised by no test", sample.folder);
        }
    }
}

/// A reader of a schema learns what each field is for, and an API server takes it as structural.
#[test]
fn every_field_of_a_definition_has_a_type_and_a_description() {
    for sample in Sample::all() {
        let definition = sample.definition();
        for version in definition["spec"]["versions"].as_array().unwrap() {
            assert!(version["additionalPrinterColumns"].is_array(), "{}", sample.folder);
            let schema = &version["schema"]["openAPIV3Schema"];
            describe(schema, &sample.folder);
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
