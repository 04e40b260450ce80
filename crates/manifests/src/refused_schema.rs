//! Finds what an API server refuses in the schema of a CRD, because the schema is not structural.
//!
//! The rules are those of `apiextensions.k8s.io/v1`. Regular expressions, CEL and its cost are not among them: this module computes nothing.

mod fault;
mod keywords;
mod parts;
mod rule;
mod taken;

pub use self::fault::SchemaFault;

use self::fault::RefusalReader;
use self::keywords::{
    NESTED, NOT_BESIDE_STATUS, NOT_OF_METADATA, NOWHERE, OUTSIDE, REMOVE, entries, flag, flag_is_false, is_empty, list,
    text,
};
use self::parts::misfit;
use self::taken::OF_SCHEMAS;
use serde_json::Value;
use std::mem;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// The place of a node that describes a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldRole {
    Root,
    Item,
    Field,
}

/// Returns what an API server refuses in the schema of a version, which may have the status subresource.
pub fn faults(schema: &Value, has_status: bool) -> Vec<SchemaFault> {
    let mut reader = RefusalReader::default();
    let keywords = schema.as_object().into_iter().flatten();
    for (keyword, value) in keywords.filter(|(name, _)| has_status && NOT_BESIDE_STATUS.contains(&name.as_str())) {
        if !is_empty(value) && value != false {
            reader.refuse(
                &[keyword],
                &format!("`{keyword}` at the root beside the status subresource"),
                "move it to `spec`",
            );
        }
    }
    reader.field(schema, FieldRole::Root, false);
    reader.found
}

/// Returns true for the one form of `anyOf` that may name types: that of an integer or a string.
fn is_int_or_string(any_of: &[Value]) -> bool {
    let is = |part: &Value, name: &str| {
        part.as_object().is_some_and(|part| part.len() == 1 && part.get("type").is_some_and(|it| it == name))
    };
    matches!(any_of, [one, other] if is(one, "integer") && is(other, "string"))
}

impl RefusalReader {
    /// Reads a node that describes a field. In metadata, no field may have a default.
    fn field(&mut self, node: &Value, level: FieldRole, no_defaults: bool) {
        self.anywhere(node);
        self.type_of(node, level);
        self.extensions(node);
        let is_object = level == FieldRole::Root || flag(node, "x-kubernetes-embedded-resource");
        if no_defaults && node.get("default").is_some_and(|it| !it.is_null()) {
            self.refuse(&["default"], "a default of `apiVersion`, `kind` or `metadata`", REMOVE);
        } else if let Some(default) = node.get("default").filter(|it| !it.is_null() && !self.is_in_map)
            && let Some(why) = misfit(node, default)
        {
            self.refuse(&["default"], &format!("a default that {why}"), "correct the default, or the schema");
        }
        if text(node, "type") == "array" && node.get("items").is_none_or(Value::is_null) {
            self.refuse(&[], "`type: array` without `items`", "describe the items");
        }
        if let Some(items) = node.get("items").filter(|items| items.is_object()) {
            let is_in_list = self.is_in_list;
            self.is_in_list |= text(node, "x-kubernetes-list-type") != "map";
            self.at(&["items"], |this| this.field(items, FieldRole::Item, no_defaults));
            self.is_in_list = is_in_list;
        }
        if let Some(values) = node.get("additionalProperties").filter(|it| !it.is_null()) {
            if is_object {
                let whole = if level == FieldRole::Root { "at the root" } else { "of an embedded resource" };
                self.refuse(&["additionalProperties"], &format!("`additionalProperties` {whole}"), REMOVE);
            } else if entries(node, "properties").next().is_some() && values != true {
                let what = "`additionalProperties` beside `properties`";
                self.refuse(&["additionalProperties"], what, "keep one: named fields are an object, others a map");
            }
            if values.is_object() {
                let is_in_map = mem::replace(&mut self.is_in_map, true);
                self.at(&["additionalProperties"], |this| this.field(values, FieldRole::Field, no_defaults));
                self.is_in_map = is_in_map;
            }
        }
        for (name, below) in entries(node, "properties") {
            let of_object = is_object && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
            let no_defaults = no_defaults || (of_object && level == FieldRole::Root);
            self.at(&["properties", name], |this| {
                if of_object {
                    this.of_every_object(name, below, level);
                }
                this.field(below, FieldRole::Field, no_defaults);
            });
        }
        // The API server compares only the validations of the root with the fields outside.
        let outside = (level == FieldRole::Root).then_some(node);
        let any_of = list(node, "anyOf");
        for junctor in JUNCTORS {
            for (index, part) in list(node, junctor).iter().enumerate() {
                let is_type = junctor == "anyOf" && is_int_or_string(any_of);
                let has_types = junctor == "allOf" && index == 0 && is_int_or_string(list(part, "anyOf"));
                if !is_type {
                    self.at(&[junctor, &index.to_string()], |this| {
                        this.validation(part, outside, junctor, has_types);
                    });
                }
            }
        }
        if let Some(not) = node.get("not").filter(|it| it.is_object()) {
            self.at(&["not"], |this| this.validation(not, outside, "not", false));
        }
    }

