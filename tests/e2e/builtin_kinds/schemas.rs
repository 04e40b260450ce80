//! The JSON schemas of built-in kinds: they refuse what the API server refuses for a union, and what plain schemas take. `make editor` has
//! kubeconform and yaml-language-server judge the same manifests.

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::document::references;
use crate::builtin::Objects;
use crate::presets::{is_validated, list};
use crate::support::cluster::say;
use crate::support::kubectl;
use crate::support::process::Workspace;
use crate::support::version::is_served;
use crate::support::webhook::kube_unions;
use fixtures::files::{parse, root};

/// The manifests of each sort.
const MANIFESTS: usize = 200;

/// A kind with pods: its version, its kind, its collection, and the restart policy of its pods.
type PodKind = (&'static str, &'static str, &'static str, &'static str);

const KINDS: [PodKind; 7] = [
    ("v1", "Pod", "/api/v1/namespaces/default/pods", "Always"),
    ("v1", "ReplicationController", "/api/v1/namespaces/default/replicationcontrollers", "Always"),
    ("apps/v1", "DaemonSet", "/apis/apps/v1/namespaces/default/daemonsets", "Always"),
    ("apps/v1", "Deployment", "/apis/apps/v1/namespaces/default/deployments", "Always"),
    ("apps/v1", "StatefulSet", "/apis/apps/v1/namespaces/default/statefulsets", "Always"),
    ("batch/v1", "CronJob", "/apis/batch/v1/namespaces/default/cronjobs", "Never"),
    ("batch/v1", "Job", "/apis/batch/v1/namespaces/default/jobs", "Never"),
];

/// Returns the object of a kind around a pod's spec.
fn object(&(api_version, kind, _, restart): &PodKind, pod: &Value, spec: &Value) -> Value {
    let mut pod = pod.clone();
    pod["restartPolicy"] = restart.into();
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod});
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "m"}, "spec": spec});
    match kind {
        "Pod" => object["spec"] = template["spec"].clone(),
        "CronJob" => {
            object["spec"] = json!({"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}});
        }
        _ => object["spec"]["template"] = template,
    }
    match kind {
        "ReplicationController" => object["spec"]["selector"] = json!({"a": "b"}),
        "DaemonSet" | "Deployment" | "StatefulSet" => object["spec"]["selector"] = json!({"matchLabels": {"a": "b"}}),
        _ => {}
    }
    object
}

/// Returns the spec of a pod with these members of a union. `at`: `volumes`, `env`, `valueFrom`, `preStop`, or the name of a probe.
fn pod(at: &str, members: &[&Value]) -> Value {
    let merged = |mut into: Value| {
        for member in members {
            into.as_object_mut().unwrap().extend(member.as_object().unwrap().clone());
        }
        into
    };
    let mut container = json!({"name": "c", "image": "example.com/c:1"});
    let mut volumes = json!([]);
    match at {
        "volumes" => volumes = json!([merged(json!({"name": "v"}))]),
        "env" => container["env"] = json!([merged(json!({"name": "E"}))]),
        "valueFrom" => container["env"] = json!([{"name": "E", "valueFrom": merged(json!({}))}]),
        "preStop" => container["lifecycle"] = json!({"preStop": merged(json!({}))}),
        _ => container[at] = merged(json!({})),
    }
    json!({"containers": [container], "volumes": volumes})
}

/// Returns the pods with two members of a union, and those with one.
fn pods() -> (Vec<Value>, Vec<Value>) {
    let http = json!({"httpGet": {"port": 80}});
    let (exec, tcp) = (json!({"exec": {"command": ["true"]}}), json!({"tcpSocket": {"port": 80}}));
    let handlers = vec![exec.clone(), http.clone(), tcp, json!({"grpc": {"port": 80}})];
    let field = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let unions: [(&str, Vec<Value>); 7] = [
        ("livenessProbe", handlers.clone()),
        ("readinessProbe", handlers.clone()),
        ("startupProbe", handlers),
        ("preStop", vec![exec, http, json!({"sleep": {"seconds": 1}})]),
        ("env", vec![json!({"value": "x"}), json!({"valueFrom": field})]),
        (
            "valueFrom",
            vec![
                field.clone(),
                json!({"configMapKeyRef": {"name": "c", "key": "k"}}),
                json!({"secretKeyRef": {"name": "s", "key": "k"}}),
            ],
        ),
        (
            "volumes",
            vec![
                json!({"emptyDir": {}}),
                json!({"hostPath": {"path": "/x"}}),
                json!({"secret": {"secretName": "s"}}),
                json!({"configMap": {"name": "c"}}),
                json!({"persistentVolumeClaim": {"claimName": "c"}}),
                json!({"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.name"}}]}}),
                json!({"projected": {"sources": [{"secret": {"name": "s"}}]}}),
                json!({"nfs": {"server": "s", "path": "/"}}),
            ],
        ),
    ];
    let (mut two, mut one) = (Vec::new(), Vec::new());
    for (at, members) in &unions {
        for (position, first) in members.iter().enumerate() {
            one.push(pod(at, &[first]));
            two.extend(members[position + 1..].iter().map(|second| pod(at, &[first, second])));
        }
    }
    (two, one)
}

