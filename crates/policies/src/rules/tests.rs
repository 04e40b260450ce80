use super::*;
use crate::options::KubernetesVersion;
use kube_unions_core::schema::{Actions, Schema, Source};
use serde_json::json;

/// Compiles the unions of a schema.
fn compiled(schema: &Value, options: &PolicyOptions) -> CompiledRules {
    compiled_as(&serde_json::from_value(schema.clone()).unwrap(), schema, options)
}

/// Compiles the unions of a parsed schema.
fn compiled_as(parsed: &Schema, schema: &Value, options: &PolicyOptions) -> CompiledRules {
    let plan = kube_unions_core::union::compile(parsed, true).plan;
    assert!(!plan.unions().is_empty(), "no union is in force");
    let gvk = GroupVersionKind { group: "g".into(), version: "v1".into(), kind: "K".into() };
    compile_rules(&RulesTarget { gvk: &gvk, plan: &plan, schema }, options)
}

/// Returns the schema with its rules.
fn embedded(schema: &Value, options: &PolicyOptions) -> Value {
    let mut after = schema.clone();
    let compiled = compiled(schema, options);
    assert_eq!(compiled.refusals, []);
    compiled.apply(&mut after);
    after
}

fn reasons(schema: &Value, options: &PolicyOptions) -> Vec<RefusalReason> {
    compiled(schema, options).refusals.into_iter().map(|refusal| refusal.reason).collect()
}

fn object(properties: impl Into<Value>) -> Value {
    json!({"type": "object", "properties": properties.into()})
}

fn map_form() -> Value {
    object(json!({"type": {"type": "string", "x-kubernetes-unions": {"fieldMembers": {
            "A": {"name": "a"}, "B": {"name": "b", "optional": true}, "None": null}}},
        "a": {"type": "object"}, "b": {"type": "string", "nullable": true}}))
}

fn list_form() -> Value {
    let mut schema = object(json!({"git": {"type": "string"}, "oci": {"type": "string"}, "x-y": {"type": "string"}}));
    schema["x-kubernetes-unions"] = json!([{"fields-to-discriminateBy": {"git": "Git", "oci": "OCI", "x-y": "X"}}]);
    schema
}

fn in_list(item: &Value) -> Value {
    object(json!({"l": {"type": "array", "items": item}}))
}

fn conditions(schema: &Value) -> Vec<&str> {
    schema["x-kubernetes-validations"].as_array().unwrap().iter().map(|rule| rule["rule"].as_str().unwrap()).collect()
}

#[test]
fn a_nullable_discriminator_may_be_null() {
    let mut schema = map_form();
    (schema["required"], schema["properties"]["type"]["nullable"]) = (json!(["type"]), json!(true));
    let after = embedded(&schema, &PolicyOptions::default());
    assert!(after["properties"]["type"].get("enum").is_none(), "an enum never allows null");
    assert_eq!(
        conditions(&after)[..2],
        [
            "!has(self.type) || self.type == \"\" || self.type == \"A\" || self.type == \"B\" || self.type == \"None\" // kube-unions",
            "has(self.type) && self.type != \"\" || !(has(self.a) || has(self.b)) // kube-unions",
        ]
    );
    assert_eq!(after["x-kubernetes-validations"][0]["message"], "supported values: \"A\", \"B\", \"None\"");
}

/// Returns the schema with the rules of a required union with these members of `emptyIsUnset`, or why there are none.
fn embedded_with_options(schema: &Value, empty_is_unset: &[&str]) -> Result<Value, RefusalReason> {
    let mut parsed: Schema = serde_json::from_value(schema.clone()).unwrap();
    let of_properties = parsed.properties.values_mut().flat_map(|property| &mut property.unions);
    for declared in parsed.unions.iter_mut().chain(of_properties) {
        declared.source = Source::Annotation;
        let union = if declared.value.is_array() { &mut declared.value[0] } else { &mut declared.value };
        (union["required"], union["emptyIsUnset"]) = (true.into(), json!(empty_is_unset));
    }
    let compiled = compiled_as(&parsed, schema, &PolicyOptions::default());
    let mut after = schema.clone();
    compiled.apply(&mut after);
    compiled.refusals.into_iter().next().map_or(Ok(after), |refusal| Err(refusal.reason))
}

