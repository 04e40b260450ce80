//! A table of mistakes: `mistakes.md` has the commands, and everything that each prints. They run in a folder with the files of
//! `mistakes.in`, and those that `mistakes.yaml` makes of them.

use super::{Folder, binary};
use fixtures::files::{edited, parse, root};
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// The number of mistakes in the table.
const MISTAKES: usize = 273;

/// By a file of `mistakes.in`, the files that are made of it, and the new text of each old one.
type Edits = BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>;

/// Returns a folder with a link to the table, through which its answers are written, and with all files in `mistakes.in`.
fn folder() -> Folder {
    let (here, folder) = (root().join("tests/it/cli"), Folder::new(&[]));
    symlink(here.join("mistakes.md"), folder.path().join("mistakes.md")).unwrap();
    let copied = Command::new("cp").arg("-R").args([&here.join("mistakes.in"), folder.path()]).status().unwrap();
    assert!(copied.success());
    for (from, made) in parse::<Edits>("mistakes.yaml", include_str!("mistakes.yaml")) {
        let text = folder.read(&format!("mistakes.in/{from}"));
        for (name, edits) in made {
            folder.write(&format!("mistakes.in/{name}"), edited(&name, &text, &edits));
        }
    }
    folder
}

#[test]
fn each_mistake_is_answered_as_the_table_says() {
    let table = include_str!("mistakes.md");
    let rows = table.lines().filter(|line| line.starts_with("$ ")).count();
    assert!(rows >= MISTAKES, "{rows} mistakes");
    for line in table.lines().filter(|line| line.starts_with("? ")) {
        assert!(["? 0", "? 1", "? 2"].contains(&line), "{line}");
    }
    assert!(!table.contains("panicked"));

    let (program, folder) = (binary().parent().unwrap().display().to_string(), folder());
    let path = std::env::var("PATH").unwrap();
    trycmd::TestCases::new()
        .register_bin("kube-unions", binary())
        .register_bin("sh", Path::new("/bin/sh"))
        .env("PATH", format!("{program}:{path}"))
        .case(folder.path().join("mistakes.md"))
        .run();
}
