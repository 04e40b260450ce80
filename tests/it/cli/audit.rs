//! `audit`: files here, and in [`live`] an API server that fails in ways a real one can't be made to.

#[cfg(unix)]
mod live;

use super::{CRD, Folder, binary, crd_of};
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
#[cfg(unix)]
use std::io::{Read, Write};
#[cfg(unix)]
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

const BACKUPS: &str = include_str!("../../../manifests/samples/backup/crd.yaml");

/// Objects that are fine, invalid and would change, in documents and a list, among others. What they hold is secret.
const OBJECTS: &str = "\
apiVersion: example.com/v1
kind: Widget
metadata: {name: fine, namespace: a}
spec: {git: {url: s3cret}}
---
# Nothing tells which one counts.
apiVersion: example.com/v1
kind: Widget
metadata: {name: two, namespace: a}
spec:
  git: {url: s3cret}
  oci: {image: s3cret}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: v1
kind: List
items:
- apiVersion: example.com/v1
  kind: Widget
  metadata: {name: left-over, namespace: b}
  spec:
    strategy:
      type: Recreate
      rolling: {surge: 7}
- apiVersion: samples.kube-unions.dev/v1
  kind: Backup
  metadata: {name: deduced, namespace: b}
  spec:
    destination:
      s3: {bucket: s3cret}
- apiVersion: samples.kube-unions.dev/v1
  kind: Backup
  metadata: {name: stale, namespace: b}
  spec:
    destination:
      type: GCS
      s3: {bucket: s3cret}
- apiVersion: samples.kube-unions.dev/v1
  kind: Backup
  metadata: {name: stuck, namespace: b}
  status:
    running: {startTime: s3cret}
    failed: {message: s3cret}
";

fn folder() -> Folder {
    let folder = Folder::with_crd(&[("backups.yaml", BACKUPS)]);
    folder.write("live/objects.yaml", OBJECTS);
    folder
}

#[test]
fn a_table_has_a_row_a_finding_with_its_place() {
    let run = folder().run(&["audit", "--from", "."]).code(1);
    let rows = "\
PLACE                      KIND                                NAMESPACE   NAME        FINDING        FIELD                   MESSAGE
./live/objects.yaml:12:3   Widget.example.com/v1               a           two         invalid        spec.oci                Forbidden: at most one of `git`, `oci` may be set
./live/objects.yaml:27:7   Widget.example.com/v1               b           left-over   invalid        spec.strategy.rolling   Forbidden: may only be specified when `type` is \"Rolling\"
./live/objects.yaml:32:5   Backup.samples.kube-unions.dev/v1   b           deduced     would change   spec.destination.type   set to \"S3\" because `s3` is set
./live/objects.yaml:40:7   Backup.samples.kube-unions.dev/v1   b           stale       invalid        spec.destination.s3     Forbidden: may only be specified when `type` is \"S3\"; the next write mends it by normalisation
./live/objects.yaml:39:7   Backup.samples.kube-unions.dev/v1   b           stale       would change   spec.destination.type   set to \"S3\" because `s3` is set
./live/objects.yaml:45:5   Backup.samples.kube-unions.dev/v1   b           stuck       invalid        status.running          Forbidden: at most one of `failed`, `running` may be set
";
    assert_eq!(run.stdout, rows, "{}", run.stdout);
    let summary = "audited 6 objects of 2 kinds: 4 invalid (1 mended by the next write), 2 that normalisation would change; \
                   1 document of other kinds passed over\n";
    assert_eq!(run.stderr, summary);
}

