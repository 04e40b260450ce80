//! An API server that hangs, drips, breaks off or answers badly: reviews go on, readiness is truthful, and the catalog is right
//! again soon after the API server is.

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use fixtures::api_server::{DECLARATIONS, DEFINITIONS};
use serde_json::{Value, json};

use crate::faults::{Effect, Proxy, Requests};
use crate::registration::decoded;
use crate::support::cluster::{AnyCluster, Cluster, some_or_all};
use crate::support::control_plane::ControlPlane;
use crate::support::kind::Kind;
use crate::support::lending::Lent;
use crate::support::process::{Process, Workspace};
use crate::support::webhook::{Webhook, binary};
use fixtures::reviews::{declaration, review_text};
use fixtures::wait::{SOON, eventually};

/// The promise: so soon after the recovery of the API server, the catalog is right.
const RECOVERED: Duration = Duration::from_mins(1);
/// The deadline of work of many processes that start at the same time.
const SETTLED: Duration = Duration::from_secs(90);
/// Between two looks at a replica, since the rows run side by side.
const PACE: Duration = Duration::from_millis(500);

const CONNECTED: &str = "kube_unions_watch_connected";

/// A fault. The last field is true if the watch of a running replica breaks at once, and the replica says so.
type Row = (&'static str, Requests, Effect, bool);

/// The first [`BY_DEFAULT`] have each effect, and each class of requests.
const ROWS: [Row; 17] = [
    ("silence", Requests::All, Effect::Silence, false),
    ("reset", Requests::All, Effect::Reset, true),
    ("truncated", Requests::All, Effect::Truncated, false),
    ("429", Requests::All, Effect::Status(429), true),
    ("a page", Requests::All, Effect::Page, true),
    ("an endless list", Requests::Definitions, Effect::Endless, false),
    ("lists that drip", Requests::Definitions, Effect::Drip, false),
    ("silent watches", Requests::Watches, Effect::HeadersOnly, false),
    ("stale watches", Requests::Watches, Effect::Stale, false),
    ("watches that are gone", Requests::Watches, Effect::Status(410), false),
    ("silent documents", Requests::Documents, Effect::Silence, false),
    ("headers only", Requests::All, Effect::HeadersOnly, false),
    ("drip", Requests::All, Effect::Drip, false),
    ("503", Requests::All, Effect::Status(503), true),
    ("silent lists", Requests::Definitions, Effect::Silence, false),
    ("lists of headers only", Requests::Definitions, Effect::HeadersOnly, false),
    ("watches without an answer", Requests::Watches, Effect::Silence, false),
];

const BY_DEFAULT: usize = 11;

fn rows() -> &'static [Row] {
    &ROWS[..some_or_all(BY_DEFAULT, ROWS.len())]
}

#[test]
fn a_replica_that_starts_under_a_fault_is_ready_once_it_is_lifted() {
    let Some((plane, cluster)) = plane() else { return };
    let sources = Kind::new(cluster, "source");
    sources.apply_definition();
    run(rows().iter().map(|row| (row, ())), |row, ()| starts_under(row, plane, &sources));
}

#[test]
fn a_fault_under_a_running_replica_harms_no_review_and_is_made_up_for() {
    let Some((plane, cluster)) = plane() else { return };
    let sources = Kind::new(cluster, "source");
    sources.apply_definition();
    let meets_it = rows().iter().filter(|(_, requests, ..)| *requests != Requests::Documents);
    let met = run(meets_it.map(|row| (row, ())), |row, ()| (row, runs_into(row, plane, &sources)));
    let rollouts = Kind::in_group(cluster, "rollout", sources.group().to_owned());
    rollouts.apply_definition();
    run(met, |row, replica| makes_up_for(row, replica, &sources, &rollouts));
}

