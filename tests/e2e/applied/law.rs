//! The law for random objects: either every apply of a manifest is refused in the same words, or the first is stored and every later
//! one leaves the object alone.
//!
//! `KUBE_UNIONS_LAW_SEED` and `KUBE_UNIONS_LAW_CASES` select other cases and more of them, as `make law` does. The objects are
//! stored before their unions are enforced, so that some of them are invalid.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};

use super::place::Place as At;
use super::player::{APPLIER, OTHER, Round, State, classify, next, refusal};
use super::rows::{Answer, Enforcement, Way};
use super::server::{Server, compile};
use crate::background::in_parallel;
use crate::builtin::wait_for_verdict;
use crate::client_side;
use crate::cluster::say;
use crate::http;
use crate::native::random::{Place, Unusual};
use crate::native::without_nulls;
use fixtures::crds::crd;
use fixtures::dice::Dice;
use fixtures::reviews::{declaration, lift_unions, version};

/// Kinds of a round, and the cases of a round.
const KINDS: usize = 4;
const CASES: usize = 1_000;
/// Fields with unions in the `spec` of a kind.
const PLACES: usize = 8;
/// Answers that an API server without unions gives, too: server-side apply of an empty list or map over items of its own stores a null
/// or nothing first.
const OF_THE_API_SERVER: &str = "OfTheApiServer";

/// A random kind.
struct RandomKind {
    definition: Value,
    declaration: Value,
    places: Vec<Place>,
    collection: String,
    api_version: String,
    name: String,
}

/// A manifest that is applied three times over an object.
struct Case {
    kind: usize,
    way: Way,
    name: String,
    place: usize,
    /// The writes that lead to the stored object: the field manager and the `spec`.
    before: Vec<(Writer, Value)>,
    manifest: Value,
}

/// The author of a write that leads to the stored object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Writer {
    /// The way of the case.
    Own,
    /// Server-side apply by another manager.
    Manager,
    /// A controller's `Update`.
    Controller,
}

#[test]
fn the_law_holds_for_random_manifests_with_the_webhook() {
    let Some(server) = Server::with_webhook() else { return };
    hold(server, Enforcement::Webhook);
}

#[test]
fn the_law_holds_for_random_manifests_with_policies() {
    let Some(server) = Server::with_policies() else { return };
    hold(server, Enforcement::Policies);
}

/// Runs every case. Fails unless the law holds for each.
fn hold(server: &Server, enforcement: Enforcement) {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = number("KUBE_UNIONS_LAW_SEED").unwrap_or(1);
    let mut left = usize::try_from(number("KUBE_UNIONS_LAW_CASES").unwrap_or(200)).unwrap();
    for seed in first.. {
        let answers = run(server, enforcement, seed, left.min(CASES));
        say(&format!("seed {seed}: {answers:?}"));
        left -= left.min(CASES);
        if left == 0 {
            break;
        }
    }
}

/// Runs the cases of a round. Returns the number of cases for each answer.
fn run(server: &Server, enforcement: Enforcement, seed: u64, count: usize) -> BTreeMap<&'static str, usize> {
    let mut random = Dice(seed);
    let group = format!("s{seed}.{enforcement:?}.law.example").to_lowercase();
    let mut unusual = Unusual::default();
    let kinds: Vec<_> = (0..KINDS).map(|number| RandomKind::new(&group, number, &mut random, &mut unusual)).collect();
    let alone: Vec<_> = kinds.iter().map(RandomKind::without_unions).collect();
    for kind in kinds.iter().chain(&alone) {
        let answer = server.send(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "application/json",
            &kind.definition,
        );
        assert!(answer.is_success(), "{answer:?}");
    }
    for kind in kinds.iter().chain(&alone) {
        server.wait_until_served(&kind.collection);
    }
    let cases: Vec<Case> = (0..count).map(|number| Case::new(number, &kinds, &mut random)).collect();
    let refused = AtomicUsize::new(0);
    in_parallel(&cases, |case| {
        refused.fetch_add(usize::from(!case.store(server, &kinds[case.kind])), Ordering::Relaxed);
    });
    // The null of a server-side apply may be refused by the schema.
    assert!(refused.into_inner() * 10 < count, "most objects can be stored");
    enforce(server, enforcement, &group, &kinds);

    let answers: Mutex<BTreeMap<&str, usize>> = Mutex::default();
    let broken: Mutex<Vec<String>> = Mutex::default();
    in_parallel(&cases, |case| {
        let kind = &kinds[case.kind];
        let (before, rounds) = case.play(server, kind);
        let answer = classify(before.as_ref(), &rounds);
        let late = enforcement == Enforcement::Policies && case.way == Way::ClientSide;
        let fails = rounds.iter().filter_map(|round| round.refusal.as_ref()).any(|words| words.contains("evaluat"));
        let name = match &answer {
            // A policy that cannot be evaluated refuses everything.
            _ if fails => "Broken",
            Ok(Answer::Kept) => "Kept",
            Ok(Answer::Stored) => "Stored",
            Ok(Answer::Refused) => "Refused",
            Ok(Answer::Late | Answer::Settles) if late => "Late",
            Ok(Answer::Settles) if case.sends_empty_objects_again(&rounds) => "EmptyAgain",
            Ok(_) => {
                case.store(server, &alone[case.kind]);
                let (before, rounds) = case.play(server, &alone[case.kind]);
                if classify(before.as_ref(), &rounds) == answer { OF_THE_API_SERVER } else { "Broken" }
            }
            Err(_) => "Broken",
        };
        *answers.lock().unwrap().entry(name).or_default() += 1;
        if name == "Broken" {
            broken.lock().unwrap().push(case.tell(kind, before.as_ref(), &answer, &rounds));
        }
    });
    let (answers, broken) = (answers.into_inner().unwrap(), broken.into_inner().unwrap());
    let told = broken.iter().take(5).fold(String::new(), |told, case| told + "\n" + case);
    assert!(broken.is_empty(), "seed {seed}: {} of {count} cases break the law: {answers:?}\n{told}", broken.len());
    let untold = answers.get(OF_THE_API_SERVER).copied().unwrap_or_default();
    assert!(untold * 10 < count, "most cases tell something: {answers:?}");
    let has_all = ["Kept", "Stored", "Refused"].iter().all(|answer| answers.contains_key(*answer));
    assert!(count < 100 || has_all, "the cases are all of one sort: {answers:?}");
    answers
}