/// Returns manifests that the API server refuses for a union, and manifests that it takes, each with its collection: those of the rows, and pods
/// in every kind that has some.
fn manifests(objects: &Objects) -> [Vec<(String, Value)>; 2] {
    let (mut refused, mut taken) = (Vec::new(), Vec::new());
    for row in list(include_str!("rows.yaml")) {
        let (at, object) = (row["at"].as_str().unwrap().to_owned(), row["object"].clone());
        if row["known"] == true && is_served(&object) {
            let into = if is_taken(objects, &at, &object).is_ok() { &mut taken } else { &mut refused };
            into.push((at, object));
        }
    }
    let (two, one) = pods();
    let of = |kind: &PodKind, pod: &Value, spec: Value| (kind.2.to_owned(), object(kind, pod, &spec));
    let stateful_set = KINDS[4];
    let on_delete = json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}});
    refused.push(of(&stateful_set, &one[0], on_delete));
    taken.push(of(&stateful_set, &one[0], json!({"updateStrategy": {"type": "OnDelete"}})));
    taken.push(of(&stateful_set, &one[0], json!({"updateStrategy": {"rollingUpdate": {"partition": 1}}})));
    for (pods, found) in [(&two, &mut refused), (&one, &mut taken)] {
        let kinds = KINDS.iter().filter(|(_, kind, ..)| is_validated(kind));
        let all: Vec<_> = kinds.flat_map(|kind| pods.iter().map(move |pod| (kind, pod))).collect();
        // Every kind and every union is among them.
        let missing = MANIFESTS - found.len();
        found.extend(
            (0..missing).map(|number| all[number * all.len() / missing]).map(|(kind, pod)| of(kind, pod, json!({}))),
        );
    }
    [refused, taken]
}

/// Returns what the API server says against an object.
fn is_taken(objects: &Objects, at: &str, object: &Value) -> Result<(), String> {
    let answer = objects.send("POST", &format!("{at}?dryRun=All"), "application/json", object);
    if answer.is_success() { Ok(()) } else { Err(answer.body["message"].to_string()) }
}

/// Returns the schema of a kind as the API server publishes it.
fn plain(document: &Value, object: &Value) -> Value {
    let gvk = |schema: &Value| {
        let gvk = &schema["x-kubernetes-group-version-kind"][0];
        let group = gvk["group"].as_str().filter(|group| !group.is_empty()).map(|group| format!("{group}/"));
        json!([format!("{}{}", group.unwrap_or_default(), gvk["version"].as_str().unwrap_or_default()), gvk["kind"]])
    };
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let wanted = json!([object["apiVersion"], object["kind"]]);
    let (name, _) = schemas.iter().find(|(_, schema)| gvk(schema) == wanted).unwrap();
    let (mut needed, mut waiting) = (Map::new(), vec![name.clone()]);
    while let Some(name) = waiting.pop() {
        if !needed.contains_key(&name) {
            waiting.extend(references(&schemas[&name]));
            needed.insert(name.clone(), schemas[&name].clone());
        }
    }
    json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}], "components": {"schemas": needed}})
}

/// Returns the name that kubeconform looks for.
fn file_of(object: &Value) -> String {
    let text = |name: &str| object[name].as_str().unwrap().to_lowercase();
    let version = text("apiVersion");
    let (group, version) = version.split_once('/').map_or(("", &*version), |(group, version)| (group, version));
    let group = group.split('.').next().filter(|group| !group.is_empty()).map(|group| format!("-{group}"));
    format!("{}{}-{version}.json", text("kind"), group.unwrap_or_default())
}

/// A folder of schemas, in the layout of kubeconform.
struct Catalog {
    folder: PathBuf,
    validators: BTreeMap<String, Validator>,
}

impl Catalog {
    /// The folder of the schemas of a version of Kubernetes.
    const VERSION: &str = "master-standalone";