#[test]
fn json_has_the_kinds_the_findings_and_the_summary() {
    let folder = folder();
    let report = folder.run(&["audit", "--from", ".", "-o", "json"]).code(1).json();
    let kind = |group: &str, kind: &str| json!({"group": group, "version": "v1", "kind": kind});
    assert_eq!(report["kinds"], json!([kind("example.com", "Widget"), kind("samples.kube-unions.dev", "Backup")]));
    let finding = |index: usize| report["findings"][index].clone();
    assert_eq!(
        finding(0),
        json!({"group": "example.com", "version": "v1", "kind": "Widget", "namespace": "a", "name": "two",
            "finding": "invalid", "rule": "too-many-members", "field": "spec.oci",
            "message": "Forbidden: at most one of `git`, `oci` may be set", "mendedByNextWrite": false,
            "file": "./live/objects.yaml", "line": 12, "column": 3})
    );
    let told: Vec<_> =
        report["findings"].as_array().unwrap().iter().map(|it| (&it["name"], &it["rule"], &it["field"])).collect();
    let want = [
        ("two", "too-many-members", "spec.oci"),
        ("left-over", "member-not-selected", "spec.strategy.rolling"),
        ("deduced", "would-change", "spec.destination.type"),
        ("stale", "member-not-selected", "spec.destination.s3"),
        ("stale", "would-change", "spec.destination.type"),
        ("stuck", "too-many-members", "status.running"),
    ];
    assert_eq!(told.len(), want.len());
    for (told, want) in told.iter().zip(want) {
        assert_eq!((told.0, told.1, told.2), (&json!(want.0), &json!(want.1), &json!(want.2)));
    }
    assert_eq!((&finding(3)["mendedByNextWrite"], &finding(4)["mendedByNextWrite"]), (&json!(true), &Value::Null));
    assert_eq!(
        report["summary"],
        json!({"kinds": 2, "objects": 6, "invalid": 4, "mendedByNextWrite": 1, "wouldChange": 2, "wouldWarn": 0,
            "wouldAudit": 0, "passedOver": 1, "complete": true, "notAudited": []})
    );
    let none = folder.run(&["audit", "--from", ".", "-n", "c", "-o", "json"]).code(0).json();
    assert_eq!((&none["findings"], &none["summary"]["objects"]), (&json!([]), &json!(0)));
}

/// Asserts the rules of the SARIF specification (OASIS, version 2.1.0) for the parts of a log that we write.
pub(super) fn hold_to_the_specification(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().unwrap().contains("sarif-2.1.0"));
    for run in log["runs"].as_array().expect("3.13.4: runs") {
        let driver = &run["tool"]["driver"];
        assert!(driver["name"].as_str().is_some_and(|name| !name.is_empty()), "3.19.8: {driver}");
        assert!(["utf16CodeUnits", "unicodeCodePoints"].contains(&run["columnKind"].as_str().unwrap()), "3.14.27");
        let rules = driver["rules"].as_array().unwrap();
        let mut ids: Vec<_> = rules.iter().map(|rule| rule["id"].as_str().expect("3.49.3: id")).collect();
        for rule in rules {
            assert!(
                rule["shortDescription"]["text"].as_str().is_some_and(|text| text.ends_with('.')),
                "3.49.9: {rule}"
            );
        }
        for result in run["results"].as_array().expect("3.14.23: an array, even if empty") {
            assert!(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()), "3.27.11: {result}");
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(result["ruleId"], ids[index], "3.27.7");
            assert_eq!(result["level"], rules[index]["defaultConfiguration"]["level"], "3.27.10");
            assert!(["error", "warning", "note", "none"].contains(&result["level"].as_str().unwrap()), "3.27.10");
            for location in result["locations"].as_array().unwrap() {
                let logical = &location["logicalLocations"][0];
                assert!(logical["fullyQualifiedName"].is_string() && logical["name"].is_string(), "3.33: {location}");
                let Some(physical) = location.get("physicalLocation") else { continue };
                let uri = physical["artifactLocation"]["uri"].as_str().expect("3.4.3: uri");
                assert!(
                    uri.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"\\^`{|}".contains(&byte)),
                    "RFC 3986: {uri}"
                );
                for number in ["startLine", "startColumn"] {
                    assert!(physical["region"][number].as_u64().is_some_and(|number| number > 0), "3.30: {physical}");
                }
            }
        }
        for invocation in run["invocations"].as_array().unwrap() {
            assert!(invocation["executionSuccessful"].is_boolean(), "3.20.14: {invocation}");
            for notification in invocation["toolExecutionNotifications"].as_array().unwrap() {
                assert!(notification["message"]["text"].is_string(), "3.58.5: {notification}");
            }
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), rules.len(), "3.49.3: each rule once");
    }
}

