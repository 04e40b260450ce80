//! Pod templates of custom resources, and places that the schema does not describe, on a real API server.
//!
//! `pod_templates/kinds.yaml` has kinds whose schemas describe more or less of their pod template. `pod_templates/rows.yaml` says
//! what each way to switch a member stores before and after `podTemplates` is in force.

use std::collections::BTreeMap;
use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin::{condition, wait_for_verdict};
use crate::client_side;
use crate::cluster::{AnyCluster, say};
use crate::http::Answer;
use crate::kind::{Kind, documents, parse};
use fixtures::crds::{crd, version};
use fixtures::reviews::declaration;
use fixtures::wait::{SETTLED, for_some, steadily};

const JSON_PATCH: &str = "application/json-patch+json";

/// A switch of a member.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    union: String,
    /// The spec of the pod at first.
    old: Value,
    /// The spec of the pod after the switch.
    new: Value,
    /// The JSON patch that switches.
    patch: Value,
    /// The warning about the member that is cleared.
    warning: String,
    /// The outcomes on each kind.
    outcomes: BTreeMap<String, Outcomes>,
}

/// A letter for each [`Way`]: cleared, switched or both.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outcomes {
    before: String,
    after: String,
}

/// A way to switch a member.
#[derive(Clone, Copy, Debug)]
enum Way {
    JsonPatch,
    MergePatch,
    ApplyThenApply,
    CreateThenApply,
    SameManager,
    OtherManager,
    CreateThenServerSide,
}

impl Way {
    const ALL: [Self; 7] = [
        Self::JsonPatch,
        Self::MergePatch,
        Self::ApplyThenApply,
        Self::CreateThenApply,
        Self::SameManager,
        Self::OtherManager,
        Self::CreateThenServerSide,
    ];
}

/// Installs a kind with this schema of `spec` and without unions, and registers the webhook for its group.
fn install(cluster: &'static AnyCluster, name: &str, spec: &Value) -> Kind<'static> {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let definition = crd(&cluster.new_group(), name, &[version("v1", &schema)]);
    let kind = Kind::of_definition(cluster, &definition);
    kind.apply_definition_text(&definition.to_string());
    kind.send_to_webhook();
    kind
}

impl Kind<'_> {
    /// Declares unions of the kind, and waits until every replica gives the proof that they are in force.
    fn declare(&self, name: &str, spec: &Value, at: &str, proof: impl Fn() -> bool) {
        let declared = format!("{at}.{}", self.group());
        self.kubectl().apply(&declaration(&declared, self.group(), name, spec).to_string()).accepted();
        let verdict = wait_for_verdict(self.cluster().client(), &declared);
        assert_eq!(verdict.status, "True", "{verdict:?}");
        let in_force = for_some(SETTLED, || condition(self.cluster().client(), &declared, "InForce")).unwrap();
        assert_eq!(in_force.status, "True", "{in_force:?}");
        assert!(steadily(self.cluster().steady(), proof), "{name}: the declaration has no effect");
    }

    fn create(&self, name: &str, spec: &Value) -> Answer {
        self.client().post(&self.path(""), &self.object(name, spec)).unwrap()
    }

    fn patch(&self, name: &str, content_type: &str, patch: &Value) -> Answer {
        self.send_patch(&self.path(name), content_type, patch)
    }

    fn dry_patch(&self, name: &str, patch: &Value) -> Answer {
        self.send_patch(&format!("{}?dryRun=All", self.path(name)), JSON_PATCH, patch)
    }

    fn send_patch(&self, path: &str, content_type: &str, body: &Value) -> Answer {
        self.client().send("PATCH", path, content_type, body.to_string().as_bytes()).unwrap()
    }

    fn server_side(&self, name: &str, manager: &str, spec: &Value) -> Answer {
        let path = format!("{}?fieldManager={manager}&force=true", self.path(name));
        self.send_patch(&path, "application/apply-patch+yaml", &self.object(name, spec))
    }

    /// Switches a member of a new object in the given way, and returns the letter of the outcome.
    fn switch(&self, name: &str, row: &Row, way: Way) -> char {
        let [old, new] = [&row.old, &row.new].map(|pod| json!({"template": {"spec": pod}}));
        let stored = |answer: Answer| {
            assert!(answer.is_success(), "{} {way:?}: {answer:?}", row.union);
            answer.warnings
        };
        let apply = |spec: &Value| {
            let answer = client_side::apply(self.client(), &self.path(""), &self.object(name, spec));
            answer.expect("a switch needs a patch")
        };
        let first = match way {
            Way::JsonPatch | Way::MergePatch | Way::CreateThenApply | Way::CreateThenServerSide => {
                stored(self.create(name, &old))
            }
            Way::ApplyThenApply => stored(apply(&old)),
            Way::SameManager | Way::OtherManager => stored(self.server_side(name, "first", &old)),
        };
        assert_eq!(first, [""; 0], "{} {way:?}", row.union);
        let warnings = match way {
            Way::JsonPatch => stored(self.patch(name, JSON_PATCH, &row.patch)),
            Way::MergePatch => stored(self.patch(name, "application/merge-patch+json", &json!({"spec": new}))),
            Way::ApplyThenApply | Way::CreateThenApply => stored(apply(&new)),
            Way::SameManager | Way::CreateThenServerSide => stored(self.server_side(name, "first", &new)),
            Way::OtherManager => stored(self.server_side(name, "second", &new)),
        };
        match (self.stored(name)["spec"] == new, &*warnings) {
            (true, []) => 'S',
            (true, [warning]) if *warning == row.warning => 'C',
            (false, []) => 'B',
            _ => panic!("{} {way:?}: {warnings:?}, stored {}", row.union, self.stored(name)["spec"]),
        }
    }
}

