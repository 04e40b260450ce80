//! The program of the image: its commands, and what it links.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets what it did not expect is meant to stop there"
)]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};

/// Crates that only people at a terminal need, with the command that needs them.
const FORBIDDEN: [(&str, &str); 11] = [
    ("antlr4rust", "lint"),
    ("cel", "lint"),
    ("clap_complete", "completion"),
    ("clap_mangen", "completion man"),
    ("indicatif", "audit"),
    ("kube-unions", "every command"),
    ("kube-unions-evidence", "propose"),
    ("kube-unions-go", "generate"),
    ("quick-xml", "test"),
    ("strategic-merge-patch", "patch"),
    ("tree-sitter", "generate"),
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
    let linked = linked("kube-unions-webhook");
    assert!(linked.contains("axum") && linked.contains("kube-unions-core"), "{linked:?}");
    let found: Vec<_> = FORBIDDEN.iter().filter(|(name, _)| linked.contains(*name)).collect();
    assert!(found.is_empty(), "only these commands need these crates: {found:?}");
    let of_command_line = self::linked("kube-unions");
    let missing: Vec<_> = FORBIDDEN.iter().filter(|(name, _)| !of_command_line.contains(*name)).collect();
    assert!(missing.is_empty(), "the command line does not need these crates either: {missing:?}");
}

/// Returns the names of the crates that a program of this workspace links on this machine, with all of its features.
fn linked(program: &str) -> BTreeSet<String> {
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
    let names: BTreeMap<String, String> =
        list(&metadata["packages"]).iter().map(|it| (string(&it["id"]), string(&it["name"]))).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|it| (string(&it["id"]), it)).collect();
    let first = names.iter().find(|(_, name)| *name == program).unwrap().0.clone();
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
