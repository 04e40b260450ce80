//! `test --watch`: each change runs the tests again. Every wait is for a line of the program.

use super::{BOTH, PASSING, WIDGET};
use crate::cli::{CRD, Folder, binary};
use fixtures::wait::SOON;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// A program that watches. It is killed when dropped.
struct Watch {
    child: Child,
    /// The lines of standard output and standard error.
    lines: Receiver<String>,
    /// All of them so far.
    seen: Vec<String>,
}

impl Watch {
    fn start(folder: &Folder, arguments: &[&str]) -> Self {
        // One pipe for both outputs keeps the order of their lines.
        let (output, writer) = io::pipe().unwrap();
        let child = Command::new(binary())
            .current_dir(folder.path())
            .args(["test", "--watch"])
            .args(arguments)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(writer.try_clone().unwrap())
            .stderr(writer)
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                if sender.send(line.unwrap()).is_err() {
                    break;
                }
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits for a line after those that were waited for.
    #[track_caller]
    fn prints(&mut self, wanted: &str) {
        loop {
            match self.lines.recv_timeout(SOON) {
                Ok(line) => self.seen.push(line),
                Err(error) => panic!("{error} in the wait for `{wanted}` after {:#?}", self.seen),
            }
            if self.seen.last().unwrap().contains(wanted) {
                return;
            }
        }
    }

    /// Ends the program with a signal, and returns its exit code.
    #[track_caller]
    fn ends(mut self, signal: Signal) -> Option<i32> {
        // It listens for signals before it prints anything.
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let code = self.child.wait().unwrap().code();
        assert!(!self.seen.iter().any(|line| line.contains("panicked")), "{:#?}", self.seen);
        code
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const WAITING: &str = "watching for changes, Ctrl+C ends";

#[test]
fn a_change_of_any_file_of_a_suite_runs_it_again() {
    let suite = PASSING.replace("from: [crd.yaml]", "from: [../crds/crd.yaml]").replace(
        "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {git: {}}}",
        "../objects/new.yaml",
    );
    let folder = Folder::new(&[("suites/suite.yaml", &suite), ("crds/crd.yaml", CRD), ("objects/new.yaml", WIDGET)]);
    let mut watch = Watch::start(&folder, &["suites"]);
    watch.prints("1 suite, 1 test, 0 failed");
    watch.prints(WAITING);

    // An object, a source, and the suite itself: each lies in another folder.
    folder.write("objects/new.yaml", BOTH);
    watch.prints("--- changed: objects/new.yaml ---");
    watch.prints("1 suite, 1 test, 1 failed");
    folder.write("crds/crd.yaml", CRD.replace("oci: OCI", "none: None"));
    watch.prints("--- changed: crds/crd.yaml ---");
    watch.prints("1 suite, 1 test, 0 failed");
    folder.write("crds/crd.yaml", CRD);
    folder.write("suites/suite.yaml", suite.replace("{accepted: {}}", "{rejected: {causes: [{field: spec.oci}]}}"));
    watch.prints("1 suite, 1 test, 0 failed");
    assert_eq!(watch.ends(Signal::INT), Some(0));
}

#[test]
fn files_that_are_deleted_or_half_written_are_an_error_of_that_run_only() {
    let folder = Folder::with_crd(&[("a/suite.yaml", &PASSING.replace("[crd.yaml]", "[../crd.yaml]"))]);
    let good = folder.read("a/suite.yaml");
    let mut watch = Watch::start(&folder, &["a"]);
    watch.prints("1 suite, 1 test, 0 failed");

    folder.write("a/suite.yaml", &good[..good.len() / 2]);
    watch.prints("a/suite.yaml:");
    watch.prints("error: 1 problem kept something from being tested");
    folder.write("a/suite.yaml", &good);
    watch.prints("1 suite, 1 test, 0 failed");

    fs::remove_file(folder.path().join("a/suite.yaml")).unwrap();
    watch.prints("Warning: nothing to test: no suite in `a`");
    folder.write("a/suite.yaml", &good);
    watch.prints("1 suite, 1 test, 0 failed");

    // A folder that comes back is watched again, and so are new folders in it.
    fs::rename(folder.path().join("a"), folder.path().join("b")).unwrap();
    watch.prints("a: error: no such file or folder");
    watch.prints("error: 1 problem kept something from being tested");
    folder.write("a/inner/suite.yaml", good.replace("../crd.yaml", "../../crd.yaml"));
    watch.prints("1 suite, 1 test, 0 failed");
    folder.write("a/inner/suite.yaml", good.replace("../crd.yaml", "../../none.yaml"));
    watch.prints("error: 1 problem kept something from being tested");
    watch.prints(WAITING);
    assert_eq!(watch.ends(Signal::TERM), Some(2));
}

#[test]
fn a_failure_in_the_last_run_is_the_exit_code() {
    let folder = Folder::with_crd(&[("a.new.yaml", BOTH), ("a.want.yaml", WIDGET)]);
    let mut watch = Watch::start(&folder, &["a.new.yaml"]);
    watch.prints("1 suite, 1 test, 1 failed");
    watch.prints(WAITING);
    assert_eq!(watch.ends(Signal::INT), Some(1));
}
