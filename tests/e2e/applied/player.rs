//! Plays cases: leads to the situation of each, applies its manifest three times, and names the answers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::thread;

use serde_json::{Value, json};

use super::helm::Helm;
use super::place::Place;
use super::rows::{Answer, Author, Way};
use super::server::Server;
use crate::support::background::in_parallel;
use crate::support::client_side;
use crate::support::cluster::some_or_all;
use crate::support::http;
use crate::support::kubectl::Output;

const APPLIES: usize = 3;

/// The field manager of a case.
pub(super) const APPLIER: &str = "applier";
/// Another one that applies server-side.
pub(super) const OTHER: &str = "other";

/// A manifest that is applied in a situation.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) way: Way,
    /// The name of the object, which no other case has.
    pub(super) name: String,
    /// The path of the collection.
    pub(super) collection: String,
    pub(super) place: Place,
    /// The object without the place.
    pub(super) bare: Value,
    /// The writes that lead to the situation, with the content of the place.
    pub(super) before: Vec<(Author, Value)>,
    /// The content of the place in the manifest.
    pub(super) manifest: Value,
    /// True if kubectl writes it, and not a client that sends the same requests.
    pub(super) by_tool: bool,
}

/// An object as it is stored, as far as a case is about it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct State {
    generation: i64,
    /// The `spec`, or the `status`.
    pub(super) part: Value,
    /// The content of the place.
    pub(super) content: Option<Value>,
}

/// The result of an apply.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// The message of a refusal.
    pub(super) refusal: Option<String>,
    /// The object afterwards. `None`: there is none.
    pub(super) state: Option<State>,
}

/// The results of a case.
pub(super) struct Played {
    pub(super) before: Option<State>,
    pub(super) rounds: Vec<Round>,
    /// The name of all answers. An error describes answers that have no name, or why the situation cannot be reached.
    pub(super) answer: Result<Answer, String>,
    pub(super) is_reached: bool,
}

/// A refusal of each case, by the position of the case. `None`: it was accepted.
type Replies = BTreeMap<usize, Option<String>>;

/// Leads to the situation of every case, calls the function, and then applies every manifest.
pub(super) fn play(server: &Server, cases: &[&Case], meanwhile: impl FnOnce()) -> Vec<Played> {
    let stage = Stage { server, helm: &Helm::new(server.kubeconfig()), cases };
    let failures = stage.lead_to_situations();
    meanwhile();
    let before = stage.states();
    let mut rounds: Vec<Vec<Round>> = cases.iter().map(|_| Vec::new()).collect();
    for _ in 0..APPLIES {
        let known: Vec<Option<Round>> = rounds.iter().map(|rounds| next(rounds)).collect();
        let is_due = |position: usize| !failures.contains_key(&position) && known[position].is_none();
        let replies = stage.write(|position| is_due(position).then(|| &cases[position].manifest));
        for ((position, state), known) in stage.states().into_iter().enumerate().zip(&known) {
            let refusal = replies.get(&position).cloned().flatten();
            rounds[position].push(known.clone().unwrap_or(Round { refusal, state }));
        }
    }
    let played = before.into_iter().zip(rounds).enumerate().map(|(position, (before, rounds))| {
        let answer = match failures.get(&position) {
            Some(failure) => Err(format!("the situation cannot be reached: {failure}")),
            None => classify(before.as_ref(), &rounds),
        };
        Played { before, rounds, answer, is_reached: !failures.contains_key(&position) }
    });
    played.collect()
}

/// Returns the result of the next apply if it is known: one that left the object alone has the same answer again.
fn next(rounds: &[Round]) -> Option<Round> {
    let [.., before, last] = rounds else { return None };
    some_or_all((before.state == last.state).then(|| last.clone()), None)
}