    /// Reads a node inside of `allOf`, `anyOf`, `oneOf` or `not`. `outside` describes the same field, if it has to.
    fn validation(&mut self, node: &Value, outside: Option<&Value>, junctor: &str, has_types: bool) {
        self.anywhere(node);
        for (keyword, refused, remedy) in NESTED {
            if node.get(keyword).is_some_and(|value| refused.is(value)) {
                self.refuse(&[keyword], &format!("`{keyword}` inside of `{junctor}`"), remedy);
            }
        }
        let lacks = |name: &str| format!("the API server refuses {name} that only `{junctor}` describes; {OUTSIDE}");
        if let Some(items) = node.get("items").filter(|items| items.is_object()) {
            let described = outside.and_then(|it| it.get("items"));
            self.at(&["items"], |this| {
                if outside.is_some() && described.is_none() {
                    this.tell(&[], lacks("items"));
                }
                this.validation(items, described, junctor, false);
            });
        }
        for (name, below) in entries(node, "properties") {
            let described = outside.and_then(|it| it.get("properties")?.get(name));
            self.at(&["properties", name], |this| {
                if name == "metadata" {
                    this.refuse(
                        &[],
                        &format!("`metadata` inside of `{junctor}`"),
                        "write a rule about its name instead",
                    );
                } else if outside.is_some() && described.is_none() {
                    this.tell(&[], lacks(&format!("the field `{name}`")));
                }
                this.validation(below, described, junctor, false);
            });
        }
        for inner in JUNCTORS {
            for (index, part) in list(node, inner).iter().enumerate() {
                if !(has_types && inner == "anyOf") {
                    self.at(&[inner, &index.to_string()], |this| this.validation(part, outside, inner, false));
                }
            }
        }
        if let Some(not) = node.get("not").filter(|it| it.is_object()) {
            self.at(&["not"], |this| this.validation(not, outside, "not", false));
        }
    }

    /// Reads the keywords that are refused in every node.
    fn anywhere(&mut self, node: &Value) {
        self.takes(node, &OF_SCHEMAS);
        for (keyword, refused, remedy) in NOWHERE {
            if node.get(keyword).is_some_and(|value| refused.is(value)) {
                self.refuse(&[keyword], &format!("`{keyword}`"), remedy);
            }
        }
        if flag_is_false(node, "x-kubernetes-preserve-unknown-fields") {
            let what = "`x-kubernetes-preserve-unknown-fields: false`";
            self.refuse(&["x-kubernetes-preserve-unknown-fields"], what, REMOVE);
        }
        let name = text(node, "type");
        if name == "null" {
            self.refuse(&["type"], "`type: null`", "use `nullable: true` with the type of other values");
        } else if !name.is_empty() && !TYPES.contains(&name) {
            self.refuse(&["type"], &format!("the type `{name}`"), &format!("use one of `{}`", TYPES.join("`, `")));
        }
    }