#[test]
fn sarif_is_as_the_specification_has_it() {
    let folder = folder();
    let log = folder.run(&["audit", "--from", ".", "-o", "sarif"]).code(1).json();
    hold_to_the_specification(&log);
    let run = &log["runs"][0];
    assert_eq!(
        run["results"][0],
        json!({
            "ruleId": "too-many-members", "ruleIndex": 4, "level": "error",
            "message": {"text": "Widget.example.com/v1 a/two: spec.oci: Forbidden: at most one of `git`, `oci` may be set"},
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": {"uri": "live/objects.yaml"}, "region": {"startLine": 12, "startColumn": 3}},
                "logicalLocations": [{"name": "spec.oci", "kind": "member",
                    "fullyQualifiedName": "Widget.example.com/v1 a/two: spec.oci"}],
            }],
        })
    );
    let note = run["results"].as_array().unwrap().iter().find(|result| result["ruleId"] == "would-change").unwrap();
    assert_eq!(note["level"], "note");
    assert_eq!(
        run["invocations"],
        json!([{"executionSuccessful": true, "exitCode": 1, "toolExecutionNotifications": []}])
    );
    hold_to_the_specification(&folder.run(&["audit", "--from", ".", "-n", "c", "-o", "sarif"]).code(0).json());
}

#[test]
fn nothing_of_an_object_is_shown_but_where_and_why() {
    let folder = folder();
    for format in ["table", "json", "sarif"] {
        let run = folder.run(&["audit", "--from", ".", "-o", format]).code(1);
        assert!(!format!("{}{}", run.stdout, run.stderr).contains("s3cret"), "{run:#?}");
    }
}

#[test]
fn what_is_to_be_audited_can_be_chosen() {
    let folder = folder();
    let audited = |arguments: &[&str], code: i32| {
        let run = folder.run(&[&["audit", "-o", "json", "--from", "."], arguments].concat()).code(code);
        let summary = &run.json()["summary"];
        (summary["objects"].as_u64().unwrap(), summary["invalid"].as_u64().unwrap())
    };
    assert_eq!(audited(&[], 1), (6, 4));
    assert_eq!(audited(&["-A"], 1), (6, 4));
    assert_eq!(audited(&["-n", "a"], 1), (2, 1));
    assert_eq!(audited(&["-n", "elsewhere"], 0), (0, 0));
    for kind in ["widgets", "widget", "Widget", "widget.example.com", "widgets.v1.example.com", "widgets.exam"] {
        assert_eq!(audited(&[kind], 1), (3, 2), "{kind}");
    }
    assert_eq!(audited(&["bk"], 1), (3, 2));
    assert_eq!(audited(&["bk", "widgets", "backups"], 1), (6, 4));
    assert_eq!(audited(&["bk", "-n", "a"], 0), (0, 0));
    let known = "there are: Widget.example.com/v1, Backup.samples.kube-unions.dev/v1";
    for kind in ["gadgets", "widgets.v2.example.com", "configmaps", ""] {
        let run = folder.run(&["audit", "--from", ".", kind]).code(2).prints("");
        run.says(&[&format!("no kind `{kind}` with unions in `.`; {known}")]);
    }
}

#[test]
fn an_object_without_a_namespace_is_of_the_one_that_is_asked_for() {
    let folder =
        Folder::with_crd(&[("a.yaml", "apiVersion: example.com/v1\nkind: Widget\nspec: {git: {}, oci: {}}\n")]);
    folder.run(&["audit", "--from", ".", "-n", "a"]).code(1);
    let cluster_wide = CRD.replace("scope: Namespaced", "scope: Cluster");
    folder.write("crd.yaml", cluster_wide);
    folder.run(&["audit", "--from", ".", "-n", "a"]).code(1);
}