/// Names the answers to all applies. An error describes answers that have no name.
fn classify(before: Option<&State>, rounds: &[Round]) -> Result<Answer, String> {
    let mut last = before;
    let mut changed = Vec::new();
    for round in rounds {
        changed.push(round.state.as_ref() != last);
        last = round.state.as_ref();
    }
    let refused: Vec<bool> = rounds.iter().map(|round| round.refusal.is_some()).collect();
    let same_words = |rounds: &[Round]| rounds.windows(2).all(|pair| pair[0].words() == pair[1].words());
    match (&refused[..], &changed[..]) {
        ([false, false, false], [false, false, false]) => Ok(Answer::Kept),
        ([false, false, false], [true, false, false]) => Ok(Answer::Stored),
        ([false, false, false], [true, true, false]) => Ok(Answer::Settles),
        ([false, false, false], [true, true, true]) => Ok(Answer::Flips),
        ([true, true, true], [false, false, false]) if same_words(rounds) => Ok(Answer::Refused),
        ([false, true, true], [true, false, false]) if same_words(&rounds[1..]) => Ok(Answer::Late),
        _ => Err(format!("{rounds:#?}")),
    }
}

impl Round {
    /// Returns the errors of a refusal in one order. The API server lists those of a schema in another order each time.
    fn words(&self) -> Vec<&str> {
        let mut words: Vec<_> =
            self.refusal.iter().flat_map(|refusal| refusal.split(['[', ',', ']'])).map(str::trim).collect();
        words.sort_unstable();
        words
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.generation, self.part)
    }
}

impl Case {
    /// Returns the path of the object.
    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }

    /// Returns the path that writes go to.
    fn written_path(&self) -> String {
        if self.is_of_status() { format!("{}/status", self.path()) } else { self.path() }
    }

    /// Returns true if the place is below `status`.
    fn is_of_status(&self) -> bool {
        self.place.root() == "status"
    }

    /// Returns the object with this content at the place.
    fn object(&self, content: &Value) -> Value {
        let mut object = self.bare.clone();
        self.place.fill(&mut object, content);
        object
    }
}

struct Stage<'s> {
    server: &'s Server,
    helm: &'s Helm,
    cases: &'s [&'s Case],
}

impl<'s> Stage<'s> {
    /// Makes the writes that lead to the situations. Returns those that failed, by the position of their case.
    fn lead_to_situations(&self) -> BTreeMap<usize, String> {
        let failures: Mutex<BTreeMap<usize, String>> = Mutex::default();
        let fail = |position: usize, refusal: Option<String>| {
            if let Some(message) = refusal {
                failures.lock().unwrap().entry(position).or_insert(message);
            }
        };
        self.in_parallel(|position, case| {
            if case.is_of_status() {
                let answer = self.server.send("POST", &case.collection, "application/json", &case.bare);
                fail(position, refusal(&answer));
            }
        });
        let longest = self.cases.iter().map(|case| case.before.len()).max().unwrap_or_default();
        for step in 0..longest {
            let own = |position: usize| match self.cases[position].before.get(step) {
                Some((Author::Own, content)) => Some(content),
                Some((Author::Manager | Author::Controller, _)) | None => None,
            };
            for (position, refusal) in self.write(own) {
                fail(position, refusal);
            }
            self.in_parallel(|position, case| {
                let answer = match case.before.get(step) {
                    Some((Author::Manager, content)) => {
                        self.server.apply_as(OTHER, &case.written_path(), &case.object(content))
                    }
                    Some((Author::Controller, content)) => self.update(case, content),
                    Some((Author::Own, _)) | None => return,
                };
                fail(position, refusal(&answer));
            });
        }
        failures.into_inner().unwrap()
    }

    /// Writes as a controller does: reads the object, changes it, and replaces it.
    fn update(&self, case: &Case, content: &Value) -> http::Answer {
        let send = |method: &str, path: &str, object: &Value| {
            let path = format!("{path}?fieldManager=controller");
            self.server.send(method, &path, "application/json", object)
        };
        let Some(mut object) = self.server.stored(&case.path()) else {
            return send("POST", &case.collection, &case.object(content));
        };
        case.place.merge(&mut object, content);
        send("PUT", &case.written_path(), &object)
    }

