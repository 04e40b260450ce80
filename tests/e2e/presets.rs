//! `manifests/presets` on a real API server: they fit its schemas, and they change its answers as they should.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use kube_unions_core::catalog::Builder;
use kube_unions_core::declaration::{Declaration, Definition, OpenApi, Severity};
use serde_json::{Value, json};

use crate::builtin::{BuiltIn, Objects, POLICIES, PRESETS, WITH_PRESETS, path};
use crate::support::cluster::AnyCluster;
use crate::support::kind::documents;
use crate::support::version::Feature;
use fixtures::wait::{SETTLED, eventually};

/// The path of the pod's spec in each kind that has one.
pub(crate) const POD_SPECS: [(&str, &str, &str); 9] = [
    ("v1", "Pod", "spec"),
    ("v1", "PodTemplate", "template.spec"),
    ("v1", "ReplicationController", "spec.template.spec"),
    ("apps/v1", "DaemonSet", "spec.template.spec"),
    ("apps/v1", "Deployment", "spec.template.spec"),
    ("apps/v1", "ReplicaSet", "spec.template.spec"),
    ("apps/v1", "StatefulSet", "spec.template.spec"),
    ("batch/v1", "CronJob", "spec.jobTemplate.spec.template.spec"),
    ("batch/v1", "Job", "spec.template.spec"),
];

#[test]
fn every_preset_is_sound_against_the_schemas_of_the_live_server() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let client = cluster.client();
    let documents: Vec<OpenApi> = WITH_PRESETS
        .into_iter()
        .map(|(version, _)| {
            let path = format!("{}/{version}", if version.contains('/') { "apis" } else { "api" });
            let answer = client.get(&format!("/openapi/v3/{path}")).unwrap();
            assert!(answer.is_success(), "{path}: {answer:?}");
            OpenApi::parse(&answer.body.to_string()).unwrap()
        })
        .collect();

    let mut declarations: BTreeMap<(String, String), Vec<Declaration>> = BTreeMap::new();
    for preset in presets() {
        let (declaration, faults) = Declaration::from_json(&preset.to_string()).unwrap();
        assert_eq!(faults, [], "{}", declaration.name());
        let target = declaration.target();
        declarations.entry((target.group.clone(), target.kind.clone())).or_default().push(declaration);
    }
    let mut builder = Builder::new();
    for ((group, kind), declarations) in &declarations {
        let mut definition = Definition::from_openapi(&documents, group, kind, false).unwrap();
        assert!(declarations.iter().all(|declaration| definition.declare(declaration)));
        builder.apply(definition);
    }
    let catalog = builder.build();

    let declared: usize = presets().iter().map(|preset| preset["spec"]["unions"].as_array().unwrap().len()).sum();
    assert_eq!(catalog.union_count(), declared, "every union of every preset is in force");
    assert!(catalog.faults().iter().all(|fault| fault.severity() != Severity::Error), "{:#?}", catalog.faults());
    let surprising: Vec<String> =
        catalog.faults().iter().map(|fault| format!("{} {}", fault.definition, fault.path)).collect();
    assert_eq!(surprising, notes());
}

/// Returns the definition and place of every note about a preset, sorted: lists without keys, where nothing is cleared, a
/// discriminator without an enum, and a member that older API servers lack.
fn notes() -> Vec<String> {
    let mut notes = [
        "HorizontalPodAutoscaler.autoscaling spec.metrics[*].type",
        "HorizontalPodAutoscaler.autoscaling spec.metrics[*].type",
        "Ingress.networking.k8s.io spec.rules[*].http.paths[*].backend",
        "Ingress.networking.k8s.io spec.rules[*].http.paths[*].backend.service.port",
        "NetworkPolicy.networking.k8s.io spec.egress[*].to[*]",
        "NetworkPolicy.networking.k8s.io spec.ingress[*].from[*]",
    ]
    .map(str::to_owned)
    .to_vec();
    if !Feature::FileKeyRef.is_served() {
        for (api_version, kind, at) in POD_SPECS {
            let definition = match api_version.split_once('/') {
                Some((group, _)) => format!("{kind}.{group}"),
                None => kind.to_owned(),
            };
            let of = |containers: &str| format!("{definition} {at}.{containers}[*].env[*].valueFrom");
            notes.extend(["containers", "initContainers"].map(of));
        }
        notes.sort();
    }
    notes
}

