//! Input beyond a limit, and input that is not CEL, is undecided and never fails.

use crate::{plain, row, schema};
use kube_unions_evidence::{LONGEST_RULE, MOST_EVIDENCE, MOST_JUDGEMENTS, TruthTable, UnionFields};
use serde_json::json;

#[test]
fn a_rule_beyond_a_limit_is_undecided() {
    let long = format!("has(self.a) || '{}' == ''", "x".repeat(LONGEST_RULE));
    let nested = format!("{}has(self.a){}", "(".repeat(500), ")".repeat(500));
    let negated = format!("{}has(self.a)", "!".repeat(501));
    let sum = format!("has(self.a) || 0 {} == 0", "+ 1 ".repeat(1000));
    let selects = format!("has(self.a{})", ".b".repeat(2000));
    let conditions = format!("{} has(self.a)", "has(self.a) ? true : ".repeat(300));
    for rule in [long, nested, negated, sum, selects, conditions] {
        assert_eq!(row(&TruthTable::of(&schema(&[&rule]), &plain()), None), "????", "{}", &rule[..60]);
    }
}

#[test]
fn a_long_chain_of_alternatives_is_evaluated() {
    let rule = format!("{} has(self.a)", "has(self.a) || ".repeat(200));
    assert_eq!(row(&TruthTable::of(&schema(&[&rule]), &plain()), None), "-+-+");
}

#[test]
fn text_that_is_not_cel_is_undecided() {
    for rule in [
        "",
        "a",
        "has(self.a) has(self.b)",
        "self.a\u{0}",
        "\"",
        "'\\x'",
        "self.`a",
        "{a",
        "a\u{fffd}é",
        "[](",
        "a ? b",
        "/* */ a",
    ] {
        let rule = format!("{rule} a");
        assert_eq!(row(&TruthTable::of(&schema(&[&rule]), &plain()), None), "????", "{rule:?}");
    }
}

#[test]
fn a_table_is_bounded() {
    let members: Vec<String> = (0..400).map(|number| format!("m{number}")).collect();
    let properties: serde_json::Map<_, _> = members.iter().map(|it| (it.clone(), json!({"type": "object"}))).collect();
    let one_of: Vec<_> = members.iter().map(|it| json!({"required": [it]})).collect();
    let rules: Vec<_> =
        (0..2 * MOST_EVIDENCE).map(|number| json!({"rule": format!("has(self.m{number}) || true")})).collect();
    let schema =
        json!({"type": "object", "properties": properties, "oneOf": one_of, "x-kubernetes-validations": rules});
    let table = TruthTable::of(&schema, &UnionFields { members, ..UnionFields::default() });
    assert!(!table.is_complete());
    assert_eq!(table.rows().len(), MOST_JUDGEMENTS / MOST_EVIDENCE);
    assert_eq!(table.evidence().len(), MOST_EVIDENCE);
}

#[test]
fn a_schema_that_is_no_schema_says_nothing() {
    for schema in
        [json!(null), json!([]), json!({"x-kubernetes-validations": {"rule": 1}}), json!({"properties": 1, "oneOf": 2})]
    {
        let decisions = row(&TruthTable::of(&schema, &plain()), None);
        assert!(decisions == "++++" || decisions == "----", "{schema}: {decisions}");
    }
}
