//! The rows of `tests/cases` through JSON schemas: a schema refuses an object if an audit does.

use fixtures::cases::{Row, Suite, suites};
use fixtures::reviews::{GROUP, thing};
use jsonschema::{Validator, draft7};
use kube_unions_core::admission::StoredObject;
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::union::Plan;
use kube_unions_policies::{PolicyOptions, RulesTarget, json_schema};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The rows that a JSON schema judges otherwise: the schema of the CRD does not describe the object with the union.
const UNDESCRIBED: [(&str, &str); 1] = [("places/schemaless.yaml", "an undeclared value is refused")];

fn validator(entry: &CatalogEntry, plan: &Plan, schema: &Value) -> (Validator, Vec<String>) {
    let target = RulesTarget { gvk: entry.gvk(), plan, schema };
    let (document, refusals) = json_schema(&target, &PolicyOptions::default());
    let validator = draft7::new(&document).unwrap_or_else(|error| panic!("{error}: {document:#}"));
    (validator, refusals.iter().map(ToString::to_string).collect())
}

#[test]
fn a_json_schema_refuses_what_an_audit_does() {
    let (mut compared, mut refused, mut wrong) = (0, 0, Vec::new());
    let mut left_out = BTreeSet::new();
    // Those of applies are about more than one object.
    for (path, suite) in suites().into_iter().filter(|(path, _)| !path.starts_with("applied/")) {
        let catalog = suite.catalog(GROUP, "Thing");
        let entry = &catalog.entries()[0];
        let (with_unions, refusals) = validator(entry, entry.plan(), &suite.schema);
        left_out.extend(refusals.into_iter().map(|refusal| format!("{path}: {refusal}")));
        let (without, _) = validator(entry, &Plan::default(), &suite.schema);
        for Row { description, new, .. } in suite.rows.iter().filter(|row| row.old.is_none()) {
            let Some(object) = new.as_ref().map(thing) else { continue };
            let audited = StoredObject::judge(entry, &object.to_string()).unwrap();
            let is_refused = !audited.violations().is_empty() || !without.is_valid(&object);
            compared += 1;
            refused += usize::from(!audited.violations().is_empty());
            let told: Vec<_> = with_unions.iter_errors(&object).map(|error| error.to_string()).collect();
            let is_listed = UNDESCRIBED.contains(&(&*path, &**description));
            if (is_refused == told.is_empty()) != is_listed {
                wrong.push(format!("{path}: {description}: {object}\n    audit: {audited:?}\n    schema: {told:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 150 && refused > 50, "{compared} rows, {refused} refused");
    assert!(
        left_out.iter().all(|it| it.contains("no schema describes the object") || it.contains("does not deny")),
        "{left_out:#?}"
    );
}

#[test]
fn a_schema_of_a_crd_says_the_same_in_the_keywords_of_a_json_schema() {
    let schema = json!({"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 7}}},
        "spec": {"type": "object", "properties": {
            "port": {"x-kubernetes-int-or-string": true, "nullable": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "text": {"type": "string", "nullable": true},
            "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1, "exclusiveMaximum": false},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "string"}}},
            "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
            "a": {"type": "string"}, "b": {"type": "string"}},
            "allOf": [{"properties": {"a": {"minLength": 2}}}],
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]}}});
    let suite: Suite =
        serde_json::from_value(json!({"description": "one kind", "schema": schema, "rows": []})).unwrap();
    let catalog = suite.catalog(GROUP, "Thing");
    let entry = &catalog.entries()[0];
    let (validator, _) = validator(entry, entry.plan(), &schema);
    let told =
        |fields: &Value| validator.iter_errors(&thing(fields)).map(|error| error.to_string()).collect::<Vec<_>>();
    for valid in [
        json!({"metadata": {"name": "example", "labels": {"a": "b"}}}),
        json!({"spec": {"port": 1, "text": null, "ratio": 1, "open": {"b": 1}}}),
        json!({"spec": {"port": "a", "ratio": 0.5, "inner": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}}}}),
        json!({"spec": {"port": null, "a": "xx"}}),
    ] {
        assert_eq!(told(&valid), [""; 0], "{valid}");
    }
    for invalid in [
        json!({"kind": "Other"}),
        json!({"apiVersion": "cases.example.com/v2"}),
        json!({"metadata": {"name": "examples"}}),
        json!({"spec": {"prot": 1}}),
        json!({"spec": {"port": true}}),
        json!({"spec": {"ratio": 0}}),
        json!({"spec": {"ratio": 1.5}}),
        json!({"spec": {"inner": {"status": {}}}}),
        json!({"spec": {"a": "x"}}),
        json!({"spec": {"a": "xx", "b": "xx"}}),
    ] {
        assert_ne!(told(&invalid), [""; 0], "{invalid}");
    }
}
