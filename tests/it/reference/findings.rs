//! `docs/reference/findings.md`: every rule of `generate`, with its severity and meaning.

use super::{assert_page, code, table};
use kube_unions_go::{FindingKind, Severity};

const INTRODUCTION: &str = "\
# Findings of generate

Every rule of `kube-unions generate`. A finding has the name of its rule in brackets, as `rule` in JSON and as `ruleId` in SARIF.
An error makes the command exit with 1, unless `--allow RULE` names its rule or `--baseline FILE` has the finding. A union with an
error is left out. This page is generated from the program: change the program and run `make reference`.

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
    assert_page("findings.md", &(INTRODUCTION.to_owned() + &table(["rule", "severity", "meaning"], rows)));
}
