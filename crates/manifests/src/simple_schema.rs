//! Reads `SimpleSchema`, in which a `ResourceGraphDefinition` of kro describes the fields of its kind, as a schema of a CRD.
//!
//! A field is a map of fields, or a text: a type, and behind `|` markers such as `default=1 enum="a,b"`. Markers that say nothing about
//! unions, defaults and lists are checked by name only.

use kube_unions_core::near::nearest;
use kube_unions_core::schema::EXTENSION;
use serde_json::{Map, Value, json};

/// The markers that kro knows.
const MARKERS: &str = "\
    required default description minimum maximum validation enum immutable pattern uniqueItems minLength maxLength \
    minItems maxItems listType listMapKey";

/// Deepest nesting of lists, maps and types of one field. kro has the same limit.
const DEEPEST: usize = 16;

/// Most schemas that a definition may have once its types are expanded.
const MOST_SCHEMAS: usize = 20_000;

/// Endings of words whose plural kro forms in a way of its own. All others are regular.
const IRREGULAR: &str = "\
    a ae aircraft beef bison child criterion deer die eaux equipment ex f fe feet fish foot ganglion goose hedron \
    i information ix lexicon louse man men mitochondrion money moose mouse noumenon o people person phenomenon \
    police quy rice s salmon sheep shrimp swine taxon teeth tooth trout u um you z mice dice children";

/// The path below `spec.schema` and a message.
type SimpleSchemaFault = (Vec<String>, String);

/// Returns the schema of an object with these fields.
pub(crate) fn object(fields: &Value, types: &Value) -> Result<Value, SimpleSchemaFault> {
    let mut reader =
        SimpleSchemaReader { types: types.as_object(), path: vec!["spec".to_owned()], around: Vec::new(), schemas: 0 };
    let read = match fields {
        Value::Null => Ok(json!({"type": "object", "properties": {}})),
        Value::Object(fields) => reader.object(fields),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("must be a map of fields".to_owned())
        }
    };
    read.map_err(|message| (reader.path, message))
}

/// Returns the plural of a kind in lower case, as kro forms it. `None` if it may be irregular.
pub(crate) fn plural(kind: &str) -> Option<String> {
    let ends = |endings: &str| endings.split(' ').any(|ending| kind.ends_with(ending));
    if ends("ss") || ends("ch sh x") && !ends(IRREGULAR) {
        return Some(format!("{kind}es"));
    }
    if ends(IRREGULAR) {
        return None;
    }
    match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => Some(format!("{stem}ies")),
        _ => Some(format!("{kind}s")),
    }
}

struct SimpleSchemaReader<'s> {
    /// The types that the definition declares.
    types: Option<&'s Map<String, Value>>,
    /// The path of the field that is read. After an error, that of the error.
    path: Vec<String>,
    /// The types that are being read.
    around: Vec<&'s str>,
    schemas: usize,
}

impl<'s> SimpleSchemaReader<'s> {
    fn object(&mut self, fields: &'s Map<String, Value>) -> Result<Value, String> {
        let (mut properties, mut required, mut has_default) = (Map::new(), Vec::new(), false);
        for (name, field) in fields {
            self.path.push(name.clone());
            if name == EXTENSION {
                return Err(format!(
                    "kro takes `{EXTENSION}` for a field: declare the union in the annotation at spec.schema.metadata.annotations"
                ));
            }
            let (schema, is_required) = self.field(field)?;
            has_default |= schema.get("default").is_some();
            required.extend(is_required.then(|| name.clone()));
            properties.insert(name.clone(), schema);
            self.path.pop();
        }
        required.sort();
        // kro gives an object the default `{}`, so that the defaults in it count.
        let default = (has_default && required.is_empty()).then(|| ("default".to_owned(), json!({})));
        let mut schema = json!({"type": "object", "properties": properties, "required": required});
        schema.as_object_mut().into_iter().for_each(|schema| schema.extend(default.clone()));
        Ok(schema)
    }

    /// Returns the schema of a field, and true if the field is required.
    fn field(&mut self, field: &'s Value) -> Result<(Value, bool), String> {
        match field {
            Value::Object(fields) => Ok((self.object(fields)?, false)),
            Value::String(text) => {
                let (type_name, markers) =
                    text.split_once('|').map_or((&**text, None), |(name, rest)| (name, Some(rest)));
                let (mut schema, mut required) = self.typed(type_name, 0)?;
                for (name, value) in markers.map(markers_of).transpose()?.unwrap_or_default() {
                    mark(&mut schema, &mut required, name, value)?;
                }
                Ok((schema, required))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                Err("must be a type such as `string`, or a map of fields".to_owned())
            }
        }
    }

