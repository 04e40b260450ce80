//! Any text as an OpenAPI schema with unions: a CEL parser reads every rule and every expression that is written, and writing the rules
//! again changes nothing.
#![no_main]

use cel::parser::Parser;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::schema::Schema;
use kube_unions_core::union::compile as plan_of;
use kube_unions_policies::{PolicyOptions, PolicyTarget, RulesTarget, VersionScope, compile, compile_rules};
use serde_json::Value;

/// Names of fields whose values are CEL.
const EXPRESSIONS: [&str; 3] = ["rule", "expression", "messageExpression"];

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(mut schema) = serde_json::from_str::<Value>(text) else { return };
    let Ok(parsed) = serde_json::from_value::<Schema>(schema.clone()) else { return };
    let plan = plan_of(&parsed, true).plan;
    let options = PolicyOptions::default();
    let gvk = GroupVersionKind { group: "e".into(), version: "v1".into(), kind: "K".into() };

    let before = expressions(&schema);
    compile_rules(&RulesTarget { gvk: &gvk, plan: &plan, schema: &schema }, &options).apply(&mut schema);
    let again = compile_rules(&RulesTarget { gvk: &gvk, plan: &plan, schema: &schema }, &options);
    assert!(again.edits.is_empty(), "the rules are there already: {:?}", again.edits);
    for rule in expressions(&schema).iter().filter(|rule| !before.contains(rule)) {
        parse(rule);
    }

    let scope = VersionScope::AllExcept(Vec::new());
    let target = PolicyTarget { gvk: &gvk, plural: "ks", custom: true, plan: &plan, scope };
    for object in compile(&target, &options).objects {
        expressions(&object.to_json()).iter().for_each(|expression| parse(expression));
    }
});

fn parse(expression: &str) {
    let parser = Parser::default().enable_optional_syntax(true).enable_ident_escape_syntax(true);
    parser.parse(expression).unwrap_or_else(|error| panic!("{error}\n{expression}"));
}

/// Returns every expression below a value.
fn expressions(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let own = fields.iter().filter(|(name, _)| EXPRESSIONS.contains(&&***name));
            let own = own.filter_map(|(_, value)| value.as_str().map(str::to_owned));
            own.chain(fields.values().flat_map(expressions)).collect()
        }
        Value::Array(items) => items.iter().flat_map(expressions).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}
