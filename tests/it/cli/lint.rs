//! `lint -o sarif`, and the rules that diagnostics are reported under.

use super::audit::hold_to_the_specification;
use super::{CRD, Folder};
use serde_json::{Value, json};

/// A declaration for the widgets, with members that their schema lacks.
const DECLARATION: &str = "\
apiVersion: kube-unions.dev/v1alpha1
kind: UnionDeclaration
metadata: {name: widgets}
spec:
  target: {group: example.com, kind: Widget}
  unions:
  - path: spec.strategy
    fieldsToDiscriminateBy: {svn: Svn, cvs: Cvs}
";

fn results(log: &Value) -> Vec<Value> {
    log["runs"][0]["results"].as_array().unwrap().clone()
}

#[test]
fn faults_come_as_sarif() {
    let faulty = CRD.replace("Rolling: {name: rolling,", "Rolling: {name: missing,");
    let folder = Folder::new(&[("crds/crd.yaml", &faulty), ("declaration.yaml", DECLARATION)]);
    let log = folder.run(&["lint", "-o", "sarif", "crds", "declaration.yaml"]).code(1).json();
    hold_to_the_specification(&log);
    let found: Vec<_> = results(&log).iter().map(|it| (it["ruleId"].clone(), it["level"].clone())).collect();
    assert_eq!(found, [(json!("unknown-member"), json!("error")), (json!("member-left-out"), json!("note")),]);
    let result = &results(&log)[0];
    let location = &result["locations"][0];
    assert_eq!(
        location["physicalLocation"],
        json!({"artifactLocation": {"uri": "crds/crd.yaml"}, "region": {"startLine": 35, "startColumn": 58}})
    );
    assert_eq!(
        location["logicalLocations"],
        json!([{"name": "spec.strategy.type", "kind": "member",
            "fullyQualifiedName": "widgets.example.com/spec.strategy.type"}])
    );
    assert_eq!(
        result["message"]["text"],
        "widgets.example.com/spec.strategy.type: v1: the member `missing` is not a property of this object; declare it \
         or correct the name"
    );
    assert_eq!(
        log["runs"][0]["invocations"],
        json!([{"executionSuccessful": true, "exitCode": 1, "toolExecutionNotifications": []}])
    );
}

#[test]
fn a_log_has_the_exit_code_of_its_run() {
    let warned = CRD.replace("enum: [\"Rolling\", 'Recreate']", "default: Recreate");
    let folder = Folder::new(&[
        ("good.yaml", CRD),
        ("warned.yaml", &warned),
        ("empty.yaml", ""),
        ("plain.yaml", include_str!("plain.yaml")),
    ]);
    for (arguments, code, levels) in [
        (&["good.yaml"][..], 0, &[][..]),
        (&["warned.yaml"], 0, &["warning", "warning"]),
        (&["--strict", "warned.yaml"], 1, &["warning", "warning"]),
        (&["-W", "warned.yaml"], 1, &["warning", "warning"]),
        (&["plain.yaml"], 0, &[]),
        (&["--require", "plain.yaml"], 1, &[]),
        (&["empty.yaml"], 2, &[]),
        (&["missing.yaml"], 2, &[]),
    ] {
        let log = folder.run(&[&["lint", "-o", "sarif"], arguments].concat()).code(code).json();
        hold_to_the_specification(&log);
        let found: Vec<Value> = results(&log).iter().map(|it| it["level"].clone()).collect();
        assert_eq!(found, levels, "{arguments:?}");
        let invocation = &log["runs"][0]["invocations"][0];
        assert_eq!(
            (&invocation["exitCode"], &invocation["executionSuccessful"]),
            (&json!(code), &json!(code < 2)),
            "{arguments:?}"
        );
    }
}

