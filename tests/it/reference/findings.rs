//! `docs/reference/findings.md`: every rule of `generate` and of `lint`, with its severity and meaning.

use super::{assert_page, code, table};
use kube_unions_core::declaration::{FaultKind, Severity};
use kube_unions_go::FindingKind;
use serde_json::Value;
use std::process::Command;

const INTRODUCTION: &str = "\
# Findings

Every rule of `kube-unions generate` and `kube-unions lint`. A finding has the name of its rule as `rule` in JSON and as `ruleId` in
SARIF. The names never change. This page is generated from the program: change the program and run `make reference`.

## generate

The text has the name of the rule in brackets. An error makes the command exit with 1, unless `--allow RULE` names its rule. A
union with an error is left out.

";

const LINT: &str = "
## lint

A declaration with an error has no effect, and the command exits with 1. A declaration with a warning has effect, and may surprise:
`--strict` makes the command exit with 1, too. Notes never count. `unreadable-input` makes the command exit with 2; in SARIF it is a
notification of the run.

";

const AGAINST: &str = "
## lint --against

What became of a union since the older files. An error breaks: a write that made sense is refused, or has another effect. A warning is
safe only with ratcheting: objects that may be stored become invalid, and can be updated only because unchanged violations are let
through. A note is safe.

";

#[test]
fn the_page_of_findings_is_up_to_date() {
    let severity = |kind: FindingKind| match kind.severity() {
        Severity::Error if kind.is_ambiguous() => "error; `--allow-ambiguous` allows it",
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let rows = FindingKind::ALL.iter().map(|kind| {
        let name = code(kind.name());
        [name, severity(*kind).to_owned(), kind.meaning().to_owned()]
    });
    let generate = table(["rule", "severity", "meaning"], rows);
    let is_revision = |name: &str| FaultKind::ALL.iter().any(|kind| kind.name() == name && kind.is_revision());
    let all = rules_of_lint().into_iter().chain([UNREADABLE_INPUT.map(str::to_owned)]);
    let (against, lint): (Vec<_>, Vec<_>) = all.partition(|[id, ..]| is_revision(id));
    let [lint, against] = [lint, against].map(|rows| {
        let rows = rows.into_iter().map(|[id, level, text]| [code(&id), level, text]);
        table(["rule", "severity", "meaning"], rows)
    });
    assert_page("findings.md", &[INTRODUCTION, &generate, LINT, &lint, AGAINST, &against].concat());
}

/// The rule that no SARIF log has.
const UNREADABLE_INPUT: [&str; 3] = ["unreadable-input", "error", "A file or a document cannot be read."];

/// Returns the name, severity and meaning of each rule, as the program gives them in SARIF.
fn rules_of_lint() -> Vec<[String; 3]> {
    let output = Command::new(env!("CARGO_BIN_EXE_kube-unions"))
        .args(["lint", "-o", "sarif", "manifests/samples/rollout/crd.yaml"])
        .current_dir(fixtures::files::root())
        .output()
        .unwrap();
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let parts = |rule: &Value| {
        [&rule["id"], &rule["defaultConfiguration"]["level"], &rule["shortDescription"]["text"]].map(text)
    };
    rules.iter().map(parts).collect()
}
