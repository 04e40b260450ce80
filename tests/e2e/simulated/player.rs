//! Sends the same requests to both API servers, and compares the answers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use simulated_apiserver::{ApiServer, Instance, Settings};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

use super::differences::DIFFERENCES;
use super::normal::{Versions, normal};
use super::requests::{self, DEFINITION, Request, Sent, Wait};
use super::webhook::{CalledWebhook, TableWebhook};
use crate::support::http::Client;
use fixtures::dice::Dice;
use fixtures::wait::eventually;

/// Time for the real API server to follow a CRD or a configuration.
const FOLLOWED: Duration = Duration::from_mins(1);

/// Requests between two watches, each of which takes a second.
const WATCHES: u64 = 100;

/// Versions of an object that are remembered.
const REMEMBERED: usize = 4;

/// Versions of all objects that are remembered.
const VERSIONS: usize = 40;

const CONFIGURATIONS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The answer of one side.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) body: Value,
    pub(super) warnings: Vec<String>,
    /// The managers of the object that was answered.
    managers: Value,
}

impl Answer {
    fn new(code: u16, body: Value, warnings: Vec<String>) -> Self {
        let managers = body.pointer("/metadata/managedFields").cloned().unwrap_or_default();
        Self { code, body, warnings, managers }
    }

    fn text(&self, pointer: &str) -> Option<String> {
        self.body.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    }
}

/// A request with both answers, in their normal form.
pub(super) struct Exchange {
    pub(super) request: Request,
    pub(super) real: Answer,
    pub(super) simulated: Answer,
}

/// Objects, versions and tokens that one side has sent, and that it gets back.
#[derive(Default)]
struct Memory {
    /// Objects by key, the latest last.
    objects: BTreeMap<String, VecDeque<Value>>,
    versions: VecDeque<String>,
    token: String,
}

/// The simulated API server, and the time that it runs in.
struct Simulated {
    runtime: Runtime,
    instance: Instance,
}

/// Plays with both API servers.
pub(super) struct Player {
    dice: Dice,
    webhook: TableWebhook,
    real: Client,
    simulated: Simulated,
    memories: [Memory; 2],
    versions: Versions,
    played: u64,
    /// Equal answers by code.
    codes: BTreeMap<u16, u64>,
    explained: BTreeMap<&'static str, u64>,
    /// An example of each kind of difference, and how often it was found.
    found: BTreeMap<String, (String, u64)>,
}

impl Simulated {
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let instance = runtime.block_on(async {
            let server = ApiServer::new(Arc::new(SystemTime::now));
            let settings = Settings { controllers: None, heartbeat: None, ..Settings::default() };
            let server = server.with_settings(settings).with_webhooks(Arc::new(CalledWebhook));
            server.instance().as_user("admin")
        });
        Self { runtime, instance }
    }

    fn send(&self, request: &Request, path: &str, body: Option<&Value>) -> Answer {
        let sent = hyper::Request::builder().method(request.method).uri(path);
        let sent = sent.header("content-type", request.media_type).header("user-agent", "ureq/1");
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let sent = sent.body(kube::client::Body::from(body)).unwrap();
        self.runtime.block_on(async {
            let response = self.instance.clone().oneshot(sent).await.unwrap();
            let code = response.status().as_u16();
            let warnings = response.headers().get_all("warning").iter();
            let warnings = warnings.map(|it| warning_text(it.to_str().unwrap())).collect();
            let text = response.into_body().collect().await.unwrap().to_bytes();
            Answer::new(code, read(str::from_utf8(&text).unwrap()), warnings)
        })
    }
}

fn warning_text(header: &str) -> String {
    let quoted = header.split_once('"').map_or("", |(_, rest)| rest.strip_suffix('"').unwrap_or(rest));
    quoted.replace("\\\"", "\"").replace("\\\\", "\\")
}

/// Reads a document, or the lines of a watch.
fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| {
        let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        lines.map_or_else(|_| json!(text), Value::from)
    })
}

impl Memory {
    /// Returns a request with the versions of this side.
    fn fill(&self, request: &Request, picks: [usize; 2]) -> (String, Option<Value>) {
        let version =
            self.versions.get(picks[0] % self.versions.len().max(1)).cloned().unwrap_or_else(|| "1".to_owned());
        let token = self.token.replace('=', "%3D");
        let path = request.path.replace("@version@", &version).replace("@token@", &token);
        let body = match &request.body {
            Sent::Nothing => None,
            Sent::This(body) => {
                let text = body.to_string().replace("@version@", &version);
                Some(serde_json::from_str(&text).unwrap())
            }
            Sent::Edited { is_stale, edits } => Some(self.edited(&request.key, *is_stale, edits, picks[1])),
        };
        (path, body)
    }

