//! `preview` against a real API server: each prediction equals its answer, without kube-unions and with it.

use std::collections::BTreeMap;
use std::process::Command;

use kube_unions::cli::with_built_in_defaults;
use serde_json::{Value, json};

use crate::assets;
use crate::builtin::{BuiltIn, collection, path};
use crate::cluster::say;
use crate::kubectl::{self, Kubectl, Output};
use crate::presets::{Then, is_validated, list, rows};
use crate::process::Workspace;
use crate::webhook::kube_unions;
use fixtures::wait::{SETTLED, eventually};

const INCIDENTS: &str = include_str!("preview/incidents.yaml");

/// The API group of the custom resources in the incidents.
const GROUP: &str = "preview.example.com";

const MANAGER: &str = "kubectl";

/// The ways of a client that is not Helm.
const WAYS: [&str; 4] = ["ssa", "csa", "merge", "replace"];

/// A change of an object from one rendering to the next.
struct Upgrade {
    title: String,
    old: Value,
    new: Value,
}

/// The prediction for an object: what the API server does without kube-unions, and with it.
#[derive(Clone, Copy)]
struct Predicted {
    is_stored: [bool; 2],
}

impl Upgrade {
    /// Returns the upgrade of an object with another name.
    fn named(&self, suffix: &str) -> Self {
        let named = |object: &Value| {
            let mut object = object.clone();
            object["metadata"]["name"] = json!(format!("{}-{suffix}", object["metadata"]["name"].as_str().unwrap()));
            object
        };
        Self { title: self.title.clone(), old: named(&self.old), new: named(&self.new) }
    }
}

/// Returns the predictions of `preview` for upgrades, in their order.
fn predict(workspace: &Workspace, way: &str, upgrades: &[Upgrade], crds: &[Value]) -> Vec<Predicted> {
    let list = |items: Vec<&Value>| json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let files = [
        workspace.write("old.json", &list(upgrades.iter().map(|it| &it.old).collect())),
        workspace.write("new.json", &list(upgrades.iter().map(|it| &it.new).collect())),
        workspace.write("crds.json", &list(crds.iter().collect())),
    ];
    let [old, new, from] = files.each_ref().map(|file| file.to_str().unwrap());
    let arguments = ["preview", "--old", old, "--new", new, "--from", from, "--as", way, "-o", "json"];
    let output = kube_unions(&arguments, "");
    let report = output.json();
    assert_eq!(report["summary"]["compared"], json!(upgrades.len()), "{output:?}");
    let mut found: BTreeMap<(String, String), Predicted> = BTreeMap::new();
    for finding in report["findings"].as_array().unwrap() {
        let key = (finding["kind"].as_str().unwrap().to_owned(), finding["name"].as_str().unwrap().to_owned());
        let alone = match finding["rule"].as_str().unwrap() {
            "union-refused" => false,
            "union-stored-invalid" => true,
            other => panic!("{key:?}: {other}"),
        };
        let with = finding["withKubeUnions"] != "refused";
        let known = found.entry(key).or_insert(Predicted { is_stored: [true; 2] });
        known.is_stored = [known.is_stored[0] && alone, known.is_stored[1] && with];
    }
    let of = |upgrade: &Upgrade| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let key = (text(&upgrade.new["kind"]), text(&upgrade.new["metadata"]["name"]));
        found.get(&key).copied().unwrap_or(Predicted { is_stored: [true; 2] })
    };
    upgrades.iter().map(of).collect()
}

/// Applies both renderings, and returns the answer to the second one.
fn upgrade(kubectl: &Kubectl, way: &str, Upgrade { old, new, .. }: &Upgrade) -> Output {
    let run = |arguments: &[&str], object: &Value| kubectl.run_with(arguments, &object.to_string());
    let server_side = ["apply", "--server-side", "-f", "-"];
    match way {
        "ssa" => {
            run(&server_side, old).accepted();
            run(&server_side, new)
        }
        "csa" => {
            run(&["apply", "-f", "-"], old).accepted();
            run(&["apply", "-f", "-"], new)
        }
        "merge" => {
            run(&["create", "-f", "-"], old).accepted();
            run(&["patch", "-f", "-", "--type=merge", "-p", &new.to_string()], old)
        }
        "replace" => {
            run(&["create", "-f", "-"], old).accepted();
            run(&["replace", "-f", "-"], new)
        }
        other => panic!("{other}"),
    }
}

