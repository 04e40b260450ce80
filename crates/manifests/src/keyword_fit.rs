//! Holds a value against the keywords of an OpenAPI schema, as far as they are evaluated here: those that combine schemas, fields, items, listed
//! values and bounds.

use serde_json::Value;

/// Keywords that reject nothing.
const SILENT: [&str; 5] = ["description", "title", "default", "example", "externalDocs"];

/// The keywords of [`broken_bound`].
const BOUNDS: [&str; 10] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
];

/// The fit of a value to a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeywordFit {
    /// Every keyword accepts it.
    Yes,
    /// A keyword rejects it.
    No,
    /// A keyword is not evaluated.
    Unknown,
}

impl KeywordFit {
    fn of(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }

    /// Returns if a value fits both schemas.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, Self::Yes) => Self::Yes,
            _ => Self::Unknown,
        }
    }

    fn negated(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
        }
    }
}

/// Holds a value against a schema. The API server bounds the depth of a schema.
pub fn fit(schema: &Value, value: &Value) -> KeywordFit {
    let keywords = schema.as_object().into_iter().flatten();
    all(keywords.map(|(keyword, _)| fit_keyword(schema, keyword, value)))
}

/// Holds a value against one keyword of a schema. A keyword that is missing, null or an empty list rejects nothing.
pub(crate) fn fit_keyword(schema: &Value, keyword: &str, value: &Value) -> KeywordFit {
    let Some(content) = schema.get(keyword).filter(|it| !it.is_null() && it.as_array().is_none_or(|it| !it.is_empty()))
    else {
        return KeywordFit::Yes;
    };
    let parts = || content.as_array().into_iter().flatten().map(|part| fit(part, value));
    match (keyword, value) {
        ("allOf", _) => all(parts()),
        ("anyOf", _) => all(parts().map(KeywordFit::negated)).negated(),
        ("oneOf", _) => {
            match (parts().filter(|it| *it == KeywordFit::Yes).count(), parts().any(|it| it == KeywordFit::Unknown)) {
                (2.., _) => KeywordFit::No,
                (_, true) => KeywordFit::Unknown,
                (fitting, false) => KeywordFit::of(fitting == 1),
            }
        }
        ("not", _) => fit(content, value).negated(),
        ("required", Value::Object(fields)) => {
            let mut names = content.as_array().into_iter().flatten().filter_map(Value::as_str);
            KeywordFit::of(names.all(|name| fields.contains_key(name)))
        }
        ("properties", Value::Object(fields)) => {
            let properties = content.as_object().into_iter().flatten();
            all(properties.filter_map(|(name, below)| Some(fit(below, fields.get(name)?))))
        }
        ("items", Value::Array(items)) => all(items.iter().map(|item| fit(content, item))),
        ("enum", _) => KeywordFit::of(is_listed(content, value)),
        ("required" | "properties" | "items", _) => KeywordFit::Yes,
        _ if BOUNDS.contains(&keyword) => KeywordFit::of(broken_bound(schema, value).is_none()),
        _ if SILENT.contains(&keyword) => KeywordFit::Yes,
        _ => KeywordFit::Unknown,
    }
}

fn all(parts: impl Iterator<Item = KeywordFit>) -> KeywordFit {
    parts.fold(KeywordFit::Yes, KeywordFit::and)
}

/// Returns true if a value is one of the list, where 1 and 1.0 are the same.
fn is_listed(values: &Value, value: &Value) -> bool {
    let is_same = |listed: &Value| listed == value || listed.as_f64().is_some_and(|it| Some(it) == value.as_f64());
    values.as_array().into_iter().flatten().any(is_same)
}

/// Returns the bound of a schema that a value breaks.
pub(crate) fn broken_bound(schema: &Value, value: &Value) -> Option<&'static str> {
    let (measure, least, most) = match value {
        Value::Number(number) => (number.as_f64()?, "minimum", "maximum"),
        Value::String(text) => (length(text.chars().count())?, "minLength", "maxLength"),
        Value::Array(items) => (length(items.len())?, "minItems", "maxItems"),
        Value::Object(fields) => (length(fields.len())?, "minProperties", "maxProperties"),
        Value::Null | Value::Bool(_) => return None,
    };
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let is_number = value.is_number();
    let [no_least, no_most] = ["exclusiveMinimum", "exclusiveMaximum"]
        .map(|keyword| is_number && schema.get(keyword) == Some(&Value::Bool(true)));
    if bound(least).is_some_and(|least| measure < least || (no_least && measure <= least)) {
        return Some(least);
    }
    bound(most).is_some_and(|most| measure > most || (no_most && measure >= most)).then_some(most)
}

fn length(count: usize) -> Option<f64> {
    u32::try_from(count).ok().map(f64::from)
}
