//! The matrix of the 2022 proposal's test plan: every combination of versions that client, server and object know, as rows
//! of `tests/cases/matrix.yaml`, which explains them.

use fixtures::laws::admit_lawfully;
use fixtures::matrix::{Cell, Client, Row, play};
use fixtures::reviews::{Verdict, Write, catalog_of, thing};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn hold(row: &Row, cell: Cell, client: Client) {
    let old = row.old(cell.server);
    let new = cell.server.sees(&row.sent(cell, client, &old));
    let spec = |union: &Value| thing(&json!({"spec": union}));
    let answer = admit_lawfully(&catalog_of(&cell.schema()), &Write::new(Some(spec(&old)), spec(&new)));
    match (&row.want, &row.want_causes, row.want_schema_error) {
        (Some(want), None, false) => {
            assert_eq!(answer.verdict, Verdict::Allowed(Some(spec(want))));
            assert!(cell.schema_accepts(want), "the schema refuses {want}");
        }
        (None, Some(causes), false) => return assert_eq!(answer.verdict, Verdict::Denied(causes.clone())),
        (None, None, true) => {
            assert_eq!(answer.verdict, Verdict::Allowed(Some(spec(&new))), "we had nothing to object to and to change");
            assert!(!cell.schema_accepts(&new), "the schema accepts {new}");
        }
        _ => panic!("a row wants one of `want`, `wantCauses` and `wantSchemaError`"),
    }
    assert_eq!(answer.warnings, row.want_warnings);
}

#[test]
fn every_cell_of_the_matrix_has_a_row_and_holds() {
    play(|row, cell, client| {
        catch_unwind(AssertUnwindSafe(|| hold(row, cell, client))).map_err(|_| "see above".to_owned())
    });
}
