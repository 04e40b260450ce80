//! The program of the image: its commands, and what it links.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets what it did not expect is meant to stop there"
)]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};

/// Crates that only people at a terminal need, by the beginning of their names, with a command that needs them.
const FORBIDDEN: [(&str, &str); 7] = [
    ("antlr", "lint"),
    ("cel", "lint"),
    ("clap_complete", "completion"),
    ("clap_mangen", "completion man"),
    ("indicatif", "audit"),
    ("quick-xml", "test"),
    ("tree-sitter", "generate"),
];

/// The crates of this workspace that the program consists of.
const OWN: [&str; 6] = [
    "kube-unions-api",
    "kube-unions-command",
    "kube-unions-core",
    "kube-unions-manifests",
    "kube-unions-policies",
    "kube-unions-webhook",
];

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kube-unions-webhook")).args(arguments).output().unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_program_has_the_commands_of_the_webhook_and_no_other() {
    let help = text(run(&["--help"]).stdout);
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(commands, ["serve", "audit", "verify", "unregister", "install-crd", "version", "help"]);
    let version = run(&["version"]);
    assert_eq!(text(version.stdout), format!("kube-unions-webhook {}\n", env!("CARGO_PKG_VERSION")));
    let unknown = run(&["explain"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(unknown.stderr).contains("unrecognized subcommand 'explain'"));
}

#[test]
fn the_program_is_served_by_axum_and_links_no_crate_of_the_command_line() {
    let [program, command_line] = ["kube-unions-webhook", "kube-unions"].map(linked);
    let own: Vec<&str> = program.iter().filter(|(_, is_own)| **is_own).map(|(name, _)| &**name).collect();
    assert_eq!(own, OWN);
    assert!(program.contains_key("axum"), "{program:?}");
    for (prefix, command) in FORBIDDEN {
        let of = |linked: &BTreeMap<String, bool>| linked.keys().find(|it| it.starts_with(prefix)).cloned();
        assert_eq!(of(&program), None, "only `{command}` needs it");
        assert_ne!(of(&command_line), None, "`{command}` does not need {prefix} either");
    }
}

/// Returns the names of the crates that a program of this workspace links on this machine, with all of its features, and whether
/// each is of this workspace.
fn linked(program: &str) -> BTreeMap<String, bool> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--locked",
            "--offline",
            "--all-features",
            "--filter-platform",
            "host-tuple",
            "--format-version",
            "1",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let names: BTreeMap<String, (String, bool)> = list(&metadata["packages"])
        .iter()
        .map(|it| (string(&it["id"]), (string(&it["name"]), it["source"].is_null())))
        .collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|it| (string(&it["id"]), it)).collect();
    let first = names.iter().find(|(_, (name, _))| *name == program).unwrap().0.clone();
    let (mut waiting, mut seen) = (vec![first], BTreeSet::new());
    while let Some(id) = waiting.pop() {
        if seen.insert(id.clone()) {
            let used = list(&nodes[&id]["deps"]);
            let ordinary = used.iter().filter(|it| list(&it["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()));
            waiting.extend(ordinary.map(|it| string(&it["pkg"])));
        }
    }
    seen.iter().map(|id| names[id].clone()).collect()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
