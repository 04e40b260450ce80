//! Sample objects: small, and accepted by the whole schema.

use crate::{plain, schema, union};
use kube_unions_core::schema::Place;
use kube_unions_evidence::{Combination, Sample, TruthTable, UnionFields};
use serde_json::{Value, json};

fn sample(schema: &Value, union: &UnionFields, value: Option<&str>, members: &[&str]) -> Sample {
    let members = members.iter().map(|&member| member.to_owned()).collect();
    let combination = Combination { value: value.map(str::to_owned), members, ..Combination::default() };
    TruthTable::sample(schema, &Place::root(), union, &combination).unwrap()
}

#[test]
fn a_sample_has_the_combination_and_required_fields_only() {
    let found = sample(&schema(&[]), &union(), Some("A"), &["a", "b"]);
    assert_eq!(found, Sample { object: json!({"type": "A", "a": {"name": "x"}, "b": {}}), accepted: true });
}

#[test]
fn a_sample_satisfies_the_validations_of_its_contents() {
    let schema = json!({"type": "object", "required": ["at", "n"], "properties": {
        "at": {"type": "string", "format": "date-time"},
        "n": {"type": "integer", "minimum": 3, "exclusiveMinimum": true, "maximum": 4},
        "a": {"type": "object", "properties": {
            "x": {"type": "array", "minItems": 2, "items": {"type": "string", "pattern": "^q{40}$", "minLength": 3}},
            "y": {"type": "string", "enum": ["q"]}},
            "oneOf": [{"required": ["x"]}, {"required": ["y"]}],
            "x-kubernetes-validations": [{"rule": "!has(self.y) || self.y == 'z'"}, {"rule": "size(self.x) > 1"}]},
        "b": {"x-kubernetes-int-or-string": true}}});
    let found = sample(&schema, &plain(), None, &["a", "b"]);
    let strings = ["example.com", "example.com"];
    assert!(!found.accepted, "no known string fits the pattern: {found:?}");
    let mut easier = schema;
    easier["properties"]["a"]["properties"]["x"]["items"]["pattern"] = json!("^[a-z]+[.]com$");
    let found = sample(&easier, &plain(), None, &["a", "b"]);
    let want = json!({"at": "2020-01-01T00:00:00Z", "n": 4, "a": {"x": strings}, "b": 1});
    assert_eq!(found, Sample { object: want, accepted: true });
}

#[test]
fn a_rule_about_another_field_is_satisfied() {
    let rules = ["has(self.other) || has(self.third)", "self.count == 1"];
    let found = sample(&schema(&rules), &plain(), None, &["b"]);
    assert_eq!(found, Sample { object: json!({"b": {}, "other": "x"}), accepted: true });
}

#[test]
fn a_sample_that_a_rule_rejects_or_cannot_judge_is_not_accepted() {
    for rule in ["!has(self.a)", "isURL(self.a.name)", "has(self.a", "self.a.name.matches('(?!x)')"] {
        assert!(!sample(&schema(&[rule]), &plain(), None, &["a"]).accepted, "{rule}");
    }
    assert!(sample(&schema(&["has(oldSelf.a)"]), &plain(), None, &["a"]).accepted);
    let typed = json!({"type": "object", "properties": {"a": {"type": "string", "format": "duration"}, "b": {}},
        "x-kubernetes-validations": [{"rule": "self.a == '1s'"}]});
    assert!(!sample(&typed, &plain(), None, &["a"]).accepted);
}