#[test]
fn writes_of_statuses_that_hang_do_not_stop_those_of_others() {
    let Some(plane) = Cluster::control_plane_alone() else { return };
    let proxy = Proxy::start(&plane);
    let webhook = Webhook::of_cluster(&proxy.kubeconfig(), &[]).unwrap();
    proxy.inject(Requests::Writes("hung-"), Effect::Silence);
    let create = |name| create_untrue(&plane, name);
    let is_judged = |name: &str| {
        let stored = plane.client().get(&format!("{DECLARATIONS}/{name}")).unwrap().body;
        stored["status"]["conditions"].is_array()
    };
    let hung = ["hung-0", "hung-1", "hung-2", "hung-3", "hung-4", "hung-5"];
    for name in hung {
        create(name);
    }
    assert!(eventually(SOON, || proxy.hits(DECLARATIONS) >= 4), "{}", webhook.log());
    // Behind all of them in the order of names.
    create("last");
    assert!(eventually(SETTLED, || is_judged("last")), "{}", webhook.log());
    assert!(!hung.iter().any(|name| is_judged(name)), "the fault lasts");
}

#[test]
fn a_command_ends_though_the_api_server_does_not_answer() {
    let Some((plane, _)) = plane() else { return };
    let workspace = Workspace::new("commands");
    let start = |(requests, effect)| {
        let proxy = Proxy::start(plane);
        proxy.inject(requests, effect);
        let args = ["explain".to_owned(), format!("--kubeconfig={}", proxy.kubeconfig().display())];
        let log = workspace.path().join(format!("{requests:?}-{effect:?}"));
        (proxy, Process::start(&binary().unwrap(), &args, &[], &log))
    };
    let faults = [
        (Requests::All, Effect::Silence),
        (Requests::Documents, Effect::Silence),
        (Requests::Documents, Effect::HeadersOnly),
    ];
    for (proxy, mut process) in faults.map(start) {
        process.wait_for_exit(SETTLED);
        // Without the documents, the rest is worth showing.
        assert!(process.log().contains("the API server") && proxy.hits("/") > 0, "{}", process.log());
    }
}

/// The control plane of all rows, and one declaration of a built-in type, so that its document is fetched.
fn plane() -> Option<&'static (Lent, AnyCluster)> {
    static PLANE: OnceLock<Option<(Lent, AnyCluster)>> = OnceLock::new();
    let start = || {
        let plane = Cluster::control_plane_alone()?;
        create_untrue(&plane, "fetched");
        let cluster = AnyCluster::of_control_plane(&plane);
        Some((plane, cluster))
    };
    PLANE.get_or_init(start).as_ref()
}

/// Creates a declaration of a built-in type whose document has no such place. Its status says so.
fn create_untrue(plane: &ControlPlane, name: &str) {
    let unions = json!([{"path": "nowhere", "fieldsToDiscriminateBy": {"a": "A"}}]);
    let declaration = declaration(name, "scheduling.k8s.io", "PriorityClass", &json!({"unions": unions}));
    let is_created = || plane.client().post(DECLARATIONS, &declaration).unwrap().is_success();
    assert!(eventually(SETTLED, is_created), "the API server serves declarations");
}

