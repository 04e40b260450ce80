//! Files of strangers: names that a terminal would obey, paths that never end, and a great many of small things.

use super::terminal::shown;
use super::{CRD, Folder};
use fixtures::crds;
use fixtures::terminal::{is_raw, without_styles};
use serde_json::{Map, json};
use std::process::Command;

/// A line of a report that a name could forge.
const FORGED: &str = "crd.yaml:1:1: error: forged";

/// Puts the line behind each command to a terminal to erase itself, as text, as JSON or as YAML.
fn forging(text: &str) -> String {
    let text = text.replace("\u{1b}[2J", &format!("\u{1b}[2J\n{FORGED}"));
    [r"\u001b[2J", r"\e[2J"].iter().fold(text, |text, erase| text.replace(erase, &format!(r"{erase}\n{FORGED}")))
}

/// The CRD of a kind whose fields, and the message of a rule, have escape sequences, as JSON. `more` are members that the schema
/// does not have.
fn crd(more: &[&str]) -> String {
    let fields = ["a\u{1b}]0;owned\u{7}\u{1b}[2J", "b\u{202e}\u{9b}2J", "tab\tbed\u{b}"];
    let values = fields.iter().chain(more).enumerate();
    let values: Map<_, _> = values.map(|(at, field)| ((*field).to_owned(), json!(format!("V{at}")))).collect();
    let properties: Map<_, _> = fields.map(|field| (field.to_owned(), json!({"type": "string"}))).into_iter().collect();
    let spec = json!({"type": "object", "properties": properties,
        "x-kubernetes-validations": [{"rule": "has(self.\u{1b}[2J", "message": "\u{1b}[8m\u{1b}[2J"}],
        "x-kubernetes-unions": [{"fields-to-discriminateBy": values}]});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    crds::crd("example.com", "Widget", &[crds::version("v1", &schema)]).to_string()
}

/// An object that sets both members.
const OBJECT: &str = r#"
apiVersion: example.com/v1
kind: Widget
metadata: {name: "w\e[2J", namespace: n}
spec: {"a\e]0;owned\a\e[2J": x, "b\u202e\x9b2J": y}
"#;

const SUITE: &str = r#"
apiVersion: test.kube-unions.dev/v1alpha1
kind: Suite
metadata: {name: "s\e[2J"}
from: ["no\e[2Jsuch.yaml"]
tests:
- {name: "t\e[2J\u202e", new: {apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}, want: {accepted: {}}}
"#;

