//! The ordering rules of the registration: each row is one step of a replica against an API server that the test plays.

mod search;

use super::super::EntryOptions;
use super::super::stored::{TOUCHES, ours};
use super::*;
use crate::telemetry::Metrics;
use fixtures::api_server::{Call, in_process};
use hyper::Method;
use kube::Client;
use kube::core::Status;
use kube_unions_core::catalog::Builder;
use kube_unions_core::declaration::Definition;
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

/// An entry of another writer.
const STRANGER: &str = "of.others.example Fail none";

/// The certificates that rows name.
static CERTIFICATES: LazyLock<BTreeMap<&str, String>> = LazyLock::new(|| {
    let new = || CertificateParams::default().self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
    ["new", "old"].map(|name| (name, new())).into()
});

/// The two configurations, by path, and every write.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "any combination of them can happen")]
struct FakeServer {
    stored: BTreeMap<String, Value>,
    written: Vec<Value>,
    /// The number of changes.
    changes: usize,
    /// The `ClusterRole` that owns the configurations exists.
    has_owner: bool,
    /// Another writer adds an entry before the first write arrives.
    is_raced: bool,
    /// Our conditions are refused.
    refuses: bool,
    /// A write of an object that has changed since it was read is stored, as no API server does.
    forgets_versions: bool,
}

impl FakeServer {
    fn put(&mut self, path: &str, mut object: Value) -> Value {
        self.changes += 1;
        object["metadata"]["resourceVersion"] = self.changes.to_string().into();
        self.stored.insert(path.to_owned(), object.clone());
        object
    }

    fn answer(&mut self, call: Call) {
        if call.path.contains("/clusterroles/") {
            let role = json!({"metadata": {"uid": "1"}});
            return if self.has_owner { call.answer(200, &role) } else { call.not_found() };
        }
        let path = call.path.clone();
        let stored = self.stored.get(&path).cloned();
        if call.method == Method::GET {
            return match stored {
                Some(object) => call.answer(200, &object),
                None => call.not_found(),
            };
        }
        let object: Value = serde_json::from_slice(&call.body).unwrap();
        self.written.push(object.clone());
        if std::mem::take(&mut self.is_raced) {
            let mut changed = stored.clone().unwrap();
            changed["webhooks"].as_array_mut().unwrap().push(entry(STRANGER));
            self.put(&path, changed);
            return call.fail(409, "Conflict", "the object has been modified");
        }
        if call.method == Method::PUT && stored.is_none() {
            return call.not_found();
        }
        if let Some(status) = refusal(&object).filter(|_| self.refuses) {
            return call.answer(422, &status);
        }
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
        if !self.forgets_versions && version(&object) != stored.as_ref().map(version).unwrap_or_default() {
            return call.fail(409, "Conflict", "the object has been modified");
        }
        call.answer(200, &self.put(&path, object));
    }
}

/// Returns what an API server says of a configuration if it cannot compile our conditions.
fn refusal(object: &Value) -> Option<Value> {
    let mut causes = Vec::new();
    for (number, entry) in object["webhooks"].as_array().into_iter().flatten().enumerate() {
        for (position, condition) in entry["matchConditions"].as_array().into_iter().flatten().enumerate() {
            if condition["name"] == TOUCHES {
                causes.push(json!({
                    "reason": "FieldValueInvalid",
                    "field": format!("webhooks[{number}].matchConditions[{position}].expression"),
                    "message": "Invalid value: \"…\": compilation failed: ERROR: <input>:1:1: undeclared reference",
                }));
            }
        }
    }
    let details = json!({"name": "kube-unions", "causes": causes});
    let status = json!({"kind": "Status", "status": "Failure", "reason": "Invalid", "code": 422, "message": "is invalid", "details": details});
    (!causes.is_empty()).then_some(status)
}

/// Reads an entry: its name, policy and CAs.
fn entry(text: &str) -> Value {
    let [name, policy, authorities]: [&str; 3] = text.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let mut client = json!({"url": "https://of.others.example"});
    let mut name = name.to_owned();
    if text != STRANGER {
        name.push_str(".kube-unions.dev");
        client =
            json!({"service": {"namespace": "kube-unions", "name": "kube-unions", "path": "/mutate", "port": 443}});
    }
    let pem: String =
        CERTIFICATES.iter().filter(|(name, _)| authorities.contains(**name)).map(|(_, pem)| &**pem).collect();
    if !pem.is_empty() {
        client["caBundle"] = base64(&pem).into();
    }
    json!({"name": name, "failurePolicy": policy, "clientConfig": client, "rules": [{"stored": "rule"}]})
}