/// Runs the rows side by side, each with what belongs to it. A panic names its row.
fn run<T: Send, R: Send>(
    rows: impl IntoIterator<Item = (&'static Row, T)>,
    test: impl Fn(&'static Row, T) -> R + Sync,
) -> Vec<R> {
    let test = &test;
    thread::scope(|scope| {
        let start = |(row, of_row): (&'static Row, T)| {
            let thread = thread::Builder::new().name(row.0.to_owned());
            thread.spawn_scoped(scope, move || test(row, of_row)).unwrap()
        };
        let running: Vec<_> = rows.into_iter().map(start).collect();
        running.into_iter().map(|row| row.join().expect("no row fails")).collect()
    })
}

fn starts_under(row: &Row, plane: &ControlPlane, sources: &Kind<'_>) {
    let (_, requests, effect, _) = *row;
    let proxy = Proxy::start(plane);
    proxy.inject(requests, effect);
    let mut webhook = Webhook::unready(&proxy.kubeconfig(), &[]).unwrap();
    assert!(eventually(SETTLED, || proxy.hits("/") > 0), "the fault hits nothing:\n{}", webhook.log());
    if matches!(requests, Requests::Watches | Requests::Documents) {
        assert!(eventually(RECOVERED, || is_ready(&webhook)), "it has a list:\n{}", webhook.log());
    } else if effect != Effect::Endless {
        // That one is over too soon to tell.
        let report = webhook.ops().get("/readyz?verbose").unwrap();
        assert!(report.status == 503 && report.text().contains("[-]catalog failed: "), "{report:?}");
    }
    proxy.lift();
    assert_recovers(row, (&proxy, &mut webhook), |webhook| is_ready(webhook) && is_enforced(webhook, sources));
}

/// Returns a replica that has met the fault.
fn runs_into(row: &Row, plane: &ControlPlane, sources: &Kind<'_>) -> (Proxy, Webhook) {
    let proxy = Proxy::start(plane);
    let webhook = Webhook::of_cluster(&proxy.kubeconfig(), &[]).unwrap();
    assert_undisturbed(&webhook, sources);
    proxy.inject(row.1, row.2);
    assert!(eventually(SETTLED, || proxy.hits(DEFINITIONS) > 0), "the fault hits nothing:\n{}", webhook.log());
    assert_undisturbed(&webhook, sources);
    (proxy, webhook)
}

/// The fault is lifted after a CRD has come under it.
fn makes_up_for(row: &Row, (proxy, mut webhook): (Proxy, Webhook), sources: &Kind<'_>, rollouts: &Kind<'_>) {
    assert_undisturbed(&webhook, sources);
    if row.3 {
        assert!(eventually(SETTLED, || webhook.metric(CONNECTED) == 0), "it claims to watch:\n{}", webhook.log());
        assert_undisturbed(&webhook, sources);
    }
    proxy.lift();
    assert_recovers(row, (&proxy, &mut webhook), |webhook| {
        assert_undisturbed(webhook, sources);
        is_enforced(webhook, rollouts)
    });
    assert!(eventually(SETTLED, || webhook.metric(CONNECTED) == 1), "{}", webhook.log());
}

fn assert_recovers(row: &Row, (proxy, webhook): (&Proxy, &mut Webhook), has_recovered: impl Fn(&Webhook) -> bool) {
    let recovered = eventually(RECOVERED, || {
        thread::sleep(PACE);
        has_recovered(webhook)
    });
    let connected = webhook.metric(CONNECTED);
    assert!(recovered, "{}: not in force, watch_connected {connected}:\n{}", row.0, webhook.log());
    assert_eq!(proxy.swallowed(), 0, "what a list or an event may take is bounded");
    webhook.process().assert_running();
}

fn is_ready(webhook: &Webhook) -> bool {
    webhook.ops().get("/readyz").unwrap().status == 200
}

/// Returns the answer to a review, as the API server sends it.
fn review(webhook: &Webhook, phase: &str, kind: &Kind<'_>, [new, old]: [&Value; 2]) -> Value {
    let object = |spec: &Value| if spec.is_null() { "null".to_owned() } else { kind.object("x", spec).to_string() };
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    let body = review_text([kind.group(), "v1", kind.name()], operation, &object(new), &object(old));
    webhook.client().send("POST", phase, "application/json", body.as_bytes()).unwrap().body["response"].take()
}

/// Returns true if a valid object of the kind is admitted, and an invalid one refused.
fn is_enforced(webhook: &Webhook, kind: &Kind<'_>) -> bool {
    let is_allowed = |spec: &Value| review(webhook, "/validate", kind, [spec, &Value::Null])["allowed"] == true;
    is_allowed(&valid(kind)) && !is_allowed(&invalid(kind))
}

/// Reviews of a known kind are right, and the replica is ready.
#[track_caller]
fn assert_undisturbed(webhook: &Webhook, sources: &Kind<'_>) {
    assert!(is_enforced(webhook, sources), "{}", webhook.log());
    let switched = review(webhook, "/mutate", sources, [&invalid(sources), &valid(sources)]);
    let cleared = decoded(&switched["patch"]);
    assert!(cleared.contains(r#""op":"remove","path":"/spec/git""#), "a switch clears the other member: {switched}");
    assert!(is_ready(webhook), "the last catalog is served on:\n{}", webhook.log());
}

fn valid(kind: &Kind<'_>) -> Value {
    match kind.sample() {
        "source" => json!({"git": {"url": "https://example.com/a.git"}}),
        _ => json!({"strategy": {"type": "Recreate"}}),
    }
}

fn invalid(kind: &Kind<'_>) -> Value {
    match kind.sample() {
        "source" => json!({"git": {"url": "https://example.com/a.git"}, "bucket": {"name": "b"}}),
        _ => json!({"strategy": {"type": "Canary"}}),
    }
}
