//! `manifests/presets/contrib` on a real API server: what a switch of a member does before and after a preset is in force.
//!
//! `contrib` has a case for each preset ([`cases`]). Its kinds are ours. They have the shape of the project's kinds at the places of
//! their unions, and the rules of their schemas. It has a switch for each union that is shown, and its expected outcome for each
//! [`Way`]. Some switches are about fields of which one takes precedence: no preset declares those, and both stay.

mod cases;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use serde_json::Value;

pub(crate) use self::cases::definitions_of;
use self::cases::{Kind, Outcome, Row, Way, kinds, rows};
use crate::background::in_parallel;
use crate::client_side;
use crate::cluster::{Cluster, is_left_out, say, some_or_all};
use crate::http::{Answer, Client};
use crate::presets::{nest, presets_in};
use crate::preview::{Upgrade, predict};
use crate::process::Workspace;
use crate::webhook::kube_unions;
use fixtures::wait::{SETTLED, eventually};

/// The folder of the presets for the CRDs of other projects.
const PRESETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/presets/contrib");

const DECLARATIONS: &str = "/apis/kube-unions.dev/v1alpha1/uniondeclarations";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A row that is played in one way on one kind.
struct Switch<'r> {
    row: &'r Row,
    kind: &'r Kind,
    way: Way,
    /// The number of the row and its kind.
    number: usize,
    name: String,
    expected: Outcome,
}

/// The answer to the request that switches.
struct Reply {
    /// The message of a rejection.
    refusal: Option<String>,
    warnings: Vec<String>,
}

#[test]
fn each_contributed_preset_fits_its_kinds_without_a_fault() {
    if is_left_out() {
        return;
    }
    let disagreements =
        [("spec.kafka.metricsConfig", 3), ("spec.metricsConfig", 9), ("spec.provider.nebiusmysterybox.auth", 2)];
    assert_eq!(lint(&kinds(), &disagreements), Vec::<String>::new());
}

#[test]
fn a_contributed_preset_fits_an_older_release_that_lacks_a_member_of_each_union() {
    if is_left_out() {
        return;
    }
    let mut older = kinds();
    let mut lacking = 0;
    for preset in presets() {
        let kind = older.iter_mut().find(|kind| kind.full_name() == target(&preset)).unwrap();
        for union in preset["spec"]["unions"].as_array().unwrap() {
            let mut path = text(union, "/path").split('.').skip(1);
            let place = path.try_fold(&mut kind.spec, |place, field| place.get_mut("properties")?.get_mut(field));
            let Some(fields) = place.and_then(|place| place.get_mut("properties")?.as_object_mut()) else { continue };
            fields.remove(*members(union).last().unwrap());
            lacking += 1;
        }
    }
    let notes = lint(&older, &[("spec.kafka.metricsConfig", 2), ("spec.metricsConfig", 6)]);
    assert!(notes.len() >= lacking && lacking > 0, "{notes:#?}");
    assert!(notes.iter().all(|line| line.contains(": note: ")), "{notes:#?}");
}

/// Returns the names of a union's members.
fn members(union: &Value) -> Vec<&str> {
    let fields = union["fieldsToDiscriminateBy"].as_object().into_iter().flat_map(|fields| fields.keys());
    let selected: Vec<&Value> = union["fieldMembers"].as_object().into_iter().flat_map(|of| of.values()).collect();
    let named = selected.iter().filter_map(|member| member["name"].as_str());
    let several = selected.iter().filter_map(|member| member["fields"].as_object()).flat_map(|fields| fields.keys());
    fields.chain(several).map(String::as_str).chain(named).collect()
}

/// Returns what `kube-unions lint` prints about the presets and these kinds, and panics if it finds a fault. `disagreements`
/// counts, by path, the warnings that rules of a CRD disagree with a preset.
fn lint(kinds: &[Kind], disagreements: &[(&str, usize)]) -> Vec<String> {
    let objects: Vec<String> =
        presets().into_iter().chain(kinds.iter().map(Kind::definition)).map(|object| object.to_string()).collect();
    let linted = kube_unions(&["lint", "-"], &objects.join("\n---\n")).accepted();
    let of_rules = |line: &&str| line.contains(": warning: ") && line.contains(", which the union ");
    let (of_rules, others): (Vec<&str>, Vec<&str>) = linted.stdout.lines().partition(of_rules);
    let summary: Vec<&str> = linted.stderr.lines().collect();
    let problems = format!(" unions, {} problems", of_rules.len());
    assert!(matches!(*summary, [one] if one.contains(&problems)), "{summary:#?}{others:#?}");
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for line in of_rules {
        *found.entry(line.split(": ").nth(1).unwrap()).or_default() += 1;
    }
    assert_eq!(found, disagreements.iter().copied().collect());
    others.into_iter().map(str::to_owned).collect()
}