    /// Writes the object of each case that has a content for it, by the way of the case. Returns the refusals.
    fn write(&self, content: impl Fn(usize) -> Option<&'s Value> + Sync) -> Replies {
        let replies: Mutex<Replies> = Mutex::default();
        let is_of_kubectl = |case: &Case| case.way == Way::ClientSide && case.by_tool;
        let by_kubectl = || {
            let all = self.cases.iter().enumerate().filter(|(_, case)| is_of_kubectl(case));
            let objects = all.filter_map(|(at, case)| Some((at, case.object(content(at)?))));
            let (positions, items): (Vec<usize>, Vec<Value>) = objects.unzip();
            if items.is_empty() {
                return;
            }
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
            let output = self.server.kubectl("apply").apply(&list);
            let reply = |at: usize| (at, reply(&output, &self.cases[at].name));
            replies.lock().unwrap().extend(positions.into_iter().map(reply));
        };
        thread::scope(|scope| {
            scope.spawn(by_kubectl);
            self.in_parallel(|position, case| {
                let Some(content) = content(position).filter(|_| !is_of_kubectl(case)) else { return };
                let object = case.object(content);
                let refusal = match case.way {
                    Way::ClientSide => {
                        client_side::apply(self.server.client(), &case.collection, &object).as_ref().and_then(refusal)
                    }
                    Way::ServerSide => refusal(&self.server.apply_as(APPLIER, &case.written_path(), &object)),
                    Way::Replace => refusal(&self.replace(case, object)),
                    Way::Helm3 => self.helm.upgrade("helm", &case.name, &[object]),
                    Way::Helm4 => self.helm.upgrade("helm4", &case.name, &[object]),
                };
                replies.lock().unwrap().insert(position, refusal);
            });
        });
        replies.into_inner().unwrap()
    }

    /// Sends the request of `kubectl replace`, and creates an object that is not there.
    fn replace(&self, case: &Case, mut object: Value) -> http::Answer {
        let Some(stored) = self.server.stored(&case.path()) else {
            return self.server.send("POST", &case.collection, "application/json", &object);
        };
        object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        self.server.send("PUT", &case.path(), "application/json", &object)
    }

    /// Returns the object of each case.
    fn states(&self) -> Vec<Option<State>> {
        let mut objects: BTreeMap<&str, BTreeMap<String, Value>> = BTreeMap::new();
        for case in self.cases {
            objects.entry(&case.collection).or_insert_with(|| self.server.all(&case.collection));
        }
        let state = |case: &&Case| {
            let object = objects[&*case.collection].get(&case.name)?;
            let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
            let (part, content) = (object[case.place.root()].clone(), case.place.content(object));
            Some(State { generation, part, content })
        };
        self.cases.iter().map(state).collect()
    }

    /// Calls the function for every case, some at the same time.
    fn in_parallel(&self, work: impl Fn(usize, &Case) + Sync) {
        let cases: Vec<_> = self.cases.iter().enumerate().collect();
        in_parallel(&cases, |(position, case)| work(*position, case));
    }
}

/// Returns the message of a refusal.
fn refusal(answer: &http::Answer) -> Option<String> {
    (!answer.is_success()).then(|| answer.body["message"].as_str().unwrap_or_default().to_owned())
}

/// Returns what kubectl printed about a refusal of one of many objects. `None`: it was accepted.
fn reply(output: &Output, name: &str) -> Option<String> {
    if output.stdout.lines().any(|line| line.contains(&format!("/{name} "))) {
        return None;
    }
    let mut parts = vec![String::new()];
    for line in output.stderr.lines().filter(|line| !line.starts_with("Warning: ")) {
        if line.starts_with("Error from server") || line.starts_with("The ") {
            parts.push(String::new());
        }
        let part = parts.last_mut().expect("a part");
        part.push_str(line);
        part.push('\n');
    }
    let part = parts.iter().find(|part| part.contains(&format!("\"{name}\"")));
    let part = part.unwrap_or_else(|| panic!("kubectl says nothing of {name}: {output:#?}"));
    Some(part.rsplit("error when ").next().unwrap_or_default().to_owned())
}
