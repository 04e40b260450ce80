//! Plays cells: leads to the situation of each, applies its manifest three times, and names what became of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::thread;

use serde_json::{Map, Value, json};

use super::cells::{Author, Cell};
use super::helm::Helm;
use super::rows::{Answer, Way};
use super::server::Server;
use crate::background::in_parallel;
use crate::client_side;
use crate::cluster::some_or_all;
use crate::http;
use crate::kubectl::Output;

const APPLIES: usize = 3;

/// The field manager of a cell.
pub(super) const APPLIER: &str = "applier";
/// Another one that applies server-side.
pub(super) const OTHER: &str = "other";

/// An object as it is stored, as far as a cell is about it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct State {
    generation: i64,
    /// The `spec`, or the `status`.
    part: Value,
    /// The content of the place.
    content: Option<Value>,
}

/// The result of an apply.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// The message of a refusal.
    pub(super) refusal: Option<String>,
    /// The object afterwards. `None`: there is none.
    pub(super) state: Option<State>,
}

/// A cell that was played.
pub(super) struct Played<'c> {
    pub(super) cell: &'c Cell,
    pub(super) answer: Result<Answer, String>,
    /// The difference to what the cell expects.
    pub(super) difference: Option<String>,
}

/// A refusal of each cell, by the position of the cell. `None`: it was accepted.
type Replies = BTreeMap<usize, Option<String>>;

/// Plays every cell.
pub(super) fn play<'c>(server: &Server, cells: &'c [Cell]) -> Vec<Played<'c>> {
    let helm = Helm::new(server);
    let stage = Stage { server, helm: &helm, cells };
    let failures = stage.lead_to_situations();
    let before = stage.states();
    let mut rounds: Vec<Vec<Round>> = cells.iter().map(|_| Vec::new()).collect();
    for _ in 0..APPLIES {
        let known: Vec<Option<Round>> = rounds.iter().map(|rounds| next(rounds)).collect();
        let is_due = |position: usize| !failures.contains_key(&position) && known[position].is_none();
        let replies = stage.write(|position| is_due(position).then(|| cells[position].manifest()));
        for ((position, state), known) in stage.states().into_iter().enumerate().zip(&known) {
            let refusal = replies.get(&position).cloned().flatten();
            rounds[position].push(known.clone().unwrap_or(Round { refusal, state }));
        }
    }
    let played = cells.iter().enumerate().map(|(position, cell)| {
        let answer = match failures.get(&position) {
            Some(failure) => Err(format!("the situation cannot be reached: {failure}")),
            None => classify(before[position].as_ref(), &rounds[position]),
        };
        let difference = difference(cell, &answer, &rounds[position]);
        Played { cell, answer, difference }
    });
    played.collect()
}

/// Returns the result of the next apply if it is known: one that left the object alone has the same answer again.
pub(super) fn next(rounds: &[Round]) -> Option<Round> {
    let [.., before, last] = rounds else { return None };
    some_or_all((before.state == last.state).then(|| last.clone()), None)
}

