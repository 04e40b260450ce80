//! Settings of the entries for objects: policy, timeout, conditions and selectors.
//!
//! They are checked at the start as far as that is possible without an API server, so that a mistake does not fail the
//! registration minutes later. They serialize in the form that the API server returns; any other form would differ from the
//! stored object at every resync.

use super::rules::EntryConditions;
use super::stored::TOUCHES;
use kube_unions_core::names::is_dns_subdomain;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// Most conditions of a user. The API server accepts one more for an entry, which is ours.
const MOST_CONDITIONS: usize = 63;

/// Most seconds that the API server waits for an answer about a write of a built-in type that it allows without one.
const MOST_BUILTIN_SECONDS: u8 = 2;

/// Longest name or value of a label, in bytes.
const LONGEST_NAME: usize = 63;

/// Settings of the entries for objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryOptions {
    /// The fate of a write of a custom resource.
    pub failure_policy: FailurePolicy,
    /// The fate of a write of a built-in type.
    pub builtin_failure_policy: FailurePolicy,
    /// Seconds that the API server waits for an answer, from 1 to 30.
    pub timeout_seconds: u8,
    /// Conditions that a request meets to be reviewed.
    pub match_conditions: MatchConditions,
    /// True if writes that touch no union are not sent.
    pub skips_untouched: bool,
    /// The objects that are reviewed.
    pub object_selector: LabelSelector,
    /// The namespaces whose objects are reviewed, without those that are always excluded.
    pub namespace_selector: LabelSelector,
}

/// Fate of a write when the webhook cannot be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum FailurePolicy {
    /// Fail the write.
    Fail,
    /// Allow the write.
    Ignore,
}

/// One condition: a CEL expression with a name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MatchCondition {
    name: String,
    expression: String,
}

/// A Kubernetes label selector. Parses from JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LabelSelector {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    match_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    match_expressions: Vec<Requirement>,
}

/// One requirement of a [`LabelSelector`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    key: String,
    operator: Operator,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// Conditions, parsed from a JSON list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MatchConditions(pub Vec<MatchCondition>);

impl Default for EntryOptions {
    fn default() -> Self {
        Self {
            failure_policy: FailurePolicy::Fail,
            builtin_failure_policy: FailurePolicy::Ignore,
            timeout_seconds: 5,
            match_conditions: MatchConditions::default(),
            skips_untouched: true,
            object_selector: LabelSelector::default(),
            namespace_selector: LabelSelector::default(),
        }
    }
}

impl EntryOptions {
    /// Returns which conditions entries may have. `refused`: the expressions that an API server refuses. `others`: the bytes that an
    /// entry has beside these settings and its rules.
    pub(super) fn conditions<'r>(&self, refused: &'r BTreeSet<String>, others: usize) -> EntryConditions<'r> {
        if !self.skips_untouched {
            return EntryConditions::None;
        }
        let settings = json!([self.namespace_selector, self.object_selector, self.match_conditions.0]);
        EntryConditions::AllBut { refused, repeated: others.saturating_add(settings.to_string().len()) }
    }

    /// Returns the seconds that the API server waits for an answer about a built-in type. A write that is allowed without an answer does
    /// not wait long for one.
    pub(super) fn builtin_timeout_seconds(&self) -> u8 {
        match self.builtin_failure_policy {
            FailurePolicy::Fail => self.timeout_seconds,
            FailurePolicy::Ignore => self.timeout_seconds.min(MOST_BUILTIN_SECONDS),
        }
    }
}

impl MatchConditions {
    /// Returns these conditions and ours behind them.
    pub(super) fn with(&self, touches: Option<&str>) -> Self {
        let ours =
            touches.map(|expression| MatchCondition { name: TOUCHES.to_owned(), expression: expression.to_owned() });
        Self(self.0.iter().cloned().chain(ours).collect())
    }
}

