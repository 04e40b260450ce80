//! Random writes of random unions: the policies on the API server and the webhook's library must agree.
//!
//! `KUBE_UNIONS_NATIVE_SEED` and `KUBE_UNIONS_NATIVE_TRANSITIONS` select other writes and more of them, as `make
//! native-differential` does. A request holds many unions, so that the API server is asked less often. A write is a dry run,
//! so one stored object serves many writes.

use std::env;
use std::fmt::Write as _;
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::agreement::{Outcome, part_of};
use super::random::Place;
use super::{IN_FORCE, Native, fields_of_kind, policy_message, policy_warnings, warning};
use crate::background::in_parallel;
use crate::cluster::say;
use crate::http::Answer;
use fixtures::crds::crd;
use fixtures::dice::Dice;
use fixtures::reviews::{self, Verdict, Write, declaration, declared_catalog, lift_unions, version};
use fixtures::wait::eventually;
use kube_unions_core::admission::Phase;
use kube_unions_core::catalog::Catalog;

const GROUP: &str = "differential.example";

/// Kinds on one API server.
const KINDS: usize = 8;
/// Stored objects of a kind, and writes of each.
const OBJECTS: usize = 10;
const WRITES: usize = 18;
/// Fields with unions in the `spec` and in the `status` of a kind.
const PLACES: usize = 10;
const STATUS_PLACES: usize = 6;
/// The denial of a request hides what the other unions become, so only few unions of a request are at fault, and none in
/// most.
const MOST_AT_FAULT: usize = 3;

/// A random kind.
struct RandomKind {
    name: String,
    definition: Value,
    schema: Value,
    catalog: Catalog,
    places: Vec<(String, Place)>,
    status: Vec<(String, Place)>,
}

/// An object as it is stored before the policies are installed.
struct Stored {
    object: Value,
}

/// A write of a stored object, or the creation of one.
struct RandomWrite {
    kind: usize,
    stored: Option<usize>,
    /// The part that is written.
    status: bool,
    new: Value,
    transitions: usize,
    expected: reviews::Answer,
}

#[test]
fn random_writes_have_the_same_result_by_policies_and_by_the_webhook() {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seed = number("KUBE_UNIONS_NATIVE_SEED").unwrap_or(1);
    let wanted = number("KUBE_UNIONS_NATIVE_TRANSITIONS").unwrap_or(10_000);
    let wanted = usize::try_from(wanted).unwrap();
    let mut total = Tally::default();
    for round in 0.. {
        let Some(native) = Native::start() else { return };
        let seed = seed.wrapping_add(round);
        total.add(&run(&native, seed, wanted - total.transitions));
        say(&format!("seed {seed}: {total:?}"));
        if total.transitions >= wanted {
            break;
        }
    }
    assert!(
        total.denied > 0 && total.changed > 0 && total.let_through > 0,
        "the writes were all of one sort: {total:?}"
    );
}

/// The writes of a run, by result.
#[derive(Debug, Default)]
struct Tally {
    transitions: usize,
    requests: usize,
    denied: usize,
    changed: usize,
    let_through: usize,
    unchanged: usize,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.transitions += other.transitions;
        self.requests += other.requests;
        self.denied += other.denied;
        self.changed += other.changed;
        self.let_through += other.let_through;
        self.unchanged += other.unchanged;
    }

    fn count(&mut self, write: &RandomWrite) {
        self.transitions += write.transitions;
        self.requests += 1;
        let (denied, changes) = (matches!(write.expected.verdict, Verdict::Denied(_)), write.expected.operations.len());
        match (denied, changes, write.expected.warnings.len()) {
            (true, ..) => self.denied += 1,
            (false, 1.., _) => self.changed += 1,
            (false, 0, 1..) => self.let_through += 1,
            (false, 0, 0) => self.unchanged += 1,
        }
    }
}