/// The expected outcomes are those of a real API server, which the test below compares.
#[test]
fn the_outcomes_of_switches_are_those_that_preview_predicts() {
    if is_left_out() {
        return;
    }
    let (kinds, rows, workspace) = (kinds(), rows(), Workspace::new("contrib"));
    let from: Vec<Value> = presets().into_iter().chain(kinds.iter().map(Kind::definition)).collect();
    let (mut predictions, mut failures) = (BTreeMap::new(), Vec::new());
    for (way, name) in [(Way::SameManager, "ssa"), (Way::ApplyThenApply, "csa"), (Way::Patch, "merge")] {
        let switches = switches(&rows, &kinds, "before", |row| &row.before);
        let switches = of_way(&switches, way);
        let upgrade = |it: &&Switch<'_>| Upgrade { title: it.id(), old: it.first(), new: it.second() };
        let upgrades: Vec<Upgrade> = switches.iter().map(upgrade).collect();
        for (switch, predicted) in switches.iter().zip(predict(&workspace, name, &upgrades, &from)) {
            let after = switch.row.after[&way];
            // No preset declares fields of which one takes precedence.
            let expected = match switch.expected {
                Outcome::Both if after != Outcome::Both => Some("union-stored-invalid"),
                Outcome::Rejected => Some("union-refused"),
                Outcome::Both | Outcome::Switched | Outcome::Cleared => None,
            };
            *predictions.entry(predicted.rule).or_insert(0) += 1;
            let is_refused = expected.is_some() && after == Outcome::Rejected;
            let is_open = predicted.rule == Some("union-undecided") && expected.is_some();
            if (predicted.rule != expected && !is_open) || predicted.is_refused_with_kube_unions != is_refused {
                failures.push(format!("{} {} {name}: {predicted:?}, but {expected:?}", switch.id(), switch.row.at));
            }
        }
    }
    say(&format!("predictions for contributed presets: {predictions:?}"));
    assert!(failures.is_empty(), "{} differ:\n  {}", failures.len(), failures.join("\n  "));
    assert!(["union-refused", "union-stored-invalid"].iter().all(|rule| predictions.contains_key(&Some(*rule))));
    assert!(predictions.get(&Some("union-undecided")).is_none_or(|open| *open < 10), "{predictions:?}");
}

#[test]
fn with_the_contributed_presets_a_switch_stores_the_new_member_alone() {
    let Some(cluster) = Cluster::own() else { return };
    let (kinds, rows) = (kinds(), rows());
    let shown: BTreeSet<_> = pairs(&rows, &kinds).iter().map(|(_, kind)| kind.full_name()).collect();
    let declared: BTreeSet<_> = presets().iter().map(target).collect();
    assert_eq!(shown, declared, "every preset has a row, and no row is about another kind");
    assert!(kinds.iter().map(Kind::full_name).collect::<BTreeSet<_>>() == shown, "each kind has rows");
    let server = Server { client: cluster.client() };
    let kubectl = cluster.kubectl("contrib");

    kubectl.run(&["apply", "-k", PRESETS]).accepted();
    server.wait_for_verdicts("TargetNotFound");
    for kind in &kinds {
        let answer = server.client.post(DEFINITIONS, &kind.definition()).unwrap();
        assert!(answer.is_success(), "{}: {answer:?}", kind.name);
    }
    for kind in &kinds {
        let listed = || server.client.get(&kind.path("")).is_ok_and(|answer| answer.is_success());
        assert!(eventually(SETTLED, listed), "{} is not served", kind.name);
    }
    server.wait_for_verdicts("True");
    // The API server asks no webhook yet. Without a preset, kinds of one schema do the same.
    let is_first = |it: &Switch<'_>| [&it.kind.name, &it.kind.full_name()].contains(&&it.row.kinds[0]);
    let mut before = switches(&rows, &kinds, "before", |row| &row.before);
    before.retain(|it| some_or_all(is_first(it) && it.is_told(&Way::ALL), true));
    let before = server.play(&before);

    let rules: Vec<Value> = kinds.iter().map(Kind::rule).collect();
    let registration = cluster.webhook.registration_of("contrib.tests.example", &rules, "Fail");
    kubectl.apply(&registration.to_string()).accepted();
    for (row, kind) in pairs(&rows, &kinds) {
        let probe = kind.object("probe", &[&row.beside, &nest(&row.at, row.from.clone())]);
        let is_asked = || ["mutate", "validate"].iter().all(|phase| cluster.webhook.reviews(&kind.group, phase) > 0);
        let reached = || {
            let answer = server.client.post(&format!("{}?dryRun=All", kind.path("")), &probe).unwrap();
            assert!(answer.is_success(), "{}: {answer:?}", kind.name);
            is_asked()
        };
        assert!(is_asked() || eventually(SETTLED, reached), "reviews of {} never reached the webhook", kind.name);
    }
    let mut after = switches(&rows, &kinds, "after", |row| &row.after);
    after.retain(|it| some_or_all(it.is_told(&Way::CLEARING), true));
    let after = server.play(&after);

    say(&format!("{} switches: {} work before, {} after", before.switches, before.work, after.work));
    let failures = [before.failures, after.failures].concat();
    assert!(failures.is_empty(), "{} outcomes differ:\n  {}", failures.len(), failures.join("\n  "));
}

