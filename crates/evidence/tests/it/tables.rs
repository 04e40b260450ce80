//! Tables of schemas: keywords, rules above the place, defaults, and requirements.

use crate::{letter, plain, row, schema, union};
use kube_unions_core::schema::{Place, PlaceStep};
use kube_unions_evidence::{Decision, EvidenceKind, EvidenceState, RuleFailure, TruthTable, UnionFields};
use serde_json::{Value, json};

fn with(keywords: &Value) -> Value {
    let mut schema = schema(&[]);
    let all = schema.as_object_mut().unwrap();
    all.extend(keywords.as_object().unwrap().clone());
    schema
}

#[test]
fn keywords_of_openapi_are_evidence() {
    let required = |name: &str| json!({"required": [name]});
    let rows = [
        (json!({}), "++++"),
        (json!({"oneOf": [required("a"), required("b")]}), "-++-"),
        (json!({"anyOf": [required("a"), required("b")]}), "-+++"),
        (json!({"not": {"required": ["a", "b"]}}), "+++-"),
        (json!({"allOf": [{"not": {"required": ["a", "b"]}}, {"anyOf": [required("a"), required("b")]}]}), "-++-"),
        (json!({"oneOf": [required("a"), required("b"), {"not": {"anyOf": [required("a"), required("b")]}}]}), "+++-"),
        (json!({"required": ["a"]}), "-+-+"),
        // `count` has a default, so every object has it.
        (json!({"maxProperties": 2}), "+++-"),
        (json!({"maxProperties": 1}), "+---"),
        (json!({"minProperties": 8}), "---+"),
        (json!({"minProperties": 9}), "----"),
        (json!({"oneOf": [{"properties": {"a": {"required": ["name"]}}, "required": ["a"]}, required("b")]}), "-++-"),
        (json!({"oneOf": [{"properties": {"a": {"required": ["size"]}}, "required": ["a"]}, required("b")]}), "-+++"),
        (json!({"anyOf": [{"x-kubernetes-validations": [{"rule": "has(self.a)"}]}]}), "????"),
    ];
    for (keywords, want) in rows {
        let mut keywords = keywords;
        if keywords.get("minProperties").is_some() {
            // Nothing else can be set.
            keywords["minProperties"] = json!(keywords["minProperties"].as_u64().unwrap() - 1);
        }
        assert_eq!(row(&TruthTable::of(&with(&keywords), &plain()), None), want, "{keywords}");
    }
}

#[test]
fn the_enum_of_the_discriminator_rejects_other_values() {
    let mut schema = schema(&[]);
    schema["properties"]["type"]["enum"] = json!(["A"]);
    let table = TruthTable::of(&schema, &union());
    assert_eq!(row(&table, Some("A")), "++++");
    assert_eq!(row(&table, Some("B")), "----");
    assert!(table.evidence().iter().all(|it| !it.is_about_fields()));
}

#[test]
fn rules_above_the_place_reach_into_it() {
    let mut root = json!({"type": "object", "properties": {"spec": schema(&[])}, "required": ["spec"]});
    root["x-kubernetes-validations"] = json!([
        {"rule": "!has(self.spec.a) || !has(self.spec.b)", "message": "only one"},
        {"rule": "self.spec.count > 0"},
    ]);
    let table = TruthTable::at(&root, &Place::root().property("spec"), &plain()).unwrap();
    assert_eq!(row(&table, None), "+++-");
    let [only] = table.evidence() else { panic!("{:?}", table.evidence()) };
    assert_eq!((only.message.as_deref(), &only.state), (Some("only one"), &EvidenceState::Decides));
    assert_eq!(only.position(), "/x-kubernetes-validations/0");
    assert!(TruthTable::at(&root, &Place::root().property("status"), &plain()).is_none());
}

#[test]
fn rules_of_lists_around_the_place_reach_into_it() {
    let rows = [
        ("self.items.all(x, !(has(x.a) && has(x.b)))", "+++-"),
        ("!self.items.exists(x, has(x.a) && has(x.b))", "+++-"),
        ("!has(self.items) || self.items.all(x, has(x.a) != has(x.b))", "-++-"),
        ("self.items.all(x, [has(x.a), has(x.b)].exists_one(it, it))", "-++-"),
        ("self.items.all(x, has(x.a.name) || has(x.b))", "-+++"),
        ("self.items.all(x, x.?a.hasValue() || has(self.other))", "++++"),
        ("self.items.all(self, has(self.a))", "-+-+"),
        // The other items are not known.
        ("self.items.exists(x, has(x.a))", "++++"),
        ("self.items.exists_one(x, has(x.a))", "++++"),
        ("self.items.filter(x, has(x.a) && has(x.b)).size() == 0", "++++"),
        ("size(self.items) == 1 && self.items.all(x, has(x.a))", "-+-+"),
        ("self.items.all(x, self.items.all(y, has(y.a) == has(x.a)))", "++++"),
        // The field of the item is not that of the object.
        ("self.items.all(x, [has(x.other), has(self.other)].exists_one(it, it))", "++++"),
        ("self.items.all(x, [has(x.other), has(self.other)].exists_one(it, it) && has(x.a))", "-+-+"),
    ];
    for (rule, want) in rows {
        let root = json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}], "properties": {
            "items": {"type": "array", "items": schema(&[])}, "other": {"type": "string"}}});
        let place = Place::root().property("items").then(PlaceStep::Items);
        assert_eq!(row(&TruthTable::at(&root, &place, &plain()).unwrap(), None), want, "{rule}");
    }
}