/// Compares writes of random kinds until there are enough transitions, or each kind has had its writes.
fn run(native: &Native, seed: u64, wanted: usize) -> Tally {
    let mut random = Dice(seed);
    let kinds: Vec<_> = (0..KINDS).map(|number| RandomKind::new(seed, number, &mut random)).collect();
    for kind in &kinds {
        native.apply(&kind.definition);
    }
    let mut stored = Vec::new();
    for kind in &kinds {
        native.wait_until_served(&kind.url("", false));
        let objects = (0..OBJECTS).map(|number| kind.store(native, &format!("object{number}"), &mut random));
        stored.push(objects.collect::<Vec<_>>());
    }
    let (mut writes, mut tally) = (Vec::new(), Tally::default());
    'enough: for _ in 0..WRITES {
        for (position, kind) in kinds.iter().enumerate() {
            for number in 0..OBJECTS {
                let write = kind.write(position, number, &stored[position], &mut random);
                tally.count(&write);
                writes.push(write);
                if tally.transitions >= wanted {
                    break 'enough;
                }
            }
        }
    }
    for kind in &kinds {
        for compiled in native.install(&kind.catalog, &warning()) {
            assert!(compiled.refusals.is_empty(), "{:?}", compiled.refusals);
        }
    }
    let ask = |write: &RandomWrite| {
        let kind = &kinds[write.kind];
        kind.ask(native, write, write.stored.map(|number| &stored[write.kind][number].object))
    };
    wait_until_in_force(&kinds, &writes, &ask);
    let differences = Mutex::new(Vec::new());
    in_parallel(&writes.iter().collect::<Vec<_>>(), |write| {
        let (expected, answer) = (write.outcome(), ask(write));
        let got = Outcome::of_answer(&answer, write.part());
        if got.as_ref() != Ok(&expected) {
            differences.lock().unwrap().push((*write, expected, got));
        }
    });
    let differences = differences.into_inner().unwrap();
    let mut report = String::new();
    for (write, expected, got) in differences.iter().take(5) {
        let kind = &kinds[write.kind];
        let part = if write.status { "status" } else { "" };
        let _ = write!(report, "\n{} {part}: ", kind.name);
        let smaller = kind.smallest(native, write, &stored[write.kind]);
        let _ = if let Some(smaller) = smaller {
            writeln!(report, "{smaller}")
        } else {
            let old = write.stored.map(|number| fields_of_kind(&stored[write.kind][number].object));
            writeln!(
                report,
                "no single field differs\n  schema: {}\n  old: {}\n  new: {}\n  webhook:  {expected:?}\n  policies: {got:?}",
                kind.schema,
                old.unwrap_or_default(),
                fields_of_kind(&write.new),
            )
        };
    }
    assert!(differences.is_empty(), "seed {seed}: {} of {} writes differ:\n{report}", differences.len(), writes.len());
    tally
}

/// Waits until a write of each kind and part shows each sort of result that policies make.
fn wait_until_in_force(kinds: &[RandomKind], writes: &[RandomWrite], ask: &dyn Fn(&RandomWrite) -> Answer) {
    for (position, kind) in kinds.iter().enumerate() {
        for status in [false, true] {
            let of_part = || writes.iter().filter(move |write| write.kind == position && write.status == status);
            let denied: Vec<_> =
                of_part().filter(|it| matches!(it.expected.verdict, Verdict::Denied(_))).take(3).collect();
            let is_changed = |write: &&RandomWrite| {
                !write.expected.operations.is_empty() && matches!(write.expected.verdict, Verdict::Allowed(_))
            };
            let changed: Vec<_> = of_part().filter(is_changed).take(3).collect();
            let warned = |write: &&RandomWrite| matches!(write.outcome(), Outcome::Stored { let_through, .. } if !let_through.is_empty());
            let warned: Vec<_> = of_part().filter(warned).take(3).collect();
            let differs = |write: &&RandomWrite| {
                let answer = ask(write);
                answer.is_success() && part_of(&answer.body, write.part()) != part_of(&write.new, write.part())
            };
            let in_force = eventually(IN_FORCE, || {
                (denied.is_empty() || denied.iter().any(|write| policy_message(&ask(write)).is_some()))
                    && (changed.is_empty() || changed.iter().any(differs))
                    && (warned.is_empty() || warned.iter().any(|write| !policy_warnings(&ask(write)).is_empty()))
            });
            assert!(in_force, "the policies of {} were not in force", kind.name);
        }
    }
}

