//! The JSON schema of a built-in kind with unions, made of an OpenAPI document.
//!
//! It decides as an API server does: a null is a missing field, unknown fields are accepted, and an object that Go never lacks has to make the
//! choice of its union. The rules of a union come from the compiler of policies.

use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::union::Union;
use kube_unions_manifests::BuiltInDefaults;
use kube_unions_offline::add_to_json_schema;
use kube_unions_policies::{PolicyOptions, Refusal, RulesTarget, json_schema};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Makes the schemas of the kinds of an OpenAPI document.
pub(super) struct BuiltInSchemas<'d> {
    /// The value at `/components/schemas`.
    components: &'d Value,
    defaults: BuiltInDefaults,
    options: &'d PolicyOptions,
}

impl<'d> BuiltInSchemas<'d> {
    pub(super) fn new(components: &'d Value, options: &'d PolicyOptions) -> anyhow::Result<Self> {
        let defaults = BuiltInDefaults::read().map_err(anyhow::Error::msg)?;
        Ok(Self { components, defaults, options })
    }

    /// Returns the schema of a kind, of which `component` is the one of the document, and the unions that it cannot express.
    pub(super) fn schema(&self, entry: &CatalogEntry, component: &Value) -> (Value, Vec<Refusal>) {
        let mut schema = resolved(component, self.components, &[]);
        let choices: BTreeSet<&str> = entry.plan().unions().iter().filter_map(Union::discriminator).collect();
        // Editors would not know the values of a nullable discriminator.
        each_field(&mut schema, &mut |name, field| {
            if !choices.contains(name) {
                accept_null(field);
            }
        });
        let target = RulesTarget { gvk: entry.gvk(), plan: entry.plan(), schema: &schema };
        let (mut document, refusals) = json_schema(&target, self.options);
        open(&mut document);
        each_field(&mut document, &mut |name, field| {
            if choices.contains(name) {
                accept_null_beside_values(field);
            }
            // The rules of a union are about objects.
            let rules = field.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten();
            for condition in rules.filter_map(|rule| rule.get_mut("if")?.as_object_mut()) {
                condition.insert("type".to_owned(), "object".into());
            }
        });
        require_unions(&mut document, &self.defaults, entry);
        add_to_json_schema(entry.gvk(), &mut document);
        (document, refusals)
    }
}

/// Lets the OpenAPI schema of a field accept null.
fn accept_null(field: &mut Map<String, Value>) {
    field.insert("nullable".to_owned(), true.into());
    // `nullable` is about `type`.
    if let Some(types) = field.get_mut("oneOf").and_then(Value::as_array_mut) {
        types.push(json!({"type": "null"}));
    }
}

/// Calls `act` for the schema of each field.
fn each_field(schema: &mut Value, act: &mut dyn FnMut(&str, &mut Map<String, Value>)) {
    let Value::Object(keywords) = schema else { return };
    for (name, field) in keywords.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Some(field) = field.as_object_mut() {
            act(name, field);
        }
        each_field(field, act);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(schema) = keywords.get_mut(keyword) {
            each_field(schema, act);
        }
    }
}

/// Lets the JSON schema of a discriminator accept null.
fn accept_null_beside_values(field: &mut Map<String, Value>) {
    if field.get("type") == Some(&"string".into()) {
        field.insert("type".to_owned(), vec!["string", "null"].into());
        if let Some(values) = field.get_mut("enum").and_then(Value::as_array_mut) {
            values.push(Value::Null);
        }
    }
}

/// Requires the object of each required union that an API server takes as `{}` if it is missing.
fn require_unions(document: &mut Value, defaults: &BuiltInDefaults, entry: &CatalogEntry) {
    for (around, name) in defaults.never_missing(&entry.gvk().group_kind()) {
        let mut steps = around.split('.').filter(|step| !step.is_empty());
        let path = steps.clone().chain([name]).collect::<Vec<_>>().join(".");
        if !entry.plan().unions().iter().any(|union| union.is_required() && union.path() == path) {
            continue;
        }
        let object = steps.try_fold(&mut *document, |schema, step| {
            let (name, is_list) = step.strip_suffix("[*]").map_or((step, false), |name| (name, true));
            let field = schema.get_mut("properties")?.get_mut(name)?;
            if is_list { field.get_mut("items") } else { Some(field) }
        });
        let Some(object) = object.and_then(Value::as_object_mut) else { continue };
        if let Some(field) = object.get_mut("properties").and_then(|fields| fields.get_mut(name)) {
            // A null is a missing field.
            field["type"] = "object".into();
        }
        if let Some(required) = object.entry("required").or_insert_with(|| json!([])).as_array_mut() {
            required.push(name.into());
        }
    }
}

/// Lets a schema accept fields that it does not describe: the document of built-in kinds may lack some.
fn open(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("additionalProperties") == Some(&Value::Bool(false)) {
                fields.shift_remove("additionalProperties");
            }
            fields.values_mut().for_each(open);
        }
        Value::Array(items) => items.iter_mut().for_each(open),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the schema of a component with the schemas that it refers to in their places. A type that contains itself is followed once.
fn resolved(schema: &Value, components: &Value, around: &[&str]) -> Value {
    let with = |schema: &Value| resolved(schema, components, around);
    match schema {
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next());
            let mut all: Map<String, Value> = Map::new();
            if let Some(name) = reference.filter(|name| !around.contains(name))
                && let Some(target) = components.get(name)
                && let Value::Object(target) = resolved(target, components, &[around, &[name]].concat())
            {
                all = target;
            }
            all.extend(
                fields.iter().filter(|(name, _)| *name != "$ref").map(|(name, inner)| (name.clone(), with(inner))),
            );
            if let Some(Value::Array(parts)) = all.get("allOf")
                && let [Value::Object(part)] = &**parts
            {
                let part = part.clone();
                all.shift_remove("allOf");
                all.extend(part);
            }
            all.into()
        }
        Value::Array(items) => items.iter().map(with).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}
