//! Random kinds with rules beside a union: the truth tables of `kube-unions-evidence` and the verdicts of `lint` compared with what an API
//! server does with random objects of them, whose fields are missing, null, empty or set.
//!
//! `KUBE_UNIONS_TRUTH_SEED` and `KUBE_UNIONS_TRUTH_KINDS` select other kinds and more of them, as `make truth-differential` does.

use super::random_rules::RuledKind;
use super::{IN_FORCE, Native};
use crate::support::resource::Resource;
use crate::support::webhook::kube_unions;
use fixtures::crds::{crd, version};
use fixtures::dice::Dice;
use fixtures::wait::eventually;
use kube_unions_core::schema::Place;
use kube_unions_evidence::{Combination, Decision, TableRow, TruthTable};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::env;

const GROUP: &str = "truth.example";

/// Random objects of a kind.
const OBJECTS: usize = 50;

/// Samples of the table of a kind that are sent.
const SAMPLES: usize = 60;

/// The answer of the API server to a creation.
struct Judged {
    accepted: bool,
    message: String,
    /// The causes of a refusal.
    causes: Vec<String>,
}

impl Judged {
    fn of_rules(&self) -> impl Iterator<Item = &str> {
        let is_of_rule = |cause: &&String| (0..9).any(|rule| cause.ends_with(&format!(": r{rule}")));
        self.causes.iter().filter(is_of_rule).map(String::as_str)
    }

    /// Returns true if nothing but rules refuses the object.
    fn is_by_rules(&self) -> bool {
        !self.causes.is_empty() && self.of_rules().count() == self.causes.len()
    }

    /// Returns true if a rule failed.
    fn fails(&self) -> bool {
        self.of_rules().any(|cause| cause.contains("evaluating rule"))
    }

    /// Returns true if nothing but rules that fail refuses the object.
    fn is_by_failure(&self) -> bool {
        self.is_by_rules() && self.causes.iter().all(|cause| cause.contains("evaluating rule"))
    }
}

/// The API server with one random kind.
struct Judge<'n> {
    native: &'n Native,
    resource: Resource,
    ruled: RuledKind,
}

#[derive(Default)]
struct TruthTally {
    kinds: usize,
    objects: usize,
    /// Answers of tables: those that decide, those that do not, and objects that no table has.
    decided: usize,
    undecided: usize,
    untried: usize,
    /// Objects for which a rule fails by contents that the table did not try.
    untold: usize,
    failures: usize,
    /// Verdicts that the API server proves, and those among them that `lint` tells, or tells of the rule by another object or that it
    /// cannot decide.
    proven: BTreeMap<&'static str, (usize, usize, usize)>,
    of_tables: Vec<String>,
    of_verdicts: Vec<String>,
}

fn definition(number: usize, ruled: &RuledKind) -> Value {
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": ruled.spec}});
    crd(GROUP, &format!("Truth{number}"), &[version("v1", &schema)])
}

fn declaration(number: usize, ruled: &RuledKind) -> Value {
    let mut union = ruled.declared.clone();
    union["path"] = json!("spec");
    json!({"apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": format!("truth{number}")},
        "spec": {"target": {"group": GROUP, "kind": format!("Truth{number}")}, "unions": [union]}})
}

