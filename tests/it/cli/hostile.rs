//! Files of strangers: names that a terminal would obey, and paths that never end.

use super::Folder;
use fixtures::crds;
use serde_json::{Map, json};
use std::process::Command;

/// The CRD of a kind whose fields, and the message of a rule, have escape sequences, as JSON. `more` are members that the schema
/// does not have.
fn crd(more: &[&str]) -> String {
    let fields = ["a\u{1b}]0;owned\u{7}", "b\u{202e}\u{9b}2J"];
    let values = fields.iter().chain(more).enumerate();
    let values: Map<_, _> = values.map(|(at, field)| ((*field).to_owned(), json!(format!("V{at}")))).collect();
    let properties: Map<_, _> = fields.map(|field| (field.to_owned(), json!({"type": "string"}))).into_iter().collect();
    let spec = json!({"type": "object", "properties": properties,
        "x-kubernetes-validations": [{"rule": "has(self.\u{1b}[2J", "message": "\u{1b}[2J"}],
        "x-kubernetes-unions": [{"fields-to-discriminateBy": values}]});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    crds::crd("example.com", "Widget", &[crds::version("v1", &schema)]).to_string()
}

/// An object that sets both members.
const OBJECT: &str = r#"
apiVersion: example.com/v1
kind: Widget
metadata: {name: "w\e[2J", namespace: n}
spec: {"a\e]0;owned\a": x, "b\u202e\x9b2J": y}
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
fn nothing_of_a_strangers_file_reaches_the_terminal_raw() {
    let file = "crd\u{1b}[2J.json";
    let folder = Folder::new(&[
        (file, &crd(&[])),
        ("faulty\u{1b}[2J.json", &crd(&["c\u{1b}[2J"])),
        ("object.yaml", OBJECT),
        ("bad\u{1b}]0;owned\u{7}.yaml", "a: [\"\\e[2J\", *nowhere\n"),
        ("test/unions\u{1b}[2J.yaml", SUITE),
        ("go/types\u{1b}[2J.go", "package v1\n\ntype T struct { // +unionMember=\u{1b}[2J\n"),
    ]);
    let rows: &[(&[&str], i32)] = &[
        (&["lint", "faulty\u{1b}[2J.json"], 1),
        (&["lint", "-o", "json", "faulty\u{1b}[2J.json"], 1),
        (&["lint", "bad\u{1b}]0;owned\u{7}.yaml"], 2),
        (&["lint", "no\u{1b}[2Jsuch"], 2),
        (&["explain", "--from", file], 0),
        (&["explain", "--from", file, "wid\u{1b}[2J"], 2),
        (&["audit", "--from", file, "--from", "object.yaml"], 1),
        (&["audit", "--from", file, "--from", "object.yaml", "-o", "json"], 1),
        (&["normalize", "--from", file, "-f", "object.yaml"], 1),
        (&["check-cel", file], 0),
        (&["test", "test"], 2),
        (&["generate", "--go", "go", file], 1),
        (&["compile", "--to", "policies", "--from", "bad\u{1b}]0;owned\u{7}.yaml"], 2),
        (&["annotate", "bad\u{1b}]0;owned\u{7}.yaml"], 2),
    ];
    let mut wrong = Vec::new();
    for (arguments, code) in rows {
        let mut run = folder.run(arguments);
        // A manifest is written as it is.
        if arguments.first() == Some(&"generate") {
            run.stdout.clear();
        }
        let said = format!("{}{}", run.stdout, run.stderr);
        let escapes = ["\\u001b", "\\u202e", "\u{fffd}"].iter().any(|it| said.contains(it));
        if run.code != *code || said.contains("panicked") || said.contains(is_raw) || !escapes {
            wrong.push((arguments, run));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns true for what a terminal would obey.
fn is_raw(it: char) -> bool {
    (it.is_control() && it != '\n' && it != '\t') || matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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
        &["review", "--from", "crd.yaml", "zero.yaml"],
    ] {
        folder.run(arguments).code(2);
    }
    std::fs::create_dir(folder.path().join("pipes")).unwrap();
    std::fs::copy(folder.path().join("crd.yaml"), folder.path().join("pipes/crd.yaml")).unwrap();
    pipe("pipes/pipe.yaml");
    pipe("go/pipe.go");
    pipe("go/go.mod");
    pipe("baseline.json");
    folder.run(&["generate", "--go", "go", "--baseline", "baseline.json", "crd.yaml"]).code(2).says(&["is not a file"]);
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
