//! The law for random objects: either every apply of a manifest is refused in the same words, or the first is stored and every later
//! one leaves the object alone.
//!
//! `KUBE_UNIONS_LAW_SEED` and `KUBE_UNIONS_LAW_CASES` select other cases and more of them, as `make law` does. The objects are
//! stored before their unions are enforced, so that some of them are invalid.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use strategic_merge_patch::json_merge::two_way;

use super::place::Place as At;
use super::player::{Case, Played, State, play};
use super::rows::{Answer, Author, Enforcement, Way};
use super::server::{Server, compile};
use crate::builtin::wait_for_verdict;
use crate::native::random::{Place, Unusual};
use crate::native::without_nulls;
use crate::support::cluster::say;
use fixtures::crds::{crd, custom_resource};
use fixtures::dice::Dice;
use fixtures::reviews::{declaration, lift_unions, version};

/// Kinds of a round, and the cases of a round.
const KINDS: usize = 4;
const CASES: usize = 1_000;
/// Fields with unions in the `spec` of a kind.
const PLACES: usize = 8;
/// The number of fields among which field managers own one as a whole.
const OWNED_AS_A_WHOLE: usize = 4;
/// The most writes that lead to a case.
const MOST_BEFORE: usize = 3;

/// The name of the answers that unions have no part in.
const OF_THE_API_SERVER: &str = "OfTheApiServer";

/// A random kind.
pub(super) struct RandomKind {
    pub(super) definition: Value,
    pub(super) declaration: Value,
    pub(super) places: Vec<Place>,
    pub(super) group: String,
    pub(super) name: String,
}

/// A manifest that is applied three times over an object, and the schema of its union.
struct Random {
    case: Case,
    schema: Value,
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
    let mut unusual = Unusual::with_lists();
    let kinds: Vec<_> = (0..KINDS).map(|number| RandomKind::new(&group, number, &mut random, &mut unusual)).collect();
    define(server, &kinds);
    let random: Vec<Random> = (0..count).map(|number| kinds[random.below(KINDS)].random(number, &mut random)).collect();
    let cases: Vec<&Case> = random.iter().map(|random| &random.case).collect();
    let played = play(server, &cases, || enforce(server, enforcement, &group, &kinds));

    let (mut answers, mut broken, mut doubtful, mut unreached) = (BTreeMap::new(), Vec::new(), Vec::new(), 0);
    for (random, played) in random.iter().zip(&played) {
        let rounds = &played.rounds;
        let late = enforcement == Enforcement::Policies && random.case.way == Way::ClientSide;
        let fails = rounds.iter().filter_map(|round| round.refusal.as_ref()).any(|words| words.contains("evaluat"));
        let name = match &played.answer {
            _ if !played.is_reached => {
                unreached += 1;
                continue;
            }
            // A policy that cannot be evaluated refuses everything.
            _ if fails => {
                broken.push(random.tell(played));
                continue;
            }
            Ok(Answer::Kept) => "Kept",
            Ok(Answer::Stored) => "Stored",
            Ok(Answer::Refused) => "Refused",
            Ok(Answer::Late | Answer::Settles) if late => "Late",
            Ok(Answer::Settles) if has_emptied_again(played) => "EmptyAgain",
            Ok(Answer::Flips) if random.sets_nothing_beside_an_empty_list(played) => "DeducedAgain",
            Ok(_) | Err(_) => {
                doubtful.push((random, played));
                continue;
            }
        };
        *answers.entry(name).or_default() += 1;
    }
    // An API server without unions gives some of the other answers, too: server-side apply of an empty list or map over items of its own
    // stores a null or nothing first.
    let played_alone = alone(server, &group, &kinds, doubtful.iter().map(|(random, _)| &random.case));
    for ((random, played), alone) in doubtful.into_iter().zip(played_alone) {
        if played.answer.is_ok() && alone.answer == played.answer {
            *answers.entry(OF_THE_API_SERVER).or_default() += 1;
        } else {
            broken.push(random.tell(played) + "  without unions\n" + &tell_rounds(&alone));
        }
    }
    // The null of a server-side apply may be refused by the schema.
    assert!(unreached * 10 < count, "most objects can be stored");
    let told = broken.iter().take(5).fold(String::new(), |told, case| told + "\n" + case);
    assert!(broken.is_empty(), "seed {seed}: {} of {count} cases break the law: {answers:?}\n{told}", broken.len());
    let untold = answers.get(OF_THE_API_SERVER).copied().unwrap_or_default();
    assert!(untold * 10 < count, "most cases tell something: {answers:?}");
    let has_all = ["Kept", "Stored", "Refused"].iter().all(|answer| answers.contains_key(*answer));
    assert!(count < 100 || has_all, "the cases are all of one sort: {answers:?}");
    answers
}

