//! The steps of an owned path, as `fieldsV1` writes them and as the API server prints them.

use crate::value::{Value, canonical_number};
use serde_json::Value as Json;
use std::fmt;

/// A step into an object or a list. Fields come first, then items by their keys, by their values and by their positions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathElement {
    /// A field of an object.
    Field(Box<str>),
    /// An item of a list by its keys, which are sorted by name. An item without keys has none.
    Key(Box<[(Box<str>, Literal)]>),
    /// An item of a set.
    Value(Literal),
    /// An item of an atomic list. Only old entries have one.
    Index(i64),
}

/// A scalar that identifies a list item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Literal {
    Number(NumberText),
    String(Box<str>),
    Bool(bool),
    Null,
}

/// A number by its canonical text. Numbers are ordered by value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NumberText {
    /// The value in the order of [`f64::total_cmp`].
    order: i64,
    text: Box<str>,
}

impl PathElement {
    /// Reads a key of `fieldsV1`, or returns what it must be. `None` is a type of a later version, which the API server ignores.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, &'static str> {
        const PREFIX: &str = "it must begin with `f:`, `k:`, `v:` or `i:`";
        const KEY: &str = "a JSON object of scalars must follow `k:`";
        let (prefix, rest) = text.split_at_checked(2).ok_or(PREFIX)?;
        Ok(Some(match prefix {
            "f:" => Self::Field(rest.into()),
            "k:" => {
                let Ok(Json::Object(keys)) = serde_json::from_str(rest) else { return Err(KEY) };
                let key = |(name, value): (String, Json)| Some((name.into(), Literal::from_json(&value)?));
                let keys = keys.into_iter().map(key).collect::<Option<Vec<_>>>();
                Self::keys(keys.ok_or(KEY)?)
            }
            "v:" => {
                let value: Option<Json> = serde_json::from_str(rest).ok();
                Self::Value(value.as_ref().and_then(Literal::from_json).ok_or("a JSON scalar must follow `v:`")?)
            }
            "i:" => Self::Index(rest.parse().map_err(|_| "an integer must follow `i:`")?),
            _ if prefix.ends_with(':') => return Ok(None),
            _ => return Err(PREFIX),
        }))
    }

    /// Returns the element of an item with these keys.
    pub(super) fn keys(mut keys: Vec<(Box<str>, Literal)>) -> Self {
        keys.sort();
        Self::Key(keys.into())
    }

    /// Returns the key of `fieldsV1`.
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => {
                let keys: Vec<String> =
                    keys.iter().map(|(name, value)| format!("{}:{}", quoted(name), value.to_json())).collect();
                format!("k:{{{}}}", keys.join(","))
            }
            Self::Value(value) => format!("v:{}", value.to_json()),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

impl Literal {
    /// Returns a scalar of a document. `None` for a list or an object.
    pub(super) fn of(value: Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(text) => Self::Number(NumberText::new(text)),
            Value::String(text) => Self::String(text.into()),
            Value::List(_) | Value::Map(_) => return None,
        })
    }

    /// Returns a scalar of `fieldsV1` or of a schema. `None` for a list or an object.
    pub(super) fn from_json(value: &Json) -> Option<Self> {
        match value {
            Json::Null => Some(Self::Null),
            Json::Bool(value) => Some(Self::Bool(*value)),
            Json::Number(number) => Some(Self::Number(NumberText::new(&number.to_string()))),
            Json::String(text) => Some(Self::String(text.as_str().into())),
            Json::Array(_) | Json::Object(_) => None,
        }
    }

    fn to_json(&self) -> String {
        match self {
            Self::String(text) => quoted(text),
            Self::Number(_) | Self::Bool(_) | Self::Null => self.to_string(),
        }
    }
}

/// Returns a JSON string with the escapes of Go's encoder.
fn quoted(text: &str) -> String {
    let json = Json::from(text).to_string();
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

impl NumberText {
    fn new(text: &str) -> Self {
        let text = canonical_number(text);
        let bits = text.parse::<f64>().unwrap_or_default().to_bits().cast_signed();
        // A greater magnitude comes first below zero.
        let order = if bits < 0 { bits ^ i64::MAX } else { bits };
        Self { order, text: text.into() }
    }
}

/// Prints the step as the API server does in a conflict.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", keys.join(","))
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => f.write_str(&number.text),
            Self::String(text) => write!(f, "{text:?}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Null => f.write_str("null"),
        }
    }
}
