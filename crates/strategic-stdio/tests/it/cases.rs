//! Every row of the patch engine through the protocol. The answers are a file of data, which the tests of other languages read. That they
//! are right, the tests of the crate `strategic-merge-patch` check.

use super::json_schema;
use fixtures::files::{assert_generated, files};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use strategic_merge_patch_stdio::serve;

#[derive(Deserialize)]
struct Suite {
    #[serde(default)]
    definitions: Value,
    schemas: BTreeMap<String, Value>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
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
        let roles: &[_] = match self.method() {
            "apply" => &[("original", self.original.as_deref()), ("patch", self.patch.as_deref())],
            "createTwoWay" => &[("original", self.original.as_deref()), ("modified", self.modified.as_deref())],
            _ => &[
                ("original", self.original.as_deref()),
                ("modified", self.modified.as_deref()),
                ("current", self.current.as_deref()),
            ],
        };
        for (role, document) in roles {
            write!(params, r#","{role}":{}"#, text(*document)).unwrap();
        }
        if self.method() == "createThreeWay" {
            params += if self.overwrite { r#","conflicts":"overwrite""# } else { r#","conflicts":"refuse""# };
        }
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\",\"params\":{{{params}}}}}\n", self.method())
    }
}

fn text(document: Option<&RawValue>) -> &str {
    document.map_or("null", RawValue::get)
}

#[derive(Deserialize)]
struct Answer {
    result: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
}

#[test]
fn every_row_has_the_answer_of_the_file_of_answers() {
    let mut found = String::new();
    let mut rows = 0;
    for (path, suite) in files("tests/cases/strategic", "json") {
        let suite: Suite = serde_json::from_str(&suite).unwrap();
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
            let (member, text) = match (&answer.result, &answer.error) {
                (Some(result), _) => ("result", result),
                (None, error) => ("error", error.as_ref().unwrap_or_else(|| panic!("{lines}"))),
            };
            let (file, description) = (json!(path), json!(row.description));
            writeln!(found, r#"{{"file":{file},"description":{description},"{member}":{}}}"#, text.get()).unwrap();
        }
    }
    assert!(rows > 150, "only {rows} rows were found");
    let command = "KUBE_UNIONS_UPDATE=1 cargo test --locked -p strategic-merge-patch-stdio --test it cases";
    assert_generated("tests/cases/strategic/answers.jsonl", &found, command);
}
