//! The chart's rendering of values, as rows of data, and the invariants of every rendering.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::helm::Helm;
use super::{arguments, find, id, is_hook};
use crate::kind::{documents, parse};
use fixtures::files::{assert_generated, camel_case, files};

/// Values, and the expected contents of the rendered objects.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) what: String,
    #[serde(default)]
    pub(super) values: Value,
    /// A folder of `manifests`. The value of each of its files is true, and each of its declarations is wanted.
    presets_of: Option<String>,
    /// Arguments of the webhook.
    #[serde(default)]
    arguments: Vec<String>,
    /// Arguments that the webhook does not have.
    #[serde(default)]
    lacks_arguments: Vec<String>,
    #[serde(default)]
    want: Vec<Want>,
    /// Each `Kind/name` that there is.
    #[serde(default)]
    present: Vec<String>,
    /// Each `Kind/name` that there is not.
    #[serde(default)]
    absent: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Want {
    /// `Kind/name`.
    object: String,
    /// A JSON pointer in it. The other fields are about the value there.
    at: String,
    is: Option<Value>,
    has: Option<Value>,
    lacks: Option<Value>,
    /// There is no value.
    #[serde(default)]
    missing: bool,
}

/// Every row.
pub(super) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = serde_saphyr::from_str(include_str!("rows.yaml")).unwrap();
    rows.iter_mut().for_each(Row::add_presets);
    let names: BTreeSet<_> = rows.iter().map(|row| &row.what).collect();
    assert_eq!(names.len(), rows.len(), "two rows have the same name");
    rows
}

impl Row {
    /// Adds what `presetsOf` stands for.
    fn add_presets(&mut self) {
        let Some(folder) = self.presets_of.take() else { return };
        let mut switches = Map::new();
        for (path, text) in files(&format!("manifests/{folder}"), "yaml") {
            let Some(file) = path.strip_suffix(".yaml").filter(|file| !file.contains('/') && *file != "kustomization")
            else {
                continue;
            };
            switches.insert(camel_case(file), json!(true));
            let name = |preset: Value| format!("UnionDeclaration/{}", preset["metadata"]["name"].as_str().unwrap());
            self.present.extend(documents(&text).into_iter().map(name));
        }
        assert!(!self.present.is_empty() && self.values.is_null(), "{}", self.what);
        self.values = folder.split('/').rev().fold(Value::Object(switches), |inner, name| json!({ name: inner }));
    }

    /// Returns every difference from the row.
    fn faults(&self, objects: &[Value]) -> Vec<String> {
        let there = |id: &&String| find(objects, id).is_some();
        let missing = self.present.iter().filter(|id| !there(id)).map(|id| format!("there is no {id}"));
        let unwanted = self.absent.iter().filter(there).map(|id| format!("there is a {id}"));
        let given: Vec<_> =
            objects.iter().filter(|it| it["kind"] == "Deployment").flat_map(arguments).flatten().collect();
        let lacking = self.arguments.iter().filter(|it| !given.contains(it)).map(|it| format!("{it} is not given"));
        let surplus = self.lacks_arguments.iter().filter(|it| given.contains(it)).map(|it| format!("{it} is given"));
        let wrong = self.want.iter().filter_map(|want| want.fault(objects));
        missing
            .chain(unwanted)
            .chain(lacking)
            .chain(surplus)
            .chain(wrong)
            .map(|fault| format!("{}: {fault}", self.what))
            .collect()
    }
}

impl Want {
    fn fault(&self, objects: &[Value]) -> Option<String> {
        let Self { object: id, at, .. } = self;
        let Some(object) = find(objects, id) else {
            return Some(format!("there is no {id}"));
        };
        let found = object.pointer(at).filter(|found| !found.is_null());
        let list = || found.and_then(Value::as_array).cloned().unwrap_or_default();
        let sound = self.missing == found.is_none()
            && self.is.as_ref().is_none_or(|is| Some(is) == found)
            && self.has.as_ref().is_none_or(|item| list().contains(item))
            && self.lacks.as_ref().is_none_or(|item| !list().contains(item));
        (!sound).then(|| format!("{id} has at {at:?}: {}", found.unwrap_or(&Value::Null)))
    }
}