/// Returns the entries of a configuration as rows write them.
fn entries(object: &Value) -> String {
    let one = |entry: &Value| {
        let bundle = bundle_of(entry);
        let names = CERTIFICATES.iter().filter(|(_, pem)| bundle.is_superset(&ca_bundle(pem)));
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        let authorities = if names.is_empty() { "none".to_owned() } else { names.join("+") };
        let name = entry["name"].as_str().unwrap().trim_end_matches(".kube-unions.dev");
        format!("{name} {} {authorities}", entry["failurePolicy"].as_str().unwrap())
    };
    object["webhooks"].as_array().into_iter().flatten().map(one).collect::<Vec<_>>().join(", ")
}

fn base64(text: &str) -> String {
    use ::base64::Engine as _;
    ::base64::prelude::BASE64_STANDARD.encode(text)
}

/// Returns the plural of a kind with unions.
fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}

fn catalog(kinds: &[&str]) -> Arc<Catalog> {
    let mut builder = Builder::new();
    for kind in kinds {
        builder.apply(Definition::from_json(&definition(kind).to_string()).unwrap());
    }
    Arc::new(builder.build())
}

fn definition(kind: &str) -> Value {
    let unions = json!([{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]);
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {"a": text, "b": text}, "x-kubernetes-unions": unions});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let plural = plural(kind);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.g")},
        "spec": {"group": "g", "names": {"kind": kind, "plural": plural}, "scope": "Namespaced",
                 "versions": [{"name": "v1", "schema": schema}]},
    })
}

/// The inputs of a step.
struct Given {
    registering: Registering,
    trust: Option<Trust>,
    catalog: Option<Arc<Catalog>>,
    coverage: Coverage,
    is_ready: bool,
    delay: Duration,
    namespace_ends: bool,
    /// Entries have conditions, and are named after their resources.
    skips: bool,
    /// The Service of the installation that the stored configurations name.
    installation: &'static str,
    server: FakeServer,
}

fn agreed(name: &str) -> Trust {
    Trust::Agreed(CERTIFICATES.get(name).map_or("", |pem| pem).into())
}

impl Given {
    /// A ready replica that wants the new CA in entries for one custom resource.
    fn ready() -> Self {
        Self {
            registering: Registering::Everything,
            trust: Some(agreed("new")),
            catalog: Some(catalog(&["Thing"])),
            coverage: Coverage::none(),
            is_ready: true,
            delay: Duration::ZERO,
            namespace_ends: false,
            skips: false,
            installation: "kube-unions/kube-unions",
            server: FakeServer { has_owner: true, ..FakeServer::default() },
        }
    }

