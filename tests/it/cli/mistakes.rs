//! A table of mistakes: `mistakes.md` has the commands, and everything that each prints.

use super::binary;
use std::path::Path;

/// The number of mistakes in the table.
const MISTAKES: usize = 273;

#[test]
fn each_mistake_is_answered_as_the_table_says() {
    let table = include_str!("mistakes.md");
    let rows = table.lines().filter(|line| line.starts_with("$ ")).count();
    assert!(rows >= MISTAKES, "{rows} mistakes");
    for line in table.lines().filter(|line| line.starts_with("? ")) {
        assert!(["? 0", "? 1", "? 2"].contains(&line), "{line}");
    }
    assert!(!table.contains("panicked"));

    let folder = binary().parent().unwrap().display().to_string();
    let path = std::env::var("PATH").unwrap();
    trycmd::TestCases::new()
        .register_bin("kube-unions", binary())
        .register_bin("sh", Path::new("/bin/sh"))
        .env("PATH", format!("{folder}:{path}"))
        .case("tests/it/cli/mistakes.md");
}