impl Judge<'_> {
    fn object(&self, name: &str, spec: &Value) -> Value {
        self.resource.object(name, &json!({"spec": spec}))
    }

    fn judge(&self, spec: &Value) -> Judged {
        let (path, object) = (format!("{}?dryRun=All", self.resource.path("")), self.object("o", spec));
        let mut answer = None;
        let answered = eventually(IN_FORCE, || {
            let sent = self.native.send("POST", &path, &object);
            let is_final = sent.status == 201 || sent.status == 422;
            answer = Some(sent);
            is_final
        });
        let answer = answer.unwrap();
        assert!(answered, "{object}: {}", answer.body);
        let message = answer.body["message"].as_str().unwrap_or_default().to_owned();
        let causes = answer.body["details"]["causes"].as_array().into_iter().flatten();
        let causes = causes.filter_map(|cause| cause["message"].as_str().map(str::to_owned)).collect();
        Judged { accepted: answer.status == 201, message, causes }
    }

    /// Compares the row of a table with the answer to one object of its combination.
    fn compare(&self, row: Option<&TableRow>, spec: &Value, judged: &Judged, tally: &mut TruthTally) {
        let mut differs = |why: &str| {
            let row = row.map(|row| (&row.decision, &row.failure));
            let (answer, rules) = (&judged.message, &self.ruled.spec);
            tally.of_tables.push(format!("{why}: {spec}: {row:?}, but {answer:?}\n  {rules} {:?}", self.ruled.union));
        };
        match row.map(|row| &row.decision) {
            None if judged.accepted => differs("no row"),
            None => tally.untried += 1,
            Some(Decision::Undecided { .. }) => tally.undecided += 1,
            Some(Decision::Rejected { .. }) if judged.accepted => differs("rejected"),
            Some(Decision::Rejected { by, fails }) => {
                tally.decided += 1;
                tally.failures += fails.len();
                let evaluated = judged.of_rules().next().is_some();
                if (!fails.is_empty() && evaluated && !judged.fails())
                    || (by == fails && !judged.fails() && judged.is_by_rules())
                {
                    differs("a rule fails");
                }
            }
            Some(Decision::Allowed) => {
                tally.decided += 1;
                if judged.is_by_failure() && row.is_some_and(|row| row.failure.is_none()) {
                    tally.untold += 1;
                }
            }
        }
    }

    /// Compares the table with the API server, on its own samples and on random objects. Returns the objects with their answers.
    fn of_table(&self, dice: &mut Dice, tally: &mut TruthTally) -> Vec<(Value, Judged)> {
        let (schema, place) =
            (json!({"type": "object", "properties": {"spec": self.ruled.spec}}), Place::root().property("spec"));
        let table = TruthTable::at(&schema, &place, &self.ruled.union).unwrap();
        assert!(table.is_complete());
        let rows: BTreeMap<&Combination, &TableRow> = table.rows().iter().map(|row| (&row.combination, row)).collect();
        assert_eq!(rows.len(), table.rows().len(), "each combination has one row");
        for row in table.rows().iter().take(SAMPLES) {
            let sample = TruthTable::sample(&schema, &place, &self.ruled.union, &row.combination).unwrap();
            let judged = self.judge(&sample.object);
            self.compare(Some(row), &sample.object, &judged, tally);
            if sample.accepted && !judged.accepted {
                tally.of_tables.push(format!("accepted: {}: {}\n  {}", sample.object, judged.message, self.ruled.spec));
            }
            if let Some(failure) = &row.failure {
                tally.failures += 1;
                let judged = self.judge(&failure.object);
                if !judged.fails() {
                    tally.of_tables.push(format!("{failure:?}: {}\n  {}", judged.message, self.ruled.spec));
                }
            }
        }
        let mut judged = Vec::new();
        for _ in 0..OBJECTS {
            let spec = self.ruled.object(dice);
            let answer = self.judge(&spec);
            self.compare(rows.get(&self.ruled.combination(&spec)).copied(), &spec, &answer, tally);
            judged.push((spec, answer));
        }
        judged
    }

    /// Returns true if nothing but rules that fail and are about the union refuses the object.
    fn is_by_failure(&self, judged: &Judged) -> bool {
        let rules = self.ruled.spec["x-kubernetes-validations"].as_array().into_iter().flatten().enumerate();
        let names = || self.ruled.union.members.iter().chain(&self.ruled.union.discriminator);
        let is_about = |rule: &Value| {
            let text = rule["rule"].as_str().unwrap_or_default();
            names().any(|name| text.contains(&format!("self.{name}")) || text.contains(&format!("self.?{name}")))
        };
        let others = rules.filter(|(_, rule)| !is_about(rule)).map(|(number, _)| format!(": r{number}"));
        let others: Vec<String> = others.collect();
        judged.is_by_failure() && !others.iter().any(|other| judged.of_rules().any(|cause| cause.ends_with(other)))
    }

    /// Compares the verdicts of `lint` with the answers. `findings` are those of `audit`, by the position of the object: a union rejects the
    /// object, or normalisation changes it.
    fn of_verdicts(
        &self,
        found: &Value,
        judged: &[(Value, Judged)],
        findings: &BTreeMap<usize, &str>,
        tally: &mut TruthTally,
    ) {
        let told: BTreeSet<&str> =
            found["verdicts"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let (mut shown, mut rejecting) = (BTreeSet::new(), BTreeSet::new());
        for it in found["disagreements"].as_array().into_iter().flatten() {
            let answer = self.judge(&it["object"]);
            if it["verdict"] == "tooWeak" {
                shown.insert("too weak");
            } else if it["verdict"] == "tooStrong" {
                rejecting.extend(answer.of_rules().filter_map(|cause| cause.rsplit(": ").next().map(str::to_owned)));
                shown.extend(answer.fails().then_some("fails for a valid object"));
                let unset = self.ruled.without_unset(&it["object"]);
                shown.extend(unset.map(|_| "rejects an empty or null field"));
            }
            let is_so = answer.accepted == (it["verdict"] == "tooWeak") && (it["fails"] != true || answer.fails());
            if !is_so {
                tally.of_verdicts.push(format!("{it} is not so: {}\n  {}", answer.message, self.ruled.spec));
            }
        }
        let mut proven: BTreeMap<&'static str, (&Value, &Judged)> = BTreeMap::new();
        for (position, judged) in judged.iter().enumerate() {
            let (spec, answer) = judged;
            let (is_invalid, is_valid) =
                (findings.get(&position) == Some(&"invalid"), !findings.contains_key(&position));
            if is_invalid && answer.accepted {
                // A rule about contents alone is not about the union.
                if !told.contains("noRules") {
                    proven.entry("too weak").or_insert((spec, answer));
                }
            }
            if is_valid && self.is_by_failure(answer) {
                proven.entry("fails for a valid object").or_insert((spec, answer));
            }
            // The same object is accepted without the fields that are there and not set.
            let without = (is_valid && answer.is_by_rules()).then(|| self.ruled.without_unset(spec)).flatten();
            if without.is_some_and(|without| self.judge(&without).accepted) {
                proven.entry("rejects an empty or null field").or_insert((spec, answer));
            }
        }
        for (what, (spec, answer)) in proven {
            let (all, right, open) = tally.proven.entry(what).or_default();
            *all += 1;
            if shown.contains(what) {
                *right += 1;
            } else if answer.of_rules().any(|cause| rejecting.iter().any(|rule| cause.ends_with(rule)))
                || told.contains("undecided")
                || !found["undecided"].as_array().is_none_or(Vec::is_empty)
            {
                *open += 1;
            } else {
                tally
                    .of_verdicts
                    .push(format!("{what}: {spec}, but {told:?}\n  {} {}", self.ruled.spec, self.ruled.declared));
            }
        }
    }
}

