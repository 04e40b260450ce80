//! The rules as rows of data: every file under `tests/cases`, except those with a runner of their own.

use fixtures::applies::{CLIENT_SIDE_APPLY, LAST_APPLIED, field_set};
use fixtures::files::{files, parse};
use fixtures::laws::admit_lawfully;
use fixtures::reviews::{
    self, Cause, GROUP, Verdict, Write, declaration, declared_catalog, definition, reversed, thing, version,
};
use kube_unions_core::admission::{Phase, Ratcheting};
use kube_unions_core::catalog::Catalog;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A schema and writes under it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Suite {
    description: String,
    schema: Value,
    /// The annotation for the version: JSON Pointer to extension.
    annotation: Option<Value>,
    /// The schema as it was applied, before the API server dropped the extension.
    last_applied: Option<Value>,
    /// The specs of `UnionDeclaration`s of the kind, by name, without their target.
    #[serde(default)]
    declarations: BTreeMap<String, Value>,
    #[serde(default)]
    status_subresource: bool,
    /// Runs only this webhook. Otherwise mutation and then validation run.
    phase: Option<Alone>,
    rows: Vec<Row>,
}

/// A write and its expected result. Objects have no `apiVersion`, `kind` and `metadata`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    description: String,
    operation: Option<String>,
    subresource: Option<String>,
    #[serde(default)]
    ratcheting: Mode,
    old: Option<Value>,
    new: Option<Value>,
    /// The manifest that the request applies, if it is an apply.
    applied: Option<Applied>,
    /// Accepted with changes, as this object.
    want: Option<Value>,
    /// Accepted as it was sent.
    #[serde(default)]
    want_unchanged: bool,
    /// Denied for these reasons, in this order.
    want_causes: Option<Vec<Cause>>,
    /// Accepted with these warnings, in this order.
    want_warnings: Option<Vec<String>>,
    /// The violations in the audit annotation `audited`, in this order.
    #[serde(default)]
    want_audited: Vec<String>,
}

/// The evidence of an apply by the field manager `own`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Applied {
    way: Way,
    /// The manifest, the new object if it is not given.
    manifest: Option<Value>,
    /// The manifest of the apply before.
    earlier: Option<Value>,
    /// The fields that the request's field manager set by updates.
    updated: Option<Value>,
    /// The manifest of another field manager.
    other: Option<Value>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
enum Way {
    ServerSide,
    ClientSide,
    /// The request is a patch by another client. The evidence is that of a client-side apply before.
    Patch,
}

