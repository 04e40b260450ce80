//! The Helm chart as files: what has to be in step with something else. What it renders is a matter of the end-to-end tests.

mod artifact_hub;

use fixtures::files::{assert_generated_between, camel_case, files, parse, root};
use serde_json::Value;
use std::fs;

const FOLDER: &str = "charts/kube-unions";

#[test]
fn the_chart_installs_this_version() {
    let chart: Value = parse("Chart.yaml", &read("Chart.yaml"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"), "one version for both, so that nobody has to look one up");
}

/// The presets themselves are those of `manifests`, through a link.
#[test]
fn each_preset_has_a_value() {
    let values: Value = parse("values.yaml", &read("values.yaml"));
    let presets = files(&format!("{FOLDER}/presets"), "yaml");
    let presets: Vec<_> = presets.iter().filter(|(name, _)| !name.ends_with("kustomization.yaml")).collect();
    assert!(!presets.is_empty());
    for (name, _) in &presets {
        let path: Vec<_> = name.trim_end_matches(".yaml").split('/').map(camel_case).collect();
        let value = path.iter().fold(&values["presets"], |value, name| &value[name]);
        assert_eq!(*value, "none", "{name} has no value presets.{}", path.join("."));
    }
    let switches = |value: &Value| value.as_object().unwrap().values().filter(|value| value.is_string()).count();
    assert_eq!(switches(&values["presets"]) + switches(&values["presets"]["contrib"]), presets.len());
}

#[test]
fn the_schema_knows_every_value_and_nothing_else() {
    let values: Value = parse("values.yaml", &read("values.yaml"));
    let schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    compare("", &values, &schema);
}

/// An object that has defaults has the same fields in its schema, and no others may be given.
fn compare(path: &str, values: &Value, schema: &Value) {
    let Some(fields) = values.as_object().filter(|fields| !fields.is_empty()) else {
        assert!(schema.is_object(), "{path} has no schema");
        return;
    };
    let Some(properties) = schema["properties"].as_object() else {
        // The user's own keys, for example labels: their values have a type.
        assert!(schema["additionalProperties"]["type"].is_string(), "{path}");
        return;
    };
    assert_eq!(schema["additionalProperties"], false, "{path}");
    for (name, value) in fields {
        let schema = properties.get(name).unwrap_or_else(|| panic!("{path}.{name} has no schema"));
        compare(&format!("{path}.{name}"), value, schema);
    }
    for name in properties.keys() {
        // `global` is every chart's; what claims a device has no default; a template refuses the old name of `image.pullSecrets`.
        let undocumented = fields.contains_key(name)
            || ["global", "imagePullSecrets"].contains(&name.as_str())
            || (path, name.as_str()) == (".resources", "claims");
        assert!(undocumented, "{path}.{name} has a schema, and is not in values.yaml");
    }
}

#[test]
fn each_value_is_documented_and_the_readme_has_all_of_them() {
    let table = format!("| value | default | meaning |\n|---|---|---|\n{}", documented_values().concat());
    let lines = ("<!-- values -->\n", "<!-- end of values -->");
    assert_generated_between(&format!("{FOLDER}/README.md"), lines, &table, "make manifests");
}

/// A line of the table for each value: what stands in values.yaml in the comment before it, from `# -- ` on.
fn documented_values() -> Vec<String> {
    let text = read("values.yaml");
    let values: Value = parse("values.yaml", &text);
    let mut rows = Vec::new();
    let mut parents: Vec<(usize, String)> = Vec::new();
    let mut comment: Option<String> = None;
    // Below a value that was documented as a whole.
    let mut within: Option<usize> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim_start();
        if let Some(said) = line.strip_prefix('#') {
            comment = match (said.strip_prefix(" -- "), comment) {
                (Some(first), _) => Some(first.to_owned()),
                (None, Some(before)) => Some(format!("{before} {}", said.trim())),
                (None, None) => None,
            };
            continue;
        }
        let Some((name, _)) = line.split_once(':') else {
            comment = None;
            continue;
        };
        if within.is_some_and(|of| indent > of) {
            continue;
        }
        within = None;
        parents.retain(|(of, _)| *of < indent);
        let path = parents.iter().map(|(_, name)| name.as_str()).chain([name]).collect::<Vec<_>>();
        let value = path.iter().fold(&values, |value, name| &value[*name]);
        if let Some(said) = comment.take() {
            rows.push(format!("| `{}` | `{value}` | {} |\n", path.join("."), said.replace('|', "\\|")));
            within = Some(indent);
        } else {
            let group = value.as_object().is_some_and(|fields| !fields.is_empty());
            assert!(group, "values.yaml says nothing about {}", path.join("."));
            parents.push((indent, name.to_owned()));
        }
    }
    rows
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(FOLDER).join(name)).unwrap()
}