/// Names the answers to all applies. An error describes answers that have no name.
pub(super) fn classify(before: Option<&State>, rounds: &[Round]) -> Result<Answer, String> {
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

/// Returns the difference between a cell and what became of it.
fn difference(cell: &Cell, answer: &Result<Answer, String>, rounds: &[Round]) -> Option<String> {
    let last = rounds.last().expect("a round");
    let said = rounds.iter().find_map(|round| round.refusal.as_deref()).unwrap_or_default();
    let content = last.state.as_ref().and_then(|state| state.content.as_ref());
    match answer {
        Err(description) => Some(description.clone()),
        Ok(answer) if *answer != cell.expected => {
            Some(format!("{answer:?}, not {:?}: {content:?} {said}", cell.expected))
        }
        Ok(Answer::Kept | Answer::Stored | Answer::Settles | Answer::Late) if content != Some(&cell.then) => {
            Some(format!("{} instead of {}", content.unwrap_or(&Value::Null), cell.then))
        }
        Ok(Answer::Refused | Answer::Late) if cell.says.as_ref().is_some_and(|words| !said.contains(words)) => {
            Some(format!("said {said}"))
        }
        Ok(_) => None,
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

impl State {
    pub(super) fn of(object: &Value, part: &str, content: Option<Value>) -> Self {
        let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
        Self { generation, part: object[part].clone(), content }
    }

    /// Returns the part without the objects in it that have no fields.
    pub(super) fn without_empty_objects(&self) -> Value {
        fn without(value: &Value) -> Value {
            let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
            match value {
                Value::Object(fields) => {
                    let kept = fields.iter().filter(|(_, value)| !is_empty(value));
                    kept.map(|(name, value)| (name.clone(), without(value))).collect()
                }
                Value::Array(items) => items.iter().map(without).collect(),
                _ => value.clone(),
            }
        }
        without(&self.part)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.generation, self.part)
    }
}

struct Stage<'s> {
    server: &'s Server,
    helm: &'s Helm,
    cells: &'s [Cell],
}

impl Stage<'_> {
    /// Makes the writes that lead to the situations. Returns those that failed, by the position of their cell.
    fn lead_to_situations(&self) -> BTreeMap<usize, String> {
        let failures: Mutex<BTreeMap<usize, String>> = Mutex::default();
        let fail = |position: usize, message: String| {
            failures.lock().unwrap().entry(position).or_insert(message);
        };
        self.in_parallel(|position, cell| {
            if cell.is_of_status() {
                let answer = self.server.send("POST", &cell.collection, "application/json", &cell.bare);
                if !answer.is_success() {
                    fail(position, answer.body.to_string());
                }
            }
        });
        let longest = self.cells.iter().map(|cell| cell.before.len()).max().unwrap_or_default();
        for step in 0..longest {
            let own = |position: usize| {
                let (author, content) = self.cells[position].before.get(step)?;
                (*author == Author::Own).then(|| self.cells[position].object(content))
            };
            for (position, refusal) in self.write(own) {
                if let Some(refusal) = refusal {
                    fail(position, refusal);
                }
            }
            self.in_parallel(|position, cell| {
                let answer = match cell.before.get(step) {
                    Some((Author::Manager, content)) => {
                        self.server.apply_as(OTHER, &written_path(cell), &cell.object(content))
                    }
                    Some((Author::Controller, content)) => self.update(cell, content),
                    Some((Author::Own, _)) | None => return,
                };
                if !answer.is_success() {
                    fail(position, answer.body["message"].to_string());
                }
            });
        }
        failures.into_inner().unwrap()
    }

    /// Writes as a controller does: reads the object, changes it, and replaces it.
    fn update(&self, cell: &Cell, content: &Value) -> http::Answer {
        let send = |method: &str, path: &str, object: &Value| {
            let path = format!("{path}?fieldManager=controller");
            self.server.send(method, &path, "application/json", object)
        };
        let Some(mut object) = self.server.stored(&cell.path()) else {
            return send("POST", &cell.collection, &cell.object(content));
        };
        cell.place.merge(&mut object, content);
        send("PUT", &written_path(cell), &object)
    }

    /// Writes the object of each cell that has one, by the way of the cell. Returns the refusals.
    fn write(&self, object: impl Fn(usize) -> Option<Value> + Sync) -> Replies {
        let replies: Mutex<Replies> = Mutex::default();
        let by_kubectl = || {
            let is_of_kubectl = |cell: &Cell| cell.way == Way::ClientSide && cell.by_tool;
            let positions = (0..self.cells.len()).filter(|position| is_of_kubectl(&self.cells[*position]));
            let objects: Vec<(usize, Value)> = positions.filter_map(|at| Some((at, object(at)?))).collect();
            if objects.is_empty() {
                return;
            }
            let items: Vec<&Value> = objects.iter().map(|(_, object)| object).collect();
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
            let output = self.server.kubectl("apply").apply(&list);
            let reply = |(position, _): &(usize, Value)| (*position, reply(&output, &self.cells[*position].name));
            replies.lock().unwrap().extend(objects.iter().map(reply));
        };
        thread::scope(|scope| {
            scope.spawn(by_kubectl);
            self.in_parallel(|position, cell| {
                let Some(object) = object(position) else { return };
                let refusal = match cell.way {
                    Way::ClientSide if cell.by_tool => return,
                    Way::ClientSide => {
                        client_side::apply(self.server.client(), &cell.collection, &object).as_ref().and_then(refusal)
                    }
                    Way::ServerSide => refusal(&self.server.apply_as(APPLIER, &written_path(cell), &object)),
                    Way::Replace => refusal(&self.replace(cell, object)),
                    Way::Helm3 | Way::Helm4 => self.helm.upgrade(cell.way, &cell.name, &object),
                };
                replies.lock().unwrap().insert(position, refusal);
            });
        });
        replies.into_inner().unwrap()
    }

    /// Sends the request of `kubectl replace`, and creates an object that is not there.
    fn replace(&self, cell: &Cell, mut object: Value) -> http::Answer {
        let Some(stored) = self.server.stored(&cell.path()) else {
            return self.server.send("POST", &cell.collection, "application/json", &object);
        };
        object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        self.server.send("PUT", &cell.path(), "application/json", &object)
    }

    /// Returns the object of each cell.
    fn states(&self) -> Vec<Option<State>> {
        let mut objects: BTreeMap<&str, BTreeMap<String, Value>> = BTreeMap::new();
        for cell in self.cells {
            objects.entry(&cell.collection).or_insert_with(|| self.server.all(&cell.collection));
        }
        let state = |cell: &Cell| {
            let object = objects[&*cell.collection].get(&cell.name)?;
            Some(State::of(object, cell.place.root(), cell.content(object)))
        };
        self.cells.iter().map(state).collect()
    }

    /// Calls the function for every cell, some at the same time.
    fn in_parallel(&self, work: impl Fn(usize, &Cell) + Sync) {
        let cells: Vec<_> = self.cells.iter().enumerate().collect();
        in_parallel(&cells, |(position, cell)| work(*position, cell));
    }
}

/// Returns the message of a refusal.
pub(super) fn refusal(answer: &http::Answer) -> Option<String> {
    (!answer.is_success()).then(|| answer.body["message"].as_str().unwrap_or_default().to_owned())
}

/// Returns the path that writes of a cell go to.
fn written_path(cell: &Cell) -> String {
    if cell.is_of_status() { format!("{}/status", cell.path()) } else { cell.path() }
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
