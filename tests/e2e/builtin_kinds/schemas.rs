//! The JSON schemas of built-in kinds: they refuse what the API server refuses for a union, and what plain schemas take.

use jsonschema::Validator;
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::builtin::Objects;
use crate::support::kubectl;
use crate::support::process::Workspace;
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

/// Returns manifests that the API server refuses for a union, and manifests that it takes, each with its collection.
fn manifests() -> [Vec<(&'static str, Value)>; 2] {
    let (two, one) = pods();
    let of = |kind: &PodKind, pod: &Value, spec: Value| (kind.2, object(kind, pod, &spec));
    let [deployment, stateful_set] = [KINDS[3], KINDS[4]];
    let recreate = json!({"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}});
    let on_delete = json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}});
    let mut refused = vec![of(&deployment, &one[0], recreate), of(&stateful_set, &one[0], on_delete)];
    let mut taken = vec![
        of(&deployment, &one[0], json!({"strategy": {"type": "Recreate"}})),
        of(&deployment, &one[0], json!({"strategy": {"rollingUpdate": {"maxSurge": 1}}})),
        of(&stateful_set, &one[0], json!({"updateStrategy": {"type": "OnDelete"}})),
        of(&stateful_set, &one[0], json!({"updateStrategy": {"rollingUpdate": {"partition": 1}}})),
    ];
    for pods in [(&two, &mut refused), (&one, &mut taken)] {
        let of_kind = |kind| pods.0.iter().map(move |pod| of(kind, pod, json!({})));
        let mut of_kinds: Vec<_> = KINDS.iter().map(of_kind).collect();
        // One of each kind after the other, so that the first of them have every kind and every union.
        for _ in pods.0 {
            pods.1.extend(of_kinds.iter_mut().filter_map(Iterator::next));
        }
    }
    // Every union is among them.
    let all = refused.len();
    let refused = (0..MANIFESTS).map(|number| refused[number * all / MANIFESTS].clone()).collect();
    taken.truncate(MANIFESTS);
    [refused, taken]
}

/// Returns the schema of a kind as Kubernetes publishes it.
fn plain(document: &Value, object: &Value) -> Value {
    let gvk = |schema: &Value| {
        let gvk = &schema["x-kubernetes-group-version-kind"][0];
        let group = gvk["group"].as_str().filter(|group| !group.is_empty()).map(|group| format!("{group}/"));
        json!([format!("{}{}", group.unwrap_or_default(), gvk["version"].as_str().unwrap_or_default()), gvk["kind"]])
    };
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let wanted = json!([object["apiVersion"], object["kind"]]);
    let (name, _) = schemas.iter().find(|(_, schema)| gvk(schema) == wanted).unwrap();
    json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}], "components": document["components"]})
}

/// Returns the name that kubeconform looks for.
fn file_of(object: &Value) -> String {
    let text = |name: &str| object[name].as_str().unwrap().to_lowercase();
    format!("{}-{}.json", text("kind"), text("apiVersion").replace('/', "-"))
}

/// Returns the last line of kubeconform about manifests.
fn kubeconform(program: &str, schemas: &Path, manifests: &Path) -> String {
    let mut command = Command::new(program);
    let location = schemas.join("{{.ResourceKind}}{{.KindSuffix}}.json");
    command.args(["-summary", "-schema-location", location.to_str().unwrap(), manifests.to_str().unwrap()]);
    kubectl::run(command, "kubeconform", "").stdout.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn schemas_of_built_in_kinds_refuse_what_the_server_refuses_for_a_union_and_plain_ones_do_not() {
    let Some(objects) = Objects::without_presets() else { return };
    let workspace = Workspace::new("built-in-schemas");
    let folder = |name: &str| {
        let folder = workspace.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    };
    let (ours, plains) = (folder("ours"), folder("plain"));
    kube_unions(&["compile", "--to", "json-schema", "--built-in", "--output-dir", ours.to_str().unwrap()], "")
        .accepted();
    let published = fs::read_to_string(root().join("crates/offline/src/built_in/kinds.json")).unwrap();
    let published: Value = parse("kinds.json", &published);
    let is_valid = |schema: &Value, object: &Value| -> bool {
        let validator: Validator = jsonschema::validator_for(schema).unwrap();
        validator.is_valid(object)
    };
    for (sort, manifests) in ["refused", "taken"].into_iter().zip(manifests()) {
        let files = folder(sort);
        let (mut server, mut by_ours, mut by_plain) = (0, 0, 0);
        for (number, (at, object)) in manifests.iter().enumerate() {
            let answer = objects.send("POST", &format!("{at}?dryRun=All"), "application/json", object);
            let schema = parse("a schema", &fs::read_to_string(ours.join(file_of(object))).unwrap());
            let plain = plain(&published, object);
            let verdicts = [answer.is_success(), is_valid(&schema, object)];
            assert_eq!(verdicts, [sort == "taken"; 2], "{object}: {}", answer.body["message"]);
            server += usize::from(verdicts[0]);
            by_ours += usize::from(verdicts[1]);
            by_plain += usize::from(is_valid(&plain, object));
            fs::write(files.join(format!("{number}.json")), object.to_string()).unwrap();
            fs::write(plains.join(file_of(object)), plain.to_string()).unwrap();
        }
        let taken = if sort == "taken" { MANIFESTS } else { 0 };
        assert_eq!([manifests.len(), server, by_ours, by_plain], [MANIFESTS, taken, taken, MANIFESTS], "{sort}");
        if let Ok(program) = env::var("KUBE_UNIONS_KUBECONFORM") {
            let summary = |valid: usize| {
                let invalid = MANIFESTS - valid;
                format!(
                    "Summary: {MANIFESTS} resources found in {MANIFESTS} files - Valid: {valid}, Invalid: {invalid}, Errors: 0, Skipped: 0"
                )
            };
            assert_eq!(kubeconform(&program, &ours, &files), summary(taken), "{sort}");
            assert_eq!(kubeconform(&program, &plains, &files), summary(MANIFESTS), "{sort}");
        }
    }
}