impl LabelSelector {
    /// Returns this selector with a first requirement for each of `keys`: the label has none of the values.
    pub(super) fn excluding(&self, keys: impl IntoIterator<Item = (&'static str, Vec<String>)>) -> Self {
        let exclusion =
            |(key, values): (&str, Vec<String>)| Requirement { key: key.to_owned(), operator: Operator::NotIn, values };
        let mut match_expressions: Vec<_> = keys.into_iter().map(exclusion).collect();
        match_expressions.extend(self.match_expressions.iter().cloned());
        Self { match_labels: self.match_labels.clone(), match_expressions }
    }

    fn check(self) -> Result<Self, String> {
        for (key, value) in &self.match_labels {
            check_key(key)?;
            check_value(value)?;
        }
        for Requirement { key, operator, values } in &self.match_expressions {
            check_key(key)?;
            values.iter().try_for_each(|value| check_value(value))?;
            match operator {
                Operator::In | Operator::NotIn if values.is_empty() => {
                    return Err(format!("`{key}`: `In` and `NotIn` need at least one value"));
                }
                Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                    return Err(format!("`{key}`: `Exists` and `DoesNotExist` take no values"));
                }
                Operator::In | Operator::NotIn | Operator::Exists | Operator::DoesNotExist => {}
            }
        }
        Ok(self)
    }
}

impl FromStr for LabelSelector {
    /// The reason why the API server would refuse it.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::<Self>(text, '{', r#"{"matchLabels":{"team":"shop"}}"#)?.check()
    }
}

impl FromStr for MatchConditions {
    /// The reason why the API server would refuse them.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXAMPLE: &str = r#"[{"name":"not-argo","expression":"request.userInfo.username != 'argo'"}]"#;
        let conditions: Vec<MatchCondition> = parse(text, '[', EXAMPLE)?;
        let count = conditions.len();
        if count > MOST_CONDITIONS {
            return Err(format!("{count} conditions are too many: use at most {MOST_CONDITIONS}"));
        }
        let mut names = BTreeSet::new();
        for MatchCondition { name, expression } in &conditions {
            check_key(name)
                .map_err(|_| format!("invalid condition name `{name}`: use letters, digits, `-`, `_` and `.`"))?;
            if name == TOUCHES || !names.insert(name) {
                return Err(format!("duplicate condition name `{name}`: give each condition its own name"));
            }
            if expression.trim().is_empty() {
                return Err(format!("the condition `{name}` has no expression: give it one in CEL"));
            }
        }
        Ok(Self(conditions))
    }
}

/// Parses JSON whose first character is `begins`.
fn parse<T: for<'de> Deserialize<'de>>(text: &str, begins: char, example: &str) -> Result<T, String> {
    let fail = |reason: &dyn fmt::Display| format!("{reason}: use JSON, for example {example}");
    if !text.trim_start().starts_with(begins) {
        return Err(fail(&format_args!("expected `{begins}` at the beginning")));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| fail(&error))?;
    // Serde also parses a struct from a list of its fields.
    let lists = [Some(&value), value.get("matchExpressions")];
    if lists.into_iter().flatten().filter_map(Value::as_array).flatten().any(|item| !item.is_object()) {
        return Err(fail(&"expected a list of objects"));
    }
    serde_json::from_value(value).map_err(|error| fail(&error))
}

fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    if is_name(name) && prefix.is_none_or(is_dns_subdomain) {
        return Ok(());
    }
    let remedy = "use letters, digits, `-`, `_` and `.`, with an optional DNS prefix before one `/`";
    Err(format!("invalid label key `{key}`: {remedy}"))
}

fn check_value(value: &str) -> Result<(), String> {
    if value.is_empty() || is_name(value) {
        return Ok(());
    }
    Err(format!("invalid label value `{value}`: use at most 63 letters, digits, `-`, `_` and `.`"))
}