    /// Returns the schema of a type, and true if it is a declared one that makes its fields required.
    fn typed(&mut self, name: &'s str, depth: usize) -> Result<(Value, bool), String> {
        self.schemas = self.schemas.saturating_add(1);
        if depth > DEEPEST || self.around.len() > DEEPEST || self.schemas > MOST_SCHEMAS {
            return Err("the types are nested too deeply, or there are too many".to_owned());
        }
        let name = name.trim();
        let inner =
            |rest: &'s str| if rest.is_empty() { Err(format!("`{name}` has no type of its items")) } else { Ok(rest) };
        Ok(match name {
            "" => return Err("has no type".to_owned()),
            "string" | "integer" | "boolean" => (json!({"type": name}), false),
            "float" => (json!({"type": "number"}), false),
            "object" => (json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), false),
            _ => {
                if let Some(rest) = name.strip_prefix("[]") {
                    let (items, _) = self.typed(inner(rest)?, depth + 1)?;
                    (json!({"type": "array", "items": items}), false)
                } else if let Some(rest) = name.strip_prefix("map[string]") {
                    let (values, _) = self.typed(inner(rest)?, depth + 1)?;
                    (json!({"type": "object", "additionalProperties": values}), false)
                } else if name.starts_with("map[") {
                    return Err(format!("the keys of `{name}` must be of type `string`"));
                } else {
                    self.declared(name)?
                }
            }
        })
    }

    /// Returns the schema of a type that the definition declares.
    fn declared(&mut self, name: &'s str) -> Result<(Value, bool), String> {
        let types = self.types;
        let Some(declared) = types.and_then(|types| types.get(name)) else {
            let atomic = ["string", "integer", "boolean", "float", "object"];
            let known = types.into_iter().flat_map(Map::keys).map(String::as_str).chain(atomic);
            let near = nearest(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(format!("the type `{name}` is not declared in `types`{near}"));
        };
        if self.around.contains(&name) {
            return Err(format!("the type `{name}` contains itself"));
        }
        self.around.push(name);
        let outer = std::mem::replace(&mut self.path, vec!["types".to_owned(), name.to_owned()]);
        let read = self.field(declared)?;
        self.path = outer;
        self.around.pop();
        Ok(read)
    }
}

/// Splits markers: `name=value`, separated by blanks outside quotes and brackets.
fn markers_of(text: &str) -> Result<Vec<(&'static str, String)>, String> {
    let (mut found, mut name, mut buffer) = (Vec::new(), None, String::new());
    let (mut quoted, mut escaped, mut open) = (false, false, 0_i32);
    for character in text.chars().chain([' ']) {
        let bare = !quoted && open == 0;
        match character {
            '=' if name.is_none() && bare => {
                let key = std::mem::take(&mut buffer);
                let key = key.trim();
                name = Some(MARKERS.split(' ').find(|known| *known == key).ok_or_else(|| {
                    let near = nearest(key, MARKERS.split(' '))
                        .map(|near| format!("; did you mean `{near}`?"))
                        .unwrap_or_default();
                    format!("kro has no marker `{key}`{near}")
                })?);
                continue;
            }
            blank if blank.is_whitespace() && bare => {
                if let Some(name) = name.take() {
                    found.push((name, unquoted(&std::mem::take(&mut buffer))));
                }
                continue;
            }
            '"' if !escaped => quoted = !quoted,
            '{' | '[' if !quoted => open = open.saturating_add(1),
            '}' | ']' if !quoted => open = open.saturating_sub(1),
            _ => {}
        }
        escaped = character == '\\' && quoted && !escaped;
        buffer.push(character);
    }
    match (quoted || open != 0 || name.is_some(), buffer.trim()) {
        (true, _) => Err("a quote or bracket in the markers is not closed".to_owned()),
        (false, "") => Ok(found),
        (false, rest) => Err(format!("the marker `{rest}` has no value: write `{rest}=…`")),
    }
}

fn unquoted(value: &str) -> String {
    match value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => {
            let (mut text, mut escaped) = (String::new(), false);
            for character in inner.chars() {
                match character {
                    '\\' if !escaped => {
                        escaped = true;
                        continue;
                    }
                    '"' | '\\' => {}
                    _ if escaped => text.push('\\'),
                    _ => {}
                }
                escaped = false;
                text.push(character);
            }
            text
        }
        None => value.trim().to_owned(),
    }
}

/// Applies a marker to the schema of a field.
fn mark(schema: &mut Value, required: &mut bool, name: &str, value: String) -> Result<(), String> {
    let is_string = schema["type"] == "string";
    let parsed = |text: &str| {
        let parsed = if is_string { Ok(text.into()) } else { serde_json::from_str::<Value>(text) };
        parsed.map_err(|_| format!("`{name}` has a value of another type than the field"))
    };
    match name {
        "required" => *required |= is_true(name, &value)?,
        "default" => schema["default"] = parsed(&value)?,
        "enum" => schema["enum"] = value.split(',').map(|one| parsed(one.trim())).collect::<Result<Value, _>>()?,
        "listType" => schema["x-kubernetes-list-type"] = value.into(),
        "uniqueItems" if is_true(name, &value)? => schema["x-kubernetes-list-type"] = "set".into(),
        "listMapKey" => match schema["x-kubernetes-list-map-keys"].as_array_mut() {
            Some(keys) => keys.push(value.into()),
            None => schema["x-kubernetes-list-map-keys"] = json!([value]),
        },
        "validation" => match schema["x-kubernetes-validations"].as_array_mut() {
            Some(rules) => rules.push(json!({"rule": value})),
            None => schema["x-kubernetes-validations"] = json!([{"rule": value}]),
        },
        _ => {}
    }
    Ok(())
}

fn is_true(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("`{name}` must be `true` or `false`")),
    }
}
