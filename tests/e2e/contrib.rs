//! `manifests/presets/contrib` on a real API server: what a switch of a member does before and after a preset is in force.
//!
//! `contrib` has a case for each preset ([`cases`]). Its kinds are ours. They have the shape of the project's kinds at the places of
//! their unions, and the rules of their schemas. It has a switch for each kind, and more where a union is of another class, with the
//! expected outcome for each [`Way`]. Some switches are about fields of which one takes precedence: no preset declares those, and both
//! stay.

mod cases;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use serde_json::Value;

pub(crate) use self::cases::definitions_of;
use self::cases::{Case, Kind, Outcome, Row, cases, kinds};
use crate::presets::{nest, presets_in};
use crate::preview::{Upgrade, predict};
use crate::support::background::in_parallel;
use crate::support::cluster::{Cluster, is_left_out, say, some_or_all};
use crate::support::http::{Answer, Client};
use crate::support::kind::spec;
use crate::support::process::Workspace;
use crate::support::webhook::kube_unions;
use crate::switches::Way;
use fixtures::wait::{SETTLED, eventually};

/// The folder of the presets for the CRDs of other projects.
const PRESETS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/presets/contrib");

const DECLARATIONS: &str = "/apis/kube-unions.dev/v1alpha1/uniondeclarations";

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A row that is played in one way on one kind.
struct Switch<'r> {
    row: &'r Row,
    kind: &'r Kind,
    /// True for the first kind of the row.
    is_first: bool,
    way: Way,
    /// The number of the row and its kind.
    number: usize,
    name: String,
    expected: Outcome,
}

#[test]
fn each_contributed_preset_fits_its_kinds_without_a_fault() {
    if is_left_out() {
        return;
    }
    let disagreements =
        [("spec.kafka.metricsConfig", 3), ("spec.metricsConfig", 9), ("spec.provider.nebiusmysterybox.auth", 2)];
    assert_eq!(lint(kinds(&cases()), &disagreements), Vec::<String>::new());
}

#[test]
fn a_contributed_preset_fits_an_older_release_that_lacks_a_member_of_each_union() {
    if is_left_out() {
        return;
    }
    let mut older = cases();
    let mut lacking = 0;
    for preset in presets() {
        let mut kinds = older.iter_mut().flat_map(|case| &mut case.kinds);
        let kind = kinds.find(|kind| kind.full_name() == target(&preset)).unwrap();
        for union in preset["spec"]["unions"].as_array().unwrap() {
            let mut path = text(union, "/path").split('.').skip(1);
            let place =
                path.try_fold(spec(&mut kind.definition), |place, field| place.get_mut("properties")?.get_mut(field));
            let Some(fields) = place.and_then(|place| place.get_mut("properties")?.as_object_mut()) else { continue };
            let member = *members(union).last().unwrap();
            fields.remove(member);
            remove_rules_about(member, &mut kind.definition);
            lacking += 1;
        }
    }
    let notes = lint(kinds(&older), &[("spec.kafka.metricsConfig", 2), ("spec.metricsConfig", 6)]);
    assert!(notes.len() >= lacking && lacking > 0, "{notes:#?}");
    assert!(notes.iter().all(|line| line.contains(": note: ")), "{notes:#?}");
}

