//! Random writes of random unions: the policies on the API server and the webhook's library must agree, and no policy fails at a value
//! of another type. Unions are at the root, in `spec`, in `status` and in a pod template, in maps and lists of each other, and in members
//! of unions.
//!
//! `KUBE_UNIONS_NATIVE_SEED` and `KUBE_UNIONS_NATIVE_TRANSITIONS` select other writes and more of them, as `make
//! native-differential` does. A request holds many unions, so that the API server is asked less often. A write is a dry run,
//! so one stored object serves many writes.

use std::env;

use serde_json::{Map, Value, json};

use super::agreement::{Outcome, Subject, differences};
use super::random::{Place, Unusual};
use super::{Native, policy_message, warning, without_nulls};
use crate::support::cluster::say;
use fixtures::crds::crd;
use fixtures::dice::Dice;
use fixtures::reviews::{self, Verdict, declaration, declared_catalog, lift_unions, version};
use kube_unions_core::admission::Phase;

const GROUP: &str = "differential.example";

/// Kinds on one API server.
const KINDS: usize = 8;
/// Stored objects of a kind, and writes of each.
const OBJECTS: usize = 10;
const WRITES: usize = 18;
/// Fields with unions in the `spec` and in the `status` of a kind.
const PLACES: usize = 6;
const STATUS_PLACES: usize = 4;
/// The denial of a request hides what the other unions become, so only few unions of a request are at fault, and none in
/// most.
const MOST_AT_FAULT: usize = 3;

/// The shapes that the kinds of the first seed have, as the derived `Debug` tells them.
const SHAPES: [(&str, &str); 12] = [
    ("unions at the root", "root: Some("),
    ("unions in `status`", "status: [("),
    ("a pod template", "(\"template\", Place"),
    ("a union with a second one beside it", "}, Choices {"),
    ("a list with keys in a map", "Within(Map, Keyed("),
    ("a list or a map in a list", "Within(List, "),
    ("an atomic list of unions", "around: Unkeyed"),
    ("a map of unions", "around: Values"),
    ("a member that is a set", "kind: Set"),
    ("a member that is a list with keys", "kind: Keyed"),
    ("a member that is an atomic list", "kind: Atomic"),
    ("a member that is a list of unions", "kind: Place(Place { around: Keyed("),
];

/// Fields with unions of a part of an object.
type Places = Vec<(String, Place)>;

/// A random kind.
struct RandomKind {
    subject: Subject,
    /// The fields beside `spec` in the objects of a kind that has unions at the root.
    root: Option<Place>,
    spec: Places,
    status: Places,
    /// The fields of objects as they are stored before the policies are installed.
    olds: Vec<Value>,
}

#[test]
fn random_writes_have_the_same_result_by_policies_and_by_the_webhook() {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seed = number("KUBE_UNIONS_NATIVE_SEED").unwrap_or(1);
    let wanted = number("KUBE_UNIONS_NATIVE_TRANSITIONS").unwrap_or(4_000);
    let wanted = usize::try_from(wanted).unwrap();
    let mut total = Tally::default();
    for round in 0.. {
        let Some(native) = Native::start() else { return };
        let seed = seed.wrapping_add(round);
        let (mut random, mut unusual) = (Dice(seed), Unusual::nested());
        let kinds = (0..KINDS).map(|number| RandomKind::new(seed, number, &mut random, &mut unusual));
        let mut kinds: Vec<RandomKind> = kinds.collect();
        assert!(unusual.is_used_up(), "seed {seed}: not every unusual name is in a kind");
        let told: String = kinds.iter().map(RandomKind::tell).collect();
        let missing: Vec<_> =
            SHAPES.iter().filter(|(_, words)| !told.contains(words)).map(|(shape, _)| shape).collect();
        assert!(seed != 1 || missing.is_empty(), "no kind has {missing:?}");
        'enough: for _ in 0..WRITES {
            for kind in &mut kinds {
                for number in 0..OBJECTS {
                    kind.write(number, &mut random, &mut total);
                    if total.transitions >= wanted {
                        break 'enough;
                    }
                }
            }
        }
        let subjects: Vec<Subject> = kinds.into_iter().map(|kind| kind.subject).collect();
        let found = differences(&native, &subjects, &warning());
        let told: Vec<&str> = found.iter().take(5).map(String::as_str).collect();
        assert!(found.is_empty(), "seed {seed}: {} writes differ:\n{}", found.len(), told.join("\n"));
        for subject in &subjects {
            total.of_wrong_types += refuse_wrong_types(&native, subject, &mut random);
        }
        say(&format!("seed {seed}: {total:?}"));
        if total.transitions >= wanted {
            break;
        }
    }
    let sorts = [total.denied, total.changed, total.let_through, total.unchanged, total.of_wrong_types];
    assert!(sorts.iter().all(|count| *count > 0), "the writes were all of one sort: {total:?}");
}

