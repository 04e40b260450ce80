//! Mistakes and questions of users, and the words of the answers that matter: the rows of `tests/cases/answers`.
//!
//! The sessions hold each word of an answer. A row holds the verdict, and says who gave the answer that it was held against. Each row is a
//! test: `cargo test -p kube-unions --test answers -- "lint counts"`.

use fixtures::files::{files, parse};
use libtest_mimic::{Arguments, Failed, Trial};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Seek, Write};
use std::process::Command;
use std::sync::Arc;

/// The rows about one command or one kind of input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerTable {
    /// Files in the folder of each row.
    #[serde(default)]
    files: BTreeMap<String, String>,
    rows: Vec<AnswerRow>,
    #[serde(default)]
    products: Vec<AnswerProduct>,
}

/// A row for each of several commands about each of several files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AnswerProduct {
    /// The texts of `in.yaml`, by their names.
    inputs: BTreeMap<String, String>,
    runs: Vec<String>,
    code: i32,
    says: Vec<String>,
    #[serde(default)]
    silent: Vec<String>,
    held_against: AnsweredBy,
}

impl AnswerProduct {
    fn rows(&self) -> impl Iterator<Item = AnswerRow> {
        let runs = self.runs.iter().flat_map(move |run| self.inputs.iter().map(move |input| (run, input)));
        runs.map(move |(run, (name, text))| AnswerRow {
            name: format!("{run}: {name}"),
            files: BTreeMap::from([("in.yaml".to_owned(), text.clone())]),
            run: run.clone(),
            stdin: String::new(),
            code: self.code,
            says: self.says.clone(),
            silent: self.silent.clone(),
            held_against: self.held_against,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AnswerRow {
    name: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// The words after `kube-unions`. There is no shell.
    run: String,
    #[serde(default)]
    stdin: String,
    code: i32,
    /// Each of these stands in an output.
    says: Vec<String>,
    /// None of these stands in an output.
    #[serde(default)]
    silent: Vec<String>,
    held_against: AnsweredBy,
}

/// The program or text that a row was held against.
#[derive(Debug, Clone, Copy, Deserialize)]
enum AnsweredBy {
    #[serde(rename = "API server")]
    ApiServer,
    #[serde(rename = "kubectl")]
    Kubectl,
    Helm,
    Crossplane,
    /// KEP-1027, or a specification of a format.
    #[serde(rename = "proposal")]
    Proposal,
}

impl AnswerRow {
    fn holds(&self, common: &BTreeMap<String, String>) -> Result<(), Failed> {
        let folder = tempfile::tempdir()?;
        for (name, text) in common.iter().chain(&self.files) {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().ok_or("a file has no folder")?)?;
            fs::write(path, text)?;
        }
        let mut stdin = tempfile::tempfile()?;
        stdin.write_all(self.stdin.as_bytes())?;
        stdin.rewind()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_kube-unions"));
        command.args(self.run.split_whitespace()).current_dir(&folder).env_remove("RUST_LOG").stdin(stdin);
        let output = command.output()?;
        let answer = String::from_utf8([output.stdout, output.stderr].join(&b'\n'))?;
        let code = output.status.code().ok_or("the program was killed")?;
        let unlike = (code != self.code).then(|| format!("code {code} instead of {}", self.code));
        let missing = self.says.iter().filter(|words| !answer.contains(&***words)).map(|words| format!("no `{words}`"));
        let said = self.silent.iter().filter(|words| answer.contains(&***words)).map(|words| format!("`{words}`"));
        let faults: Vec<String> = unlike.into_iter().chain(missing).chain(said).collect();
        if faults.is_empty() {
            return Ok(());
        }
        Err(format!("held against {:?}: {}\n{answer}", self.held_against, faults.join(", ")).into())
    }
}

/// Each row is a test. Its name is the name of its file and its own.
fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (path, text) in files("tests/cases/answers", "yaml") {
        let table: AnswerTable = parse(&path, &text);
        assert!(!table.rows.is_empty(), "{path} has no rows");
        let common = Arc::new(table.files);
        for row in table.products.iter().flat_map(AnswerProduct::rows).chain(table.rows) {
            let common = Arc::clone(&common);
            trials.push(Trial::test(format!("{path}: {}", row.name), move || row.holds(&common)));
        }
    }
    let names: BTreeSet<&str> = trials.iter().map(Trial::name).collect();
    assert_eq!(names.len(), trials.len(), "each row has a name of its own");
    libtest_mimic::run(&arguments, trials).exit();
}