/// Returns every pair of a row and a kind that it is about.
fn pairs<'r>(rows: &'r [Row], kinds: &'r [Kind]) -> Vec<(&'r Row, &'r Kind)> {
    let of_row = |row: &'r Row| {
        row.kinds.iter().map(move |name| {
            let named: Vec<_> = kinds.iter().filter(|it| *name == it.name || *name == it.full_name()).collect();
            let [kind] = *named else { panic!("{} kinds are called {name}", named.len()) };
            (row, kind)
        })
    };
    rows.iter().flat_map(of_row).collect()
}

fn switches<'r>(
    rows: &'r [Row],
    kinds: &'r [Kind],
    phase: &str,
    expected: impl Fn(&Row) -> &BTreeMap<Way, Outcome>,
) -> Vec<Switch<'r>> {
    let of_pair = |(number, (row, kind)): (usize, (&'r Row, &'r Kind))| {
        assert_eq!(expected(row).len(), Way::ALL.len(), "{} {} lacks a way", kind.name, row.at);
        let outcomes = expected(row).clone();
        let switch = move |(way, expected)| {
            let name = format!("{phase}-{number}-{way:?}").to_lowercase();
            Switch { row, kind, way, number, name, expected }
        };
        outcomes.into_iter().map(switch).collect::<Vec<_>>()
    };
    pairs(rows, kinds).into_iter().enumerate().flat_map(of_pair).collect()
}

/// The API server.
struct Server<'c> {
    client: &'c Client,
}

/// The result of all switches.
#[derive(Default)]
struct Played {
    switches: usize,
    work: usize,
    failures: Vec<String>,
}

