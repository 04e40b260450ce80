//! `.pre-commit-hooks.yaml` and `action.yml`: their command lines, on the real program.

use super::{CRD, Folder, Run, binary, run, yaml};
use fixtures::files::root;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {}\n";

const DECLARATION: &str = "\
apiVersion: kube-unions.dev/v1alpha1
kind: UnionDeclaration
metadata: {name: widgets}
spec:
  target: {group: example.com, kind: Gadget}
  unions:
  - path: spec
    fieldsToDiscriminateBy: {svn: Svn, cvs: Cvs}
";

fn read(name: &str) -> Value {
    yaml(&fs::read_to_string(root().join(name)).unwrap())
}

/// Returns a file with a fault.
fn faulty() -> String {
    CRD.replace("Rolling: {name: rolling,", "Rolling: {name: missing,")
}

fn folder() -> Folder {
    let annotated = kube_unions::annotated(CRD).unwrap();
    Folder::new(&[
        ("crd.yaml", CRD),
        ("annotated crd.yaml", &annotated),
        ("faulty.yaml", &faulty()),
        ("deployment.yaml", DEPLOYMENT),
        ("recreate.yaml", &DEPLOYMENT.replace("{}", "{strategy: {type: Recreate}}")),
        ("both.yaml", &DEPLOYMENT.replace("{}", "{strategy: {type: Recreate, rollingUpdate: {}}}")),
        ("declaration.yaml", DECLARATION),
        ("broken.yaml", "a: [\n"),
        ("empty.yaml", ""),
    ])
}

/// Runs a hook as pre-commit does: the words of its entry, then files.
fn hook(folder: &Folder, id: &str, files: &[&str]) -> Run {
    let hooks = read(".pre-commit-hooks.yaml");
    let hook = hooks.as_array().unwrap().iter().find(|hook| hook["id"] == id).unwrap();
    let mut words = hook["entry"].as_str().unwrap().split(' ');
    assert_eq!((&hook["language"], words.next()), (&json!("script"), Some("release/pre-commit.sh")));
    folder.run(&words.chain(files.iter().copied()).collect::<Vec<_>>())
}

#[test]
fn the_script_of_the_hooks_builds_and_runs_the_command_line_where_it_is_called() {
    let folder = Folder::new(&[]);
    let mut command = Command::new(root().join("release/pre-commit.sh"));
    command.current_dir(folder.path()).args(["lint", "a b.yaml"]).env("CARGO", "/bin/echo");
    let said = run(&mut command, b"").code(0).stdout;
    let manifest = root().join("Cargo.toml");
    let cargo = "run --quiet --release --locked --manifest-path";
    let program = "--package kube-unions --bin kube-unions -- lint a b.yaml";
    assert_eq!(said, format!("{cargo} {} {program}\n", manifest.display()));
}

#[test]
fn the_hooks_take_the_files_of_any_commit() {
    let folder = folder();
    for (id, files, code) in [
        ("kube-unions-lint", &["crd.yaml", "deployment.yaml"][..], 0),
        ("kube-unions-lint", &["deployment.yaml"], 0),
        ("kube-unions-lint", &["declaration.yaml"], 0),
        ("kube-unions-lint", &["declaration.yaml", "annotated crd.yaml"], 0),
        ("kube-unions-lint", &["empty.yaml"], 0),
        ("kube-unions-lint", &["deployment.yaml", "faulty.yaml"], 1),
        ("kube-unions-lint", &["broken.yaml"], 2),
        ("kube-unions-annotate", &["annotated crd.yaml", "deployment.yaml"], 0),
        ("kube-unions-annotate", &["deployment.yaml", "empty.yaml"], 0),
        ("kube-unions-annotate", &["deployment.yaml", "crd.yaml"], 1),
        ("kube-unions-annotate", &["broken.yaml"], 2),
        ("kube-unions-preview", &["--old", "deployment.yaml", "--new", "recreate.yaml", "--as", "csa"], 0),
        ("kube-unions-preview", &["--old", "deployment.yaml", "--new", "recreate.yaml", "--as", "ssa"], 1),
        ("kube-unions-chart", &["--new", "recreate.yaml"], 0),
        ("kube-unions-chart", &["--new", "both.yaml"], 1),
        ("kube-unions-chart", &["no-such-chart"], 2),
    ] {
        let run = hook(&folder, id, files);
        assert_eq!(run.code, code, "{id} {files:?}: {run:#?}");
    }
    // Without --partial, a missing document is an error.
    folder.run(&["lint", "deployment.yaml"]).code(2);
    folder.run(&["lint", "declaration.yaml", "annotated crd.yaml"]).code(1);
    folder.run(&["lint", "--partial", "--require", "crd.yaml"]).code(2);
}

