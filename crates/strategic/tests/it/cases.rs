//! The format's rules as rows of data, and the answers of Go's `strategicpatch` beside ours.

use crate::differential::explain::is_rule;
use fixtures::files::files;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use strategic_merge_patch::{Conflicts, PatchError, Patcher, ThreeWay};

/// Schemas and what becomes of documents under them.
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
    kind: RowKind,
    schema: String,
    #[serde(default)]
    original: Value,
    #[serde(default)]
    patch: Value,
    #[serde(default)]
    modified: Value,
    #[serde(default)]
    current: Value,
    #[serde(default)]
    overwrite: bool,
    /// What Go's package says.
    reference: Option<ExpectedAnswer>,
    /// What we say, where that is another thing or Go's package does not know the rule.
    want: Option<ExpectedAnswer>,
    /// Why it is another thing: the name of a `Difference`.
    rule: Option<String>,
}

#[derive(Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum RowKind {
    Apply,
    CreateTwoway,
    CreateThreeway,
}

/// A result, or a part of the error message.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
enum ExpectedAnswer {
    Result(Value),
    Error(String),
    /// Go's package panics.
    Panics,
    /// It is now this, now that.
    Chance,
}

impl Row {
    fn answer(&self, patcher: &Patcher) -> Result<Value, PatchError> {
        match self.kind {
            RowKind::Apply => patcher.apply(&self.original, &self.patch),
            RowKind::CreateTwoway => patcher.create_two_way(&self.original, &self.modified),
            RowKind::CreateThreeway => patcher.create_three_way(&ThreeWay {
                original: &self.original,
                modified: &self.modified,
                current: &self.current,
                conflicts: if self.overwrite { Conflicts::Overwrite } else { Conflicts::Refuse },
            }),
        }
    }

    fn fault(&self, patcher: &Patcher) -> Option<String> {
        let ours = self.answer(patcher);
        let shown = match &ours {
            Ok(value) => value.to_string(),
            Err(error) => format!("error: {error}"),
        };
        if let Some(want) = &self.want {
            let fits = match (want, &ours) {
                (ExpectedAnswer::Result(want), Ok(ours)) => want == ours,
                (ExpectedAnswer::Error(part), Err(error)) => error.to_string().contains(part),
                _ => false,
            };
            if !fits {
                return Some(format!("is {shown}, and {want:?} is wanted"));
            }
        }
        let agrees = match (self.reference.as_ref(), &ours) {
            (None, _) => return None,
            (Some(ExpectedAnswer::Result(theirs)), Ok(ours)) => theirs == ours,
            (Some(ExpectedAnswer::Error(_)), Err(_)) => true,
            _ => false,
        };
        match (agrees, &self.rule) {
            (true, Some(rule)) => Some(format!("agrees with the reference, and `{rule}` says that it does not")),
            (false, None) => Some(format!("is {shown}, not {:?}, and no rule says why", self.reference)),
            (false, Some(_)) if self.want.is_none() => Some(format!("is {shown}: say what is wanted")),
            (false, Some(rule)) => (!is_rule(rule)).then(|| format!("`{rule}` is no rule")),
            (true, None) => None,
        }
    }
}

#[test]
fn every_row_is_as_the_reference_has_it_or_says_by_which_rule_it_is_not() {
    let mut faults = Vec::new();
    let mut rows = 0;
    for (path, text) in files("tests/cases/strategic", "json") {
        let suite: Suite = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let names: BTreeSet<_> = suite.rows.iter().map(|row| &row.description).collect();
        assert_eq!(names.len(), suite.rows.len(), "{path}: two rows have one description");
        for row in &suite.rows {
            rows += 1;
            let mut schema = suite.schemas[&row.schema].clone();
            if !suite.definitions.is_null() {
                schema["definitions"] = suite.definitions.clone();
            }
            let patcher = Patcher::from_json_schema(&row.schema, &json!(schema).to_string()).unwrap();
            faults.extend(row.fault(&patcher).map(|fault| format!("{path}: {}: {fault}", row.description)));
        }
    }
    assert!(rows > 150, "only {rows} rows were found");
    assert!(faults.is_empty(), "{} of {rows} rows do not hold:\n  {}", faults.len(), faults.join("\n  "));
}