impl RandomWrite {
    fn part(&self) -> &'static str {
        if self.status { "status" } else { "spec" }
    }

    fn outcome(&self) -> Outcome {
        Outcome::of_review(&self.expected, self.part())
    }
}

impl RandomKind {
    fn new(seed: u64, number: usize, random: &mut Dice) -> Self {
        // The runs share an API server.
        let name = format!("Kind{seed}n{number}");
        let has_status = random.chance(50);
        let places = |count: usize, random: &mut Dice| -> Vec<(String, Place)> {
            (0..count).map(|number| (format!("p{number}"), Place::random(random, 0))).collect()
        };
        let status = if has_status { places(STATUS_PLACES, random) } else { Vec::new() };
        let places = places(PLACES, random);
        let schema = |places: &[(String, Place)]| {
            let properties: Map<_, _> = places.iter().map(|(name, place)| (name.clone(), place.schema())).collect();
            json!({"type": "object", "properties": properties})
        };
        let mut schema = json!({"type": "object", "properties": {"spec": schema(&places)}, });
        if has_status {
            let properties: Map<_, _> = status.iter().map(|(name, place)| (name.clone(), place.schema())).collect();
            schema["properties"]["status"] = json!({"type": "object", "properties": properties});
        }
        // A `UnionDeclaration` can say more than an extension.
        let mut plain = schema.clone();
        let unions = lift_unions(&mut plain);
        let definition = crd(GROUP, &name, &[version("v1", &plain, has_status)]);
        let declared = declaration("differential", GROUP, &name, &json!({"unions": unions}));
        let catalog = declared_catalog(&definition, &[declared]);
        Self { name, definition, schema, catalog, places, status }
    }

    fn url(&self, name: &str, status: bool) -> String {
        let collection = format!("/apis/{GROUP}/v1/namespaces/default/{}s", self.name.to_lowercase());
        match (name, status) {
            ("", _) => collection,
            (_, false) => format!("{collection}/{name}"),
            (_, true) => format!("{collection}/{name}/status"),
        }
    }

    fn object(&self, name: &str) -> Value {
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": self.name, "metadata": {"name": name, "namespace": "default"}})
    }

    fn store(&self, native: &Native, name: &str, random: &mut Dice) -> Stored {
        let fields = |places: &[(String, Place)], random: &mut Dice| -> Value {
            let values = places.iter().filter_map(|(name, place)| Some((name.clone(), place.value(random)?)));
            Value::Object(values.collect())
        };
        let mut object = self.object(name);
        object["spec"] = fields(&self.places, random);
        let mut answer = native.send("POST", &self.url("", false), &object);
        assert!(answer.is_success(), "not stored: {}\n{object}", answer.body);
        if !self.status.is_empty() {
            answer.body["status"] = fields(&self.status, random);
            let body = answer.body;
            answer = native.send("PUT", &self.url(name, true), &body);
            assert!(answer.is_success(), "not stored: {}\n{body}", answer.body);
        }
        Stored { object: answer.body }
    }

