//! CRDs that change all the time, beside the one that is written.

use fixtures::crds;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::background::Background;
use crate::support::http::{Answer, Client};
use crate::support::kind::parse;

use super::installation::backups_of;

/// Between two changes.
const PACE: Duration = Duration::from_millis(100);
/// The annotation that declares unions.
const UNIONS: &str = "kube-unions.dev/unions";
const GROUP: &str = "churn.example";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// As many others as there are at a time.
const ALIVE: u64 = 5;

/// Ten changes a second: CRDs with unions are created, changed and deleted, one without is annotated.
pub(crate) struct Churn {
    changes: Arc<AtomicU64>,
    changing: Background,
}

impl Churn {
    pub(crate) fn start(client: Client) -> Self {
        accepted(client.post(DEFINITIONS, &without_unions()));
        let template = parse(&backups_of(GROUP));
        let changes = Arc::<AtomicU64>::default();
        let mut next = Instant::now();
        let changing = Background::start([{
            let changes = Arc::clone(&changes);
            move || {
                let turn = changes.load(Ordering::Relaxed);
                change(&client, &template, turn);
                changes.store(turn + 1, Ordering::Relaxed);
                next += PACE;
                thread::sleep(next.saturating_duration_since(Instant::now()));
            }
        }]);
        Self { changes, changing }
    }

    /// Returns the number of changes so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Ends it. Fails if a change was refused.
    pub(crate) fn finish(self) {
        self.changing.finish();
    }
}

/// The groups of the CRDs that there are with unions.
pub(crate) fn groups_with_unions(client: &Client) -> BTreeSet<String> {
    let list = client.get(DEFINITIONS).expect("the API server answers").body;
    let crds = list["items"].as_array().expect("CRDs can be listed");
    let crds = crds.iter().filter(|crd| crd["metadata"]["annotations"].get(UNIONS).is_some());
    crds.filter_map(|crd| crd["spec"]["group"].as_str().map(str::to_owned)).collect()
}

fn change(client: &Client, template: &Value, turn: u64) {
    let number = turn / 4;
    let path = |number: u64| format!("{DEFINITIONS}/backups.{}", group(number));
    accepted(match turn % 4 {
        0 => client.post(DEFINITIONS, &definition(template, number)),
        1 => annotate(client, &path(number), UNIONS, &fewer_unions(template)),
        2 if number >= ALIVE => client.delete(&path(number - ALIVE)),
        _ => annotate(client, &format!("{DEFINITIONS}/plains.{GROUP}"), "example.com/turn", &turn.to_string()),
    });
}

fn group(number: u64) -> String {
    format!("n{number}.{GROUP}")
}

fn definition(template: &Value, number: u64) -> Value {
    let mut definition = template.clone();
    definition["metadata"]["name"] = json!(format!("backups.{}", group(number)));
    definition["spec"]["group"] = json!(group(number));
    definition
}

/// The declarations of the template without those of `status`.
fn fewer_unions(template: &Value) -> String {
    let unions = template["metadata"]["annotations"][UNIONS].as_str().expect("the sample declares unions");
    let mut unions: Value = serde_json::from_str(unions).expect("declarations are JSON");
    unions["v1"].as_object_mut().unwrap().remove("/properties/status").expect("the status has a union");
    unions.to_string()
}

fn without_unions() -> Value {
    crds::crd(GROUP, "Plain", &[crds::version("v1", &json!({"type": "object"}))])
}

fn annotate(client: &Client, path: &str, annotation: &str, value: &str) -> Result<Answer, String> {
    let body = json!({"metadata": {"annotations": {annotation: value}}});
    client.send("PATCH", path, "application/merge-patch+json", body.to_string().as_bytes())
}

fn accepted(answer: Result<Answer, String>) {
    let answer = answer.expect("the API server answers");
    assert!(answer.is_success(), "a change of a CRD: {answer:?}");
}
