//! Mistakes and questions of users, and the words of the answers that matter: the rows of `tests/cases/answers`.
//!
//! The sessions hold each word of an answer. A row holds the verdict, and says who gave the answer that it was held against.

use super::Folder;
use fixtures::files::{files, parse};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;

/// The rows about one command or one kind of input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerTable {
    /// Files in the folder of each row.
    #[serde(default)]
    files: BTreeMap<String, String>,
    rows: Vec<AnswerRow>,
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

/// Whose answer a row was held against.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Returns what is wrong with the answer.
    fn faults(&self, common: &BTreeMap<String, String>) -> Vec<String> {
        let folder = Folder::new(&[]);
        for (name, text) in common.iter().chain(&self.files) {
            folder.write(name, text);
        }
        let arguments: Vec<&str> = self.run.split_whitespace().collect();
        let run = folder.pipe(&arguments, &self.stdin);
        let answer = format!("{}\n{}", run.stdout, run.stderr);
        let code = (run.code != self.code).then(|| format!("code {} instead of {}", run.code, self.code));
        let missing = self.says.iter().filter(|words| !answer.contains(&***words)).map(|words| format!("no `{words}`"));
        let said = self.silent.iter().filter(|words| answer.contains(&***words)).map(|words| format!("`{words}`"));
        let faults: Vec<String> = code.into_iter().chain(missing).chain(said).collect();
        if faults.is_empty() { faults } else { [vec![self.name.clone()], faults, vec![answer]].concat() }
    }
}

#[test]
fn each_row_is_answered_with_its_words() {
    let tables: Vec<(String, AnswerTable)> =
        files("tests/cases/answers", "yaml").iter().map(|(path, text)| (path.clone(), parse(path, text))).collect();
    let rows: Vec<(&AnswerTable, &AnswerRow)> =
        tables.iter().flat_map(|(_, table)| table.rows.iter().map(move |row| (table, row))).collect();
    let names: BTreeSet<&str> = rows.iter().map(|(_, row)| &*row.name).collect();
    assert_eq!(names.len(), rows.len(), "each row has a name of its own");
    let answered_by: BTreeSet<&AnsweredBy> = rows.iter().map(|(_, row)| &row.held_against).collect();
    println!("{} rows, held against {answered_by:?}", rows.len());
    let faults: Vec<String> = thread::scope(|scope| {
        let parts = rows.chunks(rows.len().div_ceil(4));
        let started: Vec<_> = parts
            .map(|part| {
                scope.spawn(move || part.iter().flat_map(|(table, row)| row.faults(&table.files)).collect::<Vec<_>>())
            })
            .collect();
        started.into_iter().flat_map(|part| part.join().expect("the rows are run")).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
