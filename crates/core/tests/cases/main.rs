//! The rules as rows of data: every file under `tests/cases`, except those with a runner of their own. Each row is a test:
//! `cargo test -p kube-unions-core --test cases -- "a null beside the member"`.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets what it did not expect is meant to stop there"
)]

use fixtures::applies::{CLIENT_SIDE_APPLY, LAST_APPLIED, field_set};
use fixtures::cases::{Alone, Applied, Mode, Row, Suite, Way};
use fixtures::laws::admit_lawfully;
use fixtures::reviews::{self, GROUP, Verdict, Write, reversed, thing};
use kube_unions_core::admission::{Phase, Ratcheting};
use kube_unions_core::catalog::Catalog;
use libtest_mimic::{Arguments, Trial};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// Returns the metadata of an object with this evidence, which is of a manifest of the request's field manager.
fn metadata(schema: &Value, evidence: &Applied, own: Option<&Value>, subresource: Option<&str>) -> Value {
    let entry = |manager: &str, manifest: &Value| {
        let mut entry = json!({"manager": manager, "operation": "Apply", "apiVersion": format!("{GROUP}/v1"),
            "fieldsType": "FieldsV1", "fieldsV1": field_set(schema, manifest)});
        if let Some(subresource) = subresource {
            entry["subresource"] = json!(subresource);
        }
        entry
    };
    let mut metadata = thing(&json!({}))["metadata"].clone();
    let mut entries: Vec<Value> = evidence.other.iter().map(|other| entry("other", other)).collect();
    if let Some(updated) = &evidence.updated {
        let mut update = entry("own", updated);
        update["operation"] = json!("Update");
        entries.push(update);
    }
    match (evidence.way, own) {
        (Way::ServerSide, Some(own)) => entries.push(entry("own", own)),
        (Way::ClientSide | Way::Patch, Some(own)) => {
            metadata["annotations"] = json!({ LAST_APPLIED: thing(own).to_string() });
        }
        (_, None) => {}
    }
    if !entries.is_empty() {
        metadata["managedFields"] = json!(entries);
    }
    metadata
}

fn write_of(row: &Row, schema: &Value) -> Write {
    let (mut old, mut new) = (row.old.as_ref().map(thing), row.new.as_ref().map(thing));
    if let Some(applied) = &row.applied {
        let metadata = |own| metadata(schema, applied, own, row.subresource.as_deref());
        if let Some(new) = &mut new {
            new["metadata"] = metadata(applied.manifest.as_ref().or(row.new.as_ref()));
        }
        if let Some(old) = &mut old {
            old["metadata"] = metadata(applied.earlier.as_ref());
        }
    }
    let default = if old.is_some() { "UPDATE" } else { "CREATE" };
    Write {
        operation: row.operation.clone().unwrap_or_else(|| default.to_owned()),
        subresource: row.subresource.clone(),
        ratcheting: match row.ratcheting {
            Mode::Enabled => Ratcheting::Enabled,
            Mode::Disabled => Ratcheting::Disabled,
        },
        old,
        new,
        dry_run: false,
        field_manager: row.applied.as_ref().map(|applied| match applied.way {
            Way::ServerSide => "own".to_owned(),
            Way::ClientSide => CLIENT_SIDE_APPLY.to_owned(),
            Way::Patch => "kubectl-patch".to_owned(),
        }),
    }
}

fn hold(row: &Row, catalog: &Catalog, suite: &Suite) {
    let alone = suite.phase;
    let write = write_of(row, &suite.schema);
    let answer_to = |write: &Write| match alone {
        None => reviews::admit(catalog, write),
        Some(Alone::Mutate) => reviews::ask(catalog, Phase::Mutate, write),
        Some(Alone::Validate) => reviews::ask(catalog, Phase::Validate, write),
    };
    // Both webhooks together keep the invariants, whatever one of them does.
    let lawful = admit_lawfully(catalog, &write);
    let answer = if alone.is_some() { answer_to(&write) } else { lawful };
    let wanted = match (&row.want, &row.want_causes) {
        (Some(want), None) => {
            assert_ne!(row.new.as_ref(), Some(want), "an object that stays as it is has no `want`");
            let mut want = thing(want);
            want["metadata"].clone_from(&write.new.as_ref().expect("an object")["metadata"]);
            Verdict::Allowed(Some(want))
        }
        (None, None) => Verdict::Allowed(write.new.clone()),
        (None, Some(causes)) => Verdict::Denied(causes.clone()),
        (Some(_), Some(_)) => panic!("a row wants one of `want` and `wantCauses`"),
    };
    assert_eq!(answer.verdict, wanted, "\n got: {:#?}\nwant: {wanted:#?}", answer.verdict);
    let is_unchanged = row.want.is_none() && row.want_causes.is_none();
    if is_unchanged || row.want_warnings.is_some() {
        assert_eq!(answer.warnings, row.want_warnings.clone().unwrap_or_default());
    }
    assert_eq!(answer.audited, row.want_audited);
    if is_unchanged {
        assert!(answer.operations.is_empty(), "no operation where nothing changes: {:?}", answer.operations);
    }
    let dry_run = answer_to(&Write { dry_run: true, ..write });
    assert_eq!(dry_run, answer, "a dry run is treated alike");
}

/// A file of rows, and its definition with its keys in both orders: their order must not matter, as in the objects.
struct CasesFile {
    suite: Suite,
    catalogs: OnceLock<[Catalog; 2]>,
}

impl CasesFile {
    fn hold(&self, row: usize) {
        let in_order = |order| self.suite.catalog_in_order(GROUP, "Thing", order);
        let catalogs = self.catalogs.get_or_init(|| [Value::clone, reversed].map(in_order));
        for catalog in catalogs {
            hold(&self.suite.rows[row], catalog, &self.suite);
        }
    }
}

fn hold_to_the_form(suites: &BTreeMap<String, BTreeSet<String>>, rows: usize) {
    assert!(suites.len() > 10 && rows > 100, "only {rows} rows in {} files were found", suites.len());
    assert_eq!(suites.values().map(BTreeSet::len).sum::<usize>(), rows, "two rows of a file have one description");
    assert!(suites.values().all(|rows| !rows.is_empty()), "a file has no rows");
}

/// Each row is a test. Its name is the path of its file and its description.
fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let mut names = BTreeMap::<String, BTreeSet<String>>::new();
    for (path, suite) in fixtures::cases::suites() {
        assert!(!suite.description.is_empty(), "{path} says nothing");
        names.insert(path.clone(), suite.rows.iter().map(|row| row.description.clone()).collect());
        let file = Arc::new(CasesFile { suite, catalogs: OnceLock::new() });
        for (row, Row { description, .. }) in file.suite.rows.iter().enumerate() {
            let file = Arc::clone(&file);
            trials.push(Trial::test(format!("{path}: {description}"), move || {
                file.hold(row);
                Ok(())
            }));
        }
    }
    let rows = trials.len();
    trials.push(Trial::test("the files have rows with names of their own", move || {
        hold_to_the_form(&names, rows);
        Ok(())
    }));
    libtest_mimic::run(&arguments, trials).exit();
}