    fn type_of(&mut self, node: &Value, level: FieldRole) {
        let name = text(node, "type");
        let is_free = flag(node, "x-kubernetes-int-or-string") || flag(node, "x-kubernetes-preserve-unknown-fields");
        let is_embedded = flag(node, "x-kubernetes-embedded-resource");
        match level {
            _ if is_embedded && name != "object" => {
                self.refuse(&[], "an embedded resource that is not of `type: object`", "add the type");
            }
            _ if name.is_empty() && !is_free => {
                let what = match level {
                    FieldRole::Root => "a schema",
                    FieldRole::Item => "items",
                    FieldRole::Field => "a field",
                };
                self.refuse(&[], &format!("{what} without a `type`"), "add the type");
            }
            FieldRole::Root if !name.is_empty() && name != "object" => {
                self.refuse(&["type"], "a schema whose root is not of `type: object`", "correct the type");
            }
            FieldRole::Root | FieldRole::Item | FieldRole::Field => {}
        }
        if level == FieldRole::Root && flag(node, "nullable") {
            self.refuse(&["nullable"], "`nullable` at the root", REMOVE);
        }
    }

    fn extensions(&mut self, node: &Value) {
        let name = text(node, "type");
        let [preserve, embedded, either] =
            ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"];
        for other in [preserve, embedded].into_iter().filter(|other| flag(node, either) && flag(node, other)) {
            self.refuse(&[other], &format!("`{other}` beside `{either}`"), "keep one");
        }
        if flag(node, embedded) && !flag(node, preserve) && entries(node, "properties").next().is_none() {
            let what = "an embedded resource without `properties`";
            self.refuse(&[], what, "add them, or `x-kubernetes-preserve-unknown-fields: true`");
        }
        let kinds: [(&str, &str, &[&str]); 2] = [
            ("x-kubernetes-map-type", "object", &["atomic", "granular"]),
            ("x-kubernetes-list-type", "array", &["atomic", "set", "map"]),
        ];
        for (keyword, of_type, values) in kinds {
            let Some(value) = node.get(keyword).filter(|value| !value.is_null()) else { continue };
            if name != of_type {
                self.refuse(&[keyword], &format!("`{keyword}` where the type is not `{of_type}`"), REMOVE);
            }
            if !value.as_str().is_some_and(|value| values.contains(&value)) {
                let remedy = format!("use one of `{}`", values.join("`, `"));
                self.refuse(&[keyword], &format!("this value of `{keyword}`"), &remedy);
            }
        }
        self.list_keys(node);
        self.rules(node);
    }

    /// Reads `apiVersion`, `kind` or `metadata` of the root or of an embedded resource.
    fn of_every_object(&mut self, name: &str, node: &Value, level: FieldRole) {
        let want = if name == "metadata" { "object" } else { "string" };
        // A missing type is refused as that of any field.
        if !text(node, "type").is_empty() && text(node, "type") != want {
            self.refuse(&["type"], &format!("another type of `{name}` than `{want}`"), "correct the type");
        }
        if name != "metadata" || level != FieldRole::Root {
            return;
        }
        let others = entries(node, "properties").filter(|(name, _)| !matches!(name.as_str(), "name" | "generateName"));
        for (field, _) in others {
            let what = format!("`{field}` in the schema of `metadata`");
            self.refuse(&["properties", field], &what, "leave `metadata` as `type: object`, with at most `name`");
        }
        for keyword in NOT_OF_METADATA {
            if node.get(keyword).is_some_and(|value| !is_empty(value) && value != false) {
                self.refuse(&[keyword], &format!("`{keyword}` in the schema of `metadata`"), REMOVE);
            }
        }
    }
}