/// Enforces the unions of the kinds, and waits until they are in force.
fn enforce(server: &Server, enforcement: Enforcement, group: &str, kinds: &[RandomKind]) {
    let kubectl = server.kubectl("law");
    if enforcement == Enforcement::Webhook {
        server.register(group, &[group]);
    }
    for kind in kinds {
        if enforcement == Enforcement::Webhook {
            kubectl.apply(&kind.declaration.to_string()).accepted();
            let verdict = wait_for_verdict(server.client(), kind.declaration["metadata"]["name"].as_str().unwrap());
            assert_eq!(verdict.status, "True", "{verdict:?}");
        } else {
            let compiled = compile("policies", &[kind.definition.clone(), kind.declaration.clone()]);
            kubectl.apply(&compiled).accepted();
        }
    }
    for kind in kinds {
        let probe = kind.object("probe", &json!({}));
        let members = [&json!({"a": "x"}), &json!({"b": "x"})];
        server.wait_until_cleared(&kind.collection, "", &probe, &At::from("spec.probe".to_owned()), members);
        server.wait_until_refused(&kind.collection, &kind.object("both", &json!({"probe": {"a": "x", "b": "x"}})));
    }
}

impl RandomKind {
    fn new(group: &str, number: usize, random: &mut Dice, unusual: &mut Unusual) -> Self {
        let name = format!("Kind{number}");
        let places: Vec<Place> = (0..PLACES).map(|_| Place::random(random, unusual, 0)).collect();
        let fields = places.iter().enumerate().map(|(number, place)| (format!("p{number}"), place.schema()));
        let mut properties: Map<String, Value> = fields.collect();
        let text = json!({"type": "string"});
        let probe = json!({"type": "object", "properties": {"a": text, "b": text},
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
        properties.insert("probe".to_owned(), probe);
        let mut schema =
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
        let unions = lift_unions(&mut schema);
        let definition = crd(group, &name, &[version("v1", &schema, false)]);
        let declared = format!("{}.{group}", name.to_lowercase());
        Self {
            declaration: declaration(&declared, group, &name, &json!({"unions": unions})),
            collection: format!("/apis/{group}/v1/namespaces/default/{}s", name.to_lowercase()),
            api_version: format!("{group}/v1"),
            definition,
            places,
            name,
        }
    }

    /// Returns a kind with the same schema, whose unions nothing enforces.
    fn without_unions(&self) -> Self {
        let group = self.definition["spec"]["group"].as_str().expect("a group");
        let moved = |text: &str| text.replace(group, &format!("alone.{group}"));
        Self {
            definition: serde_json::from_str(&moved(&self.definition.to_string())).expect("a CRD"),
            declaration: Value::Null,
            places: Vec::new(),
            collection: moved(&self.collection),
            api_version: moved(&self.api_version),
            name: self.name.clone(),
        }
    }

    fn object(&self, name: &str, spec: &Value) -> Value {
        json!({"apiVersion": self.api_version, "kind": self.name, "metadata": {"name": name, "namespace": "default"}, "spec": spec})
    }
}

impl Case {
    fn new(number: usize, kinds: &[RandomKind], random: &mut Dice) -> Self {
        let kind = random.below(kinds.len());
        let place = random.below(PLACES);
        let unions = &kinds[kind].places[place];
        let field = format!("p{place}");
        let spec = |value: Option<&Value>| {
            let fields = value.map(|value| (field.clone(), without_nulls(value)));
            Value::Object(fields.into_iter().collect())
        };
        let mut value = unions.value(random);
        let mut before = Vec::new();
        if random.chance(90) {
            let writer = [Writer::Own, Writer::Manager, Writer::Controller][random.below(3)];
            before.push((writer, spec(value.as_ref())));
            if random.chance(40) {
                value = unions.changed(value.as_ref(), random);
                let writer = [Writer::Own, Writer::Manager, Writer::Controller][random.below(3)];
                before.push((writer, spec(value.as_ref())));
            }
        }
        let manifest = if random.chance(80) { unions.changed(value.as_ref(), random) } else { unions.value(random) };
        Self {
            kind,
            way: if random.chance(60) { Way::ServerSide } else { Way::ClientSide },
            name: format!("case{number}"),
            place,
            before,
            manifest: spec(manifest.as_ref()),
        }
    }

    /// Makes the writes that lead to the stored object. Returns false if the API server refuses one.
    fn store(&self, server: &Server, kind: &RandomKind) -> bool {
        let mut accepted = true;
        for (writer, spec) in &self.before {
            let object = kind.object(&self.name, spec);
            let path = format!("{}/{}", kind.collection, self.name);
            let answer = match writer {
                Writer::Own => self.send(server, kind, spec),
                Writer::Manager => Some(server.apply_as(OTHER, &path, &object)),
                Writer::Controller => Some(match server.stored(&path) {
                    None => server.send("POST", &kind.collection, "application/json", &object),
                    Some(mut stored) => {
                        stored["spec"] = spec.clone();
                        server.send("PUT", &format!("{path}?fieldManager=controller"), "application/json", &stored)
                    }
                }),
            };
            accepted &= answer.as_ref().is_none_or(http::Answer::is_success);
        }
        accepted
    }

    /// Sends an apply by the way of the case. `None`: there is nothing to send.
    fn send(&self, server: &Server, kind: &RandomKind, spec: &Value) -> Option<http::Answer> {
        let object = kind.object(&self.name, spec);
        if self.way == Way::ServerSide {
            return Some(server.apply_as(APPLIER, &format!("{}/{}", kind.collection, self.name), &object));
        }
        client_side::apply(server.client(), &kind.collection, &object)
    }

    /// Returns true if the second apply stored nothing but empty objects: a client-side apply sends those of the manifest again that were
    /// cleared with their content.
    fn sends_empty_objects_again(&self, rounds: &[Round]) -> bool {
        let stored = |round: &Round| round.state.as_ref().map(State::without_empty_objects);
        self.way == Way::ClientSide && stored(&rounds[0]) == stored(&rounds[1])
    }

    /// Applies the manifest three times. Returns the object before, and each result.
    fn play(&self, server: &Server, kind: &RandomKind) -> (Option<State>, Vec<Round>) {
        let before = self.state(server, kind);
        let mut rounds: Vec<Round> = Vec::new();
        for _ in 0..3 {
            let round = next(&rounds).unwrap_or_else(|| self.apply(server, kind));
            rounds.push(round);
        }
        (before, rounds)
    }

    fn apply(&self, server: &Server, kind: &RandomKind) -> Round {
        let answer = self.send(server, kind, &self.manifest);
        Round { refusal: answer.as_ref().and_then(refusal), state: self.state(server, kind) }
    }

    fn state(&self, server: &Server, kind: &RandomKind) -> Option<State> {
        let object = server.stored(&format!("{}/{}", kind.collection, self.name))?;
        Some(State::of(&object, "spec", None))
    }

    fn tell(
        &self,
        kind: &RandomKind,
        before: Option<&State>,
        answer: &Result<Answer, String>,
        rounds: &[Round],
    ) -> String {
        let mut told = format!("{:?} {} {:?}\n", self.way, self.name, answer.as_ref().ok());
        let _ = writeln!(told, "  schema: {}", kind.places[self.place].schema());
        for (writer, spec) in &self.before {
            let _ = writeln!(told, "  {writer:?} wrote {spec}");
        }
        let _ = writeln!(told, "  stored {}", before.map_or("nothing".to_owned(), ToString::to_string));
        let _ = writeln!(told, "  applied {}", self.manifest);
        for round in rounds {
            let state = round.state.as_ref().map_or("nothing".to_owned(), ToString::to_string);
            let _ = writeln!(told, "  -> {state} {}", round.refusal.as_deref().unwrap_or_default());
        }
        told
    }
}
