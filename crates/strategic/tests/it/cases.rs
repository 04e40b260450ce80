//! The rules of the format as rows of data, each with the answer of Go's `strategicpatch` and ours.

use crate::differential::explain::is_rule;
use fixtures::files::files;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use strategic_merge_patch::{Conflicts, PatchError, Patcher, ThreeWay};

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
    /// The answer of Go's package.
    reference: Option<ExpectedAnswer>,
    /// Our answer, if it differs or if Go's package does not know the rule.
    want: Option<ExpectedAnswer>,
    /// The name of the `Difference` that explains why our answer differs.
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
    /// The answer of Go's package depends on the order of a map.
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
                return Some(format!("is {shown}, but {want:?} is expected"));
            }
        }
        let agrees = match (self.reference.as_ref(), &ours) {
            (None, _) => return None,
            (Some(ExpectedAnswer::Result(theirs)), Ok(ours)) => theirs == ours,
            (Some(ExpectedAnswer::Error(_)), Err(_)) => true,
            _ => false,
        };
        match (agrees, &self.rule) {
            (true, Some(rule)) => Some(format!("agrees with the reference, although `{rule}` says that it differs")),
            (false, None) => Some(format!("is {shown}, not {:?}, and no rule explains it", self.reference)),
            (false, Some(_)) if self.want.is_none() => Some(format!("is {shown}, but the row has no `want`")),
            (false, Some(rule)) => (!is_rule(rule)).then(|| format!("`{rule}` is not a rule")),
            (true, None) => None,
        }
    }
}

#[test]
fn every_row_agrees_with_the_reference_or_names_the_rule_by_which_it_differs() {
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
    assert!(faults.is_empty(), "{} of {rows} rows fail:\n  {}", faults.len(), faults.join("\n  "));
}