#[test]
fn standard_input_holds_objects_and_files_their_kinds() {
    let folder = Folder::with_crd(&[]);
    let list = r#"{"apiVersion": "example.com/v1", "kind": "WidgetList", "items": [
  {"metadata": {"name": "a", "namespace": "b"}, "spec": {"git": {}, "oci": {}}}]}"#;
    let run = folder.pipe(&["audit", "--from", "crd.yaml", "--from", "-"], list).code(1);
    assert!(run.stdout.contains("<stdin>:2:69 "), "{run:#?}");
    hold_to_the_specification(
        &folder.pipe(&["audit", "--from", "crd.yaml", "--from", "-", "-o", "sarif"], list).code(1).json(),
    );
}

#[test]
fn a_declaration_that_only_warns_makes_nothing_invalid() {
    let folder = Folder::new(&[]);
    let silent = CRD
        .replace("x-kubernetes-unions: {fieldMembers: {Rolling: {name: rolling, optional: true}, Recreate: null}}", "")
        .replace("            x-kubernetes-unions:\n            - fields-to-discriminateBy:\n                git: Git # one\n                oci: OCI\n", "");
    assert!(!silent.contains("x-kubernetes-unions"), "{silent}");
    folder.write("crd.yaml", silent);
    folder.write(
        "declaration.yaml",
        "apiVersion: kube-unions.dev/v1alpha1\nkind: UnionDeclaration\nmetadata: {name: widgets}\nspec:\n  \
         target: {group: example.com, kind: Widget}\n  validationActions: [Warn]\n  unions:\n  - path: spec\n    \
         fieldsToDiscriminateBy: {git: Git, oci: OCI}\n",
    );
    folder.write("objects.yaml", OBJECTS);
    let run = folder.run(&["audit", "--from", "."]).code(0).says(&["none invalid", ", 1 only warned of; "]);
    assert!(run.stdout.contains("would warn"), "{run:#?}");
    let log = folder.run(&["audit", "--from", ".", "-o", "sarif"]).code(0).json();
    hold_to_the_specification(&log);
    assert_eq!(log["runs"][0]["results"][0]["level"], "warning");

    let declaration = folder.read("declaration.yaml");
    let both = declaration.replace("[Warn]", "[Warn, Audit]");
    folder.write("declaration.yaml", both);
    folder.run(&["audit", "--from", "."]).code(0).says(&[", 1 only warned of; "]);
    folder.write("declaration.yaml", declaration.replace("[Warn]", "[Audit]"));
    let run = folder.run(&["audit", "--from", "."]).code(0).says(&["none invalid", ", 1 only audited; "]);
    assert!(run.stdout.contains("would audit"), "{run:#?}");
    let report = folder.run(&["audit", "--from", ".", "-o", "json"]).code(0).json();
    assert_eq!(
        (&report["findings"][0]["finding"], &report["summary"]["wouldAudit"]),
        (&json!("wouldAudit"), &json!(1))
    );
    let log = folder.run(&["audit", "--from", ".", "-o", "sarif"]).code(0).json();
    hold_to_the_specification(&log);
    assert_eq!(log["runs"][0]["results"][0]["level"], "note");
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_audited() {
    let folder = folder();
    folder.write("live/bad.yaml", "a: [\n");
    for format in ["table", "json", "sarif"] {
        let run = folder.run(&["audit", "--from", ".", "--from", "missing", "-o", format]).code(2).says(&[
            "error: ./live/bad.yaml:1:4: ",
            "error: missing: no such file or folder",
            "4 invalid",
            "error: 2 problems kept something from being audited",
        ]);
        assert!(run.stdout.contains("left-over"), "{run:#?}");
    }
    let log = folder.run(&["audit", "--from", ".", "-o", "sarif"]).code(2).json();
    hold_to_the_specification(&log);
    assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], false);
}

