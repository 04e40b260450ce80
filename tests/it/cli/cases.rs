//! The rows of `tests/cases` through the command line: as tests of a suite, as rules, policies and schemas, and as trees.

use super::Folder;
use fixtures::cases::{Mode, Row, Suite, suites};
use fixtures::crds::custom_resource;
use fixtures::reviews::{Cause, declaration};
use serde_json::{Value, json};

const GROUP: &str = "cases.example.com";

/// Returns a folder with the CRD of each suite in `kinds`, and its declarations in `kinds/declarations`.
fn folder<'s>(suites: impl IntoIterator<Item = (&'s str, &'s Suite)>) -> Folder {
    let folder = Folder::new(&[]);
    for (kind, suite) in suites {
        folder.write(&format!("kinds/{kind}.json"), suite.authored(GROUP, kind).to_string());
        for (name, spec) in &suite.declarations {
            let name = format!("{name}-{}", kind.to_lowercase());
            let declaration = declaration(&name, GROUP, kind, spec);
            folder.write(&format!("kinds/declarations/{name}.json"), declaration.to_string());
        }
    }
    folder
}

fn object(kind: &str, name: &str, fields: &Value) -> Value {
    custom_resource(GROUP, kind, name, fields)
}

/// Returns every suite, and the name of its kind.
fn kinds() -> Vec<(String, String, Suite)> {
    let suites = suites().into_iter().enumerate();
    suites.map(|(number, (path, suite))| (format!("Kind{number}"), path, suite)).collect()
}

fn of_all(kinds: &[(String, String, Suite)]) -> Folder {
    folder(kinds.iter().map(|(kind, _, suite)| (&**kind, suite)))
}

/// Returns a row as a test of a suite, if a test can have it.
fn test_of(kind: &str, path: &str, row: &Row) -> Option<Value> {
    let is_other = |subresource: &String| subresource != "status";
    if row.operation.is_some() || row.applied.is_some() || row.subresource.as_ref().is_some_and(is_other) {
        return None;
    }
    let want = match (&row.want_causes, &row.want) {
        (Some(causes), _) => {
            let text = |cause: &Cause| cause.message.split_once(": ").unwrap().1.to_owned();
            let cause = |cause: &Cause| json!({"field": cause.field, "reason": cause.reason, "message": text(cause)});
            json!({"rejected": {"causes": causes.iter().map(cause).collect::<Vec<_>>()}})
        }
        (None, Some(want)) => json!({"normalized": {"object": object(kind, "a", want)}}),
        (None, None) => json!({"accepted": {"warnings": row.want_warnings.as_deref().unwrap_or_default()}}),
    };
    let new = object(kind, "a", row.new.as_ref()?);
    let mut test = json!({"name": format!("{path}: {}", row.description), "new": new, "want": want});
    if let Some(old) = &row.old {
        test["old"] = object(kind, "a", old);
    }
    if let Some(subresource) = &row.subresource {
        test["subresource"] = json!(subresource);
    }
    if row.ratcheting == Mode::Disabled {
        test["ratcheting"] = json!("Disabled");
    }
    Some(test)
}

#[test]
fn test_plays_every_row() {
    let kinds = kinds();
    let judged = kinds.iter().filter(|(_, _, suite)| suite.phase.is_none());
    let tests: Vec<Value> = judged
        .flat_map(|(kind, path, suite)| suite.rows.iter().filter_map(move |row| test_of(kind, path, row)))
        .collect();
    assert!(tests.len() > 400, "only {} rows", tests.len());
    let suite = json!({"apiVersion": "test.kube-unions.dev/v1alpha1", "kind": "Suite", "metadata": {"name": "cases"},
        "from": ["kinds"], "tests": tests});
    let folder = of_all(&kinds);
    folder.write("suite.json", suite.to_string());
    folder.run(&["test", "suite.json"]).code(0);
}

/// The rules that the API server evaluates are judged by truth tables, which know no rules of ours.
#[test]
fn compiled_rules_agree_with_their_unions() {
    let folder = of_all(&kinds());
    let compile = ["compile", "--to", "cel", "--action", "deny", "--from"];
    folder.write("rules.yaml", folder.run(&[&compile[..], &["kinds"]].concat()).code(1).stdout);
    let report = folder.run(&["check-cel", "-o", "json", "rules.yaml", "kinds/declarations"]).json();
    let mut verdicts: Vec<(&str, &str)> = report
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|union| union["verdicts"].as_array().unwrap().iter().map(|it| (&union["path"], it)))
        .map(|(path, verdict)| (path.as_str().unwrap(), verdict.as_str().unwrap()))
        .collect();
    verdicts.sort_unstable();
    let agreeing = verdicts.extract_if(.., |(_, verdict)| *verdict == "agrees").count();
    assert!(agreeing > 100, "only {agreeing} unions");
    // No smallest object with two texts and a number satisfies every rule. The others have no rules: their schema has no type, or objects
    // with named fields that may be empty.
    assert_eq!(verdicts.extract_if(.., |it| *it == ("limit", "undecided")).count(), 1);
    let expected =
        ["chosen", "deduced", "group", "limit", "open.items[*]", "plain", "required", "spec", "spec.list[*]"];
    let rest = [
        "spec.open.plain[*]",
        "spec.open.steps.*",
        "spec.open.strategy",
        "spec.open.volumes[*]",
        "spec.partial",
        "three",
    ];
    let expected = [&expected[..], &rest].concat();
    assert_eq!(verdicts, expected.into_iter().map(|path| (path, "noRules")).collect::<Vec<_>>());
    // Rules that are there are left as they are.
    let again = [&compile[..], &["rules.yaml", "kinds/declarations"]].concat();
    folder.run(&again).code(1).prints(&folder.read("rules.yaml"));
}

#[test]
fn explain_shows_the_fields_of_groups() {
    for (path, suite) in suites().iter().filter(|(path, _)| path.starts_with("groups/")) {
        let folder = folder([("Job", suite)]);
        let text = folder.run(&["explain", "--from", "kinds"]).code(0).stdout;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines = match &**path {
            "groups/map-form.yaml" => {
                ["S3 → bucket, region (optional)", "GCS → bucket, project (optional)", "None → no member"]
            }
            "groups/list-form.yaml" => ["Pod → selector, template", "selector, template", "a, b"],
            _ => ["true → host, port (optional)", "\"\" → no member", "false"],
        };
        for line in lines {
            assert!(text.contains(line), "{path}: no `{line}` in {text}");
        }
    }
}