#[test]
fn with_the_presets_a_change_of_a_union_is_one_request() {
    let (Some(bare), Some(cluster)) = (Objects::without_presets(), BuiltIn::with_presets()) else { return };
    let mut rows = rows();
    let names: BTreeSet<String> = presets().iter().map(|preset| name_of(preset).to_owned()).collect();
    let shown: BTreeSet<String> = rows.iter().map(|row| row.preset.clone()).collect();
    assert_eq!(shown, names, "every preset has a row, and no row is about another");

    for row in &mut rows {
        row.object["metadata"]["name"] = json!(format!("{}-without", name_of(&row.object)));
        let (status, body) = row.run(&bare);
        let Some(today) = &row.today else {
            assert_eq!(status, 200, "{}: {body}", row.preset);
            continue;
        };
        assert_eq!(status, 422, "{}: {body}", row.preset);
        assert!(message(&body).contains(today), "{}: not `{today}` but {body}", row.preset);
    }
    for row in &mut rows {
        row.object["metadata"]["name"] = json!(name_of(&row.object).replace("-without", "-with"));
        row.holds(cluster);
    }
}

#[test]
fn with_the_policies_a_change_of_a_union_is_one_request_without_a_webhook() {
    let Some(cluster) = BuiltIn::with_policies() else { return };
    for mut row in rows() {
        row.object["metadata"]["name"] = json!(format!("{}-policies", name_of(&row.object)));
        row.holds(cluster);
    }
    assert!(cluster.cluster.webhook.outcomes().is_empty(), "the webhook was asked");
}

/// Applies `manifests/policies`, and waits until each policy is in force.
pub(crate) fn switch_policies_on(cluster: &Objects) {
    cluster.kubectl.run(&["apply", "-f", POLICIES]).accepted();
    for mut row in rows().into_iter().filter(|row| matches!(row.then, Then::Stored(..))) {
        row.object["metadata"]["name"] = json!(format!("{}-probe", name_of(&row.object)));
        let created = cluster.create(&row.object);
        assert!(created.is_success(), "{}: {created:?}", row.preset);
        let path = format!("{}?dryRun=All", path(&row.object));
        let works = || cluster.send("PATCH", &path, &row.content_type, &row.patch).is_success();
        assert!(eventually(SETTLED, works), "the policy of {} is not in force", row.preset);
    }
}

/// A request, and the expected answers.
pub(crate) struct Row {
    pub(crate) preset: String,
    /// True for a union of pod templates.
    pub(crate) is_of_template: bool,
    pub(crate) object: Value,
    content_type: String,
    patch: Value,
    /// The API server's message without the preset. `None` if it accepts the request.
    today: Option<String>,
    pub(crate) then: Then,
}

pub(crate) enum Then {
    Stored(String, Value),
    Refused(String),
}

impl Row {
    /// Creates the object and sends the patch. Returns status and body of the answer to the patch.
    fn run(&self, cluster: &Objects) -> (u16, Value) {
        let created = cluster.create(&self.object);
        assert!(created.is_success(), "{}: {created:?}", self.preset);
        let answer = cluster.patch(&self.object, &self.content_type, &self.patch);
        (answer.status, answer.body)
    }

    /// Fails unless the union is changed, or the patch refused in the API server's own words.
    fn holds(&self, cluster: &Objects) {
        let (status, body) = self.run(cluster);
        match &self.then {
            Then::Stored(pointer, after) => {
                assert_eq!(status, 200, "{}: {body}", self.preset);
                assert_eq!(cluster.stored(&self.object).pointer(pointer), Some(after), "{}", self.preset);
            }
            Then::Refused(still) => {
                assert_eq!(status, 422, "{}: {body}", self.preset);
                assert!(message(&body).contains(still), "{}: not `{still}` but {body}", self.preset);
            }
        }
    }
}