#[test]
fn an_empty_value_is_told_from_a_set_one_by_its_type() {
    let members = [
        ("flag", json!({"type": "boolean"}), "has(self.flag) && self.flag"),
        ("number", json!({"type": "integer"}), "has(self.number) && self.number != 0"),
        ("real", json!({"type": "number"}), "has(self.real) && self.real != 0.0"),
        ("text", json!({"type": "string"}), "has(self.text) && self.text != \"\""),
        ("list", json!({"type": "array", "items": {"type": "string"}}), "has(self.list) && self.list.size() > 0"),
        (
            "map",
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "has(self.map) && self.map.size() > 0",
        ),
        ("any", json!({"x-kubernetes-int-or-string": true}), "has(self.any) && self.any != 0 && self.any != \"\""),
    ];
    for (name, member, is_set) in members {
        let mut schema = object(json!({(name): member, "zz": {"type": "string"}}));
        schema["x-kubernetes-unions"] = json!([{"fields-to-discriminateBy": {(name): "A", "zz": "Z"}}]);
        let after = embedded_with_options(&schema, &[name]).unwrap();
        assert_eq!(
            conditions(&after),
            [
                format!("!(has(self.zz) && ({is_set})) // kube-unions"),
                format!("{is_set} || has(self.zz) // kube-unions")
            ]
        );
    }
    let mut schema = list_form();
    schema["properties"]["git"] = object(json!({"url": {"type": "string"}}));
    assert_eq!(embedded_with_options(&schema, &["git"]), Err(RefusalReason::UnknownEmptiness("git".to_owned())));
    schema["properties"]["git"] = json!({"type": "string", "format": "date-time"});
    assert_eq!(embedded_with_options(&schema, &["git"]), Err(RefusalReason::UnknownEmptiness("git".to_owned())));
}

#[test]
fn a_union_of_many_members_has_one_rule_that_counts() {
    let names = || (0..64).map(|number| format!("m{number:02}"));
    let mut schema = object(names().map(|name| (name, json!({"type": "string"}))).collect::<Value>());
    let members: Value = names().map(|name| (name.clone(), Value::from(name))).collect();
    schema["x-kubernetes-unions"] = json!([{"fields-to-discriminateBy": members}]);
    let after = embedded(&schema, &PolicyOptions::default());
    assert_eq!(conditions(&after).len(), 1);
    assert!(conditions(&after)[0].ends_with(" + (has(self.m63) ? 1 : 0) <= 1 // kube-unions"));
}