/// The writes of a run, by result.
#[derive(Debug, Default)]
struct Tally {
    transitions: usize,
    denied: usize,
    changed: usize,
    let_through: usize,
    unchanged: usize,
    of_wrong_types: usize,
}

impl Tally {
    fn count(&mut self, new: &Value, outcome: &Outcome) {
        let count = match outcome {
            Outcome::Denied(_) => &mut self.denied,
            Outcome::Stored { fields, .. } if *fields != without_nulls(new) => &mut self.changed,
            Outcome::Stored { let_through, .. } if !let_through.is_empty() => &mut self.let_through,
            Outcome::Stored { .. } => &mut self.unchanged,
        };
        *count += 1;
    }
}

impl RandomKind {
    fn new(seed: u64, number: usize, random: &mut Dice, unusual: &mut Unusual) -> Self {
        // The runs share an API server. The names of the first two kinds are as long as possible and differ at the end.
        let (group, long) = match number {
            0 | 1 => (format!("{}.{}.{GROUP}", "g".repeat(63), "h".repeat(63)), "k".repeat(30)),
            _ => (GROUP.to_owned(), String::new()),
        };
        let name = format!("Kind{long}{seed}n{number}");
        let has_status = random.chance(50);
        let places = |count: usize, random: &mut Dice, unusual: &mut Unusual| -> Places {
            let mut places = Vec::new();
            for number in 0..count {
                let name = if random.chance(30) { unusual.name() } else { format!("p{number}") };
                places.push((name, Place::random(random, unusual, 0)));
            }
            places
        };
        let status = if has_status { places(STATUS_PLACES, random, unusual) } else { Vec::new() };
        let mut spec = places(PLACES, random, unusual);
        let root = (!has_status && random.chance(60)).then(|| Place::bare(random, unusual));
        let schema = |places: &Places| {
            let properties: Map<_, _> = places.iter().map(|(name, place)| (name.clone(), place.schema())).collect();
            json!({"type": "object", "properties": properties})
        };
        let mut schemas = root.as_ref().map_or_else(|| json!({"type": "object", "properties": {}}), Place::schema);
        schemas["properties"]["spec"] = schema(&spec);
        if has_status {
            schemas["properties"]["status"] = schema(&status);
        }
        // A `UnionDeclaration` can say more than an extension.
        let unions = lift_unions(&mut schemas);
        let mut declared = json!({"unions": unions});
        // The schema describes the pod template in one round and takes every field in the next. The policies of a template are large, so one kind has it.
        if number == 0 {
            let template = Place::pod_template();
            let mut described = template.schema();
            lift_unions(&mut described);
            let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            schemas["properties"]["spec"]["properties"]["template"] = if seed % 2 == 1 { described } else { open };
            declared["podTemplates"] = json!(["spec.template"]);
            spec.push(("template".to_owned(), template));
        }
        let definition = crd(&group, &name, &[version("v1", &schemas, has_status)]);
        let declared = declaration("differential", &group, &name, &declared);
        let catalog = declared_catalog(&definition, &[declared]);
        let fields = |places: &Places, random: &mut Dice| -> Value {
            let values = places.iter().filter_map(|(name, place)| Some((name.clone(), place.value(random)?)));
            Value::Object(values.collect())
        };
        let mut old = || {
            let mut old = root.as_ref().and_then(|root| root.value(random)).unwrap_or_else(|| json!({}));
            old["spec"] = fields(&spec, random);
            if has_status {
                old["status"] = fields(&status, random);
            }
            old
        };
        let olds = (0..OBJECTS).map(|_| old()).collect();
        Self { subject: Subject::of_catalog(definition, catalog), root, spec, status, olds }
    }

    fn tell(&self) -> String {
        let Self { root, spec, status, .. } = self;
        format!("root: {root:?} spec: {spec:?} status: {status:?}")
    }