#[test]
fn each_value_does_what_it_says() {
    let Some(helm) = Helm::offline() else { return };
    let faults: Vec<_> = rows().iter().flat_map(|row| row.faults(&helm.render(&row.values))).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn lint_has_nothing_to_say_whatever_the_values() {
    let Some(helm) = Helm::offline() else { return };
    for row in rows() {
        helm.lint(&row.values).accepted();
    }
}

#[test]
fn the_same_values_render_to_the_same_bytes() {
    let Some(helm) = Helm::offline() else { return };
    for row in rows() {
        let render = || helm.template(&row.values, &["--include-crds"]).accepted().stdout;
        assert_eq!(render(), render(), "{}", row.what);
    }
}

/// The other objects of the default rendering are in `manifests/webhook`, without the labels of Helm.
#[test]
fn the_default_hooks_are_the_golden_ones() {
    let Some(helm) = Helm::offline() else { return };
    let (hooks, others): (Vec<_>, Vec<_>) = helm.render(&Value::Null).into_iter().partition(is_hook);
    for label in ["app.kubernetes.io/managed-by", "helm.sh/chart"] {
        for object in &others {
            assert_eq!(object["metadata"]["labels"][label], hooks[0]["metadata"]["labels"][label], "{}", id(object));
        }
    }
    assert_generated("tests/e2e/chart/hooks.yaml", &compact(hooks), "make manifests");
}

/// Returns objects by `Kind/name`, as YAML, after the labels that they have in common. A value that fits on a line is on one.
fn compact(mut objects: Vec<Value>) -> String {
    let labels = objects[0]["metadata"]["labels"].clone();
    let mut text = String::new();
    write(&mut text, "labels: ", &labels, 2);
    for object in &mut objects {
        let begin = format!("{}: ", id(object));
        let fields = object.as_object_mut().unwrap();
        fields.remove("kind");
        let metadata = fields["metadata"].as_object_mut().unwrap();
        metadata.remove("name");
        if metadata["labels"] == labels {
            metadata.remove("labels");
        }
        if metadata.is_empty() {
            fields.remove("metadata");
        }
        write(&mut text, &begin, object, 2);
    }
    text
}

fn write(text: &mut String, begin: &str, value: &Value, indentation: usize) {
    let line = format!("{begin}{value}\n");
    if line.len() <= 140 || !(value.is_object() || value.is_array()) {
        text.push_str(&line);
        return;
    }
    text.push_str(begin.trim_end());
    text.push('\n');
    for (name, value) in value.as_object().into_iter().flatten() {
        write(text, &format!("{:indentation$}{name}: ", ""), value, indentation + 2);
    }
    for item in value.as_array().into_iter().flatten() {
        write(text, &format!("{:indentation$}- ", ""), item, indentation + 2);
    }
}

#[test]
fn every_object_is_named_after_the_release_labelled_and_in_its_namespace() {
    let Some(helm) = Helm::offline() else { return };
    let values = json!({"nameOverride": "", "fullnameOverride": "other", "labels": {"team": "a", "app.kubernetes.io/name": "b"}});
    // Extra objects have the names and labels that their author gives them.
    let of_the_chart = |values: &Value| values.is_object() && values["extraObjects"].is_null();
    let mut rows: Vec<Value> = rows().into_iter().map(|row| row.values).filter(of_the_chart).collect();
    for row in &mut rows {
        row.as_object_mut().unwrap().extend(values.as_object().unwrap().clone());
    }
    for object in rows.iter().flat_map(|values| helm.render(values)) {
        let (id, metadata) = (id(&object), &object["metadata"]);
        assert_eq!(metadata["labels"]["team"], "a", "{id}");
        let kind = object["kind"].as_str().unwrap();
        let name = if kind == "Pod" { metadata["name"].clone() } else { json!("kube-unions") };
        assert_eq!(metadata["labels"]["app.kubernetes.io/name"], name, "{id}: selectors depend on it");
        // Their names are the same in every installation.
        if kind == "UnionDeclaration" || kind.starts_with("MutatingAdmissionPolicy") {
            continue;
        }
        assert!(metadata["name"].as_str().unwrap().starts_with("other"), "{id}");
        let namespace = match object["kind"].as_str().unwrap() {
            "ClusterRole" | "ClusterRoleBinding" => json!(null),
            _ => json!("kube-unions"),
        };
        assert_eq!(metadata["namespace"], namespace, "{id}");
    }
}

#[test]
fn selectors_select_the_pods_of_the_deployment_and_no_other() {
    let Some(helm) = Helm::offline() else { return };
    let objects = helm.render(&Value::Null);
    let selector = find(&objects, "Service/kube-unions").unwrap()["spec"]["selector"].as_object().unwrap();
    let is_selected = |pod: &Value| selector.iter().all(|(label, value)| pod["metadata"]["labels"][label] == *value);
    let (mut selected, mut others) = (Vec::new(), Vec::new());
    for object in &objects {
        let pod = if object["kind"] == "Pod" { object } else { &object["spec"]["template"] };
        if !pod["spec"]["containers"].is_null() {
            if is_selected(pod) { &mut selected } else { &mut others }.push(id(object));
        }
    }
    others.sort();
    assert_eq!(selected, ["Deployment/kube-unions"]);
    assert_eq!(others, ["Job/kube-unions-crds", "Job/kube-unions-unregister", "Pod/kube-unions-verify"]);
}

#[test]
fn no_pod_may_more_than_the_restricted_profile_and_none_is_root() {
    let Some(helm) = Helm::offline() else { return };
    for row in rows() {
        for object in helm.render(&row.values) {
            let pods = ["/spec/template/spec", "/spec"].iter().filter_map(|at| object.pointer(at));
            for pod in pods.filter(|pod| pod["containers"].is_array()) {
                let what = format!("{}: {}", row.what, id(&object));
                assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{what}");
                assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{what}");
                for container in pod["containers"].as_array().unwrap() {
                    let want = json!({
                        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
                    });
                    assert_eq!(container["securityContext"], want, "{what}");
                    assert!(!container["resources"]["limits"]["memory"].is_null(), "{what}");
                }
            }
        }
    }
}

#[test]
fn hooks_come_after_their_rights_and_end() {
    let Some(helm) = Helm::offline() else { return };
    let objects = helm.render(&Value::Null);
    for name in ["kube-unions-crds", "kube-unions-unregister", "kube-unions-verify"] {
        let of = |kind: &str| find(&objects, &format!("{kind}/{name}")).cloned();
        let weight = |kind: &str| {
            let object = of(kind).unwrap_or_else(|| panic!("no {kind}"));
            assert!(is_hook(&object));
            object["metadata"]["annotations"]["helm.sh/hook-weight"].as_str().unwrap().parse::<i32>().unwrap()
        };
        let runs = if of("Job").is_some() { "Job" } else { "Pod" };
        assert!(weight("ServiceAccount") < weight(runs) && weight("ClusterRole") < weight("ClusterRoleBinding"));
        assert!(weight("ClusterRoleBinding") < weight(runs));
        let runs = of(runs).unwrap();
        assert!(runs["spec"]["activeDeadlineSeconds"].as_u64().unwrap() > 60, "time to pull the image, and to work");
    }
    for job in ["Job/kube-unions-crds", "Job/kube-unions-unregister"] {
        assert_eq!(find(&objects, job).unwrap()["spec"]["backoffLimit"], 2);
    }
}

#[test]
fn the_alerts_name_the_port_of_the_values() {
    let Some(helm) = Helm::offline() else { return };
    let alerts = |port: u16| {
        let values = json!({"webhook": {"port": port}, "prometheusRule": {"enabled": true}});
        find(&helm.render(&values), "PrometheusRule/kube-unions").unwrap()["spec"].to_string()
    };
    let default = alerts(10250);
    assert!(default.matches("10250").count() >= 3, "{default}");
    assert_eq!(alerts(9443), default.replace("10250", "9443"));
}

#[test]
fn nothing_in_the_chart_asks_the_cluster_or_a_die() {
    let folder = Path::new(super::CHART).join("templates");
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let text = fs::read_to_string(&entry).unwrap();
            let actions = text.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap());
            let words = actions.flat_map(|action| action.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.'));
            for word in words {
                let unstable = word.starts_with("gen") || word.starts_with("rand") || word.starts_with("uuid");
                let asks = matches!(word, "lookup" | "now" | "date" | "ago" | ".Capabilities.APIVersions.Has");
                assert!(!unstable && !asks, "{}: `{word}` makes no stable rendering", entry.display());
            }
        }
    }
}