impl Applied {
    /// Returns the metadata of an object with this evidence, which is of a manifest of the request's field manager.
    fn metadata(&self, own: Option<&Value>, subresource: Option<&str>) -> Value {
        let entry = |manager: &str, manifest: &Value| {
            let mut entry = json!({"manager": manager, "operation": "Apply", "apiVersion": format!("{GROUP}/v1"),
                "fieldsType": "FieldsV1", "fieldsV1": field_set(manifest)});
            if let Some(subresource) = subresource {
                entry["subresource"] = json!(subresource);
            }
            entry
        };
        let mut metadata = thing(&json!({}))["metadata"].clone();
        let mut entries: Vec<Value> = self.other.iter().map(|other| entry("other", other)).collect();
        if let Some(updated) = &self.updated {
            let mut update = entry("own", updated);
            update["operation"] = json!("Update");
            entries.push(update);
        }
        match (self.way, own) {
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
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Alone {
    Mutate,
    Validate,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Enabled,
    Disabled,
}

impl Suite {
    fn catalog(&self, arrange: impl Fn(&Value) -> Value) -> Catalog {
        let mut annotations = Map::new();
        if let Some(declared) = &self.annotation {
            let text = arrange(&json!({"v1": declared})).to_string();
            annotations.insert("kube-unions.dev/unions".to_owned(), json!(text));
        }
        if let Some(schema) = &self.last_applied {
            let applied = definition(&Map::new(), &[version("v1", schema, self.status_subresource)]);
            annotations.insert(
                "kubectl.kubernetes.io/last-applied-configuration".to_owned(),
                json!(arrange(&applied).to_string()),
            );
        }
        let definition = definition(&annotations, &[version("v1", &self.schema, self.status_subresource)]);
        let declarations: Vec<_> =
            self.declarations.iter().map(|(name, spec)| arrange(&declaration(name, GROUP, "Thing", spec))).collect();
        declared_catalog(&arrange(&definition), &declarations)
    }
}

impl Row {
    fn write(&self) -> Write {
        let (mut old, mut new) = (self.old.as_ref().map(thing), self.new.as_ref().map(thing));
        if let Some(applied) = &self.applied {
            let metadata = |own| applied.metadata(own, self.subresource.as_deref());
            if let Some(new) = &mut new {
                new["metadata"] = metadata(applied.manifest.as_ref().or(self.new.as_ref()));
            }
            if let Some(old) = &mut old {
                old["metadata"] = metadata(applied.earlier.as_ref());
            }
        }
        let default = if old.is_some() { "UPDATE" } else { "CREATE" };
        Write {
            operation: self.operation.clone().unwrap_or_else(|| default.to_owned()),
            subresource: self.subresource.clone(),
            ratcheting: match self.ratcheting {
                Mode::Enabled => Ratcheting::Enabled,
                Mode::Disabled => Ratcheting::Disabled,
            },
            old,
            new,
            dry_run: false,
            field_manager: self.applied.as_ref().map(|applied| match applied.way {
                Way::ServerSide => "own".to_owned(),
                Way::ClientSide => CLIENT_SIDE_APPLY.to_owned(),
                Way::Patch => "kubectl-patch".to_owned(),
            }),
        }
    }

    fn hold(&self, catalog: &Catalog, alone: Option<Alone>) {
        let write = self.write();
        let answer_to = |write: &Write| match alone {
            None => reviews::admit(catalog, write),
            Some(Alone::Mutate) => reviews::ask(catalog, Phase::Mutate, write),
            Some(Alone::Validate) => reviews::ask(catalog, Phase::Validate, write),
        };
        // Both webhooks together keep the invariants, whatever one of them does.
        let lawful = admit_lawfully(catalog, &write);
        let answer = if alone.is_some() { answer_to(&write) } else { lawful };
        let wanted = match (&self.want, self.want_unchanged, &self.want_causes) {
            (Some(want), false, None) => {
                assert_ne!(self.new.as_ref(), Some(want), "an object that stays as it is is `wantUnchanged`");
                let mut want = thing(want);
                want["metadata"].clone_from(&write.new.as_ref().expect("an object")["metadata"]);
                Verdict::Allowed(Some(want))
            }
            (None, true, None) => Verdict::Allowed(write.new.clone()),
            (None, false, Some(causes)) => Verdict::Denied(causes.clone()),
            _ => panic!("a row wants one of `want`, `wantUnchanged` and `wantCauses`"),
        };
        assert_eq!(answer.verdict, wanted, "\n got: {:#?}\nwant: {wanted:#?}", answer.verdict);
        match (&self.want_warnings, self.want_unchanged) {
            (Some(warnings), _) => assert_eq!(&answer.warnings, warnings),
            (None, true) => assert!(answer.warnings.is_empty(), "{:?}", answer.warnings),
            (None, false) => {}
        }
        assert_eq!(answer.audited, self.want_audited);
        if self.want_unchanged {
            assert!(answer.operations.is_empty(), "no operation where nothing changes: {:?}", answer.operations);
        }
        let dry_run = answer_to(&Write { dry_run: true, ..write });
        assert_eq!(dry_run, answer, "a dry run is treated alike");
    }
}

#[test]
fn every_row_holds() {
    let mut failures = Vec::new();
    let (mut suites, mut rows) = (0, 0);
    for (path, text) in files("tests/cases", "yaml") {
        if ["check-cel/", "declarations/", "go/", "native/"].iter().any(|it| path.starts_with(it))
            || path == "matrix.yaml"
        {
            continue;
        }
        let suite: Suite = parse(&path, &text);
        suites += 1;
        assert!(!suite.rows.is_empty() && !suite.description.is_empty(), "{path} says nothing");
        let names: BTreeSet<_> = suite.rows.iter().map(|row| &row.description).collect();
        assert_eq!(names.len(), suite.rows.len(), "{path}: two rows have one description");
        let built = catch_unwind(AssertUnwindSafe(|| [suite.catalog(Value::clone), suite.catalog(reversed)]));
        let Ok(catalogs) = built else {
            failures.push(format!("{path}: the definition"));
            continue;
        };
        for row in &suite.rows {
            rows += 1;
            // The order of keys in the definition must not matter, as in the objects.
            let held =
                catch_unwind(AssertUnwindSafe(|| catalogs.iter().for_each(|catalog| row.hold(catalog, suite.phase))));
            if held.is_err() {
                failures.push(format!("{path}: {}", row.description));
            }
        }
    }
    assert!(suites > 10 && rows > 100, "only {rows} rows in {suites} files were found");
    assert!(failures.is_empty(), "{} of {rows} rows do not hold:\n  {}", failures.len(), failures.join("\n  "));
}