#[test]
fn without_objects_or_unions_there_is_nothing_to_audit() {
    let folder = Folder::with_crd(&[("objects/a.yaml", OBJECTS), ("none/a.txt", "")]);
    folder.run(&["audit", "--from", "objects"]).code(2).prints("").says(&["no CustomResourceDefinition in `objects`"]);
    let faulty = CRD.replace("Rolling: {name: rolling,", "Rolling: {name: missing,");
    folder.write("faulty.yaml", faulty);
    folder
        .run(&["audit", "--from", "faulty.yaml", "--from", "objects"])
        .code(1)
        .says(&["Warning: 1 fault in declarations of unions; `kube-unions lint` names them", "1 invalid"]);
}

#[cfg(unix)]
#[test]
fn an_interrupt_closes_the_output_and_says_how_far_it_came() {
    const OBJECTS: usize = 5_000;
    let folder = Folder::with_crd(&[]);
    let widget = "---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {git: {}, oci: {}}\n";
    folder.write("live/widgets.yaml", widget.repeat(OBJECTS));
    for format in ["json", "sarif"] {
        let mut command = Command::new(binary());
        command.current_dir(folder.path()).args(["audit", "--from", ".", "-o", format]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // The findings are far more than the pipe holds, so the audit cannot be done at the first byte.
        let mut printed = vec![0];
        stdout.read_exact(&mut printed).unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        stdout.read_to_end(&mut printed).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        let (before, after) = stderr.split_once("interrupted after ").expect(&stderr);
        let (far, _) = after.split_once(" of 5,000 documents").expect(&stderr);
        let far: usize = far.replace(',', "").parse().unwrap();
        assert!(far > 0 && far < OBJECTS && before.ends_with("error: "), "{stderr}");
        let report: Value = serde_json::from_slice(&printed).unwrap();
        if format == "json" {
            assert_eq!(report["summary"]["complete"], false);
            assert_eq!(report["findings"].as_array().unwrap().len(), far);
        } else {
            hold_to_the_specification(&report);
            assert_eq!(report["runs"][0]["results"].as_array().unwrap().len(), far);
        }
    }
}

/// Nothing is printed by then, so there is nothing to close.
#[cfg(unix)]
#[test]
fn a_signal_ends_it_at_once_while_files_are_read() {
    let folder = Folder::with_crd(&[]);
    let mut command = Command::new(binary());
    command.current_dir(folder.path()).args(["audit", "--from", ".", "--from", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than a pipe holds: when it is taken, somebody reads.
    stdin.write_all("# nothing\n".repeat(100_000).as_bytes()).unwrap();
    // Not SIGINT: who runs the tests in the background has that ignored.
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(Signal::TERM.as_raw()), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

#[test]
fn violations_beyond_the_first_256_of_an_object_are_counted() {
    let crd = crd_of(
        "Rack",
        "        type: object
        properties:
          slots:
            type: array
            items: {type: object, properties: {a: {type: string}, b: {type: string}},
              x-kubernetes-unions: [{fields-to-discriminateBy: {a: A, b: B}}]}
",
    );
    let folder = Folder::new(&[("crd.yaml", &crd)]);
    let slots = vec![json!({"a": "s3cret", "b": "s3cret"}); 300];
    let rack = json!({"apiVersion": "example.com/v1", "kind": "Rack", "metadata": {"name": "full"}, "slots": slots});
    folder.write("rack.json", rack.to_string());

    let table = folder.run(&["audit", "--from", "."]).code(1);
    assert_eq!(table.stdout.lines().count(), 1 + 256 + 1, "a title, the violations, and the number of the rest");
    let last = table.stdout.lines().last().unwrap();
    assert!(
        last.starts_with("./rack.json:1:1 ") && last.ends_with(" and 44 more violations that are not listed"),
        "{last}"
    );

    let report = folder.run(&["audit", "--from", ".", "-o", "json"]).code(1).json();
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 257);
    let last = &findings[256];
    assert_eq!(
        (&last["rule"], &last["finding"], &last["field"]),
        (&json!("more-violations"), &json!("invalid"), &json!(""))
    );

    let log = folder.run(&["audit", "--from", ".", "-o", "sarif"]).code(1).json();
    hold_to_the_specification(&log);
    let text = "Rack.example.com/v1 full: and 44 more violations that are not listed";
    assert_eq!(log["runs"][0]["results"][256]["message"]["text"], text);
}