pub(super) fn define(server: &Server, kinds: &[RandomKind]) {
    for kind in kinds {
        crate::support::kind::apply(server.client(), &kind.definition);
    }
    for kind in kinds {
        server.wait_until_served(&kind.collection());
    }
}

/// Plays cases on an API server that enforces no unions.
fn alone<'c>(server: &Server, group: &str, kinds: &[RandomKind], cases: impl Iterator<Item = &'c Case>) -> Vec<Played> {
    let other = format!("alone.{group}");
    let moved = |value: &Value| -> Value {
        serde_json::from_str(&value.to_string().replace(group, &other)).expect("a group is no part of the syntax")
    };
    let cases: Vec<Case> = cases
        .map(|case| Case {
            collection: case.collection.replace(group, &other),
            bare: moved(&case.bare),
            ..case.clone()
        })
        .collect();
    if cases.is_empty() {
        return Vec::new();
    }
    let kinds: Vec<_> = kinds
        .iter()
        .map(|kind| RandomKind {
            definition: moved(&kind.definition),
            declaration: Value::Null,
            places: Vec::new(),
            group: other.clone(),
            name: kind.name.clone(),
        })
        .collect();
    define(server, &kinds);
    play(server, &cases.iter().collect::<Vec<_>>(), || ())
}

/// Enforces the unions of the kinds, and waits until they are in force.
pub(super) fn enforce(server: &Server, enforcement: Enforcement, group: &str, kinds: &[RandomKind]) {
    let kubectl = server.kubectl("law");
    if enforcement == Enforcement::Webhook {
        server.register(group);
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
        server.wait_until_in_force(&format!("{group}/v1"), &kind.name, "probe", &["spec"]);
    }
}