#[test]
fn a_pod_template_of_a_custom_resource_keeps_one_member_whatever_its_schema_describes() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let rows: Vec<Row> = serde_json::from_value(parse(&fixture("rows"))).unwrap();
    let (mut before, mut after) = (String::new(), String::new());
    for fixture in documents(&fixture("kinds")) {
        let name = fixture["kind"].as_str().unwrap();
        let kind = install(cluster, name, &fixture["spec"]);
        let play = |phase: &str, row: usize| -> String {
            let letter = |(number, way)| kind.switch(&format!("{phase}-{row}-{number}"), &rows[row], way);
            Way::ALL.into_iter().enumerate().map(letter).collect()
        };
        let all = |phase: &str| -> Vec<String> { (0..rows.len()).map(|row| play(phase, row)).collect() };
        let without = all("before");
        let probe = json!({"template": {"spec": rows[0].old}});
        assert!(kind.create("probe", &probe).is_success());
        kind.declare(name, &json!({"podTemplates": ["spec.template"]}), "template", || {
            kind.dry_patch("probe", &rows[0].patch).warnings == [rows[0].warning.clone()]
        });
        let with = all("after");
        for (row, (without, with)) in rows.iter().zip(without.iter().zip(&with)) {
            let wanted = &row.outcomes[name];
            assert_eq!((without, with), (&wanted.before, &wanted.after), "{name}: {}", row.union);
            before += without;
            after += with;
        }
    }
    let works = |outcomes: &str| outcomes.chars().filter(|outcome| *outcome != 'B').count();
    say(&format!("{} switches: {} work before, {} after", before.len(), works(&before), works(&after)));
    assert!(works(&before) < works(&after) && works(&after) == after.len());
}

#[test]
fn an_empty_value_beside_the_source_of_a_variable_is_no_second_member() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let kind = install(cluster, "Whole", &fixture_spec("Whole"));
    let variable = |more: Value| {
        let mut variable = json!({"name": "A"});
        json_patch::merge(&mut variable, &more);
        json!({"template": {"spec": {"containers": [{"name": "main", "env": [variable]}]}}})
    };
    let source = json!({"secretKeyRef": {"name": "s", "key": "k"}});
    let both = kind.object("both", &variable(json!({"value": "v", "valueFrom": source})));
    kind.declare("Whole", &json!({"podTemplates": ["spec.template"]}), "template", || {
        let answer = cluster.client().post(&format!("{}?dryRun=All", kind.path("")), &both).unwrap();
        answer.status == 422 && answer.body["message"].to_string().contains("containers[0].env[0].valueFrom")
    });
    let spec = variable(json!({"value": "", "valueFrom": source}));
    let answer = kind.create("empty", &spec);
    assert!(answer.is_success() && answer.warnings.is_empty(), "{answer:?}");
    assert_eq!(kind.stored("empty")["spec"], spec, "an empty value loses nothing, so it stays");
}