#[test]
fn a_row_that_is_wrong_is_noticed() {
    let objects = [
        parse("{kind: A, metadata: {name: a}, spec: {n: 1, l: [x]}}"),
        parse("{kind: Deployment, metadata: {name: d}, spec: {template: {spec: {containers: [{args: [-x]}]}}}}"),
    ];
    let row = |row: &str| serde_saphyr::from_str::<Row>(&format!("{{what: \"\", {row}}}")).unwrap();
    for right in [
        "present: [A/a]",
        "absent: [A/b]",
        "arguments: [-x]",
        "lacksArguments: [-y]",
        "want: [{object: A/a, at: /spec/n, is: 1}]",
        "want: [{object: A/a, at: /spec/l, has: x}]",
        "want: [{object: A/a, at: /spec/l, lacks: y}]",
        "want: [{object: A/a, at: /spec/m, missing: true}]",
    ] {
        assert_eq!(row(right).faults(&objects), [""; 0], "{right}");
    }
    for wrong in [
        "present: [A/b]",
        "absent: [A/a]",
        "arguments: [-y]",
        "lacksArguments: [-x]",
        "want: [{object: A/b, at: /spec/m, missing: true}]",
        "want: [{object: A/a, at: /spec/n, is: 2}]",
        "want: [{object: A/a, at: /spec/l, has: y}]",
        "want: [{object: A/a, at: /spec/l, lacks: x}]",
        "want: [{object: A/a, at: /spec/m}]",
        "want: [{object: A/a, at: /spec/n, missing: true}]",
    ] {
        assert_eq!(row(wrong).faults(&objects).len(), 1, "{wrong}");
    }
}