/// Upgrades a release whose chart has the object.
fn upgrade_by_helm(workspace: &Workspace, kubeconfig: &str, tool: &str, release: &str, upgrade: &Upgrade) -> Output {
    std::fs::create_dir_all(workspace.path().join("chart/templates")).unwrap();
    workspace.write("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n");
    let run = |command: &str, object: &Value| {
        workspace.write("chart/templates/object.yaml", &object.to_string());
        let mut helm = Command::new(assets::tool(tool).unwrap_or_else(|message| panic!("{message}")));
        helm.env_clear().env("HOME", workspace.path()).env("KUBECONFIG", kubeconfig).current_dir(workspace.path());
        helm.args([command, release, "chart", "--namespace=default"]);
        kubectl::run(helm, &format!("{tool} {command} {release}"), "")
    };
    run("install", &upgrade.old).accepted();
    run("upgrade", &upgrade.new)
}

#[test]
fn every_incident_fails_on_the_server_as_predicted_and_not_with_kube_unions() {
    let Some(cluster) = BuiltIn::own() else { return };
    let workspace = Workspace::new("preview");
    let kubeconfig = cluster.cluster.control_plane.admin_kubeconfig().display().to_string();
    let incidents = list(INCIDENTS);
    let crds: Vec<Value> = incidents.iter().filter_map(|it| it.get("crd").cloned()).collect();
    for crd in &crds {
        cluster.kubectl.apply(&crd.to_string()).accepted();
        let name = crd["metadata"]["name"].as_str().unwrap();
        cluster.kubectl.run(&["wait", "--for=condition=Established", &format!("crd/{name}")]).accepted();
    }
    let (mut answers, mut failures) = ([0, 0], Vec::new());
    for with in [false, true] {
        if with {
            switch_on(&cluster);
        }
        for (number, incident) in incidents.iter().enumerate() {
            let title = incident["incident"].as_str().unwrap().to_owned();
            let whole = Upgrade { title, old: incident["old"].clone(), new: incident["new"].clone() };
            for way in ["ssa", "csa", "merge", "replace", "helm", "helm4"] {
                let by = if way == "helm4" { "ssa" } else { way };
                let upgrade = whole.named(&format!("{way}-{number}-{with}"));
                let predicted = predict(&workspace, by, std::slice::from_ref(&upgrade), &crds)[0];
                assert_eq!(predicted.is_stored[0], incident["by"][by] != "refused", "{}, {way}", upgrade.title);
                let answer = if way.starts_with("helm") {
                    let release = format!("{way}-{number}-{with}");
                    upgrade_by_helm(&workspace, &kubeconfig, way, &release, &upgrade)
                } else {
                    self::upgrade(&cluster.kubectl, way, &upgrade)
                };
                answers[usize::from(answer.succeeded())] += 1;
                if answer.succeeded() != predicted.is_stored[usize::from(with)] {
                    failures.push(format!("{}, {way}, with kube-unions: {with}: {answer:?}", upgrade.title));
                }
            }
        }
    }
    let [refused, stored] = answers;
    say(&format!("incidents of preview: {refused} refused, {stored} stored"));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(answers, [20, 64]);
}

/// Switches the presets on, and the webhook for the custom resources of the incidents.
fn switch_on(cluster: &BuiltIn) {
    cluster.switch_presets_on();
    cluster.kubectl.apply(&cluster.cluster.webhook.registration(GROUP).to_string()).accepted();
    let both = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Shifter", "metadata": {"name": "probe"},
        "spec": {"disk": {}, "net": {}}});
    let refused =
        || !cluster.kubectl.run_with(&["create", "--dry-run=server", "-f", "-"], &both.to_string()).succeeded();
    assert!(eventually(SETTLED, refused), "the webhook is not asked about {GROUP}");
}