pub(crate) fn rows() -> Vec<Row> {
    let text = |row: &Value, field: &str| row[field].as_str().map(str::to_owned);
    let strategic = || "application/strategic-merge-patch+json".to_owned();
    let mut rows: Vec<Row> = list(include_str!("presets/rows.yaml"))
        .into_iter()
        .map(|row| Row {
            preset: text(&row, "preset").unwrap(),
            is_of_template: false,
            object: row["object"].clone(),
            content_type: text(&row, "as").unwrap_or_else(strategic),
            patch: row["patch"].clone(),
            today: Some(text(&row, "today").unwrap()),
            then: match text(&row, "still") {
                Some(still) => Then::Refused(still),
                None => Then::Stored(text(&row, "at").unwrap(), row["after"].clone()),
            },
        })
        .collect();
    for (position, row) in list(include_str!("presets/pod-templates.yaml")).into_iter().enumerate() {
        for (api_version, kind, at) in POD_SPECS {
            let family = text(&row, "family").unwrap();
            let today = text(&row, "today").unwrap();
            let then = match kind {
                "Pod" => Then::Refused("pod updates may not change fields other than".to_owned()),
                "Job" => Then::Refused("field is immutable".to_owned()),
                _ => Then::Stored(
                    format!("/{}{}", at.replace('.', "/"), text(&row, "at").unwrap()),
                    row["after"].clone(),
                ),
            };
            rows.push(Row {
                preset: format!("{}-{family}", kind.to_lowercase()),
                is_of_template: true,
                object: with_pod_spec(api_version, kind, at, &format!("{family}-{position}"), &row["before"]),
                content_type: strategic(),
                patch: nest(at, row["patch"].clone()),
                // The message of a field's rule has the field's path; the message of an object's rule has none.
                today: is_validated(kind).then(|| if today.contains(": ") { format!("{at}.{today}") } else { today }),
                then,
            });
        }
    }
    rows
}

/// Returns true if this API server validates the pod's spec in objects of a kind.
pub(crate) fn is_validated(kind: &str) -> bool {
    kind != "StatefulSet" || Feature::StatefulSetTemplateValidation.is_served()
}

/// Returns an object of a kind that has a pod's spec, with these fields in the spec.
pub(crate) fn with_pod_spec(api_version: &str, kind: &str, at: &str, name: &str, part: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "main", "image": "example.com/app:1"}]});
    if matches!(kind, "CronJob" | "Job") {
        spec["restartPolicy"] = json!("Never");
    }
    json_patch::merge(&mut spec, part);
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    json_patch::merge(&mut object, &nest(at, spec));
    if let Some(template) = at.strip_suffix(".spec").filter(|template| template.ends_with("template")) {
        json_patch::merge(&mut object, &nest(template, json!({"metadata": {"labels": {"app": "x"}}})));
    }
    let more = match kind {
        "DaemonSet" | "Deployment" | "ReplicaSet" => json!({"selector": {"matchLabels": {"app": "x"}}}),
        "StatefulSet" => json!({"selector": {"matchLabels": {"app": "x"}}, "serviceName": "x"}),
        "ReplicationController" => json!({"selector": {"app": "x"}}),
        "CronJob" => json!({"schedule": "@daily"}),
        _ => return object,
    };
    json_patch::merge(&mut object, &nest("spec", more));
    object
}

/// Returns the value, nested in the objects that lead to it.
pub(crate) fn nest(path: &str, value: Value) -> Value {
    path.rsplit('.').fold(value, |inner, field| json!({ field: inner }))
}

/// Returns every preset in a folder as JSON.
pub(crate) fn presets_in(folder: &str) -> Vec<Value> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "yaml") && !path.ends_with("kustomization.yaml"));
    files.sort();
    files.iter().flat_map(|path| documents(&fs::read_to_string(path).unwrap())).collect()
}

fn presets() -> Vec<Value> {
    presets_in(PRESETS)
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

pub(crate) fn message(status: &Value) -> &str {
    status["message"].as_str().unwrap_or_default()
}

/// Returns the items of a file with one list.
pub(crate) fn list(text: &str) -> Vec<Value> {
    documents(text).into_iter().flat_map(|list| list.as_array().unwrap().clone()).collect()
}
