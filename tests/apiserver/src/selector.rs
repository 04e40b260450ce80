//! Label and field selectors.

use crate::error::ApiError;
use crate::resource::ResourceInfo;
use serde_json::Value;

/// The objects of a list or a watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    Absent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    field: String,
    value: String,
    is_equal: bool,
}

impl Selection {
    /// Checks the syntax alone, which comes before everything else about a list.
    pub(crate) fn check(labels: &str, fields: &str) -> Result<(), ApiError> {
        parse_labels(labels).map_err(ApiError::bad_request)?;
        parse_fields(fields).map_err(ApiError::bad_request)?;
        Ok(())
    }

    pub(crate) fn parse(resource: &ResourceInfo, labels: &str, fields: &str) -> Result<Self, ApiError> {
        let labels = parse_labels(labels).map_err(ApiError::bad_request)?;
        let requirements = parse_fields(fields).map_err(ApiError::bad_request)?;
        for requirement in &requirements {
            if !resource.has_field_label(&requirement.field) {
                return Err(ApiError::bad_request(resource.unknown_field_label(&requirement.field)));
            }
        }
        Ok(Self { labels, fields: requirements })
    }

    /// Selects the object of one name among those that are selected.
    pub(crate) fn and_name(mut self, name: &str) -> Self {
        self.fields.push(FieldRequirement {
            field: "metadata.name".to_owned(),
            value: name.to_owned(),
            is_equal: true,
        });
        self
    }

    /// Returns true if at most one object of a namespace is selected.
    pub(crate) fn is_single(&self) -> bool {
        self.fields.iter().any(|requirement| requirement.field == "metadata.name" && requirement.is_equal)
    }

    /// Returns the namespace of all that is selected.
    pub(crate) fn namespace(&self) -> Option<&str> {
        let of = |requirement: &&FieldRequirement| requirement.field == "metadata.namespace" && requirement.is_equal;
        self.fields.iter().find(of).map(|requirement| &*requirement.value)
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn selects(&self, object: &Value) -> bool {
        self.fields.iter().all(|requirement| requirement.holds(object)) && labels_hold(&self.labels, object)
    }
}

impl FieldRequirement {
    fn holds(&self, object: &Value) -> bool {
        let path = format!("/{}", self.field.replace('.', "/"));
        let value = match object.pointer(&path) {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(other) => other.to_string(),
        };
        (value == self.value) == self.is_equal
    }
}

fn labels_hold(requirements: &[Requirement], object: &Value) -> bool {
    let labels = object.pointer("/metadata/labels");
    requirements.iter().all(|requirement| {
        let value = labels.and_then(|labels| labels.get(&requirement.key)).and_then(Value::as_str);
        requirement.holds(value)
    })
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let is_listed = value.is_some_and(|value| self.values.iter().any(|it| it == value));
        match self.operator {
            Operator::In => is_listed,
            Operator::NotIn => !is_listed,
            Operator::Exists => value.is_some(),
            Operator::Absent => value.is_none(),
        }
    }
}

/// Returns true if a `LabelSelector` object selects an object. An absent one selects all.
pub(crate) fn label_selector_selects(selector: &Value, object: &Value) -> bool {
    let mut requirements = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        let values = vec![value.as_str().unwrap_or_default().to_owned()];
        requirements.push(Requirement { key: key.clone(), operator: Operator::In, values });
    }
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
        let operator = match text("operator") {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            _ => Operator::Absent,
        };
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values = values.filter_map(|value| value.as_str().map(str::to_owned)).collect();
        requirements.push(Requirement { key: text("key").to_owned(), operator, values });
    }
    labels_hold(&requirements, object)
}

fn parse_fields(text: &str) -> Result<Vec<FieldRequirement>, String> {
    let terms = text.split(',').filter(|term| !term.is_empty());
    terms
        .map(|term| {
            let split = term.split_once("!=").map(|(field, value)| (field, value, false));
            let split = split.or_else(|| term.split_once("==").map(|(field, value)| (field, value, true)));
            let split = split.or_else(|| term.split_once('=').map(|(field, value)| (field, value, true)));
            let (field, value, is_equal) =
                split.ok_or_else(|| format!("invalid field selector: \"{term}\"; can't understand '{term}'"))?;
            Ok(FieldRequirement { field: field.to_owned(), value: value.to_owned(), is_equal })
        })
        .collect()
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, String> {
    let mut terms = Vec::new();
    let (mut depth, mut term) = (0_u32, String::new());
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                terms.push(std::mem::take(&mut term));
                continue;
            }
            _ => {}
        }
        term.push(character);
    }
    terms.push(term);
    terms.iter().map(|term| term.trim()).filter(|term| !term.is_empty()).map(parse_requirement).collect()
}

fn parse_requirement(term: &str) -> Result<Requirement, String> {
    let one = |key: &str, operator, value: &str| {
        Ok(Requirement { key: key.trim().to_owned(), operator, values: vec![value.trim().to_owned()] })
    };
    if let Some((head, list)) = term.strip_suffix(')').and_then(|term| term.split_once('(')) {
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        let (key, operator) = match head.trim().rsplit_once(' ') {
            Some((key, "in")) => (key, Operator::In),
            Some((key, "notin")) => (key, Operator::NotIn),
            _ => return Err(format!("unable to parse requirement: {term}")),
        };
        return Ok(Requirement { key: key.trim().to_owned(), operator, values });
    }
    if let Some((key, value)) = term.split_once("!=") {
        return one(key, Operator::NotIn, value);
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return one(key, Operator::In, value);
    }
    let (key, operator) = match term.strip_prefix('!') {
        Some(key) => (key, Operator::Absent),
        None => (term, Operator::Exists),
    };
    if let Some(second) = key.split_whitespace().nth(1) {
        let expected = "in, notin, =, ==, !=, gt, lt";
        return Err(format!("unable to parse requirement: found '{second}', expected: {expected}"));
    }
    if key.contains(['(', ')', '!']) {
        return Err(format!("unable to parse requirement: {term}"));
    }
    Ok(Requirement { key: key.to_owned(), operator, values: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_are_selected() {
        let object = json!({"metadata": {"labels": {"a": "b", "c": ""}}});
        let holds = |text| labels_hold(&parse_labels(text).unwrap(), &object);
        for text in ["", "a=b", "a==b,c", "a in (x, b),!d", "d notin (x)", "a!=x", "d!=x"] {
            assert!(holds(text), "{text}");
        }
        for text in ["a=x", "!a", "d", "a notin (b)", "d in (x)", "a!=b"] {
            assert!(!holds(text), "{text}");
        }
        assert!(parse_labels("a b").is_err());
    }
}