    /// Adds a write of a stored object, or the creation of one.
    fn write(&mut self, number: usize, random: &mut Dice, tally: &mut Tally) {
        let field = if !self.status.is_empty() && random.chance(35) { "status" } else { "spec" };
        let places = if field == "status" { &self.status } else { &self.spec };
        let creates = field == "spec" && random.chance(15);
        let old = (!creates).then(|| self.olds[number].clone());
        let mut at_fault = if random.chance(35) { 1 + random.below(MOST_AT_FAULT) } else { 0 };
        let mut fields = Map::new();
        for (name, place) in places {
            if let Some(value) = self.changed(place, &[field, name], old.as_ref(), &mut at_fault, random) {
                fields.insert(name.clone(), value);
            }
        }
        let (mut part, mut new) = (field, old.clone().unwrap_or_else(|| json!({})));
        if let Some(root) = &self.root {
            part = "";
            let mut before = old.clone();
            before.as_mut().and_then(Value::as_object_mut).map(|fields| fields.remove(field));
            new = self.changed(root, &[], before.as_ref(), &mut at_fault, random).unwrap_or_else(|| json!({}));
            tally.transitions += root.unions_in(&new);
        }
        new[field] = fields.into();
        // An answer has 4 KiB of warnings. Others could not be compared.
        while self.cuts_warnings(part, old.as_ref(), &new)
            && let Some(fields) = new[field].as_object_mut()
            && let Some(last) = fields.keys().next_back().cloned()
        {
            fields.remove(&last);
        }
        let unions = places.iter().filter_map(|(name, place)| Some(place.unions_in(new[field].get(name)?)));
        tally.transitions += unions.sum::<usize>();
        let written = if part.is_empty() { new.clone() } else { new[part].clone() };
        tally.count(&written, self.subject.write_part(part, old, new));
    }

    /// Returns true if the webhook's library has more warnings for a write than an answer may have.
    fn cuts_warnings(&self, part: &str, old: Option<&Value>, new: &Value) -> bool {
        let answer = reviews::ask(&self.subject.catalog, Phase::Both, &self.subject.review(part, old, new));
        answer.warnings.iter().any(|warning| warning.ends_with(" more warnings"))
    }

    /// Returns a change of the place at a path, of old fields or of none. The webhook's library denies it only if a fault is still to be
    /// made.
    fn changed(
        &self,
        place: &Place,
        path: &[&str],
        old: Option<&Value>,
        at_fault: &mut usize,
        random: &mut Dice,
    ) -> Option<Value> {
        let object = |value: &Value| path.iter().rev().fold(value.clone(), |inner, name| json!({*name: inner}));
        let before = old.and_then(|old| path.iter().try_fold(old, |value, name| value.get(name)));
        let old = old.map(|_| before.map_or_else(|| json!({}), object));
        for _ in 0..8 {
            let Some(value) = place.changed(before, random) else { continue };
            let write = self.subject.review(path.first().unwrap_or(&""), old.as_ref(), &object(&value));
            let answer = reviews::ask(&self.subject.catalog, Phase::Both, &write);
            let denied = matches!(answer.verdict, Verdict::Denied(_));
            if denied && *at_fault == 0 {
                continue;
            }
            *at_fault -= usize::from(denied);
            return Some(value);
        }
        None
    }
}

/// Writes of each kind that are sent with a value of another type.
const WRONG: usize = 12;

/// Sends objects in which a value has another type. The API server refuses them in its own words: no policy fails. Returns the number of
/// refusals.
fn refuse_wrong_types(native: &Native, subject: &Subject, random: &mut Dice) -> usize {
    let mut refused = 0;
    let stored = subject.find(native, "object0");
    for (number, new) in subject.written().filter(|new| new.get("status").is_none()).take(WRONG).enumerate() {
        let mut new = new.clone();
        spoil(&mut new["spec"], random);
        let answer = subject.ask(native, Some(&stored).filter(|_| number % 2 == 0), &new);
        let text = answer.body["message"].as_str().unwrap_or_default();
        let by_policy = ["AdmissionPolicy", "CEL", "evaluat"].iter().any(|word| text.contains(word));
        // A value of the right type may violate the union.
        let is_denial = policy_message(&answer).is_some_and(|told| !told.contains("expression"));
        assert!((!by_policy || is_denial) && answer.status < 500, "{new}: {text}");
        refused += usize::from(!answer.is_success() && !is_denial);
    }
    refused
}

/// Replaces a value somewhere in this one, or all of it.
fn spoil(value: &mut Value, random: &mut Dice) {
    let mut inner: Vec<&mut Value> = match value {
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    if !inner.is_empty() && random.chance(80) {
        let chosen = random.below(inner.len());
        return spoil(inner.swap_remove(chosen), random);
    }
    let others = [
        json!("text"),
        json!(7),
        json!(1.5),
        json!(true),
        json!([]),
        json!([[]]),
        json!({}),
        json!({"a": {}}),
        Value::Null,
    ];
    *value = random.pick(&others).clone();
}
