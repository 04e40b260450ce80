//! The chart's rendering of values, as rows of data, and the invariants of every rendering.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::helm::Helm;
use super::{arguments, find, id, is_hook};
use crate::support::cluster::some_or_all;
use crate::support::kind::documents;
use fixtures::files::{camel_case, files, root};

/// Values, and the expected contents of the rendered objects.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) what: String,
    #[serde(default)]
    pub(super) values: Value,
    /// A folder of `manifests`. The value of each of its files is `warn`, and each of its declarations is wanted.
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
            switches.insert(camel_case(file), json!("warn"));
            let name = |preset: Value| format!("UnionDeclaration/{}", preset["metadata"]["name"].as_str().unwrap());
            self.present.extend(documents(&text).into_iter().map(name));
        }
        assert!(!self.present.is_empty() && self.values.is_null(), "{}", self.what);
        self.values = folder.split('/').rev().fold(Value::Object(switches), |inner, name| json!({ name: inner }));
    }

    /// Returns every difference from the row.
    fn faults(&self, objects: &[Value]) -> Vec<String> {
        let deployment = objects.iter().filter(|it| it["kind"] == "Deployment");
        let given: Vec<_> = deployment.flat_map(arguments).flatten().collect();
        let mut faults: Vec<_> = self.want.iter().filter_map(|want| want.fault(objects)).collect();
        for (ids, are_wanted) in [(&self.present, true), (&self.absent, false)] {
            let wrong = ids.iter().filter(|id| find(objects, id).is_some() != are_wanted);
            faults.extend(wrong.map(|id| format!("{id} is there: {}", !are_wanted)));
        }
        for (arguments, are_wanted) in [(&self.arguments, true), (&self.lacks_arguments, false)] {
            let wrong = arguments.iter().filter(|argument| given.contains(argument) != are_wanted);
            faults.extend(wrong.map(|argument| format!("{argument} is given: {}", !are_wanted)));
        }
        faults.iter().map(|fault| format!("{}: {fault}", self.what)).collect()
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

/// The manifests of the page are those of three tools. Each gives the chart its values.
#[test]
fn the_values_on_the_page_about_fleets_observe_presets() {
    let Some(helm) = Helm::offline() else { return };
    let page = std::fs::read_to_string(root().join("docs/guide/fleets.md")).unwrap();
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let manifests: Vec<Value> = blocks.flat_map(documents).collect();
    assert_eq!(manifests.len(), 3);
    for manifest in manifests {
        let values = ["/spec/values", "/spec/source/helm/valuesObject", "/spec/helmCharts/0/values"];
        let values = values.iter().find_map(|at| manifest.pointer(at)).unwrap_or_else(|| panic!("{manifest}"));
        let values = values.as_str().map_or_else(|| values.clone(), |text| documents(text).remove(0));
        let objects = helm.render(&values);
        let declaration = find(&objects, "UnionDeclaration/deployment-strategy").expect("the preset");
        assert_eq!(declaration["spec"]["validationActions"], json!(["Audit"]), "{}", manifest["kind"]);
    }
}

/// Returns the rows that make an object which no row before them makes, so that each object is in the rendering of one. The scheduled
/// runs have all rows.
fn some_rows(helm: &Helm) -> Vec<Row> {
    let mut known = BTreeSet::new();
    let mut is_new = |object: &Value| known.insert(id(object));
    let mut makes_one = |row: &Row| helm.render(&row.values).iter().filter(|object| is_new(object)).count() > 0;
    rows().into_iter().filter(|row| some_or_all(makes_one(row), true)).collect()
}

#[test]
fn lint_has_nothing_to_say_whatever_the_values() {
    let Some(helm) = Helm::offline() else { return };
    for row in some_rows(&helm) {
        helm.lint(&row.values).accepted();
    }
}

#[test]
fn every_object_is_named_after_the_release_labelled_and_in_its_namespace() {
    let Some(helm) = Helm::offline() else { return };
    let values = json!({"nameOverride": "", "fullnameOverride": "other", "labels": {"team": "a", "app.kubernetes.io/name": "b"}});
    // Extra objects have the names and labels that their author gives them.
    let of_the_chart = |values: &Value| values.is_object() && values["extraObjects"].is_null();
    let mut rows: Vec<Value> = some_rows(&helm).into_iter().map(|row| row.values).filter(of_the_chart).collect();
    for row in &mut rows {
        row.as_object_mut().unwrap().extend(values.as_object().unwrap().clone());
    }
    for object in rows.iter().flat_map(|values| helm.render(values)) {
        let (id, metadata) = (id(&object), &object["metadata"]);
        assert_eq!(metadata["labels"]["team"], "a", "{id}");
        assert_eq!(metadata["labels"]["app.kubernetes.io/managed-by"], "Helm", "{id}");
        assert!(metadata["labels"]["helm.sh/chart"].is_string(), "{id}");
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
    let of_type = |extension| files("charts/kube-unions/templates", extension);
    for (path, text) in ["yaml", "tpl", "txt"].into_iter().flat_map(of_type) {
        let actions = text.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap());
        let actions = actions.filter(|action| !action.trim_start_matches("- ").starts_with("/*"));
        let words = actions.flat_map(|action| action.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.'));
        for word in words {
            let unstable = word.starts_with("gen") || word.starts_with("rand") || word.starts_with("uuid");
            let asks = matches!(word, "lookup" | "now" | "date" | "ago" | ".Capabilities.APIVersions.Has");
            // Lists in an order of their own at each call.
            let unstable = unstable || matches!(word, "keys" | "values" | "shuffle");
            assert!(!unstable && !asks, "{path}: `{word}` makes no stable rendering");
        }
    }
}
