//! The matrix of the 2022 proposal's test plan: every combination of versions that client, server and object know, as rows
//! of `tests/cases/matrix.yaml`, which explains them.

use fixtures::files::{parse, root};
use fixtures::laws::admit_lawfully;
use fixtures::reviews::{Cause, Verdict, Write, catalog_of, thing};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Matrix {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    change: Change,
    discriminated: Vec<bool>,
    client_knows: Vec<Knows>,
    server_knows: Vec<Knows>,
    union: Vec<Need>,
    /// The client's treatment of unknown fields. If missing, both are tested.
    client: Option<Client>,
    stored: Value,
    edit: Value,
    want: Option<Value>,
    want_causes: Option<Vec<Cause>>,
    #[serde(default)]
    want_schema_error: bool,
    #[serde(default)]
    want_warnings: BTreeMap<Need, Vec<String>>,
    why: String,
}

/// The fields of the union that a write changes.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Change {
    None,
    /// A field that version 1 of the API has.
    Existing,
    /// A field that version 2 added.
    New,
}

/// The fields of the union that a participant knows.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Knows {
    All,
    /// All fields except `c`.
    Some,
}

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Need {
    Optional,
    Required,
}

#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Client {
    /// Drops unknown fields, like typed clients.
    Structured,
    /// Keeps unknown fields.
    Unstructured,
}

/// A cell of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    change: Change,
    discriminated: bool,
    client: Knows,
    server: Knows,
    union: Need,
}

impl Cell {
    fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for change in [Change::None, Change::Existing, Change::New] {
            for discriminated in [true, false] {
                for client in [Knows::All, Knows::Some] {
                    for server in [Knows::All, Knows::Some] {
                        for union in [Need::Optional, Need::Required] {
                            cells.push(Self { change, discriminated, client, server, union });
                        }
                    }
                }
            }
        }
        cells
    }

    /// Returns the schema of the server in this cell.
    fn schema(self) -> Value {
        let (mut members, mut values) = (json!({"a": "A", "b": "B", "c": "C"}), vec!["A", "B", "C"]);
        let mut properties = json!({"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}});
        if self.server == Knows::Some {
            prune(&mut members);
            prune(&mut properties);
            values.pop();
        }
        let mut spec = json!({"type": "object"});
        if self.discriminated {
            let mut choices: serde_json::Map<_, _> = members
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, value)| (value.as_str().unwrap().to_owned(), json!({"name": name})))
                .collect();
            match self.union {
                Need::Optional => {
                    values.push("");
                    choices.insert(String::new(), Value::Null);
                }
                Need::Required => spec["required"] = json!(["type"]),
            }
            properties["type"] =
                json!({"type": "string", "enum": values, "x-kubernetes-unions": {"fieldMembers": choices}});
        } else {
            spec["x-kubernetes-unions"] = json!([{"fields-to-discriminateBy": members}]);
            if self.union == Need::Required {
                let names = members.as_object().unwrap().keys();
                spec["anyOf"] = names.map(|name| json!({"required": [name]})).collect();
            }
        }
        spec["properties"] = properties;
        json!({"type": "object", "properties": {"spec": spec}})
    }

    /// Returns true if the schema accepts the union after admission.
    fn schema_accepts(self, union: &Value) -> bool {
        let schema = &self.schema()["properties"]["spec"];
        let has_all = |rule: &Value| {
            rule["required"]
                .as_array()
                .is_none_or(|names| names.iter().all(|name| union.get(name.as_str().unwrap()).is_some()))
        };
        has_all(schema) && schema["anyOf"].as_array().is_none_or(|rules| rules.iter().any(has_all))
    }
}

impl Row {
    fn cells(&self) -> Vec<Cell> {
        let mut cells = Cell::all();
        cells.retain(|cell| {
            cell.change == self.change
                && self.discriminated.contains(&cell.discriminated)
                && self.client_knows.contains(&cell.client)
                && self.server_knows.contains(&cell.server)
                && self.union.contains(&cell.union)
        });
        cells
    }

    fn play(&self, cell: Cell, client: Client) {
        let seen_by_server = |value: &Value| {
            let mut value = value.clone();
            if cell.server == Knows::Some {
                prune(&mut value);
            }
            value
        };
        if cell.client == Knows::Some {
            assert!(
                self.edit.get("c").is_none() && self.edit["type"] != "C",
                "a client can't change what it does not know"
            );
        }
        let old = seen_by_server(&self.stored);
        let mut sent = old.clone();
        if cell.client == Knows::Some && client == Client::Structured {
            prune(&mut sent);
        }
        json_patch::merge(&mut sent, &self.edit);
        let new = seen_by_server(&sent);

        let spec = |union: &Value| thing(&json!({"spec": union}));
        let answer = admit_lawfully(&catalog_of(&cell.schema()), &Write::new(Some(spec(&old)), spec(&new)));
        match (&self.want, &self.want_causes, self.want_schema_error) {
            (Some(want), None, false) => {
                assert_eq!(answer.verdict, Verdict::Allowed(Some(spec(want))));
                assert!(cell.schema_accepts(want), "the schema refuses {want}");
            }
            (None, Some(causes), false) => assert_eq!(answer.verdict, Verdict::Denied(causes.clone())),
            (None, None, true) => {
                assert_eq!(
                    answer.verdict,
                    Verdict::Allowed(Some(spec(&new))),
                    "we had nothing to object to and to change"
                );
                assert!(!cell.schema_accepts(&new), "the schema accepts {new}");
            }
            _ => panic!("a row wants one of `want`, `wantCauses` and `wantSchemaError`"),
        }
        if self.want_causes.is_none() {
            let wanted = self.want_warnings.get(&cell.union).cloned().unwrap_or_default();
            assert_eq!(answer.warnings, wanted);
        }
    }
}

/// Drops the fields that version 1 of the API does not have.
fn prune(fields: &mut Value) {
    fields.as_object_mut().unwrap().remove("c");
}

#[test]
fn every_cell_of_the_matrix_has_a_row_and_holds() {
    let path = "tests/cases/matrix.yaml";
    let matrix: Matrix = parse(path, &std::fs::read_to_string(root().join(path)).unwrap());
    let mut played = BTreeSet::new();
    let mut failures = Vec::new();
    for row in &matrix.rows {
        let cells = row.cells();
        assert!(!cells.is_empty() && !row.why.is_empty(), "a row says nothing: {}", row.why);
        for cell in cells {
            let clients = match (cell.client, row.client) {
                // A client that knows every field has no unknown fields.
                (Knows::All, _) => vec![Client::Unstructured],
                (Knows::Some, Some(client)) => vec![client],
                (Knows::Some, None) => vec![Client::Structured, Client::Unstructured],
            };
            for client in clients {
                played.insert((cell, (cell.client == Knows::Some).then_some(client)));
                if catch_unwind(AssertUnwindSafe(|| row.play(cell, client))).is_err() {
                    failures.push(format!("{cell:?}, {client:?}: {}", row.why));
                }
            }
        }
    }
    let missing: Vec<_> = Cell::all()
        .into_iter()
        .flat_map(|cell| match cell.client {
            Knows::All => vec![(cell, None)],
            Knows::Some => vec![(cell, Some(Client::Structured)), (cell, Some(Client::Unstructured))],
        })
        .filter(|cell| !played.contains(cell))
        .collect();
    assert!(missing.is_empty(), "no row for {missing:#?}");
    assert!(failures.is_empty(), "these do not hold:\n  {}", failures.join("\n  "));
}