#[test]
fn data_of_any_type_where_the_schema_describes_nothing_is_stored_as_it_is() {
    let Some(cluster) = AnyCluster::shared() else { return };
    let kind = install(cluster, "Whole", &fixture_spec("Whole"));
    let volumes = |volumes: Value| json!({"template": {"spec": {"volumes": volumes}}});
    let volume = json!({"name": "v", "emptyDir": {}});
    let patch = json!([{"op": "add", "path": "/spec/template/spec/volumes/2/hostPath", "value": {"path": "/x"}}]);
    let cleared = "spec.template.spec.volumes[2].emptyDir: cleared because `hostPath` was set";
    assert!(kind.create("among", &volumes(json!([7, "text", volume, null, []]))).is_success());
    kind.declare("Whole", &json!({"podTemplates": ["spec.template"]}), "template", || {
        kind.dry_patch("among", &patch).warnings == [cleared]
    });

    let answer = kind.patch("among", JSON_PATCH, &patch);
    assert_eq!(answer.warnings, [cleared], "{answer:?}");
    let kept = volumes(json!([7, "text", {"name": "v", "hostPath": {"path": "/x"}}, null, []]));
    assert_eq!(kind.stored("among")["spec"], kept, "values of other types are no volumes, and stay");

    let container = |more: Value| json!({"template": {"spec": {"containers": [more]}}});
    let odd = [
        json!({"template": "text"}),
        json!({"template": 7}),
        json!({"template": [true, {"spec": {}}]}),
        json!({"template": {"spec": ["volumes"]}}),
        volumes(json!("text")),
        volumes(json!({"name": "v", "emptyDir": {}, "hostPath": {}})),
        volumes(json!([[{"name": "v", "emptyDir": {}, "hostPath": {}}]])),
        volumes(json!([{"name": {"a": 1}, "emptyDir": 1}, {"name": ["a"], "hostPath": "text"}, {"emptyDir": {}}])),
        container(json!("main")),
        container(json!({"name": "main", "env": {"A": {"value": "v", "valueFrom": {}}}})),
        container(json!({"name": "main", "env": [{"name": 1, "valueFrom": "text"}, {"name": 1, "value": {}}]})),
        container(json!({"name": "main", "livenessProbe": ["exec"], "securityContext": {"seccompProfile": "text"}})),
        json!({"template": {"spec": {"securityContext": {"seccompProfile": {"type": 7, "localhostProfile": []}}}}}),
    ];
    for (number, spec) in odd.iter().enumerate() {
        let name = format!("odd-{number}");
        let answer = kind.create(&name, spec);
        assert!(answer.is_success() && answer.warnings.is_empty(), "{spec}: {answer:?}");
        assert_eq!(kind.stored(&name)["spec"], *spec);
        for other in &odd {
            let mut object = kind.stored(&name);
            object["spec"] = other.clone();
            let answer =
                cluster.client().send("PUT", &kind.path(&name), "application/json", object.to_string().as_bytes());
            let answer = answer.unwrap();
            assert!(answer.is_success() && answer.warnings.is_empty(), "{spec} to {other}: {answer:?}");
            assert_eq!(answer.body["spec"], *other, "{spec} to {other}");
        }
    }
}

fn fixture(name: &str) -> String {
    let path = format!("{}/tests/e2e/pod_templates/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {path}: {error}"))
}

/// Returns the schema of `spec` of a kind.
fn fixture_spec(kind: &str) -> Value {
    documents(&fixture("kinds")).into_iter().find(|fixture| fixture["kind"] == *kind).unwrap()["spec"].clone()
}