/// Returns true for letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_name(text: &str) -> bool {
    let outer = |it: Option<char>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    text.len() <= LONGEST_NAME
        && text.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.'))
        && outer(text.chars().next())
        && outer(text.chars().next_back())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_serializes_as_the_api_server_returns_it() {
        for (text, want) in [
            ("{}", json!({})),
            (r#" {"matchLabels": {}, "matchExpressions": []}"#, json!({})),
            (r#"{"matchLabels": {"a.b/c": "d"}}"#, json!({"matchLabels": {"a.b/c": "d"}})),
            (
                r#"{"matchExpressions": [{"key": "a", "operator": "Exists", "values": []}, {"key": "b", "operator": "In", "values": ["y", "x"]}]}"#,
                json!({"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "In", "values": ["y", "x"]}]}),
            ),
        ] {
            let selector: LabelSelector = text.parse().unwrap();
            assert_eq!(serde_json::to_value(&selector).unwrap(), want, "{text}");
        }
    }

    #[test]
    fn a_selector_that_the_api_server_would_refuse_does_not_parse() {
        for (text, reason) in [
            ("", "expected `{`"),
            ("[]", "expected `{`"),
            ("null", "expected `{`"),
            ("{", "EOF"),
            (r#"{"matchLabel": {}}"#, "unknown field `matchLabel`"),
            (r#"{"matchLabels": {"a": 1}}"#, "invalid type"),
            (r#"{"matchLabels": {"a b": "c"}}"#, "invalid label key `a b`"),
            (r#"{"matchLabels": {"A.b/c": "c"}}"#, "invalid label key `A.b/c`"),
            (r#"{"matchLabels": {"a/b/c": "c"}}"#, "invalid label key `a/b/c`"),
            (r#"{"matchLabels": {"": "c"}}"#, "invalid label key ``"),
            (r#"{"matchLabels": {"a": "-c"}}"#, "invalid label value `-c`"),
            (r#"{"matchExpressions": [{"key": "a", "operator": "Is"}]}"#, "unknown variant `Is`"),
            (r#"{"matchExpressions": [{"key": "a", "operator": "In"}]}"#, "need at least one value"),
            (r#"{"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}"#, "take no values"),
            (r#"{"matchExpressions": [{"operator": "Exists"}]}"#, "missing field `key`"),
            (r#"{"matchExpressions": [["a", "Exists"]]}"#, "expected a list of objects"),
        ] {
            let error = text.parse::<LabelSelector>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn conditions_need_unique_names_and_expressions() {
        let conditions: MatchConditions = r#"[{"name": "a.example/b", "expression": "true"}]"#.parse().unwrap();
        assert_eq!(
            serde_json::to_value(&conditions.0).unwrap(),
            json!([{"name": "a.example/b", "expression": "true"}])
        );
        assert_eq!("[]".parse::<MatchConditions>().unwrap().0, []);
        let many: Vec<_> = (0..64).map(|number| json!({"name": format!("n{number}"), "expression": "true"})).collect();
        for (text, reason) in [
            ("{}", "expected `[`"),
            (r#"[["a", "true"]]"#, "expected a list of objects"),
            (r#"[{"name": "a"}]"#, "missing field `expression`"),
            (r#"[{"name": "a", "expression": "true", "more": 1}]"#, "unknown field `more`"),
            (r#"[{"name": "a b", "expression": "true"}]"#, "invalid condition name `a b`"),
            (r#"[{"name": "a", "expression": " "}]"#, "the condition `a` has no expression"),
            (
                r#"[{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]"#,
                "duplicate condition name `a`",
            ),
            (r#"[{"name": "touches-a-union.kube-unions.dev", "expression": "true"}]"#, "duplicate condition name"),
            (&json!(many).to_string(), "64 conditions are too many"),
        ] {
            let error = text.parse::<MatchConditions>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn exclusions_precede_other_requirements() {
        let asked: LabelSelector =
            r#"{"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}"#.parse().unwrap();
        let all = asked.excluding([("d", vec!["e".to_owned()])]);
        assert_eq!(
            serde_json::to_value(&all).unwrap(),
            json!({"matchLabels": {"a": "b"}, "matchExpressions": [
                {"key": "d", "operator": "NotIn", "values": ["e"]}, {"key": "c", "operator": "Exists"},
            ]})
        );
    }
}