impl RandomKind {
    pub(super) fn new(group: &str, number: usize, random: &mut Dice, unusual: &mut Unusual) -> Self {
        let name = format!("Kind{number}");
        let places: Vec<Place> = (0..PLACES).map(|_| Place::random(random, unusual, 0)).collect();
        let fields = places.iter().enumerate().map(|(number, place)| (format!("p{number}"), place.schema()));
        let mut properties: Map<String, Value> = fields.collect();
        for schema in properties.values_mut().step_by(OWNED_AS_A_WHOLE) {
            let owned = if schema["x-kubernetes-list-type"] == "map" { &mut schema["items"] } else { schema };
            if owned["type"] == "object" {
                owned["x-kubernetes-map-type"] = json!("atomic");
            }
        }
        let text = json!({"type": "string"});
        let probe = json!({"type": "object", "properties": {"a": text, "b": text},
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
        properties.insert("probe".to_owned(), probe);
        // Fields without unions, for field managers that share objects.
        properties.insert("tags".to_owned(), json!({"type": "array", "items": text, "x-kubernetes-list-type": "set"}));
        let values = json!({"type": "object", "additionalProperties": text});
        properties.insert("labels".to_owned(), values.clone());
        properties.insert("whole".to_owned(), values);
        properties["whole"]["x-kubernetes-map-type"] = json!("atomic");
        let mut schema =
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
        let unions = lift_unions(&mut schema);
        let definition = crd(group, &name, &[version("v1", &schema, false)]);
        let declared = format!("{}.{group}", name.to_lowercase());
        Self {
            declaration: declaration(&declared, group, &name, &json!({"unions": unions})),
            group: group.to_owned(),
            definition,
            places,
            name,
        }
    }

    pub(super) fn collection(&self) -> String {
        format!("/apis/{}/v1/namespaces/default/{}s", self.group, self.name.to_lowercase())
    }

    /// Returns a case of this kind.
    fn random(&self, number: usize, random: &mut Dice) -> Random {
        let place = random.below(PLACES);
        let unions = &self.places[place];
        let spec = |value: Option<&Value>| {
            let fields = value.map(|value| (format!("p{place}"), without_nulls(value)));
            Value::Object(fields.into_iter().collect())
        };
        let author = |random: &mut Dice| *random.pick(&[Author::Own, Author::Manager, Author::Controller]);
        let mut value = unions.value(random);
        let mut before = Vec::new();
        if random.chance(90) {
            let first = spec(value.as_ref());
            before.push((author(random), first.clone()));
            let mut last = first;
            while before.len() < MOST_BEFORE && random.chance(45) {
                value = unions.changed(value.as_ref(), random);
                let (author, next) = (author(random), spec(value.as_ref()));
                // A controller removes what it does not have.
                let written = if author == Author::Controller { two_way(&last, &next) } else { next.clone() };
                before.push((author, written));
                last = next;
            }
        }
        let way = if random.chance(60) { Way::ServerSide } else { Way::ClientSide };
        let manifest = if random.chance(80) { unions.changed(value.as_ref(), random) } else { unions.value(random) };
        let mut manifest = spec(manifest.as_ref());
        if way == Way::ServerSide && random.chance(30) {
            manifest.as_object_mut().into_iter().flatten().for_each(|(_, value)| unions.write_nulls(value, random));
        }
        let name = format!("case{number}");
        let mut bare = custom_resource(&self.group, &self.name, &name, &json!({}));
        // The API server forgets a manifest that sets nothing but empty lists.
        bare["metadata"]["labels"] = json!({"law": "x"});
        let case = Case {
            way,
            collection: self.collection(),
            place: At::new("/spec", &json!({})),
            bare,
            name,
            before,
            manifest,
            by_tool: false,
        };
        Random { case, schema: unions.schema() }
    }
}

impl Random {
    /// Returns true if the manifest sets nothing, and an empty list is left from which a value is deduced: the API server removes the value with
    /// the objects around it. A limit that the reference on semantics lists.
    fn sets_nothing_beside_an_empty_list(&self, played: &Played) -> bool {
        let has_empty_list = played.before.as_ref().is_some_and(|before| before.part.to_string().contains("[]"));
        self.case.way == Way::ServerSide && has_empty_list && is_empty_throughout(&self.case.manifest)
    }

    fn tell(&self, played: &Played) -> String {
        let Case { way, name, before, manifest, .. } = &self.case;
        let mut told = format!("{way:?} {name} {:?}\n", played.answer.as_ref().ok());
        let _ = writeln!(told, "  schema: {}", self.schema);
        for (author, spec) in before {
            let _ = writeln!(told, "  {author:?} wrote {spec}");
        }
        let _ = writeln!(told, "  stored {}\n  applied {manifest}", shown(played.before.as_ref()));
        told + &tell_rounds(played)
    }
}

/// Returns true if the second apply stored nothing but empty objects and lists of the manifest that the first cleared with their content,
/// for a union or as the API server does.
fn has_emptied_again(played: &Played) -> bool {
    let [first, second, _] = &played.rounds[..] else { return false };
    let [before, first, second] =
        [&played.before, &first.state, &second.state].map(|state| state.as_ref().map(|state| &state.part));
    second.is_some_and(|second| adds_what_was_emptied(before, first, second))
}

/// Returns true if a value has what another one has, and beside that nothing but empty objects and lists that had content before.
fn adds_what_was_emptied(before: Option<&Value>, first: Option<&Value>, second: &Value) -> bool {
    if first == Some(second) {
        return true;
    }
    if first.is_none() && (second == &json!({}) || second == &json!([])) {
        return before.is_some_and(|before| !is_empty_throughout(before));
    }
    match (first, second) {
        (None | Some(Value::Object(_)), Value::Object(fields)) => {
            let has_all = |first: &Map<String, Value>| first.keys().all(|name| fields.contains_key(name));
            first.and_then(Value::as_object).is_none_or(has_all)
                && fields.iter().all(|(name, field)| {
                    let [before, first] = [before, first].map(|value| value.and_then(|value| value.get(name)));
                    adds_what_was_emptied(before, first, field)
                })
        }
        (Some(Value::Array(first)), Value::Array(items)) if first.len() == items.len() => {
            let before = |number: usize| before.and_then(|before| before.get(number));
            let mut pairs = first.iter().zip(items).enumerate();
            pairs.all(|(number, (first, item))| adds_what_was_emptied(before(number), Some(first), item))
        }
        _ => false,
    }
}

fn is_empty_throughout(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().all(is_empty_throughout),
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn tell_rounds(played: &Played) -> String {
    played.rounds.iter().fold(String::new(), |told, round| {
        told + &format!("  -> {} {}\n", shown(round.state.as_ref()), round.refusal.as_deref().unwrap_or_default())
    })
}

fn shown(state: Option<&State>) -> String {
    state.map_or("nothing".to_owned(), ToString::to_string)
}
