//! The keywords of a CRD that say which fields an object may have together, held against an object.

use serde_json::{Map, Value};

/// The keyword of rules in CEL, which are not evaluated.
pub(crate) const RULES: &str = "x-kubernetes-validations";

/// The keywords of an object's schema that are about its fields together.
const OWN: [&str; 7] = ["oneOf", "anyOf", "allOf", "not", "required", "minProperties", "maxProperties"];

/// Keywords that reject nothing.
const SILENT: [&str; 5] = ["description", "title", "default", "example", "externalDocs"];

/// Whether a value fits a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeywordFit {
    Yes,
    No,
    /// A keyword is not evaluated.
    Unknown,
}

impl KeywordFit {
    fn of(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }

    pub(crate) fn and(self, other: Self) -> Self {
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

/// Returns the part of a schema that is about the fields of an object together.
pub(crate) fn own_keywords(schema: &Value) -> Value {
    let fields = schema.as_object().into_iter().flatten().filter(|(name, _)| OWN.contains(&name.as_str()));
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

/// Holds a value against a schema. The API server bounds the depth of a schema.
pub(crate) fn fit(schema: &Value, value: &Value) -> KeywordFit {
    let keywords = schema.as_object().into_iter().flatten();
    keywords.map(|(name, content)| fit_keyword(name, content, value)).fold(KeywordFit::Yes, KeywordFit::and)
}

fn fit_keyword(name: &str, content: &Value, value: &Value) -> KeywordFit {
    let each = || content.as_array().into_iter().flatten().map(|schema| fit(schema, value));
    let number = || content.as_u64().and_then(|number| usize::try_from(number).ok());
    match (name, value) {
        ("allOf", _) => each().fold(KeywordFit::Yes, KeywordFit::and),
        ("anyOf", _) => each().map(KeywordFit::negated).fold(KeywordFit::Yes, KeywordFit::and).negated(),
        ("oneOf", _) => {
            match (each().filter(|it| *it == KeywordFit::Yes).count(), each().any(|it| it == KeywordFit::Unknown)) {
                (2.., _) => KeywordFit::No,
                (_, true) => KeywordFit::Unknown,
                (fitting, false) => KeywordFit::of(fitting == 1),
            }
        }
        ("not", _) => fit(content, value).negated(),
        ("required", Value::Object(fields)) => {
            let names = content.as_array().into_iter().flatten().filter_map(Value::as_str);
            KeywordFit::of(names.into_iter().all(|name| fields.contains_key(name)))
        }
        ("properties", Value::Object(fields)) => {
            let properties = content.as_object().into_iter().flatten();
            let there = properties.filter_map(|(name, schema)| Some(fit(schema, fields.get(name)?)));
            there.fold(KeywordFit::Yes, KeywordFit::and)
        }
        ("minProperties", Value::Object(fields)) => {
            KeywordFit::of(number().is_none_or(|number| fields.len() >= number))
        }
        ("maxProperties", Value::Object(fields)) => {
            KeywordFit::of(number().is_none_or(|number| fields.len() <= number))
        }
        ("enum", _) => KeywordFit::of(content.as_array().is_some_and(|values| values.contains(value))),
        ("required" | "properties" | "minProperties" | "maxProperties", _) => KeywordFit::Yes,
        (name, _) if SILENT.contains(&name) => KeywordFit::Yes,
        _ => KeywordFit::Unknown,
    }
}