#[test]
fn every_preset_is_predicted_for_every_way() {
    let Some(cluster) = BuiltIn::own() else { return };
    let workspace = Workspace::new("preview");
    let upgrades: Vec<Upgrade> = rows()
        .into_iter()
        .filter(|row| is_validated(row.object["kind"].as_str().unwrap()))
        .filter_map(|row| match row.then {
            Then::Stored(at, after) => {
                let mut new = row.object.clone();
                set(&mut new, &at, after);
                Some(Upgrade { title: row.preset, old: row.object, new })
            }
            Then::Refused(_) => None,
        })
        .collect();
    let (mut refused, mut failures) = (BTreeMap::new(), Vec::new());
    for with in [false, true] {
        if with {
            cluster.switch_presets_on();
        }
        for way in WAYS {
            let named: Vec<Upgrade> =
                upgrades.iter().enumerate().map(|(number, it)| it.named(&format!("{way}-{number}-{with}"))).collect();
            let predicted = predict(&workspace, way, &named, &[]);
            for (upgrade, predicted) in named.iter().zip(predicted) {
                let (is_stored, answer) = send(&cluster, way, upgrade);
                *refused.entry((with, way)).or_insert(0) += usize::from(!is_stored);
                if is_stored != predicted.is_stored[usize::from(with)] {
                    failures.push(format!("{}, {way}, with kube-unions: {with}: {answer}", upgrade.title));
                }
            }
        }
    }
    say(&format!("{} upgrades of presets by each way, refused: {refused:?}", upgrades.len()));
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), upgrades.len() * 8, failures.join("\n"));
    assert!(["ssa", "merge"].iter().all(|way| refused[&(false, *way)] > 0), "{refused:?}");
}

/// Applies both renderings. Returns true if the second one is stored, and the answer.
fn send(cluster: &BuiltIn, way: &str, upgrade: &Upgrade) -> (bool, String) {
    let Upgrade { title, old, new } = upgrade;
    if way == "csa" {
        let answer = self::upgrade(&cluster.kubectl, way, upgrade);
        return (answer.succeeded(), answer.stderr);
    }
    let created = if way == "ssa" { cluster.apply(old, MANAGER) } else { cluster.create(old) };
    assert!(created.is_success(), "{title}: {created:?}");
    let answer = match way {
        "ssa" => cluster.apply(new, MANAGER),
        "merge" => cluster.patch(new, "application/merge-patch+json", new),
        _ => cluster.replace(new),
    };
    assert!(answer.is_success() || answer.status == 422, "{title}: {answer:?}");
    (answer.is_success(), answer.body.to_string())
}

/// Sets a value. Makes the objects on the way.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for token in pointer.split('/').skip(1) {
        at = match token.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[token],
        };
    }
    *at = value;
}

#[test]
fn the_table_of_defaults_is_that_of_the_server() {
    let Some(cluster) = BuiltIn::own() else { return };
    let mut compared = 0;
    for row in list(include_str!("preview/defaults.yaml")) {
        let object = &row["object"];
        let created = cluster.create(object);
        assert!(created.is_success(), "{} {created:?}", collection(object));
        let predicted = with_built_in_defaults(&object.to_string()).unwrap();
        for at in row["at"].as_array().unwrap() {
            let at = at.as_str().unwrap();
            assert_eq!(predicted.pointer(at), created.body.pointer(at), "{}{at}", path(object));
            compared += 1;
        }
    }
    assert_eq!(compared, 14);
}

#[test]
fn the_schemas_of_built_in_kinds_are_those_of_the_server() {
    let Some(cluster) = BuiltIn::own() else { return };
    let shipped: Value = serde_json::from_str(include_str!("../../src/cli/commands/preview/schemas.json")).unwrap();
    let shipped = shipped["components"]["schemas"].as_object().unwrap();
    let mut served = BTreeMap::new();
    for path in ["api/v1", "apis/apps/v1", "apis/batch/v1", "apis/autoscaling/v2", "apis/networking.k8s.io/v1"] {
        let answer = cluster.cluster.client().get(&format!("/openapi/v3/{path}")).unwrap();
        for (name, schema) in answer.body["components"]["schemas"].as_object().unwrap() {
            served.insert(name.clone(), schema.clone());
        }
    }
    // A newer server has more fields. What is shipped merges in the same way.
    let mut lists = 0;
    for (name, schema) in shipped {
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let now = &served[name]["properties"][field];
            assert!(now.is_object(), "{name}.{field} is not served");
            for (keyword, value) in
                property.as_object().unwrap().iter().filter(|(it, _)| it.starts_with("x-kubernetes-"))
            {
                assert_eq!(&now[keyword], value, "{name}.{field}");
                lists += 1;
            }
        }
    }
    assert!(lists > 100, "{lists}");
}
