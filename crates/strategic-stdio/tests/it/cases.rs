//! The rules of the format as rows of data, each with the answer of Go's `strategicpatch` and ours, through the protocol. The answers are
//! a file of data, which the tests of other languages read.

use super::json_schema;
use fixtures::files::{assert_generated, files};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use strategic_merge_patch_stdio::serve;

/// Schemas and the rows that use them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    #[serde(default)]
    definitions: Value,
    schemas: BTreeMap<String, Value>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    description: String,
    kind: String,
    schema: String,
    original: Option<Box<RawValue>>,
    patch: Option<Box<RawValue>>,
    modified: Option<Box<RawValue>>,
    current: Option<Box<RawValue>>,
    #[serde(default)]
    overwrite: bool,
    /// The answer of Go's package.
    reference: Option<ExpectedAnswer>,
    /// Our answer, if it differs or if Go's package does not know the rule.
    want: Option<ExpectedAnswer>,
    /// The name of the `Difference` that explains why our answer differs.
    rule: Option<String>,
}

/// A result, or a part of the error message.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
enum ExpectedAnswer {
    Result(Value),
    Error(String),
    /// Go's package panics.
    Panics,
    /// The answer of Go's package depends on the order of a map.
    Chance,
}

impl Row {
    fn method(&self) -> &str {
        match &*self.kind {
            "apply" => "apply",
            "create-twoway" => "createTwoWay",
            "create-threeway" => "createThreeWay",
            other => panic!("{other}"),
        }
    }

    /// Returns the request as text, since a `Value` would change numbers.
    fn request(&self) -> String {
        let mut params = format!(r#""schema":"{}""#, self.schema);
        let [original, patch] = [("original", &self.original), ("patch", &self.patch)];
        let [modified, current] = [("modified", &self.modified), ("current", &self.current)];
        let roles: &[_] = match self.method() {
            "apply" => &[original, patch],
            "createTwoWay" => &[original, modified],
            _ => &[original, modified, current],
        };
        for (role, document) in roles {
            write!(params, r#","{role}":{}"#, document.as_deref().map_or("null", RawValue::get)).unwrap();
        }
        if self.method() == "createThreeWay" {
            params += if self.overwrite { r#","conflicts":"overwrite""# } else { r#","conflicts":"refuse""# };
        }
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\",\"params\":{{{params}}}}}\n", self.method())
    }

    /// Returns how our answer contradicts the row.
    fn fault(&self, ours: &Result<Value, String>) -> Option<String> {
        let fits = match (&self.want, ours) {
            (None, _) => true,
            (Some(ExpectedAnswer::Result(want)), Ok(ours)) => want == ours,
            (Some(ExpectedAnswer::Error(part)), Err(error)) => error.contains(part),
            (Some(_), _) => false,
        };
        if !fits {
            return Some(format!("is {ours:?}, but {:?} is expected", self.want));
        }
        let agrees = match (self.reference.as_ref()?, ours) {
            (ExpectedAnswer::Result(theirs), Ok(ours)) => theirs == ours,
            (ExpectedAnswer::Error(_), Err(_)) => true,
            _ => false,
        };
        match (agrees, &self.rule) {
            (true, Some(rule)) => Some(format!("agrees with the reference, although `{rule}` says that it differs")),
            (false, None) => Some(format!("is {ours:?}, not {:?}, and no rule explains it", self.reference)),
            (false, Some(_)) if self.want.is_none() => Some(format!("is {ours:?}, but the row has no `want`")),
            (_, _) => None,
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

#[test]
fn every_row_agrees_with_the_reference_or_differs_by_a_rule_and_has_the_answer_of_the_file_of_answers() {
    let (mut found, mut faults) = (String::new(), Vec::new());
    let mut rows = 0;
    for (path, suite) in files("tests/cases/strategic", "json") {
        let suite: Suite = serde_json::from_str(&suite).unwrap_or_else(|error| panic!("{path}: {error}"));
        let names: BTreeSet<_> = suite.rows.iter().map(|row| &row.description).collect();
        assert_eq!(names.len(), suite.rows.len(), "{path}: two rows have one description");
        for row in &suite.rows {
            rows += 1;
            let mut schema = suite.schemas[&row.schema].clone();
            if !suite.definitions.is_null() {
                schema["definitions"] = suite.definitions.clone();
            }
            let define = super::request(0, "define", &json_schema(&row.schema, &schema));
            let mut lines = Vec::new();
            serve((define + &row.request()).as_bytes(), &mut lines).unwrap();
            let lines = String::from_utf8(lines).unwrap();
            let answer: Answer = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
            let read = |text: &RawValue| serde_json::from_str::<Value>(text.get()).unwrap();
            let (member, text, ours) = match (&answer.result, &answer.error) {
                (Some(result), _) => ("result", result, Ok(read(result))),
                (None, Some(error)) => ("error", error, Err(read(error)["message"].as_str().unwrap().to_owned())),
                (None, None) => panic!("{lines}"),
            };
            faults.extend(row.fault(&ours).map(|fault| format!("{path}: {}: {fault}", row.description)));
            let (file, description) = (json!(path), json!(row.description));
            writeln!(found, r#"{{"file":{file},"description":{description},"{member}":{}}}"#, text.get()).unwrap();
        }
    }
    assert!(rows > 150, "only {rows} rows were found");
    assert!(faults.is_empty(), "{} of {rows} rows fail:\n  {}", faults.len(), faults.join("\n  "));
    let command = "KUBE_UNIONS_UPDATE=1 cargo test --locked -p strategic-merge-patch-stdio --test it cases";
    assert_generated("tests/cases/strategic/answers.jsonl", &found, command);
}