    fn edited(&self, key: &str, is_stale: bool, edits: &[(&str, Option<Value>)], pick: usize) -> Value {
        let name = key.rsplit('/').next().unwrap();
        let known = self.objects.get(key).filter(|known| !known.is_empty());
        let latest = known.map_or(0, |known| known.len() - 1);
        let object = known.map(|known| known[if is_stale { pick % known.len() } else { latest }].clone());
        let mut object = object.unwrap_or_else(|| json!({"metadata": {"name": name}}));
        for (pointer, value) in edits {
            set(&mut object, pointer, value.clone());
        }
        object
    }
}

/// Sets a value at a pointer, or removes it. What is missing on the way is made.
fn set(object: &mut Value, pointer: &str, value: Option<Value>) {
    let names: Vec<&str> = pointer.split('/').skip(1).collect();
    let (last, way) = names.split_last().unwrap();
    let mut at = object;
    for name in way {
        let next = match at {
            Value::Array(items) => name.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
            Value::Object(fields) => Some(fields.entry(*name).or_insert_with(|| json!({}))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        let Some(next) = next else { return };
        at = next;
    }
    match (at, value) {
        (Value::Object(fields), Some(value)) => {
            fields.insert((*last).to_owned(), value);
        }
        (Value::Object(fields), None) => {
            fields.shift_remove(*last);
        }
        _ => {}
    }
}

impl Player {
    pub(super) fn new(real: Client, seed: u64) -> Self {
        Self {
            dice: Dice(seed),
            webhook: TableWebhook::start(),
            real,
            simulated: Simulated::start(),
            memories: Default::default(),
            versions: Versions::default(),
            played: 0,
            codes: BTreeMap::new(),
            explained: BTreeMap::new(),
            found: BTreeMap::new(),
        }
    }

    /// Plays this many requests.
    pub(super) fn play(&mut self, count: u64) {
        for request in requests::first() {
            self.exchange(request);
        }
        while self.played < count {
            let request = if self.played % WATCHES == WATCHES - 1 {
                requests::watch(&mut self.dice)
            } else {
                requests::next(&mut self.dice, &self.webhook, self.played)
            };
            self.exchange(request);
        }
    }

    fn exchange(&mut self, request: Request) {
        self.played += 1;
        let picks = [self.dice.below(1 << 20), self.dice.below(1 << 20)];
        let [(real_path, real_body), (path, body)] =
            [0, 1].map(|side: usize| self.memories[side].fill(&request, picks));
        let simulated = self.simulated.send(&request, &path, body.as_ref());
        let ask_real = || send_real(&self.real, &request, &real_path, real_body.as_ref());
        let mut real = ask_real();
        // On a loaded machine, an event may come after the second of a watch.
        let events = |answer: &Answer| answer.body.as_array().map_or(0, Vec::len);
        if request.path.contains("watch=true") && events(&real) < events(&simulated) {
            eventually(FOLLOWED, || {
                real = ask_real();
                events(&real) >= events(&simulated)
            });
        }
        let answers = [real, simulated];
        self.remember(&request, &answers);
        let [real, mut simulated] = answers.map(|answer| {
            // Others write the objects that are waited for.
            let body =
                if request.wait == Wait::None { normal(&answer.body) } else { normal(&without_versions(&answer.body)) };
            let warnings = answer.warnings.iter().map(|it| super::normal::words(it)).collect();
            Answer { body, warnings, ..answer }
        });
        self.versions.align(&real.body, &mut simulated.body);
        let (wait, key) = (request.wait.clone(), request.key.clone());
        let is_write = request.method != "GET";
        if !self.compare(&Exchange { request, real, simulated }) && is_write {
            self.remove(&key);
        }
        self.wait(&wait);
    }

    /// Remembers what both sides have shown.
    fn remember(&mut self, request: &Request, answers: &[Answer; 2]) {
        if !answers.iter().all(|answer| (200..300).contains(&answer.code)) {
            return;
        }
        let [real, simulated] = answers;
        if let (Some(real), Some(simulated)) = (real.text("/metadata/continue"), simulated.text("/metadata/continue")) {
            self.memories[0].token = real;
            self.memories[1].token = simulated;
        }
        let is_stored = answers.iter().all(|answer| {
            answer.text("/metadata/name").is_some() && answer.text("/metadata/resourceVersion").is_some()
        });
        if !is_stored || request.path.contains("dryRun") {
            return;
        }
        for (memory, answer) in self.memories.iter_mut().zip(answers) {
            memory.versions.extend(answer.text("/metadata/resourceVersion"));
            if memory.versions.len() > VERSIONS {
                memory.versions.pop_front();
            }
            if !request.path.contains("/scale") {
                let known = memory.objects.entry(request.key.clone()).or_default();
                known.push_back(answer.body.clone());
                if known.len() > REMEMBERED {
                    known.pop_front();
                }
            }
        }
    }

    /// Returns true if both sides have the same objects afterwards.
    fn compare(&mut self, exchange: &Exchange) -> bool {
        let (real, simulated) = (&exchange.real, &exchange.simulated);
        let is_same = real.code == simulated.code && real.body == simulated.body && real.warnings == simulated.warnings;
        if is_same {
            *self.codes.entry(real.code).or_default() += 1;
            return true;
        }
        if let Some(known) = DIFFERENCES.iter().find(|known| (known.explains)(exchange)) {
            *self.explained.entry(known.reason).or_default() += 1;
            return real.code == simulated.code && real.code >= 300;
        }
        let (kind, example) = described(exchange, self.played);
        self.found.entry(kind).or_insert((example, 0)).1 += 1;
        false
    }

    /// Removes the object at a path, so that a difference has no others behind it.
    fn remove(&mut self, key: &str) {
        if key.ends_with('s') || key.contains(DEFINITION) || key.contains("/player-x") || key.contains("/player-y") {
            return;
        }
        let none = json!({"metadata": {"finalizers": null}});
        let bodies = [("PATCH", "application/merge-patch+json", Some(&none)), ("DELETE", "application/json", None)];
        for (method, media_type, body) in bodies {
            let request = plain(method, media_type, key);
            send_real(&self.real, &request, key, body);
            self.simulated.send(&request, key, body);
        }
        for memory in &mut self.memories {
            memory.objects.remove(key);
        }
    }

    /// Waits until the real API server follows what was written.
    fn wait(&self, wait: &Wait) {
        match wait {
            Wait::None => {}
            Wait::Definition => self.wait_for_definition(),
            Wait::Webhooks => self.wait_for_webhooks(),
        }
    }

    fn wait_for_definition(&self) {
        self.end_definition();
        let stored = self.ask_simulated(&format!("{DEFINITIONS}/{DEFINITION}"));
        let exists = stored.code == 200;
        let settled = eventually(FOLLOWED, || {
            let real = self.real.get(&format!("{DEFINITIONS}/{DEFINITION}")).unwrap();
            if real.is_success() != exists {
                return false;
            }
            let simulated = self.ask_simulated("/apis/player.example/v1/widgets").code;
            let served = self.real.get("/apis/player.example/v1/widgets").unwrap().status;
            let statuses = |answer: u16| answer == 404 || answer == 405;
            let has_status = self.ask_simulated("/apis/player.example/v1/namespaces/player-a/widgets/none/status").body;
            let real_status = self.real.get("/apis/player.example/v1/namespaces/player-a/widgets/none/status").unwrap();
            served == simulated && statuses(real_status.status) && real_status.body["message"] == has_status["message"]
        });
        assert!(settled, "the API server serves what the CRD says");
    }

    /// A CRD that is being deleted waits for its objects. A real API server looks for them every five seconds: that is not played.
    fn end_definition(&self) {
        let path = format!("{DEFINITIONS}/{DEFINITION}");
        if self.ask_simulated(&path).body.pointer("/metadata/deletionTimestamp").is_none() {
            return;
        }
        // They may refuse the writes that follow.
        for plural in CONFIGURATIONS {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/player");
            let request = plain("DELETE", "application/json", &path);
            send_real(&self.real, &request, &path, None);
            self.simulated.send(&request, &path, None);
        }
        self.wait_for_webhooks();
        let none = json!({"metadata": {"finalizers": null}});
        let objects = self.ask_simulated("/apis/player.example/v1/widgets").body;
        for object in objects["items"].as_array().into_iter().flatten() {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let path = format!("/apis/player.example/v1/namespaces/{}/widgets/{}/", text("namespace"), text("name"));
            let path = path.trim_end_matches('/');
            let request = plain("PATCH", "application/merge-patch+json", path);
            send_real(&self.real, &request, path, Some(&none));
            self.simulated.send(&request, path, Some(&none));
        }
    }

    fn wait_for_webhooks(&self) {
        for plural in CONFIGURATIONS {
            let probe = json!({"metadata": {"name": "probe", "labels": {"probe": plural}}});
            let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
            let request = plain("POST", "application/json", path);
            let wanted = self.simulated.send(&request, path, Some(&probe));
            let settled = eventually(FOLLOWED, || {
                let real = self.real.post(path, &probe).unwrap();
                real.status == wanted.code && (real.is_success() || real.body["message"] == wanted.body["message"])
            });
            assert!(settled, "the API server follows the configurations: {wanted:?}");
        }
    }

    fn ask_simulated(&self, path: &str) -> Answer {
        let request = plain("GET", "application/json", path);
        self.simulated.send(&request, path, None)
    }

    /// Returns how many answers were the same, by code, and how many are explained.
    pub(super) fn summary(&self) -> String {
        let codes: Vec<String> = self.codes.iter().map(|(code, count)| format!("{code}: {count}")).collect();
        let explained: Vec<String> = self.explained.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let differing: u64 = self.found.values().map(|(_, count)| count).sum();
        format!(
            "{} requests; the same answers by code {}; explained: {}; not explained: {differing}",
            self.played,
            codes.join(", "),
            explained.join("; ")
        )
    }

    /// Returns the differences that nothing explains, the frequent ones first.
    pub(super) fn found(&self) -> Vec<String> {
        let mut all: Vec<_> = self.found.values().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all.iter().map(|(example, count)| format!("{count} times: {example}")).collect()
    }
}

/// Returns a request of the player itself.
fn plain(method: &'static str, media_type: &'static str, path: &str) -> Request {
    Request { method, path: path.to_owned(), media_type, body: Sent::Nothing, key: String::new(), wait: Wait::None }
}

fn send_real(client: &Client, request: &Request, path: &str, body: Option<&Value>) -> Answer {
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let answer = client.send(request.method, path, request.media_type, &body).unwrap_or_else(|error| panic!("{error}"));
    let body = answer.body.as_str().map_or_else(|| answer.body.clone(), read);
    Answer::new(answer.status, body, answer.warnings)
}

fn without_versions(body: &Value) -> Value {
    let mut body = body.clone();
    if body["kind"] == "CustomResourceDefinition" {
        body["status"] = Value::Null;
    }
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    body
}

/// Returns the kind of a difference, and an example of it.
fn described(exchange: &Exchange, number: u64) -> (String, String) {
    let Exchange { request, real, simulated } = exchange;
    let mut places = Vec::new();
    if real.code == simulated.code {
        places_of(&real.body, &simulated.body, "", &mut places);
    }
    let plural = request
        .key
        .split('/')
        .find(|it| it.ends_with('s') && !it.contains('.') && *it != "apis" && *it != "namespaces");
    let kind = format!(
        "{} {} {} {} {} {places:?}",
        request.method,
        plural.unwrap_or_default(),
        request.media_type,
        real.code,
        simulated.code
    );
    let shorten = |value: &Value| value.to_string().chars().take(1500).collect::<String>();
    let example = format!(
        "request {number}: {} {} {:?}\n  at {places:?}\n  real {} {:?} {}\n    {}\n  simulated {} {:?} {}\n    {}\n",
        request.method,
        request.path,
        request.body,
        real.code,
        real.warnings,
        shorten(&real.body),
        shorten(&real.managers),
        simulated.code,
        simulated.warnings,
        shorten(&simulated.body),
        shorten(&simulated.managers),
    );
    (kind, example)
}

fn places_of(real: &Value, simulated: &Value, path: &str, places: &mut Vec<String>) {
    match (real, simulated) {
        (Value::Object(one), Value::Object(two)) => {
            let names: std::collections::BTreeSet<_> = one.keys().chain(two.keys()).collect();
            for name in names {
                let path = format!("{path}/{name}");
                places_of(one.get(name).unwrap_or(&Value::Null), two.get(name).unwrap_or(&Value::Null), &path, places);
            }
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
            for (one, two) in one.iter().zip(two) {
                places_of(one, two, &format!("{path}/*"), places);
            }
        }
        (one, two) if one != two => places.push(path.to_owned()),
        _ => {}
    }
}