    fn new(workspace: &Workspace, name: &str) -> Self {
        let folder = workspace.path().join(name);
        fs::create_dir_all(folder.join(Self::VERSION)).unwrap();
        Self { folder, validators: BTreeMap::new() }
    }

    fn schemas(&self) -> PathBuf {
        self.folder.join(Self::VERSION)
    }

    fn is_valid(&mut self, object: &Value) -> bool {
        let path = self.schemas().join(file_of(object));
        let read = || jsonschema::validator_for(&parse("a schema", &fs::read_to_string(&path).unwrap())).unwrap();
        self.validators.entry(file_of(object)).or_insert_with(read).is_valid(object)
    }

    /// Returns the last line of kubeconform about manifests.
    fn kubeconform(&self, program: &str, manifests: &Path) -> String {
        let mut command = Command::new(program);
        let name = "{{.NormalizedKubernetesVersion}}-standalone/{{.ResourceKind}}{{.KindSuffix}}.json";
        let location = format!("{}/{name}", self.folder.display());
        command.args(["-summary", "-schema-location", &location, manifests.to_str().unwrap()]);
        kubectl::run(command, "kubeconform", "").stdout.lines().last().unwrap_or_default().to_owned()
    }

    /// Returns the last line about what yaml-language-server says of manifests.
    fn language_server(&self, manifests: &Path) -> String {
        let mut command = Command::new("node");
        command.arg(root().join("tests/editor/judge.mjs")).args([&self.schemas(), manifests]);
        kubectl::run(command, "judge.mjs", "").accepted().stdout.lines().last().unwrap_or_default().to_owned()
    }
}

#[test]
fn schemas_of_built_in_kinds_refuse_what_the_server_refuses_for_a_union_and_plain_ones_do_not() {
    let Some(objects) = Objects::without_presets() else { return };
    let workspace = Workspace::new("built-in-schemas");
    let [mut ours, mut plains] = ["ours", "plain"].map(|name| Catalog::new(&workspace, name));
    let folder = ours.schemas();
    kube_unions(&["compile", "--to", "json-schema", "--built-in", "--output-dir", folder.to_str().unwrap()], "")
        .accepted();
    let mut documents: BTreeMap<String, Value> = BTreeMap::new();
    for (sort, manifests) in ["refused", "taken"].into_iter().zip(manifests(&objects)) {
        let files = workspace.path().join(sort);
        fs::create_dir_all(&files).unwrap();
        let mut by_plain = 0;
        for (number, (at, object)) in manifests.iter().enumerate() {
            let answer = is_taken(&objects, at, object);
            let verdicts = [answer.is_ok(), ours.is_valid(object)];
            assert_eq!(verdicts, [sort == "taken"; 2], "{object}: {answer:?}");
            let version = object["apiVersion"].as_str().unwrap();
            let path = format!("/openapi/v3/{}/{version}", if version.contains('/') { "apis" } else { "api" });
            let get = || objects.send("GET", &path, "application/json", &Value::Null).body;
            let document = documents.entry(path.clone()).or_insert_with(get);
            let file = plains.schemas().join(file_of(object));
            if !file.exists() {
                fs::write(file, plain(document, object).to_string()).unwrap();
            }
            by_plain += usize::from(plains.is_valid(object));
            fs::write(files.join(format!("{number}.json")), object.to_string()).unwrap();
        }
        let by_ours = if sort == "taken" { MANIFESTS } else { 0 };
        assert_eq!(manifests.len(), MANIFESTS, "{sort}");
        // The published schemas require some fields that the API server does not, and the other way round.
        assert!(by_plain > MANIFESTS * 9 / 10, "{sort}: {by_plain}");
        for (name, catalog, valid) in [("kube-unions", &ours, by_ours), ("plain", &plains, by_plain)] {
            let invalid = MANIFESTS - valid;
            say(&format!("{sort} by the API server, schemas of {name}: {valid} valid, {invalid} invalid"));
            let Ok(program) = env::var("KUBE_UNIONS_KUBECONFORM") else { continue };
            let summary = format!(
                "Summary: {MANIFESTS} resources found in {MANIFESTS} files - Valid: {valid}, Invalid: {invalid}, Errors: 0, Skipped: 0"
            );
            assert_eq!(catalog.kubeconform(&program, &files), summary, "{sort}, {name}");
            let summary = format!("{MANIFESTS} manifests: {valid} valid, {invalid} invalid");
            assert_eq!(catalog.language_server(&files), summary, "{sort}, {name}");
        }
    }
}
