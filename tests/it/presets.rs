//! The presets by themselves. Whether they fit the schemas of an API server is a matter of the end-to-end tests.

mod contributed;

use fixtures::files::{assert_generated, files, parse, root};
use kube_unions_core::declaration::{
    Declaration, DeclaredUnion, PodTemplateFamily, UnionDeclarationSpec, pod_template_families,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

const FOLDER: &str = "manifests/presets";

/// The presets for CRDs of other projects, within the folder.
const CONTRIB: &str = "contrib/";

/// The group of each kind that has a pod's spec, the kind, and the path of the spec.
const POD_SPECS: [(&str, &str, &str); 9] = [
    ("", "Pod", "spec"),
    ("", "PodTemplate", "template.spec"),
    ("", "ReplicationController", "spec.template.spec"),
    ("apps", "Deployment", "spec.template.spec"),
    ("apps", "StatefulSet", "spec.template.spec"),
    ("apps", "DaemonSet", "spec.template.spec"),
    ("apps", "ReplicaSet", "spec.template.spec"),
    ("batch", "Job", "spec.template.spec"),
    ("batch", "CronJob", "spec.jobTemplate.spec.template.spec"),
];

#[test]
fn each_preset_is_a_sound_declaration_that_only_warns() {
    let mut names = BTreeSet::new();
    for (path, preset) in presets() {
        let (declaration, faults) = Declaration::from_json(&preset.to_string()).unwrap();
        assert_eq!(faults, [], "{path}");
        assert!(names.insert(declaration.name().to_owned()), "two presets are called {}", declaration.name());
        assert_eq!(preset["spec"]["validationActions"], serde_json::json!(["Warn"]), "{}", declaration.name());
        let family = format!("{}.yaml", preset["metadata"]["labels"]["kube-unions.dev/preset"].as_str().unwrap());
        let file = path.strip_prefix(CONTRIB).unwrap_or(&path);
        assert_eq!(family, file, "{} is labelled with its file", declaration.name());
    }
}

/// Below the words about a family at the head of its file, everything is generated.
#[test]
fn the_presets_of_pod_templates_are_those_of_the_one_definition() {
    for family in pod_template_families() {
        let name = family.name;
        let found = fs::read_to_string(root().join(FOLDER).join(name).with_extension("yaml")).unwrap();
        let (header, _) = found.split_once("---\n").unwrap();
        let text = format!("{header}{}", POD_SPECS.map(|pod| preset(&pod, &family)).concat());
        assert_generated(format!("{FOLDER}/{name}.yaml"), &text, "make manifests");
        for (document, (_, _, at)) in text.split("\n---\n").skip(1).zip(POD_SPECS) {
            let declared: UnionDeclarationSpec =
                serde_json::from_value(parse::<Value>(name, document)["spec"].clone()).unwrap();
            let wanted = family.unions.iter().cloned();
            let wanted = wanted.map(|union| DeclaredUnion { path: format!("{at}.{}", union.path), ..union });
            assert_eq!(declared.unions, wanted.collect::<Vec<_>>(), "{name}: the text says what the definition does");
        }
    }
}

/// Returns the declaration of a family for a kind.
fn preset((group, kind, at): &(&str, &str, &str), family: &PodTemplateFamily) -> String {
    let group = if group.is_empty() { "\"\"" } else { group };
    let name = family.name;
    let unions: String = family.unions.iter().map(|union| written(at, union)).collect();
    format!(
        "\
---
apiVersion: kube-unions.dev/v1alpha1
kind: UnionDeclaration
metadata:
  name: {}-{name}
  labels: {{kube-unions.dev/preset: {name}}}
spec:
  target: {{group: {group}, kind: {kind}, versions: [v1]}}
  validationActions: [Warn]
  unions:
{unions}",
        kind.to_lowercase()
    )
}

/// Returns a union as an item of a YAML list.
fn written(at: &str, union: &DeclaredUnion) -> String {
    let mut text = format!("  - path: {at}.{}\n", union.path);
    if let Some(name) = &union.discriminator {
        writeln!(text, "    discriminator: {name}").unwrap();
    }
    if let Some(members) = &union.field_members {
        let members = members.iter().map(|(value, member)| match &member.name {
            Some(name) if member.optional => format!("{value}: {{name: {name}, optional: true}}"),
            Some(name) => format!("{value}: {{name: {name}}}"),
            None => format!("{value}: {{}}"),
        });
        text += &map("fieldMembers", &members.collect::<Vec<_>>());
    }
    if let Some(fields) = &union.fields_to_discriminate_by {
        let fields = fields.iter().map(|(field, value)| format!("{field}: {value}"));
        text += &map("fieldsToDiscriminateBy", &fields.collect::<Vec<_>>());
    }
    if !union.empty_is_unset.is_empty() {
        writeln!(text, "    emptyIsUnset: [{}]", union.empty_is_unset.join(", ")).unwrap();
    }
    text
}

/// The longest line of a map.
const WIDTH: usize = 121;

/// Returns a map in one line, or in lines that are not too long.
fn map(name: &str, entries: &[String]) -> String {
    let line = format!("    {name}: {{{}}}", entries.join(", "));
    if line.len() <= WIDTH {
        return line + "\n";
    }
    let mut lines = vec![String::new()];
    for (position, entry) in entries.iter().enumerate() {
        let comma = if position + 1 == entries.len() { "" } else { "," };
        let last = lines.last_mut().unwrap();
        if last.is_empty() {
            *last = format!("      {entry}{comma}");
        } else if last.len() + 1 + entry.len() + comma.len() <= WIDTH {
            write!(last, " {entry}{comma}").unwrap();
        } else {
            lines.push(format!("      {entry}{comma}"));
        }
    }
    format!("    {name}: {{\n{}\n    }}\n", lines.join("\n"))
}

#[test]
fn a_preset_for_another_project_is_named_by_project_and_kind_and_needs_no_list_without_keys() {
    for (project, kind, preset) in contributed_presets() {
        assert_eq!(preset["metadata"]["name"], format!("{project}-{}", kind.to_lowercase()));
        for union in preset["spec"]["unions"].as_array().unwrap() {
            let place = union["path"].as_str().unwrap();
            assert!(!place.contains("[*]"), "{project}: {place}: nothing can be cleared in most lists");
        }
    }
}

#[test]
fn each_preset_for_another_project_says_with_what_it_was_tried() {
    for (path, text) in files(&format!("{FOLDER}/{CONTRIB}"), "yaml") {
        let header: Vec<&str> = text.lines().take_while(|line| line.starts_with('#')).collect();
        let tried = header.iter().any(|line| line.starts_with("# Tried with")) && header.concat().contains("lint");
        assert!(path == "kustomization.yaml" || tried, "{path} does not say with which releases it was tried");
    }
}

#[test]
fn the_readme_and_the_kustomization_list_every_preset_of_a_built_in_type() {
    let read = |name: &str| fs::read_to_string(root().join(FOLDER).join(name)).unwrap();
    let (readme, kustomization) = (read("README.md"), read("kustomization.yaml"));
    for (file, _) in presets().into_iter().filter(|(path, _)| !path.starts_with(CONTRIB)) {
        assert!(readme.contains(&format!("| `{file}` |")), "README.md does not list {file}");
        assert!(kustomization.contains(&format!("- {file}\n")), "kustomization.yaml does not list {file}");
    }
}

#[test]
fn the_readme_says_why_each_union_of_another_project_is_one() {
    let readme = fs::read_to_string(root().join(FOLDER).join("README.md")).unwrap();
    let decisions: Vec<Decision> = readme.lines().filter_map(Decision::parse).collect();
    let places = |declared| {
        let of = |decision: &Decision| (decision.declared == declared).then(|| decision.places.clone());
        decisions.iter().filter_map(of).flatten().collect::<BTreeSet<_>>()
    };
    let (is_union, is_none) = (places(true), places(false));
    let mut found = BTreeSet::new();
    for (project, kind, preset) in contributed_presets() {
        for union in preset["spec"]["unions"].as_array().unwrap() {
            found.insert(format!("{project} {kind} {}", union["path"].as_str().unwrap()));
        }
    }
    assert_eq!(found, is_union, "the rows with `yes` in README.md are the unions of the presets");
    assert!(!is_none.is_empty() && is_none.is_disjoint(&found), "the rows with `no` are no unions of the presets");
}

/// A row of the README that says whether places of another project's kinds are unions.
struct Decision {
    /// Project, kind and path of each place.
    places: Vec<String>,
    declared: bool,
}

impl Decision {
    /// Returns the decision in a line, or nothing if the line is no such row. Panics if the row gives no reason.
    fn parse(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", project, kinds, paths, declared @ ("yes" | "no"), sentence, ""] = cells[..] else { return None };
        assert!(!sentence.is_empty(), "no reason: {line}");
        let paths: Vec<&str> = paths.split('`').filter(|name| *name == "spec" || name.starts_with("spec.")).collect();
        assert!(!paths.is_empty(), "no place: {line}");
        let of_kind = |kind: &str| paths.iter().map(|path| format!("{project} {kind} {path}")).collect::<Vec<_>>();
        Some(Self { places: kinds.split(", ").flat_map(of_kind).collect(), declared: declared == "yes" })
    }
}

/// Every preset for another project, with the project and the kind.
fn contributed_presets() -> Vec<(String, String, Value)> {
    let of_a_project = |(path, preset): (String, Value)| {
        let project = path.strip_prefix(CONTRIB)?.strip_suffix(".yaml")?.to_owned();
        let kind = preset["spec"]["target"]["kind"].as_str().unwrap().to_owned();
        Some((project, kind, preset))
    };
    presets().into_iter().filter_map(of_a_project).collect()
}

/// Every preset with the file it stands in.
fn presets() -> Vec<(String, Value)> {
    let of_a_file = |(path, text): (String, String)| {
        let declarations = declarations(&path, &text);
        assert!(path.ends_with("kustomization.yaml") || !declarations.is_empty(), "{path} has no declaration");
        declarations.into_iter().map(move |declaration| (path.clone(), declaration))
    };
    files(FOLDER, "yaml").into_iter().flat_map(of_a_file).collect()
}

/// Returns the documents of a file after its header.
fn declarations(path: &str, text: &str) -> Vec<Value> {
    text.split("\n---\n").skip(1).map(|document| parse(path, document)).collect()
}
