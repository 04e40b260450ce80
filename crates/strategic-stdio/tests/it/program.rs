//! The program as a process.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_strategic-merge-patch"))
}

fn run(arguments: &[&str]) -> Output {
    program().args(arguments).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn it_answers_each_request_before_the_input_ends() {
    let mut child = program().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut requests, mut answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    for id in 0..3 {
        writeln!(requests, r#"{{"jsonrpc":"2.0","id":{id},"method":"version"}}"#).unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["protocol"]), (&Value::from(id), &Value::from(1)));
    }
    drop(requests);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn it_ends_quietly_if_nobody_reads_the_answers() {
    let mut child = program().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut requests = child.stdin.take().unwrap();
    // A process that another test is starting may still hold the other end of the output, so the first answer may be written.
    let request = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"version\"}\n";
    assert!((0..100_000).any(|_| requests.write_all(request).is_err()), "it reads on");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn its_only_arguments_are_help_and_version() {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let version = run(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert_eq!(text(version.stdout), format!("strategic-merge-patch {}\n", env!("CARGO_PKG_VERSION")));
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(help.stdout).starts_with("Usage: strategic-merge-patch\n"));
    for arguments in [&["--versoin"][..], &["--help", "more"], &[""]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(text(output.stderr), "error: it takes no arguments; see --help\n");
        assert!(output.stdout.is_empty());
    }
    let nothing = run(&[]);
    assert_eq!((nothing.status.code(), nothing.stdout.len(), nothing.stderr.len()), (Some(0), 0, 0));
}

#[test]
fn the_example_of_the_readme_is_as_it_says() {
    let readme = include_str!("../../README.md");
    let (_, example) = readme.split_once("$ strategic-merge-patch <<'EOF'\n").unwrap();
    let (requests, rest) = example.split_once("EOF\n").unwrap();
    let (answers, _) = rest.split_once("```").unwrap();
    let mut found = Vec::new();
    strategic_merge_patch_stdio::serve(requests.as_bytes(), &mut found).unwrap();
    assert_eq!(String::from_utf8(found).unwrap(), answers);
}