#[test]
fn unions_that_rules_cannot_express_are_named_with_the_reason() {
    let options = PolicyOptions::default();
    for name in ["1st", "ü", "a b", "a\"b", "a'b", "a\\b", "a~b", "a$", "\u{1}"] {
        let mut unreadable = map_form();
        unreadable["properties"]["type"]["x-kubernetes-unions"]["fieldMembers"]["A"]["name"] = json!(name);
        unreadable["properties"][name] = json!({"type": "string"});
        assert_eq!(reasons(&unreadable, &options), [RefusalReason::UnreadableName(name.to_owned())]);
    }

    let mut loose = map_form();
    loose["properties"]["a"] = json!({"x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(reasons(&loose, &options), [RefusalReason::UntypedField("a".to_owned())]);

    let around = json!({"type": "object", "properties": {"spec": {"x-kubernetes-preserve-unknown-fields": true, "properties": {
        "u": map_form()}}}});
    let refused = compiled(&around, &options);
    assert_eq!(refused.refusals[0].reason, RefusalReason::UntypedPlace);
    assert_eq!(refused.refusals[0].place.as_deref(), Some("spec.u"));
    assert_eq!(refused.edits, []);

    for actions in [Actions::WARN, Actions::Audit] {
        let options = PolicyOptions { actions: Some(actions), ..options.clone() };
        assert_eq!(reasons(&map_form(), &options), [RefusalReason::RulesOnlyReject]);
    }
    let both = PolicyOptions { actions: Some(Actions::Deny { audit: true }), ..options.clone() };
    assert_eq!(reasons(&map_form(), &both), [RefusalReason::RulesDoNotAudit]);
    assert_eq!(compiled(&map_form(), &both).edits, compiled(&map_form(), &options).edits);
    let old = PolicyOptions { server: KubernetesVersion::new(1, 28), ..options.clone() };
    assert_eq!(reasons(&map_form(), &old), [RefusalReason::NoRules(old.server)]);
    let older = PolicyOptions { server: KubernetesVersion::new(1, 32), ..options.clone() };
    assert_eq!(reasons(&map_form(), &older), [RefusalReason::RulesDoNotRatchet(older.server)]);
    let strict = PolicyOptions { ratcheting: PolicyRatcheting::Disabled, ..options };
    assert_eq!(reasons(&map_form(), &strict), [RefusalReason::RulesRatchet(strict.server)]);
}

/// Returns an object with a union whose rules are too expensive in a list without a limit.
fn nine_members() -> Value {
    let values: Value = (0..9).map(|number| (format!("V{number}"), json!({"name": format!("m{number}")}))).collect();
    let mut schema = object((0..9).map(|number| (format!("m{number}"), json!({"type": "string"}))).collect::<Value>());
    schema["properties"]["type"] = json!({"type": "string", "x-kubernetes-unions": {"fieldMembers": values}});
    schema
}

#[test]
fn a_union_is_refused_if_the_estimate_of_its_cost_is_too_high() {
    let options = PolicyOptions::default();
    assert_eq!(reasons(&in_list(&map_form()), &options), []);
    let mut schema = in_list(&nine_members());
    let refused = compiled(&schema, &options).refusals.remove(0);
    let reason = "the API server estimates the cost of its rules at 2 times the limit, because a list or map has no limit; set \
                  `maxItems` of `l`, or use policies";
    assert_eq!(refused.to_string(), format!("g/v1, Kind=K: the union at l[*]: {reason}"));
    schema["properties"]["l"]["maxItems"] = json!(10_000);
    assert_eq!(reasons(&schema, &options), []);
    schema["properties"]["l"]["maxItems"] = json!(10_000_000);
    let reason = reasons(&schema, &options).remove(0);
    assert!(reason.to_string().contains("lower `maxItems` of `l`"), "{reason}");
}

#[test]
fn of_unions_that_exceed_the_limit_together_the_most_expensive_are_left_out() {
    let unlimited = json!({"type": "array", "items": list_form()});
    let mut fields: Value = (0..30).map(|number| (format!("l{number:02}"), unlimited.clone())).collect();
    fields["small"] = map_form();
    let found = compiled(&object(fields), &PolicyOptions::default());
    assert!(found.refusals.iter().all(|refusal| refusal.reason == RefusalReason::TooExpensiveTogether));
    assert!(!found.refusals.is_empty() && found.edits.len() > 10);
    assert!(found.edits.iter().any(|edit| edit.path[1] == "small"));
}

#[test]
fn texts_of_users_cannot_leave_a_literal_or_a_line() {
    let value = "\"\\`\n // kube-unions";
    let mut schema = map_form();
    schema["properties"]["type"]["x-kubernetes-unions"]["fieldMembers"] =
        json!({value: {"name": "a"}, "B": {"name": "b"}});
    let after = embedded(&schema, &PolicyOptions::default());
    let rules = after["x-kubernetes-validations"].as_array().unwrap();
    assert!(
        rules
            .iter()
            .all(|rule| !rule.to_string().contains("\\n\"") && !rule["message"].as_str().unwrap().contains('\n'))
    );
    assert!(conditions(&after)[1].contains(r#"self.type != "\"\\`\n // kube-unions""#), "{:?}", conditions(&after));
}

#[test]
fn a_json_schema_has_the_message_of_each_rule() {
    let options = PolicyOptions { rules: RuleForm::JsonSchema, ..PolicyOptions::default() };
    assert_eq!(
        embedded(&list_form(), &options)["allOf"][0],
        json!({"if": {"required": ["oci", "git"]}, "then": {"properties": {"oci": false},
            "errorMessage": "oci: Forbidden: at most one of `git`, `oci`, `x-y` may be set"}})
    );
    assert_eq!(
        embedded(&map_form(), &options)["allOf"][2],
        json!({"if": {"not": {"required": ["a"]}, "required": ["type"], "properties": {"type": {"enum": ["A"]}}},
            "then": {"required": ["a"], "errorMessage": "a: Required value: must be specified when `type` is \"A\""}})
    );
}

#[test]
fn keywords_have_no_cost_and_express_what_cel_cannot_read() {
    let deep = (0..4).fold(nine_members(), |inner, _| in_list(&inner));
    let in_keywords = PolicyOptions { rules: RuleForm::OpenApi, ..PolicyOptions::default() };
    assert!(matches!(reasons(&deep, &PolicyOptions::default())[..], [RefusalReason::TooExpensive { .. }]));
    assert_eq!(reasons(&deep, &in_keywords), []);
    let mut odd = map_form();
    odd["properties"]["a"] = json!({"x-kubernetes-preserve-unknown-fields": true});
    odd["properties"]["type"]["x-kubernetes-unions"]["fieldMembers"]["A"]["name"] = json!("1st ü");
    odd["properties"]["1st ü"] = json!({"type": "string"});
    assert_eq!(reasons(&odd, &in_keywords), []);
    let mut schemaless = list_form();
    schemaless["x-kubernetes-preserve-unknown-fields"] = true.into();
    assert_eq!(reasons(&schemaless, &in_keywords), []);
}