#[test]
fn input_that_cannot_be_read_is_a_notification_beside_the_results() {
    let folder = Folder::new(&[
        ("a.yaml", "a: [\n"),
        ("crd.yaml", &CRD.replace("Rolling: {name: rolling,", "Rolling: {name: missing,")),
    ]);
    let log = folder.run(&["lint", "-o", "sarif", "."]).code(2).json();
    hold_to_the_specification(&log);
    assert_eq!(results(&log).len(), 1);
    let notifications = log["runs"][0]["invocations"][0]["toolExecutionNotifications"].as_array().unwrap().clone();
    let [notification] = &notifications[..] else { panic!("{notifications:?}") };
    assert!(notification["message"]["text"].as_str().unwrap().starts_with("./a.yaml:"), "{notification}");

    let rules = folder.run(&["lint", "-o", "json", "."]).code(2).json();
    let rules: Vec<&Value> = rules.as_array().unwrap().iter().map(|it| &it["rule"]).collect();
    assert_eq!(rules, ["unreadable-input", "unknown-member"]);
}

#[test]
fn misspelt_names_and_kinds_have_rules() {
    let misspelt = CRD.replace("x-kubernetes-unions", "x-kubernetes-union");
    let folder = Folder::new(&[
        ("crd.yaml", CRD),
        ("keyword.yaml", &misspelt.replace("widgets", "gadgets").replace("Widget", "Gadget")),
        ("kind.yaml", &DECLARATION.replace("UnionDeclaration", "UnionDeclaratoin")),
    ]);
    let log = folder.run(&["lint", "-o", "sarif", "."]).code(1).json();
    hold_to_the_specification(&log);
    let mut rules: Vec<Value> = results(&log).iter().map(|it| it["ruleId"].clone()).collect();
    rules.dedup();
    assert_eq!(rules, ["misspelt-name", "misspelt-kind"]);
}

#[test]
fn without_a_discriminator_a_list_of_names_is_enough() {
    let annotations = json!({"kube-unions.dev/unions": r#"{"v1": {"/properties/spec": [{"members": ["b", "a"]}]}}"#});
    let fields = json!({"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "object"}}});
    let schema = json!({"type": "object", "properties": {"spec": fields, "other": fields}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com", "annotations": annotations},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    });
    let declaration = DECLARATION
        .replace("path: spec.strategy", "path: other")
        .replace("fieldsToDiscriminateBy: {svn: Svn, cvs: Cvs}", "members: [a, b]");
    let folder = Folder::new(&[("crd.json", &crd.to_string()), ("declaration.yaml", &declaration)]);
    folder.run(&["lint", "--strict", "crd.json", "declaration.yaml"]).code(0);
    let files = ["explain", "--from", "crd.json", "--from", "declaration.yaml", "-o", "json"];
    let kinds = folder.run(&files).code(0).json();
    let unions: Vec<_> =
        kinds[0]["unions"].as_array().unwrap().iter().map(|it| (&it["path"], &it["members"])).collect();
    assert_eq!(unions, [(&json!("other"), &json!(["a", "b"])), (&json!("spec"), &json!(["a", "b"]))]);

    // The union that stands for both has the same verdicts.
    folder.write(
        "both.yaml",
        "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {a: {}, b: {}}, other: {a: {}, b: {}}}\n",
    );
    let run = folder.run(&["normalize", "--from", "crd.json", "declaration.yaml", "-f", "both.yaml"]).code(1);
    assert_eq!(run.stderr.matches("may be set").count() + run.stderr.matches("must not be").count(), 2, "{run:#?}");
}

#[test]
fn differences_to_older_files_come_in_every_format() {
    let older = CRD.replace("rolling", "progressive").replace("Rolling", "Progressive");
    let folder = Folder::new(&[("old/crd.yaml", &older), ("new/crd.yaml", CRD)]);
    let arguments = ["lint", "--against", "old", "new"];
    let text = folder.run(&arguments).code(1).says(&["1 version compared"]).stdout;
    assert!(text.contains("error: breaks: the value `Progressive` is no choice any more"), "{text}");
    let json = folder.run(&[&arguments[..], &["-o", "json"]].concat()).code(1).json();
    let rules: Vec<&Value> = json.as_array().unwrap().iter().map(|it| &it["rule"]).collect();
    assert!(rules.contains(&&json!("value-removed")) && rules.contains(&&json!("member-added")), "{rules:?}");
    let log = folder.run(&[&arguments[..], &["-o", "sarif"]].concat()).code(1).json();
    hold_to_the_specification(&log);
    assert_eq!(results(&log).len(), rules.len());
    assert!(folder.run(&["lint", "--against", "new", "new"]).code(0).stdout.is_empty());
}
