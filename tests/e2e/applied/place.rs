//! The place of a union in an object: fields, and items of lists by their keys.

use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};

/// A path like `spec.template.spec.containers[name=main].env[name=A]`.
#[derive(Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(from = "String")]
pub(super) struct Place(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    /// The item of a list that has this key. A number is a number in the object.
    Item {
        key: String,
        value: Value,
    },
}

impl Place {
    /// Returns the place of a field of this one.
    pub(super) fn field(mut self, name: &str) -> Self {
        self.0.push(Step::Field(name.to_owned()));
        self
    }

    /// Returns the first field.
    pub(super) fn root(&self) -> &str {
        match self.0.first() {
            Some(Step::Field(name)) => name,
            _ => "",
        }
    }

    /// Returns the content of the place without the keys that lead to it. `None`: the object does not have the place.
    pub(super) fn content(&self, object: &Value) -> Option<Value> {
        let mut at = object;
        for step in &self.0 {
            at = match step {
                Step::Field(name) => at.get(name)?,
                Step::Item { key, value } => at.as_array()?.iter().find(|item| item[key] == *value)?,
            };
        }
        let mut content = at.clone();
        if let (Some(Step::Item { key, .. }), Some(fields)) = (self.0.last(), content.as_object_mut()) {
            fields.remove(key);
        }
        Some(content)
    }

    /// Merges fields into the content of the place, which is made if it is missing.
    pub(super) fn merge(&self, object: &mut Value, content: &Value) {
        let mut at = object;
        for step in &self.0 {
            at = match step {
                Step::Field(name) => &mut at[name],
                Step::Item { key, value } => {
                    if at.is_null() {
                        *at = json!([]);
                    }
                    let items = at.as_array_mut().expect("a list");
                    let found = items.iter().position(|item| item[key] == *value);
                    let position = found.unwrap_or_else(|| {
                        items.push(json!({ key: value }));
                        items.len() - 1
                    });
                    &mut items[position]
                }
            };
        }
        json_patch::merge(at, content);
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if position == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Item { key, value } => write!(f, "[{key}={value}]")?,
            }
        }
        Ok(())
    }
}

impl From<String> for Place {
    /// Only keys may have dots in them.
    fn from(text: String) -> Self {
        let (mut steps, mut rest) = (Vec::new(), text.as_str());
        while !rest.is_empty() {
            if let Some(item) = rest.strip_prefix('[') {
                let (item, after) = item.split_once(']').expect("an item ends");
                let (key, value) = item.split_once('=').expect("an item has a key");
                let value = value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number));
                steps.push(Step::Item { key: key.to_owned(), value });
                rest = after;
            } else {
                let field = rest.strip_prefix('.').unwrap_or(rest);
                let end = field.find(['.', '[']).unwrap_or(field.len());
                steps.push(Step::Field(field[..end].to_owned()));
                rest = &field[end..];
            }
        }
        Self(steps)
    }
}