/// Runs the step of the action with inputs, as GitHub does: expressions become variables of the environment.
fn act(folder: &Folder, inputs: &[(&str, &str)]) -> Run {
    let action = read("action.yml");
    let [step] = &action["runs"]["steps"].as_array().unwrap()[..] else { panic!("one step: {action}") };
    assert_eq!((&action["runs"]["using"], &step["shell"]), (&json!("composite"), &json!("bash")));
    let mut command = Command::new("bash");
    command.current_dir(folder.path()).args(["--noprofile", "--norc", "-c", step["run"].as_str().unwrap()]);
    for (variable, expression) in step["env"].as_object().unwrap() {
        let expression = expression.as_str().unwrap();
        let input = expression.strip_prefix("${{ inputs.").and_then(|rest| rest.strip_suffix(" }}")).unwrap();
        let default = action["inputs"][input]["default"].as_str().unwrap();
        let given = inputs.iter().find(|(name, _)| *name == input).map(|(_, value)| *value);
        command.env(variable, given.unwrap_or(default));
    }
    run(&mut command, b"")
}

#[test]
fn the_action_runs_a_command_and_writes_sarif() {
    let folder = folder();
    let program = binary();
    let path = ("path", program.to_str().unwrap());
    for (inputs, code) in [
        (&[path, ("paths", "annotated crd.yaml\ndeployment.yaml\n")][..], 0),
        (&[path, ("paths", "faulty.yaml")], 1),
        (&[path, ("paths", "deployment.yaml"), ("args", "--partial\n--builtin-unions=openapi")], 0),
        (&[path, ("paths", "--strict")], 2),
        (&[path, ("command", "annotate"), ("args", "--check"), ("paths", "annotated crd.yaml")], 0),
        (&[path, ("command", "check-cel"), ("paths", "crd.yaml")], 0),
        (
            &[
                path,
                ("command", "preview"),
                ("args", "--old=deployment.yaml\n--new=recreate.yaml\n--as=ssa"),
                ("paths", ""),
            ],
            1,
        ),
        (&[path, ("command", "chart"), ("args", "--new=recreate.yaml"), ("paths", "")], 0),
        (&[path, ("command", "chart"), ("args", "--new=both.yaml"), ("paths", "")], 1),
        (&[path], 2),
    ] {
        let run = act(&folder, inputs);
        assert_eq!(run.code, code, "{inputs:?}: {run:#?}");
    }
    act(&folder, &[path, ("paths", "faulty.yaml"), ("sarif-file", "a b.sarif")]).code(1).prints("");
    let log: Value = serde_json::from_str(&folder.read("a b.sarif")).unwrap();
    super::sarif::hold_to_the_specification(&log);
    assert_eq!(log["runs"][0]["results"][0]["ruleId"], "unknown-member");

    let missing = act(&folder, &[("path", "no-such-program")]).code(2);
    assert!(missing.stdout.contains("::error::no program no-such-program"), "{missing:#?}");
}

#[test]
fn the_action_uses_no_action_of_others_and_no_input_in_its_script() {
    let action = read("action.yml");
    for step in action["runs"]["steps"].as_array().unwrap() {
        assert_eq!(step.get("uses"), None, "{step}");
        // An input in the script itself could run any command.
        assert!(!step["run"].as_str().unwrap().contains("${{"), "{step}");
    }
    for (name, input) in action["inputs"].as_object().unwrap() {
        assert!(input["description"].is_string() && input["default"].is_string(), "{name}: {input}");
    }
}