#[test]
fn tables_and_verdicts_of_random_kinds_are_those_of_the_api_server() {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seed = number("KUBE_UNIONS_TRUTH_SEED").unwrap_or(1);
    let wanted = usize::try_from(number("KUBE_UNIONS_TRUTH_KINDS").unwrap_or(40)).unwrap();
    let Some(native) = Native::shared() else { return };
    let mut dice = Dice(seed);
    let mut tally = TruthTally::default();
    let mut judges = Vec::new();
    while judges.len() < wanted {
        let (number, ruled) = (judges.len(), RuledKind::new(&mut dice));
        let definition = definition(number, &ruled);
        let created = native.try_apply(&definition);
        assert!(created.is_success(), "seed {seed}: {}: {}", ruled.spec, created.body);
        judges.push(Judge { native, resource: Resource::of_definition(&definition), ruled });
    }
    let (mut documents, mut answers) = (Vec::new(), Vec::new());
    for (number, judge) in judges.iter().enumerate() {
        native.wait_until_served(&judge.resource.path(""));
        let table = judge.of_table(&mut dice, &mut tally);
        documents.extend([definition(number, &judge.ruled), declaration(number, &judge.ruled)]);
        documents.extend(table.iter().enumerate().map(|(at, (spec, _))| judge.object(&format!("o{at}"), spec)));
        tally.kinds += 1;
        tally.objects += table.len();
        answers.push(table);
    }
    let texts: Vec<String> = documents.iter().map(ToString::to_string).collect();
    let text = texts.join("\n---\n");
    let json = |args: &[&str]| -> Value {
        let run = kube_unions(args, &text);
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
    };
    let (verdicts, audited) = (json(&["check-cel", "-", "-o", "json"]), json(&["audit", "--from", "-", "-o", "json"]));
    for (number, (judge, judged)) in judges.iter().zip(&answers).enumerate() {
        let kind = format!("Truth{number}");
        let found = verdicts.as_array().unwrap().iter().find(|it| it["kind"] == kind);
        let of_kind = audited["findings"].as_array().unwrap().iter();
        let position = |it: &Value| it["name"].as_str().unwrap().trim_start_matches('o').parse().unwrap();
        let mut of_kind: Vec<&Value> = of_kind.filter(|it| it["kind"] == kind).collect();
        // Of several findings of an object, that it is invalid counts.
        of_kind.sort_by_key(|it| it["finding"] == "invalid");
        let findings = of_kind.into_iter().map(|it| (position(it), it["finding"].as_str().unwrap())).collect();
        judge.of_verdicts(found.expect("each union has a verdict"), judged, &findings, &mut tally);
    }
    let TruthTally { kinds, objects, decided, undecided, untried, untold, failures, proven, of_tables, of_verdicts } =
        tally;
    println!(
        "seed {seed}: {kinds} kinds, {objects} random objects; tables: {decided} decided, {undecided} undecided, {untried} without a row, \
         {failures} failures of rules, {untold} by other contents, {} differences",
        of_tables.len()
    );
    for (what, (all, right, open)) in &proven {
        println!(
            "seed {seed}: {all} kinds whose rules are proven: {what}; {right} told, {open} by another object or undecided"
        );
    }
    println!("seed {seed}: {} differences of verdicts", of_verdicts.len());
    let differences: Vec<String> = of_tables.into_iter().chain(of_verdicts).collect();
    assert!(differences.is_empty(), "seed {seed}: {}", differences.join("\n"));
    assert!(decided > kinds * 20 && failures > kinds, "seed {seed}: the rules are too simple");
}