#[test]
fn keywords_above_the_place_reach_into_it() {
    let spec = |member: &str| json!({"properties": {"spec": {"required": [member]}}});
    let root = json!({"type": "object", "properties": {"spec": schema(&[])}, "oneOf": [spec("a"), spec("b")]});
    assert_eq!(row(&TruthTable::at(&root, &Place::root().property("spec"), &plain()).unwrap(), None), "-++-");
}

#[test]
fn a_default_of_the_discriminator_counts_as_its_value() {
    let mut schema = schema(&["self.type == 'A' ? has(self.a) : has(self.b)"]);
    schema["properties"]["type"]["default"] = json!("A");
    assert_eq!(row(&TruthTable::of(&schema, &union()), None), "-+-+");
}

#[test]
fn a_member_with_a_default_is_undecided_without_it() {
    let mut schema = schema(&["has(self.a) != has(self.b)"]);
    schema["properties"]["a"]["default"] = json!({"name": "x"});
    assert_eq!(row(&TruthTable::of(&schema, &plain()), None), "?+?-");
}

#[test]
fn a_member_is_required_if_an_object_without_it_is_rejected() {
    let rules = ["self.type == 'A' ? has(self.a) : !has(self.a)", "!has(self.b) || self.type == 'B'"];
    let table = TruthTable::of(&schema(&rules), &union());
    assert_eq!(
        [("A", "a"), ("B", "b"), ("C", "a")].map(|(value, member)| table.requires(value, member)),
        [true, false, false]
    );
    let unreadable = TruthTable::of(&schema(&["self.type == 'A' && isURL('x') ? has(self.a) : true"]), &union());
    assert!(!unreadable.requires("A", "a"));
    assert!(!TruthTable::of(&json!({}), &union()).requires("A", "a"));
}

#[test]
fn each_validation_says_what_it_is_about() {
    let rules =
        ["has(self.a) != has(self.b)", "has(self.other)", "self.a.name == 'x' || true", "has(oldSelf.a)", "has(self.a"];
    let table = TruthTable::of(&schema(&rules), &plain());
    let states: Vec<_> = table.evidence().iter().map(|it| (&it.kind, &it.state)).collect();
    assert_eq!(states.len(), 4, "{states:?}");
    assert_eq!(states[0], (&EvidenceKind::Rule(0), &EvidenceState::Decides));
    assert_eq!(states[1], (&EvidenceKind::Rule(2), &EvidenceState::Elsewhere));
    assert_eq!(states[2], (&EvidenceKind::Rule(3), &EvidenceState::Transition));
    assert!(matches!(states[3], (EvidenceKind::Rule(4), EvidenceState::Unreadable(_))), "{states:?}");
    assert!(matches!(table.decision(None, &[]), Some(Decision::Rejected { by, .. }) if *by == [0]));
}

#[test]
fn unknown_rules_never_hide_a_certain_rejection() {
    let table = TruthTable::of(&schema(&["isURL('a')", "!has(self.a)"]), &plain());
    assert_eq!(row(&table, None), "?-?-");
    let _: UnionFields = union();
    assert_eq!(letter(&table, None, &["zz"]), ' ');
}

#[test]
fn fields_that_are_there_and_not_set_have_rows() {
    let schema = json!({"type": "object", "not": {"required": ["a", "b"]}, "properties": {
        "a": {"type": "string", "nullable": true}, "b": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-validations": [{"rule": "!(has(self.a) && has(self.b))"}]});
    let union = UnionFields { empty_is_unset: ["b".to_owned()].into(), ..plain() };
    let rows: Vec<String> = TruthTable::of(&schema, &union)
        .rows()
        .iter()
        .map(|row| {
            let rejected = if let Decision::Rejected { by, fails } = &row.decision {
                format!("{by:?}{fails:?}")
            } else {
                "-".to_owned()
            };
            format!("{:?} {:?} {rejected}", row.combination.members, row.combination.unset)
        })
        .collect();
    let want = [
        "{} {} -",
        r#"{} {"a": Null} -"#,
        r#"{} {"a": Null, "b": Empty} [0][]"#,
        r#"{} {"b": Empty} -"#,
        r#"{"a"} {} -"#,
        r#"{"a"} {"b": Empty} [0, 1][]"#,
        r#"{"b"} {} -"#,
        r#"{"b"} {"a": Null} [0][]"#,
        r#"{"a", "b"} {} [0, 1][]"#,
    ];
    assert_eq!(rows, want);
}

#[test]
fn a_rule_that_fails_is_told_with_an_object() {
    let table = TruthTable::of(&schema(&["self.type == 'A' || has(self.a)"]), &union());
    assert_eq!(table.decision(None, &[]), Some(&Decision::Rejected { by: vec![0], fails: vec![0] }));
    assert_eq!(table.decision(Some("B"), &[]), Some(&Decision::Rejected { by: vec![0], fails: Vec::new() }));
    let table = TruthTable::of(&schema(&["!has(self.b) || self.b.name == 'x'"]), &plain());
    let failures: Vec<_> = table.rows().iter().map(|row| row.failure.clone()).collect();
    let failure = |object: Value| Some(RuleFailure { object, rule: 0 });
    let both = json!({"a": {"name": "x"}, "b": {}});
    assert_eq!(failures, [None, None, failure(json!({"b": {}})), failure(both)]);
}