impl Server<'_> {
    /// Waits until the conditions `Accepted` and `InForce` of each declaration have this status or reason.
    fn wait_for_verdicts(&self, expected: &str) {
        let names: Vec<String> = presets().iter().map(|preset| text(preset, "/metadata/name").to_owned()).collect();
        let list = || self.client.get(DECLARATIONS).unwrap().body["items"].as_array().unwrap().clone();
        let as_expected = |item: &Value, name: &str| {
            let conditions = item["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
            conditions.iter().any(|condition| {
                condition["type"] == name
                    && condition["observedGeneration"] == item["metadata"]["generation"]
                    && [&condition["status"], &condition["reason"]].iter().any(|it| **it == *expected)
            })
        };
        let reached = eventually(SETTLED, || {
            let items = list();
            names.iter().all(|name| {
                let item = items.iter().find(|item| text(item, "/metadata/name") == name);
                item.is_some_and(|item| ["Accepted", "InForce"].iter().all(|of| as_expected(item, of)))
            })
        });
        assert!(reached, "not all are {expected}: {:#?}", list());
    }

    /// Plays every switch, and compares its outcome with the expected one.
    fn play(&self, switches: &[Switch<'_>]) -> Played {
        let played: Mutex<Played> = Mutex::default();
        in_parallel(switches, |switch| {
            self.set_up(switch);
            let reply = match switch.way {
                Way::CreateThenApply | Way::ApplyThenApply => Reply::of(&self.apply(switch, &switch.second())),
                Way::Patch => self.patch(switch),
                Way::SameManager | Way::CreateThenServerSide => self.apply_server_side(switch, "first"),
                Way::OtherManager => self.apply_server_side(switch, "second"),
            };
            let stored = self.client.get(&switch.path()).unwrap().body;
            let outcome = switch.outcome(&stored["spec"], &reply);
            let mut played = played.lock().unwrap();
            played.switches += 1;
            played.work += usize::from(matches!(outcome, Ok(Outcome::Cleared | Outcome::Switched)));
            if outcome != Ok(switch.expected) {
                let Switch { row, kind, name, expected, .. } = switch;
                played.failures.push(format!("{} {} {name}: {expected:?}, but {outcome:?}", kind.name, row.at));
            }
        });
        played.into_inner().unwrap()
    }

    /// Stores the object with the first member.
    fn set_up(&self, switch: &Switch<'_>) {
        let answer = match switch.way {
            Way::ApplyThenApply => self.apply(switch, &switch.first()),
            Way::Patch | Way::CreateThenApply | Way::CreateThenServerSide => {
                self.client.post(&switch.kind.path(""), &switch.first()).unwrap()
            }
            Way::SameManager | Way::OtherManager => self.server_side(switch, "first", &switch.first()),
        };
        let accepted = answer.is_success() && answer.warnings.is_empty();
        assert!(accepted, "{} {}: {answer:?}", switch.kind.name, switch.row.at);
    }

    fn server_side(&self, switch: &Switch<'_>, manager: &str, object: &Value) -> Answer {
        let path = format!("{}?fieldManager={manager}&force=true", switch.path());
        self.client.send("PATCH", &path, "application/apply-patch+yaml", object.to_string().as_bytes()).unwrap()
    }

    fn apply_server_side(&self, switch: &Switch<'_>, manager: &str) -> Reply {
        Reply::of(&self.server_side(switch, manager, &switch.second()))
    }

    fn patch(&self, switch: &Switch<'_>) -> Reply {
        let body = nest(&switch.row.at, switch.row.to.clone()).to_string();
        let content_type = "application/merge-patch+json";
        Reply::of(&self.client.send("PATCH", &switch.path(), content_type, body.as_bytes()).unwrap())
    }

    /// Sends the requests of `kubectl apply`.
    fn apply(&self, switch: &Switch<'_>, object: &Value) -> Answer {
        client_side::apply(self.client, &switch.kind.path(""), object).expect("each manifest is another one")
    }
}

impl Switch<'_> {
    fn id(&self) -> String {
        format!("{} {}", self.kind.name, self.name)
    }

    /// Returns true for one of these ways, another one for the next row, and for every way if the row has outcomes of its own.
    fn is_told(&self, ways: &[Way]) -> bool {
        self.row.has_outcomes || self.way == ways[self.number % ways.len()]
    }

    fn path(&self) -> String {
        self.kind.path(&self.name)
    }

    fn first(&self) -> Value {
        self.kind.object(&self.name, &[&self.row.beside, &nest(&self.row.at, self.row.from.clone())])
    }

    fn second(&self) -> Value {
        self.kind.object(&self.name, &[&self.row.beside, &nest(&self.row.at, self.row.to.clone())])
    }

    /// Returns the outcome. An error describes what is no outcome.
    fn outcome(&self, stored: &Value, reply: &Reply) -> Result<Outcome, String> {
        let mut both = self.first();
        json_patch::merge(&mut both, &self.second());
        let warned = self.row.warning.as_ref().is_some_and(|it| reply.warnings.iter().eq(it.lines()));
        if let Some(refusal) = &reply.refusal {
            let expected = self.row.refusal.as_ref().is_some_and(|words| refusal.contains(words));
            return if expected && *stored == self.first()["spec"] {
                Ok(Outcome::Rejected)
            } else {
                Err(format!("refused with {refusal:?}, stored {stored}"))
            };
        }
        match (*stored == self.second()["spec"], reply.warnings.is_empty()) {
            (true, true) => Ok(Outcome::Switched),
            (true, false) if warned => Ok(Outcome::Cleared),
            (false, true) if *stored == both["spec"] => Ok(Outcome::Both),
            _ => Err(format!("stored {stored}, with the warnings {:?}", reply.warnings)),
        }
    }
}

impl Reply {
    fn of(answer: &Answer) -> Self {
        let refusal = (!answer.is_success()).then(|| answer.body["message"].to_string());
        Self { refusal, warnings: answer.warnings.clone() }
    }
}

fn presets() -> Vec<Value> {
    presets_in(PRESETS)
}

/// Returns the full name of the kind that a preset is about.
fn target(preset: &Value) -> String {
    format!("{}.{}", text(preset, "/spec/target/kind"), text(preset, "/spec/target/group"))
}

fn of_way<'s, 'r>(switches: &'s [Switch<'r>], way: Way) -> Vec<&'s Switch<'r>> {
    switches.iter().filter(|switch| switch.way == way).collect()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
