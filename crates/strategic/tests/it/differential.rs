//! Compares the engine with Go's `strategicpatch` on random schemas, objects and patches.
//!
//! A `Difference` must explain each different answer: after the test removes the subject of that difference from the documents,
//! both engines must agree.

#![allow(clippy::print_stdout, reason = "the counts show how much the test compared")]

mod explain;
mod understood;

use super::generate::{self, Random};
use explain::Difference;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use strategic_merge_patch::{Conflicts, PatchError, Patcher, ThreeWay};

/// Number of cases that must agree in a run with the fixed seed: enough for every rule. `make fuzz-differential` compares more, from a
/// random seed.
const CASES: usize = 12_000;

/// Number of runs of Go's package that look for another possible answer when a case first differs.
const FEW: usize = 20;

/// Number of runs for a case that nothing explained yet. Go visits a map of up to eight fields in one of eight orders. An answer
/// that needs one order of each of three maps is missed in one of 17,000 cases.
const MANY: usize = 5_000;

/// Documents for one operation.
#[derive(Clone, Debug)]
struct Case {
    op: PatchOperation,
    schema: Value,
    original: Value,
    patch: Value,
    modified: Value,
    current: Value,
    overwrite: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PatchOperation {
    Apply,
    TwoWay,
    ThreeWay,
}

/// The answer of an engine to a case.
#[derive(Debug, PartialEq)]
enum EngineAnswer {
    Result(Value),
    Error(String),
    Panic,
}

impl EngineAnswer {
    fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Result(ours), Self::Result(theirs)) => ours == theirs,
            (Self::Error(_), Self::Error(_)) => true,
            _ => false,
        }
    }
}

impl Case {
    fn random(random: &mut Random, schema: &Value) -> Self {
        let op = [PatchOperation::Apply, PatchOperation::TwoWay, PatchOperation::ThreeWay][random.dice.below(3)];
        let original = random.object(schema);
        let mut case = Self {
            op,
            schema: schema.clone(),
            original,
            patch: json!({}),
            modified: json!({}),
            current: json!({}),
            overwrite: random.dice.odds(500),
        };
        match op {
            PatchOperation::Apply => case.patch = random.patch(schema, &case.original),
            PatchOperation::TwoWay => case.modified = random.changed(schema, &case.original),
            PatchOperation::ThreeWay => {
                case.modified = random.changed(schema, &case.original);
                case.current = random.changed(schema, &case.original);
            }
        }
        case
    }

    fn request(&self, runs: usize) -> String {
        let op = match self.op {
            PatchOperation::Apply => "apply",
            PatchOperation::TwoWay => "two-way",
            PatchOperation::ThreeWay => "three-way",
        };
        json!({"op": op, "original": self.original, "patch": self.patch, "modified": self.modified,
            "current": self.current, "overwrite": self.overwrite, "runs": runs})
        .to_string()
    }

    fn ours(&self, patcher: &Patcher) -> EngineAnswer {
        let answer: Result<Value, PatchError> = match self.op {
            PatchOperation::Apply => patcher.apply(&self.original, &self.patch),
            PatchOperation::TwoWay => patcher.create_two_way(&self.original, &self.modified),
            PatchOperation::ThreeWay => patcher.create_three_way(&ThreeWay {
                original: &self.original,
                modified: &self.modified,
                current: &self.current,
                conflicts: if self.overwrite { Conflicts::Overwrite } else { Conflicts::Refuse },
            }),
        };
        answer.map_or_else(|error| EngineAnswer::Error(error.to_string()), EngineAnswer::Result)
    }

    /// Returns true if Go's package may delete from a set before or after it adds to the set. The order of a map decides, and the
    /// deleted items may be the only ones of another type.
    fn depends_on_chance(&self) -> bool {
        self.op == PatchOperation::Apply && self.patch.to_string().contains("$deleteFromPrimitiveList/")
    }

    fn same_documents(&self, other: &Self) -> bool {
        let documents =
            |case: &Self| [&case.original, &case.patch, &case.modified, &case.current].map(Value::to_string);
        documents(self) == documents(other) && self.overwrite == other.overwrite
    }
}

/// A process that runs Go's package.
pub(super) struct Reference {
    child: Child,
    requests: BufWriter<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// The schema that the process uses.
    schema: Value,
}

