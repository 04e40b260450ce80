//! The conditions of rules as keywords of schemas, which `OpenAPI` and JSON schemas share.
//!
//! An API server validates a null by no keyword but `type` and `enum`, so that `not: {}` accepts null alone.

use super::expression::{Emptiness, Expression};
use super::schema::PlacedSchema;
use super::union::{Reason, Rule};
use crate::options::RuleForm;
use serde_json::{Map, Value, json};

/// The description in `externalDocs` of every schema that this crate makes in a CRD. Structural schemas allow neither
/// `description` nor `title` there.
const MARK: &str = "kube-unions";

type Keywords = Map<String, Value>;

/// Returns a rule as an item of `allOf` in a CRD.
pub(super) fn of_openapi(rule: &Rule, object: &PlacedSchema<'_>) -> Value {
    let mut item = keywords(&rule.condition, object);
    item.insert("externalDocs".to_owned(), json!({"description": MARK}));
    item.into()
}

/// Returns true if an item of `allOf` was made by this crate.
pub(super) fn is_ours(item: &Value) -> bool {
    item.pointer("/externalDocs/description").and_then(Value::as_str) == Some(MARK)
}

/// Returns a rule as an item of `allOf` in a JSON schema. Editors show `errorMessage` at the field that `then` is about.
pub(super) fn of_json_schema(rule: &Rule, object: &PlacedSchema<'_>) -> Value {
    let Rule { condition, field, reason, message } = rule;
    let is_violated = keywords(&condition.negated(), object);
    let Some(field) = field else {
        return json!({"if": is_violated, "then": {"not": {}, "errorMessage": message}});
    };
    let mut then = Keywords::new();
    if *reason == Reason::Required {
        then.insert("required".to_owned(), json!([field]));
    }
    // Then the field is there, and it is null or empty.
    if *reason != Reason::Required || object.is_nullable(field) || condition.tells_if_empty(field) {
        then.insert("properties".to_owned(), json!({field: false}));
    }
    then.insert("errorMessage".to_owned(), json!(format!("{field}: {}: {message}", reason.names().1)));
    json!({"if": is_violated, "then": then})
}

fn keywords(condition: &Expression, object: &PlacedSchema<'_>) -> Keywords {
    match condition {
        Expression::Has(name) if object.is_nullable(name) => of_one("not", of_property(name, null(object.form))),
        Expression::Has(name) => of_one("required", json!([name])),
        Expression::IsTrue(name) => of_property(name, json!({"enum": [true]})),
        Expression::Is(field, text, holds) => of_property(&field.name, one_of(&[text], *holds)),
        Expression::IsFilled(name, emptiness) => of_property(name, filled(*emptiness)),
        Expression::Not(inner) => {
            if let Expression::Has(name) = &**inner
                && object.is_nullable(name)
            {
                of_property(name, null(object.form))
            } else {
                of_one("not", keywords(inner, object))
            }
        }
        Expression::And(all) => all_of(joined(all, false, object).into_iter()),
        Expression::Or(all) => {
            let mut any = joined(all, true, object);
            if any.len() == 1 { any.remove(0) } else { of_one("anyOf", any) }
        }
        Expression::AtMostOne(all) => {
            let mut one_of: Vec<Value> = all.iter().map(|one| keywords(one, object).into()).collect();
            one_of.push(json!({"not": {"anyOf": one_of}}));
            of_one("oneOf", one_of)
        }
    }
}

/// Returns the keywords of conditions. Those that compare a field with texts, with this result, are joined.
fn joined(all: &[Expression], result: bool, object: &PlacedSchema<'_>) -> Vec<Keywords> {
    let (mut parts, mut fields) = (Vec::new(), Vec::<(&str, Vec<&str>)>::new());
    for one in all {
        if let Expression::Is(field, text, holds) = one
            && *holds == result
        {
            match fields.iter_mut().find(|(known, _)| *known == field.name) {
                Some((_, texts)) => texts.push(text),
                None => fields.push((&field.name, vec![text])),
            }
        } else {
            parts.push(keywords(one, object));
        }
    }
    parts.extend(fields.into_iter().map(|(name, texts)| of_property(name, one_of(&texts, result))));
    parts
}

/// Returns a schema that accepts these texts, or if `holds` is false all others.
fn one_of(texts: &[&str], holds: bool) -> Value {
    if holds { json!({"enum": texts}) } else { json!({"not": {"enum": texts}}) }
}

fn of_one(keyword: &str, value: impl Into<Value>) -> Keywords {
    Keywords::from_iter([(keyword.to_owned(), value.into())])
}

fn of_property(name: &str, schema: Value) -> Keywords {
    of_one("properties", Keywords::from_iter([(name.to_owned(), schema)]))
}

/// Returns a schema that accepts null alone.
fn null(form: RuleForm) -> Value {
    match form {
        RuleForm::Cel | RuleForm::OpenApi => json!({"not": {}}),
        RuleForm::JsonSchema => json!({"type": "null"}),
    }
}

/// Returns a schema that accepts a value which is not empty, and every value of another type.
fn filled(emptiness: Emptiness) -> Value {
    match emptiness {
        Emptiness::Boolean => json!({"not": {"enum": [false]}}),
        Emptiness::Integer => json!({"not": {"enum": [0]}}),
        // An API server compares an enum with the integral part of a number.
        Emptiness::Real => json!({"not": {"enum": [0], "multipleOf": 1}}),
        Emptiness::Text => json!({"minLength": 1}),
        Emptiness::List => json!({"minItems": 1}),
        Emptiness::Map | Emptiness::Fields => json!({"minProperties": 1}),
        Emptiness::Unknown => json!({"minLength": 1, "minItems": 1, "minProperties": 1,
            "not": {"anyOf": [{"enum": [false]}, {"enum": [0], "multipleOf": 1}]}}),
    }
}

fn all_of(parts: impl Iterator<Item = Keywords>) -> Keywords {
    let (mut whole, mut rest) = (Keywords::new(), Vec::new());
    for part in parts {
        match merged(&whole, &part) {
            Some(merged) => whole = merged,
            None => rest.push(part),
        }
    }
    if !rest.is_empty() {
        whole.extend(of_one("allOf", rest));
    }
    whole
}

/// Returns both in one schema, `None` if a keyword cannot say both.
fn merged(one: &Keywords, other: &Keywords) -> Option<Keywords> {
    let mut both = one.clone();
    for (keyword, value) in other {
        match (both.get_mut(keyword), value) {
            (None, _) if keyword != "allOf" => drop(both.insert(keyword.clone(), value.clone())),
            (Some(Value::Array(names)), Value::Array(more)) if keyword == "required" => names.extend(more.clone()),
            (Some(Value::Object(fields)), Value::Object(more))
                if keyword == "properties" && more.keys().all(|name| !fields.contains_key(name)) =>
            {
                fields.extend(more.clone());
            }
            _ => return None,
        }
    }
    Some(both)
}
