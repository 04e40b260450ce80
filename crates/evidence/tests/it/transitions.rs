//! Rules that compare a union with the old object, on two states of an object.

use crate::union;
use kube_unions_core::schema::{Place, PlaceStep};
use kube_unions_evidence::RefusedTransition;
use serde_json::{Value, json};

/// Returns the schema of an object with these rules, and with this one at the field `a`.
fn schema(rules: &[&str], at_a: Option<&str>) -> Value {
    let rule = |rule: &str| json!({"rule": rule, "optionalOldSelf": rule.contains("oldSelf.hasValue")});
    let part = json!({"type": "object", "properties": {"x": {"type": "string"}, "n": {"type": "integer"}}});
    let mut a = part.clone();
    a["x-kubernetes-validations"] = at_a.into_iter().map(rule).collect();
    let tags = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    json!({"type": "object", "x-kubernetes-validations": rules.iter().map(|it| rule(it)).collect::<Value>(), "properties": {
        "type": {"type": "string"}, "a": a, "b": part, "tags": tags, "when": {"type": "string", "format": "date-time"}}})
}

/// Returns `+`, `-` or `?` for an update that is accepted, refused or undecided.
fn judged(schema: &Value, old: &Value, new: &Value) -> char {
    let refused = RefusedTransition::find(schema, &Place::root(), &union(), &[[old, new]]);
    match refused.first() {
        None => '+',
        Some(RefusedTransition { undecided: None, .. }) => '-',
        Some(RefusedTransition { undecided: Some(_), .. }) => '?',
    }
}

#[test]
fn an_update_is_accepted_refused_or_undecided() {
    let (a, b) = (json!({"type": "A", "a": {"x": "x", "n": 1}}), json!({"type": "B", "b": {"x": "x"}}));
    let (changed, empty) = (json!({"type": "A", "a": {"x": "y", "n": 2}}), json!({}));
    // The answers to a switch, another value of the member, no change, and to a member where there was none.
    let rows = [
        ("has(self.a) == has(oldSelf.a)", "-++-"),
        ("!has(oldSelf.a) || has(self.a)", "-+++"),
        ("self.type == oldSelf.type", "-++-"),
        ("!has(oldSelf.type) || self.type == oldSelf.type", "-+++"),
        ("self == oldSelf", "--+-"),
        ("self != oldSelf", "++-+"),
        ("self.a == oldSelf.a", "--+-"),
        ("!has(self.a) || !has(oldSelf.a) || self.a.n >= oldSelf.a.n", "++++"),
        ("!has(self.a) || !has(oldSelf.a) || self.a.x == oldSelf.a.x", "+-++"),
        ("!has(self.b) || oldSelf.?b.hasValue()", "-+++"),
        ("!oldSelf.hasValue() || has(self.a) == has(oldSelf.value().a)", "-++-"),
        ("oldSelf.hasValue()", "++++"),
        ("!has(oldSelf.a) || isURL(self.b.x)", "?--+"),
        ("!has(self.b) || isURL(oldSelf.a.x)", "?+++"),
        // Not about the union, or not a comparison.
        ("!has(oldSelf.tags)", "++++"),
        ("has(self.a)", "++++"),
    ];
    for (rule, answers) in rows {
        let schema = schema(&[rule], None);
        let updates = [(&a, &b), (&a, &changed), (&a, &a), (&empty, &a)];
        let found: String = updates.iter().map(|(old, new)| judged(&schema, old, new)).collect();
        assert_eq!(found, answers, "{rule}");
    }
}

#[test]
fn values_that_the_api_server_types_are_the_same_or_undecided() {
    let object = |tags: &[&str], when: &str| json!({"a": {}, "tags": tags, "when": when});
    let old = object(&["x", "y"], "2020-01-01T00:00:00Z");
    for (rule, new, answer) in [
        ("has(self.a) && self.tags == oldSelf.tags", &old, '+'),
        ("has(self.a) && self.tags == oldSelf.tags", &object(&["y", "x"], "2020-01-01T00:00:00Z"), '?'),
        ("has(self.a) && self.when == oldSelf.when", &object(&[], "2020-01-01T00:00:00Z"), '+'),
        ("has(self.a) && self.when == oldSelf.when", &object(&[], "2020-01-01T01:00:00+01:00"), '?'),
        ("!has(self.a) || self.tags == oldSelf.tags || has(self.b)", &old, '+'),
    ] {
        assert_eq!(judged(&schema(&[rule], None), &old, new), answer, "{rule} {new}");
    }
}

#[test]
fn a_rule_at_a_field_counts_if_both_objects_have_it() {
    let (a, changed, b) = (json!({"a": {"x": "x"}}), json!({"a": {"x": "y"}}), json!({"b": {"x": "x"}}));
    let schema = schema(&[], Some("self == oldSelf"));
    assert_eq!(judged(&schema, &a, &changed), '-');
    assert_eq!(judged(&schema, &a, &a), '+');
    assert_eq!(judged(&schema, &a, &b), '+');
    assert_eq!(judged(&schema, &b, &a), '+');
}

#[test]
fn a_rule_above_the_union_tells_its_level_and_its_words() {
    let inner = schema(&["has(self.a) == has(oldSelf.a)"], None);
    let rule = json!({"rule": "has(self.spec.a) == has(oldSelf.spec.a)", "message": " stays ", "reason": "FieldValueForbidden"});
    let outer = json!({"type": "object", "x-kubernetes-validations": [rule], "properties": {"spec": inner}});
    let place: Place = [PlaceStep::Property("spec".into())].into_iter().collect();
    let [old, new] = [json!({"spec": {"a": {}}}), json!({"spec": {"b": {}}})];
    let updates = [[&old, &new], [&old["spec"], &new["spec"]]];
    let refused = RefusedTransition::find(&outer, &place, &union(), &updates);
    let found: Vec<(usize, &str)> = refused.iter().map(|it| (it.level, &*it.message)).collect();
    let rule = "Invalid value: \"object\": failed rule: has(self.a) == has(oldSelf.a)";
    assert_eq!(found, [(0, "Forbidden: stays"), (1, rule)]);
    // The object with the union is new.
    let refused = RefusedTransition::find(&outer, &place, &union(), &[[&json!({"spec": {"b": {}}}), &new]]);
    assert_eq!(refused, []);
}