impl Reference {
    /// Builds and starts the process. Prints a note and returns `None` if the environment skips it.
    pub(super) fn start() -> Option<Self> {
        if std::env::var("KUBE_UNIONS_DIFFERENTIAL").as_deref() == Ok("skip") {
            println!("skipped: KUBE_UNIONS_DIFFERENTIAL=skip");
            return None;
        }
        let program = build();
        let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let requests = BufWriter::new(child.stdin.take().unwrap());
        let answers = BufReader::new(child.stdout.take().unwrap());
        Some(Self { child, requests, answers, schema: Value::Null })
    }

    /// Returns the answer to each case.
    fn ask(&mut self, schema: &Value, cases: &[Case]) -> Vec<EngineAnswer> {
        self.outcomes(schema, cases, 1).into_iter().map(|mut outcomes| outcomes.remove(0)).collect()
    }

    /// Returns the distinct answers to each case in several runs, since Go visits maps in random order.
    fn outcomes(&mut self, schema: &Value, cases: &[Case], runs: usize) -> Vec<Vec<EngineAnswer>> {
        let requests: Vec<String> = cases.iter().map(|case| case.request(runs)).collect();
        let answers = self.answers(schema, &requests);
        answers
            .into_iter()
            .map(|mut answer| answer["outcomes"].as_array_mut().unwrap().iter_mut().map(outcome).collect())
            .collect()
    }

    /// Returns the answer to each request for a schema.
    pub(super) fn answers(&mut self, schema: &Value, asked: &[String]) -> Vec<Value> {
        let Self { requests, answers, schema: known, .. } = self;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                if known != schema {
                    known.clone_from(schema);
                    writeln!(requests, "{}", json!({"op": "schema", "schema": schema})).unwrap();
                }
                for request in asked {
                    writeln!(requests, "{request}").unwrap();
                }
                requests.flush().unwrap();
            });
            asked.iter().map(|_| read(answers)).collect()
        })
    }
}