    /// Takes steps until one changes nothing. Returns the entries of both configurations, and every write.
    async fn steps(self, stored: [Option<&str>; 2]) -> ([Option<String>; 2], Vec<Value>) {
        let mut server = self.server;
        let paths = ["mutating", "validating"]
            .map(|kind| format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/kube-unions"));
        for (path, stored) in paths.iter().zip(stored) {
            let Some(stored) = stored else { continue };
            let entries: Vec<Value> = stored.split(", ").filter(|text| !text.is_empty()).map(entry).collect();
            let annotations = json!({"kube-unions.dev/installation": self.installation});
            server.put(path, json!({"metadata": {"annotations": annotations}, "webhooks": entries}));
        }
        let server = Arc::new(Mutex::new(server));
        let service = {
            let server = Arc::clone(&server);
            in_process(move |call| server.lock().unwrap().answer(call))
        };
        let (is_ready, namespace_ends) = (self.is_ready, self.namespace_ends);
        let registration = Registration {
            registering: self.registering,
            entries: EntryOptions { skips_untouched: self.skips, ..EntryOptions::default() },
            ..registration(self.delay)
        };
        let catalogs = watch::channel(self.catalog).1;
        let signals = signals(catalogs, self.trust, self.coverage, Box::new(move || is_ready));
        let client = Client::new(service, "default");
        let fresh = InspectionToken::from_random([7; 16]);
        let mut registrar = Registrar::new(client, registration, signals, fresh);
        if namespace_ends {
            registrar.observe(RegistrationEvent::NamespaceEnds);
        }
        let mut written = None;
        while written != Some(server.lock().unwrap().written.len()) {
            written = Some(server.lock().unwrap().written.len());
            registrar.step(Instant::now()).await.ok();
        }
        let server = server.lock().unwrap();
        (paths.map(|path| server.stored.get(&path).map(entries)), server.written.clone())
    }
}

fn signals(
    catalogs: watch::Receiver<Option<Arc<Catalog>>>,
    trust: Option<Trust>,
    coverage: Coverage,
    ready: Box<dyn Fn() -> bool + Send + Sync>,
) -> Signals {
    Signals {
        catalogs,
        declarable: watch::channel(false).1,
        trust: watch::channel(trust).1,
        coverage: watch::channel(coverage).1,
        registered: watch::channel(RegisteredKinds::default()).0,
        held: watch::channel(RegisteredBundle::default()).0,
        inspection: watch::Sender::new(None),
        ready,
        clock: ServerClock::default(),
        metrics: Metrics::new().registration,
    }
}

/// Returns the settings of a replica that registers everything.
fn registration(delay: Duration) -> Registration {
    Registration {
        registering: Registering::Everything,
        service: "kube-unions/kube-unions".parse().unwrap(),
        entries: EntryOptions { skips_untouched: false, ..EntryOptions::default() },
        owner: Some("kube-unions".to_owned()),
        excluded_namespaces: Vec::new(),
        enforcing: true,
        delay,
    }
}

/// The entries of both configurations, `None` for a missing configuration.
type Entries = [Option<&'static str>; 2];

/// The configurations of a replica that registers everything, and those without a registration.
const BOTH: Entries = [Some("mutate Fail new"), Some("validate Fail new, definitions Ignore new")];
const NONE: Entries = [None, None];
/// Configurations with an old CA.
const OLD: Entries = [Some("mutate Fail old"), Some("validate Ignore old")];

#[tokio::test]
async fn the_bundle_comes_before_the_policy_and_a_ready_replica_before_both() {
    let hour = Duration::from_hours(1);
    let local = || Some(Trust::Local(CERTIFICATES["new"].as_str().into()));
    let injected = || Some(Trust::InjectedFrom("a/b".into()));
    let ready = Given::ready;
    let rows = [
        // No entry before a replica is ready.
        ("an unready replica registers nothing", Given { is_ready: false, ..ready() }, NONE, NONE),
        ("one that has just become ready neither", Given { delay: hour, ..ready() }, NONE, NONE),
        ("a ready one registers everything", ready(), NONE, BOTH),
        ("with entries of another replica it does not wait", Given { delay: hour, ..ready() }, OLD, BOTH),
        ("without a catalog nothing is registered", Given { catalog: None, ..ready() }, NONE, NONE),
        // The bundle comes before the policy.
        ("without a trust nothing is registered", Given { trust: None, ..ready() }, NONE, NONE),
        ("an empty bundle is not registered", Given { trust: Some(agreed("")), ..ready() }, NONE, NONE),
        (
            "an unready replica renews the agreed bundle and nothing else",
            Given { is_ready: false, ..ready() },
            OLD,
            [Some("mutate Fail new"), Some("validate Ignore new")],
        ),
        (
            "an unready one keeps a bundle of its own back",
            Given { is_ready: false, trust: local(), ..ready() },
            OLD,
            OLD,
        ),
        (
            "a bundle of its own joins the others'",
            Given { trust: local(), ..ready() },
            OLD,
            [Some("mutate Fail new+old"), Some("validate Fail new+old, definitions Ignore new+old")],
        ),
        (
            "without a bundle the policy is Ignore",
            Given { trust: injected(), ..ready() },
            NONE,
            [Some("mutate Ignore none"), Some("validate Ignore none, definitions Ignore none")],
        ),
        (
            "the policy follows the bundle of cert-manager",
            Given { trust: injected(), ..ready() },
            [Some("mutate Ignore old"), Some("validate Ignore none")],
            [Some("mutate Fail old"), Some("validate Ignore none, definitions Ignore none")],
        ),
        (
            "entries with conditions take the place of one for all kinds",
            Given { skips: true, ..ready() },
            OLD,
            [Some("mutate.things.g Fail new"), Some("validate.things.g Fail new, definitions Ignore new")],
        ),
        (
            "a new entry has the bundle of cert-manager that is there",
            Given { skips: true, trust: injected(), ..ready() },
            OLD,
            [Some("mutate.things.g Fail old"), Some("validate.things.g Fail old, definitions Ignore old")],
        ),
        (
            "an entry whose condition the API server refuses has none",
            Given { skips: true, server: FakeServer { refuses: true, ..ready().server }, ..ready() },
            OLD,
            BOTH,
        ),
        (
            "a replica that registers bundles alone writes nothing else",
            Given { registering: Registering::Bundles, ..ready() },
            [Some("mutate Ignore old"), None],
            [Some("mutate Ignore new"), None],
        ),
    ];
    hold(rows).await;
}

#[tokio::test]
async fn entries_of_others_stay_and_those_of_ours_go_with_the_installation() {
    let strangers = [Some("of.others.example Fail none, mutate Fail old"), Some("validate Fail old")];
    let ready = Given::ready;
    let server = || Given::ready().server;
    let rows = [
        // Entries of others stay.
        (
            "entries of strangers stay",
            ready(),
            strangers,
            [Some("of.others.example Fail none, mutate Fail new"), BOTH[1]],
        ),
        (
            "a change between read and write stays",
            Given { server: FakeServer { is_raced: true, ..server() }, ..ready() },
            OLD,
            [Some("mutate Fail new, of.others.example Fail none"), BOTH[1]],
        ),
        (
            "another installation is left alone",
            Given { installation: "else/else", ..ready() },
            [Some(""), None],
            [Some(""), None],
        ),
        // The entries go with the installation.
        (
            "all entries go when the namespace is being deleted",
            Given { namespace_ends: true, is_ready: false, ..ready() },
            strangers,
            [Some(STRANGER), Some("")],
        ),
        (
            "without its owner no configuration is created",
            Given { server: FakeServer::default(), ..ready() },
            NONE,
            NONE,
        ),
        ("existing ones are kept without it", Given { server: FakeServer::default(), ..ready() }, OLD, BOTH),
        // Policies enforce kinds.
        (
            "rules stay while the coverage is unknown",
            Given { coverage: Coverage::Unknown, ..ready() },
            [Some("mutate Fail old"), None],
            [Some("mutate Fail new"), Some("definitions Ignore new")],
        ),
        (
            "no entry is left if policies enforce everything",
            Given { coverage: Coverage::Everything, ..ready() },
            OLD,
            [Some(""), Some("")],
        ),
    ];
    hold(rows).await;
}

/// Asserts for each row what its steps make of the stored configurations.
async fn hold(rows: impl IntoIterator<Item = (&str, Given, Entries, Entries)>) {
    for (row, given, stored, want) in rows {
        let (is_raced, refuses) = (given.server.is_raced, given.server.refuses);
        let (found, written) = given.steps(stored).await;
        assert_eq!(found, want.map(|it| it.map(str::to_owned)), "{row}");
        let changed = stored.iter().zip(want).filter(|(stored, want)| **stored != *want).count();
        assert!(
            written.len() <= changed + usize::from(is_raced) + 2 * usize::from(refuses),
            "{row}: one write for each configuration"
        );
        for entry in written.iter().flat_map(ours).map(|(_, entry)| entry) {
            assert!(entry["failurePolicy"] == "Ignore" || !bundle_of(entry).is_empty(), "{row}: {entry}");
        }
    }
}

#[test]
fn a_write_that_etcd_refuses_is_an_answer_and_an_api_server_without_time_is_none() {
    for (code, of_write, of_read) in [(422, true, true), (500, true, false), (429, false, false), (503, false, false)] {
        let status = RequestError::Status(Box::new(Status { code, ..Status::default() }));
        let is_answer = |request| StepError::of(request, "", &status).is_answer;
        assert_eq!([is_answer(StepRequest::Replace), is_answer(StepRequest::Create)], [of_write; 2], "{code}");
        assert_eq!(is_answer(StepRequest::Read), of_read, "{code}");
    }
}
