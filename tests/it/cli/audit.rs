//! `audit`: signals here, and in [`live`] an API server that fails in ways a real one can't be made to.
#![cfg(unix)]

mod live;

use super::sarif::hold_to_the_specification;
use super::{Folder, binary};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

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