/// Removes the rules that name a field: an API server refuses those about one that is not there.
fn remove_rules_about(field: &str, node: &mut Value) {
    if let Some(rules) = node.get_mut("x-kubernetes-validations").and_then(Value::as_array_mut) {
        rules.retain(|rule| !rule["rule"].as_str().unwrap().contains(field));
    }
    for inner in node.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        remove_rules_about(field, inner);
    }
    for inner in node.as_array_mut().into_iter().flatten() {
        remove_rules_about(field, inner);
    }
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
fn lint<'k>(kinds: impl Iterator<Item = &'k Kind>, disagreements: &[(&str, usize)]) -> Vec<String> {
    let objects: Vec<String> = presets_and(kinds).iter().map(Value::to_string).collect();
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
    let (cases, workspace) = (cases(), Workspace::new("contrib"));
    let from = presets_and(kinds(&cases));
    let (mut predictions, mut failures) = (BTreeMap::new(), Vec::new());
    for (way, name) in [(Way::SameManager, "ssa"), (Way::ApplyThenApply, "csa"), (Way::Patch, "merge")] {
        let mut switches = switches(&cases, "before", Row::before);
        switches.retain(|switch| switch.way == way);
        let upgrade =
            |it: &Switch<'_>| Upgrade { title: it.id(), old: it.object(&it.row.from), new: it.object(&it.row.to) };
        let upgrades: Vec<Upgrade> = switches.iter().map(upgrade).collect();
        for (switch, predicted) in switches.iter().zip(predict(&workspace, name, &upgrades, &from)) {
            let after = switch.row.after(way);
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
    let (client, cases) = (cluster.client(), cases());
    let shown: BTreeSet<_> = pairs(&cases).iter().map(|(_, kind, _)| kind.full_name()).collect();
    let declared: BTreeSet<_> = presets().iter().map(target).collect();
    assert_eq!(shown, declared, "every preset has a row, and no row is about another kind");
    assert!(kinds(&cases).map(Kind::full_name).collect::<BTreeSet<_>>() == shown, "each kind has rows");
    let kubectl = cluster.kubectl("contrib");

    kubectl.run(&["apply", "-k", PRESETS]).accepted();
    wait_for_verdicts(client, "TargetNotFound");
    for kind in kinds(&cases) {
        let answer = client.post(DEFINITIONS, &kind.definition).unwrap();
        assert!(answer.is_success(), "{}: {answer:?}", kind.name());
    }
    for kind in kinds(&cases) {
        let listed = || client.get(&kind.resource.path("")).is_ok_and(|answer| answer.is_success());
        assert!(eventually(SETTLED, listed), "{} is not served", kind.name());
    }
    wait_for_verdicts(client, "True");
    // The API server asks no webhook yet. Without a preset, the kinds of a row do the same.
    let mut before = switches(&cases, "before", Row::before);
    before.retain(|it| some_or_all(it.is_first && it.is_told(|_| true), true));
    let before = play(client, &before);

    let rules: Vec<Value> = kinds(&cases).map(Kind::rule).collect();
    let registration = cluster.webhook.registration_of("contrib.tests.example", &rules, "Fail");
    kubectl.apply(&registration.to_string()).accepted();
    for (row, kind, _) in pairs(&cases) {
        let probe = kind.object("probe", &[&row.beside, &nest(&row.at, row.from.clone())]);
        let is_asked =
            || ["mutate", "validate"].iter().all(|phase| cluster.webhook.reviews(&kind.resource.group, phase) > 0);
        let reached = || {
            let answer = client.post(&format!("{}?dryRun=All", kind.resource.path("")), &probe).unwrap();
            assert!(answer.is_success(), "{}: {answer:?}", kind.name());
            is_asked()
        };
        assert!(is_asked() || eventually(SETTLED, reached), "reviews of {} never reached the webhook", kind.name());
    }
    let mut after = switches(&cases, "after", Row::after);
    after.retain(|it| some_or_all(it.is_told(Way::leaves_the_old), true));
    let after = play(client, &after);

    say(&format!("{} switches: {} work before, {} after", before.switches, before.work, after.work));
    let failures = [before.failures, after.failures].concat();
    assert!(failures.is_empty(), "{} outcomes differ:\n  {}", failures.len(), failures.join("\n  "));
}

/// Returns every pair of a row and a kind that it is about, with true for the first kind of the row.
fn pairs(cases: &[Case]) -> Vec<(&Row, &Kind, bool)> {
    let mut all = Vec::new();
    for (case, row) in cases.iter().flat_map(|case| case.rows.iter().map(move |row| (case, row))) {
        let kinds = case.kinds.iter().filter(|kind| row.is_about(kind)).enumerate();
        all.extend(kinds.map(|(number, kind)| (row, kind, number == 0)));
    }
    all
}

/// Returns every pair in every way.
fn switches<'c>(cases: &'c [Case], phase: &str, expected: impl Fn(&Row, Way) -> Outcome) -> Vec<Switch<'c>> {
    let mut all = Vec::new();
    for (number, (row, kind, is_first)) in pairs(cases).into_iter().enumerate() {
        for way in Way::ALL {
            let name = format!("{phase}-{number}-{way:?}").to_lowercase();
            all.push(Switch { row, kind, is_first, way, number, name, expected: expected(row, way) });
        }
    }
    all
}