fn read(answers: &mut impl BufRead) -> Value {
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn outcome(answer: &mut Value) -> EngineAnswer {
    match (answer["error"].as_str(), answer["panic"].as_str()) {
        (_, Some(_)) => EngineAnswer::Panic,
        (Some(error), None) => EngineAnswer::Error(error.to_owned()),
        (None, None) => EngineAnswer::Result(answer["result"].take()),
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn build() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("differential");
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/differential");
    let built = Command::new("go").arg("build").arg("-o").arg(&program).arg(".").current_dir(module).status();
    match built {
        Ok(status) if status.success() => program,
        Ok(status) => panic!("tests/differential does not build ({status})"),
        Err(error) => panic!("this test needs Go ({error}): install it, or set KUBE_UNIONS_DIFFERENTIAL=skip"),
    }
}

/// Returns the rules by which a case differs: none if the order of a map explains it, `None` if nothing does.
fn explain(case: &Case, patcher: &Patcher, reference: &mut Reference) -> Option<Vec<Difference>> {
    let by_chance =
        |reference: &mut Reference, runs| case.depends_on_chance() && agrees(case, patcher, reference, runs);
    if by_chance(reference, FEW) {
        return Some(Vec::new());
    }
    by_rules(case, patcher, reference, 1)
        .or_else(|| by_chance(reference, MANY).then(Vec::new))
        .or_else(|| by_rules(case, patcher, reference, MANY))
}

/// Returns true if our answer is one of the answers of Go's package in several runs.
fn agrees(case: &Case, patcher: &Patcher, reference: &mut Reference, runs: usize) -> bool {
    let theirs = reference.outcomes(&case.schema, std::slice::from_ref(case), runs).remove(0);
    let ours = case.ours(patcher);
    theirs.iter().any(|theirs| ours.agrees(theirs))
}

/// Returns the rule, or the rules, whose subject explains a different answer.
fn by_rules(case: &Case, patcher: &Patcher, reference: &mut Reference, runs: usize) -> Option<Vec<Difference>> {
    for (rule, take_out) in explain::RULES {
        let mut without = case.clone();
        take_out(&mut without);
        if !without.same_documents(case) && agrees(&without, patcher, reference, runs) {
            return Some(vec![rule]);
        }
    }
    // Several rules together, reduced to those that are necessary.
    let without = |left_in: &[Difference]| {
        let mut without = case.clone();
        // One rule may uncover the subject of another.
        for (rule, take_out) in explain::RULES.iter().chain(&explain::RULES) {
            if !left_in.contains(rule) {
                take_out(&mut without);
            }
        }
        without
    };
    let mut left_in = Vec::new();
    if !agrees(&without(&left_in), patcher, reference, runs) {
        return None;
    }
    for (rule, _) in explain::RULES {
        left_in.push(rule);
        if !agrees(&without(&left_in), patcher, reference, runs) {
            left_in.pop();
        }
    }
    Some(explain::RULES.map(|(rule, _)| rule).into_iter().filter(|rule| !left_in.contains(rule)).collect())
}

/// Returns the seed, and the number of cases that a variable asks for.
pub(super) fn wanted(variable: &str, cases: usize) -> (u64, usize) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let wanted = number(variable).map_or(cases, |cases| usize::try_from(cases).unwrap());
    (number("KUBE_UNIONS_DIFFERENTIAL_SEED").unwrap_or(1), wanted)
}

/// Returns random numbers that follow from a seed.
fn seeded(seed: u64) -> impl FnMut() -> u64 {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    move || proptest::num::u64::ANY.new_tree(&mut runner).unwrap().current()
}

#[test]
fn agrees_with_the_reference_except_where_a_rule_explains_the_difference() {
    let Some(mut reference) = Reference::start() else { return };
    let (seed, wanted) = wanted("KUBE_UNIONS_DIFFERENTIAL_CASES", CASES);
    let mut seeds = seeded(seed);

    let mut agreed = BTreeMap::<(PatchOperation, &str), usize>::new();
    let mut differed = BTreeMap::<Vec<Difference>, usize>::new();
    let mut faults = Vec::new();
    while agreed.values().sum::<usize>() < wanted && faults.len() < 5 {
        let mut random = Random::new(seeds());
        let depth = random.dice.below(3);
        let schema = generate::schema(&mut random.dice, depth);
        let patcher = Patcher::from_json_schema("Kind", &schema.to_string()).unwrap();
        let cases: Vec<Case> = (0..400).map(|_| Case::random(&mut random, &schema)).collect();
        let (theirs, ours) = std::thread::scope(|scope| {
            let theirs = scope.spawn(|| reference.ask(&schema, &cases));
            let ours: Vec<EngineAnswer> = cases.iter().map(|case| case.ours(&patcher)).collect();
            (theirs.join().unwrap(), ours)
        });
        for (case, (ours, theirs)) in cases.iter().zip(ours.into_iter().zip(theirs)) {
            if ours.agrees(&theirs) {
                let what = if matches!(ours, EngineAnswer::Error(_)) { "error" } else { "result" };
                *agreed.entry((case.op, what)).or_default() += 1;
            } else if theirs == EngineAnswer::Panic && matches!(ours, EngineAnswer::Error(_)) {
                *differed.entry(vec![Difference::NoPanics]).or_default() += 1;
            } else if let Some(rules) = explain(case, &patcher, &mut reference) {
                *differed.entry(rules).or_default() += 1;
            } else {
                faults.push(format!("{case:#?}\n ours: {ours:?}\ntheirs: {theirs:?}\n{}", case.request(1)));
            }
        }
    }
    println!("seed {seed}: {} cases agree: {agreed:?}", agreed.values().sum::<usize>());
    println!(
        "{} differ, by rule (an empty list is the order of a map): {differed:?}",
        differed.values().sum::<usize>()
    );
    assert!(faults.is_empty(), "{} cases differ and no rule explains it:\n{}", faults.len(), faults.join("\n\n"));
    if (seed, wanted) == (1, CASES) {
        let is_unseen = |rule: &Difference| !differed.keys().flatten().any(|seen| seen == rule);
        let unseen: Vec<_> = explain::RULES.map(|(rule, _)| rule).into_iter().filter(is_unseen).collect();
        assert_eq!(unseen, [], "rules that no case is about");
        assert_eq!(agreed.len(), 6, "results and errors of each operation: {agreed:?}");
    }
}