    /// Returns a write of a stored object, or the creation of one.
    fn write(&self, kind: usize, number: usize, stored: &[Stored], random: &mut Dice) -> RandomWrite {
        let status = !self.status.is_empty() && random.chance(35);
        let creates = !status && random.chance(15);
        let old = (!creates).then(|| stored[number].object.clone());
        let new = old.clone().unwrap_or_else(|| self.object("created"));
        let part = if status { "status" } else { "spec" };
        let places = if status { &self.status } else { &self.places };
        let mut at_fault = if random.chance(35) { 1 + random.below(MOST_AT_FAULT) } else { 0 };
        let (mut fields, mut transitions) = (Map::new(), 0);
        for (name, place) in places {
            let before = old.as_ref().and_then(|old| old[part].get(name));
            for _ in 0..8 {
                let Some(value) = place.changed(before, random) else { continue };
                let denied = self.denies(old.is_some(), part, name, before, &value);
                if denied && at_fault == 0 {
                    continue;
                }
                at_fault -= usize::from(denied);
                transitions += place.unions_in(&value);
                fields.insert(name.clone(), value);
                break;
            }
        }
        let expected = self.admit(old.as_ref(), &new, part, fields.clone());
        let new = with_part(&new, part, fields);
        RandomWrite { kind, stored: old.map(|_| number), status, new, transitions, expected }
    }

    /// Returns the answer of the webhook's library to a write of these fields.
    fn admit(&self, old: Option<&Value>, new: &Value, part: &str, fields: Map<String, Value>) -> reviews::Answer {
        let subresource = (part == "status").then(|| "status".to_owned());
        let write = Write { subresource, ..Write::new(old.cloned(), with_part(new, part, fields)) };
        reviews::admit(&self.catalog, &write)
    }

    /// Returns true if the webhook's library denies a write of one field.
    fn denies(&self, updates: bool, part: &str, name: &str, old: Option<&Value>, new: &Value) -> bool {
        let object = |value: Option<&Value>| {
            let value = value.map(|value| (name.to_owned(), value.clone()));
            with_part(&self.object("alone"), part, Map::from_iter(value))
        };
        let subresource = (part == "status").then(|| "status".to_owned());
        let write = Write { subresource, ..Write::new(updates.then(|| object(old)), object(Some(new))) };
        matches!(reviews::ask(&self.catalog, Phase::Both, &write).verdict, Verdict::Denied(_))
    }

    fn ask(&self, native: &Native, write: &RandomWrite, old: Option<&Value>) -> Answer {
        let Some(old) = old else {
            return native.send("POST", &format!("{}?dryRun=All", self.url("", false)), &write.new);
        };
        let name = old["metadata"]["name"].as_str().expect("a stored object has a name");
        native.send("PUT", &format!("{}?dryRun=All", self.url(name, write.status)), &write.new)
    }

    /// Looks for a field that makes the difference alone, and tells it.
    fn smallest(&self, native: &Native, write: &RandomWrite, stored: &[Stored]) -> Option<String> {
        let part = if write.status { "status" } else { "spec" };
        let places = if write.status { &self.status } else { &self.places };
        let old = write.stored.map(|number| &stored[number].object);
        places.iter().find_map(|(name, place)| {
            let value = write.new[part].get(name)?;
            let fields = Map::from_iter([(name.clone(), value.clone())]);
            let expected = self.admit(old, &write.new, part, fields.clone());
            let new = with_part(&write.new, part, fields);
            let smaller = RandomWrite { new, expected, ..*write };
            let (expected, got) = (smaller.outcome(), Outcome::of_answer(&self.ask(native, &smaller, old), write.part()));
            (got.as_ref() != Ok(&expected)).then(|| {
                let before = old.and_then(|old| old[part].get(name)).unwrap_or(&Value::Null);
                format!("{part}.{name}\n  schema: {}\n  old: {before}\n  new: {value}\n  webhook:  {expected:?}\n  policies: {got:?}", place.schema())
            })
        })
    }
}

fn with_part(object: &Value, part: &str, fields: Map<String, Value>) -> Value {
    let mut object = object.clone();
    object[part] = Value::Object(fields);
    object
}