/// The result of all switches.
#[derive(Default)]
struct Played {
    switches: usize,
    work: usize,
    failures: Vec<String>,
}

/// Waits until the conditions `Accepted` and `InForce` of each declaration have this status or reason.
fn wait_for_verdicts(client: &Client, expected: &str) {
    let names: Vec<String> = presets().iter().map(|preset| text(preset, "/metadata/name").to_owned()).collect();
    let list = || client.get(DECLARATIONS).unwrap().body["items"].as_array().unwrap().clone();
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
fn play(client: &Client, switches: &[Switch<'_>]) -> Played {
    let played: Mutex<Played> = Mutex::default();
    in_parallel(switches, |switch| {
        let Switch { row, kind, way, name, expected, .. } = switch;
        let (first, second) = (switch.object(&row.from), switch.object(&row.to));
        let patch = nest(&row.at, row.to.clone());
        let answer = way.switch(client, &kind.resource, [&first, &second], &patch);
        let stored = client.get(&kind.resource.path(name)).unwrap().body;
        let outcome = switch.outcome(&stored["spec"], &answer);
        let mut played = played.lock().unwrap();
        played.switches += 1;
        played.work += usize::from(matches!(outcome, Ok(Outcome::Cleared | Outcome::Switched)));
        if outcome != Ok(*expected) {
            played.failures.push(format!("{} {} {name}: {expected:?}, but {outcome:?}", kind.name(), row.at));
        }
    });
    played.into_inner().unwrap()
}

impl Switch<'_> {
    fn id(&self) -> String {
        format!("{} {}", self.kind.name(), self.name)
    }

    /// Returns true for one of these ways, another one for the next row, and for every way if the row has outcomes of its own.
    fn is_told(&self, of: impl Fn(Way) -> bool) -> bool {
        let ways: Vec<Way> = Way::ALL.into_iter().filter(|way| of(*way)).collect();
        self.row.has_outcomes() || self.way == ways[self.number % ways.len()]
    }

    /// Returns the object with these contents of the place.
    fn object(&self, contents: &Value) -> Value {
        self.kind.object(&self.name, &[&self.row.beside, &nest(&self.row.at, contents.clone())])
    }

    /// Returns the outcome. An error describes what is no outcome.
    fn outcome(&self, stored: &Value, answer: &Answer) -> Result<Outcome, String> {
        let (first, second) = (self.object(&self.row.from), self.object(&self.row.to));
        let mut both = first.clone();
        json_patch::merge(&mut both, &second);
        let warnings = &answer.warnings;
        if !answer.is_success() {
            let refusal = answer.body["message"].to_string();
            let expected = self.row.refusal.as_ref().is_some_and(|words| refusal.contains(words));
            return if expected && *stored == first["spec"] {
                Ok(Outcome::Rejected)
            } else {
                Err(format!("refused with {refusal:?}, stored {stored}"))
            };
        }
        match (*stored == second["spec"], warnings.is_empty()) {
            (true, true) => Ok(Outcome::Switched),
            (true, false) if self.row.is_told_by(warnings) => Ok(Outcome::Cleared),
            (false, true) if *stored == both["spec"] => Ok(Outcome::Both),
            _ => Err(format!("stored {stored}, with the warnings {warnings:?}")),
        }
    }
}

fn presets() -> Vec<Value> {
    presets_in(PRESETS)
}

/// Returns the presets and the CRDs of these kinds.
fn presets_and<'k>(kinds: impl Iterator<Item = &'k Kind>) -> Vec<Value> {
    presets().into_iter().chain(kinds.map(|kind| kind.definition.clone())).collect()
}

/// Returns the full name of the kind that a preset is about.
fn target(preset: &Value) -> String {
    format!("{}.{}", text(preset, "/spec/target/kind"), text(preset, "/spec/target/group"))
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