#[test]
fn nothing_of_a_strangers_file_reaches_the_terminal_raw_or_begins_a_line_of_a_report() {
    let file = "crd\u{1b}[2J.json";
    let object = |spec: &str| OBJECT.split_inclusive('\n').take(4).collect::<String>() + spec;
    let files: [(&str, &str); 14] = [
        (file, &crd(&[])),
        ("faulty\u{1b}[2J.json", &crd(&["c\u{1b}[2J"])),
        ("object.yaml", OBJECT),
        ("one.yaml", &object(r#"spec: {"a\e]0;owned\a\e[2J": x}"#)),
        ("other.yaml", &object(r#"spec: {"a\e]0;owned\a\e[2J": y}"#)),
        ("third.yaml", &object(r#"spec: {"a\e]0;owned\a\e[2J": z}"#)),
        ("kind.json", r#"{"kind": "G\u001b[2J"}"#),
        ("name.json", r#"{"metadata": {"name": "x\u001b[2J"}}"#),
        ("directive.json", r#"{"spec": {"$patch": "x\u001b[2J"}}"#),
        ("strange\u{1b}[2J.json", r#"{"spec": {"$setElementOrder/a\u001b[2J": {}}}"#),
        ("bad\u{1b}]0;owned\u{7}.yaml", "a: [\"\\e[2J\", *nowhere\n"),
        ("test/unions\u{1b}[2J.yaml", SUITE),
        ("go/types\u{1b}[2J.go", "package v1\n\ntype T struct { // +unionMember=\u{1b}[2J\n"),
        ("kubeconfig", "{apiVersion: v1, kind: Config, current-context: \"c\\e[2J\"}"),
    ];
    let folder = Folder::new(&[]);
    for (name, text) in files {
        // A line of Go ends the comment.
        let text = if name.starts_with("go/") { text.to_owned() } else { forging(text) };
        folder.write(&forging(name), text);
    }
    let apply = ["patch", "apply", "--schema", file, "--original", "one.yaml", "--patch-file"];
    let apply = |patch: &'static str| [&apply[..], &[patch]].concat();
    let create = ["patch", "create", "--schema", file, "--original", "one.yaml", "--modified"];
    let create = |arguments: &[&'static str]| [&create[..], arguments].concat();
    let rows: &[(&[&str], i32)] = &[
        (&["lint", "faulty\u{1b}[2J.json"], 1),
        (&["lint", "-o", "json", "faulty\u{1b}[2J.json"], 1),
        (&["lint", "-o", "sarif", "faulty\u{1b}[2J.json"], 1),
        (&["lint", "bad\u{1b}]0;owned\u{7}.yaml"], 2),
        (&["lint", "no\u{1b}[2Jsuch"], 2),
        // As a shell makes it of `*`.
        (&["lint", "--no\u{1b}[2J\u{9b}2Jsuch"], 2),
        (&["lint\u{1b}[2J"], 2),
        (&["lint", "-o", "\u{1b}[8mtext"], 2),
        (&["explain", "--from", file], 0),
        (&["explain", "--from", file, "-o", "json"], 0),
        (&["explain", "--from", file, "wid\u{1b}[2J"], 2),
        (&["explain", "--kubeconfig", "kubeconfig"], 2),
        (&["audit", "--from", file, "--from", "object.yaml"], 1),
        (&["audit", "--from", file, "--from", "object.yaml", "-o", "json"], 1),
        (&["audit", "--kubeconfig", "kubeconfig", "--context", "c\u{1b}[2J"], 2),
        (&["normalize", "--from", file, "-f", "object.yaml"], 1),
        (&["check-cel", file], 0),
        (&["test", "test"], 2),
        (&["generate", "--go", "go", file], 1),
        (&["compile", "--to", "policies", "--from", "bad\u{1b}]0;owned\u{7}.yaml"], 2),
        (&["annotate", "bad\u{1b}]0;owned\u{7}.yaml"], 2),
        (&["annotate", "--check", file], 1),
        (&apply("kind.json"), 1),
        (&apply("name.json"), 1),
        (&apply("directive.json"), 2),
        (&apply("strange\u{1b}[2J.json"), 2),
        (&apply("no\u{1b}[2Jsuch"), 2),
        (&["patch", "apply", "--schema", file, "--original", "object.yaml", "-p", "{spec: {}}"], 0),
        (&create(&["other.yaml", "--kind", "wid\u{1b}[2J"]), 2),
        (&create(&["other.yaml", "--current", "third.yaml", "--overwrite=false"]), 1),
        (&create(&["bad\u{1b}]0;owned\u{7}.yaml"]), 2),
        (&["patch", "live", "wid\u{1b}[2J", "w", "-p", "{}", "--kubeconfig", "kubeconfig"], 2),
    ];
    let mut wrong = Vec::new();
    let mut judge = |arguments: &[&str], told: &str, said: &str| {
        let escapes = ["\\u001b", "\\u202e", "\u{fffd}"].iter().any(|it| said.contains(it));
        if said.contains("panicked") || said.contains(is_raw) || !escapes {
            wrong.push(format!("{arguments:?} {told}: {said:?}"));
        }
    };
    let mut forgeries = 0;
    for &(arguments, code) in rows {
        // A manifest is written as it is.
        let is_manifest = arguments[0] == "generate" || (arguments.starts_with(&["patch", "apply"]) && code == 0);
        let arguments: Vec<String> = arguments.iter().map(|it| forging(it)).collect();
        let arguments: &[&str] = &arguments.iter().map(String::as_str).collect::<Vec<_>>();
        let run = folder.run(arguments).code(code);
        let told = if is_manifest { run.stderr } else { run.stdout + &run.stderr };
        judge(arguments, "through pipes", &told);
        assert!(!told.lines().any(|line| line.starts_with(FORGED)), "{arguments:?}: {told}");
        forgeries += usize::from(told.contains(&format!("\\u000a{FORGED}")));
        if is_manifest {
            continue;
        }
        for colours in [true, false] {
            let shown = shown(&folder, (arguments, code), 200, colours);
            judge(arguments, &format!("on a terminal, colours {colours}"), &without_styles(&shown));
        }
    }
    assert!(forgeries > 15, "{forgeries} rows have the line at all");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Neither a pipe that nobody writes nor a device without an end.
#[test]
fn only_files_are_read_and_pipes_that_are_named() {
    let folder = Folder::with_crd(&[("object.yaml", OBJECT), ("go/types.go", "package v1\n")]);
    let pipe = |path: &str| {
        assert!(Command::new("mkfifo").arg(folder.path().join(path)).status().unwrap().success());
    };
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.yaml")).unwrap();
    for arguments in [
        &["lint", "zero.yaml"][..],
        &["explain", "--from", "zero.yaml"],
        &["normalize", "--from", "crd.yaml", "-f", "zero.yaml"],
        &["audit", "--from", "crd.yaml", "--from", "zero.yaml"],
        &["compile", "--to", "policies", "--from", "zero.yaml"],
        &["annotate", "zero.yaml"],
        &["normalize", "-o", "review", "--from", "crd.yaml", "zero.yaml", "-f", "-"],
    ] {
        folder.run(arguments).code(2);
    }
    std::fs::create_dir(folder.path().join("pipes")).unwrap();
    std::fs::copy(folder.path().join("crd.yaml"), folder.path().join("pipes/crd.yaml")).unwrap();
    pipe("pipes/pipe.yaml");
    pipe("go/pipe.go");
    pipe("go/go.mod");
    folder.run(&["lint", "pipes"]).code(0);
    let generated = folder.run(&["generate", "--go", "go", "crd.yaml"]);
    assert!(format!("{}{}", generated.stdout, generated.stderr).contains("pipe.go"), "{generated:#?}");
    // As `<(…)` of a shell.
    pipe("named.yaml");
    let (path, text) = (folder.path().join("named.yaml"), folder.read("crd.yaml"));
    let writer = std::thread::spawn(move || std::fs::write(path, text).unwrap());
    folder.run(&["lint", "named.yaml"]).code(0);
    writer.join().unwrap();
}

/// Work that grew with the square of their number would not end.
#[test]
fn empty_documents_are_read_in_passing() {
    const MANY: usize = 50_000;
    let empty = "---\n".repeat(MANY);
    let folder = Folder::new(&[("empty.yaml", &empty), ("crd.yaml", &(empty.clone() + CRD))]);
    folder.run(&["lint", "empty.yaml"]).code(2).says(&["no objects in `empty.yaml`: the input is empty"]);
    folder.run(&["lint", "crd.yaml"]).code(0).says(&["1 CRD, 2 unions, 0 problems"]);
    let place = format!("crd.yaml:{}:1: widgets.example.com: would change", MANY + 2);
    folder.run(&["annotate", "--check", "crd.yaml"]).code(1).says(&[&place]);
}

/// Here too.
#[test]
fn an_annotation_of_many_pointers_is_read_up_to_the_limit() {
    const MANY: usize = 3_000;
    let both = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let properties: Map<_, _> = (0..MANY).map(|at| (format!("p{at}"), both.clone())).collect();
    let union = json!([{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]);
    let pointers: Map<_, _> =
        (0..MANY).map(|at| (format!("/properties/spec/properties/p{at}"), union.clone())).collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
    let versions = [crds::version("v1", &schema)];
    let crd = crds::annotated("example.com", "Widget", &versions, &json!({"v1": pointers}).to_string());
    let spec: Map<_, _> = (0..MANY).map(|at| (format!("p{at}"), json!({"a": "x", "b": "y"}))).collect();
    let object = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    let folder = Folder::new(&[("crd.json", &crd.to_string()), ("object.json", &object.to_string())]);
    folder.run(&["lint", "crd.json"]).code(1).says(&["1 CRD, 1,024 unions, "]);
    let explained = folder.run(&["explain", "--from", "crd.json", "-o", "json"]).code(0).json();
    assert_eq!(explained[0]["unions"].as_array().unwrap().len(), 1024);
    folder
        .run(&["normalize", "--from", "crd.json", "-f", "object.json"])
        .code(1)
        .says(&["spec.p0.", "1 object: 0 changed, 1 rejected"]);
}
