//! Runs suites and counts the results.

use super::find::{self, FoundSuites};
use super::judge::{Failure, judge};
use super::suite::{Suite, SuiteTest};
use crate::cli::input::kinds::{self, Assembly};
use crate::cli::input::manifest::{self, Problem};
use kube_unions_manifests::counts::{count, grouped};
use std::path::PathBuf;

/// The results of all suites.
#[derive(Debug, Default)]
pub(super) struct SuitesRun {
    pub(super) suites: Vec<SuiteRun>,
    /// The problems with files that no suite could be read from.
    pub(super) problems: Vec<Problem>,
    /// The paths without a suite.
    pub(super) without_suite: Vec<PathBuf>,
    /// The number of tests whose names do not match the filter.
    pub(super) left_out: usize,
}

/// The results of a suite.
#[derive(Debug)]
pub(super) struct SuiteRun {
    pub(super) suite: Suite,
    /// The problems with the sources of the unions. No test ran if there are some.
    pub(super) problems: Vec<Problem>,
    /// The result of each test.
    results: Vec<TestResult>,
}

/// `None` if the test passed, and an error if it could not run.
pub(super) type TestResult = Result<Option<Failure>, String>;

impl SuitesRun {
    /// Finds the suites of paths, and runs the tests whose names contain a text.
    pub(super) fn of(paths: &[PathBuf], filter: Option<&str>) -> Self {
        let FoundSuites { suites, problems, without_suite } = find::find(paths);
        let mut run = Self { problems, without_suite, ..Self::default() };
        for mut suite in suites {
            let all = suite.tests.len();
            suite.tests.retain(|test| filter.is_none_or(|text| test.name.contains(text)));
            run.left_out += all - suite.tests.len();
            if !suite.tests.is_empty() {
                run.suites.push(SuiteRun::of(suite));
            }
        }
        run
    }

    /// Returns the tests that ran, with their results.
    pub(super) fn tests(&self) -> impl Iterator<Item = (&SuiteTest, &TestResult)> {
        self.suites.iter().flat_map(SuiteRun::tests)
    }

    pub(super) fn failed(&self) -> usize {
        self.tests().filter(|(_, result)| matches!(result, Ok(Some(_)))).count()
    }

    /// Returns the number of problems that kept something from being tested.
    pub(super) fn unread(&self) -> usize {
        let broken = self.tests().filter(|(_, result)| result.is_err()).count();
        self.problems.len() + self.suites.iter().map(|suite| suite.problems.len()).sum::<usize>() + broken
    }

    /// Returns the summary, for example `2 suites, 14 tests, 1 failed`.
    pub(super) fn summary(&self) -> String {
        let (suites, tests) = (count(self.suites.len(), "suite"), count(self.tests().count(), "test"));
        let left_out = if self.left_out > 0 { format!(", {} left out", grouped(self.left_out)) } else { String::new() };
        format!("{suites}, {tests}, {} failed{left_out}", grouped(self.failed()))
    }
}

impl SuiteRun {
    fn of(suite: Suite) -> Self {
        let (kinds, problems) = unions(&suite);
        let result = |test: &SuiteTest| {
            let write = test.write.as_ref().map_err(String::clone)?;
            judge(write, &kinds).map_err(|problem| problem.to_string())
        };
        let results = if problems.is_empty() { suite.tests.iter().map(result).collect() } else { Vec::new() };
        Self { suite, problems, results }
    }

    /// Returns the tests that ran, with their results.
    pub(super) fn tests(&self) -> impl Iterator<Item = (&SuiteTest, &TestResult)> {
        self.suite.tests.iter().zip(&self.results)
    }
}

/// Reads the unions of a suite.
fn unions(suite: &Suite) -> (Assembly, Vec<Problem>) {
    if suite.from.is_empty() {
        let message = "nothing beside the tests declares unions: add the CRD or UnionDeclaration, or write a suite file \
                       whose `from` names it";
        return (Assembly::default(), vec![Problem::of_file(&suite.file, message.to_owned())]);
    }
    let read = manifest::files(&suite.from);
    let documents = read.documents().collect();
    let assembly = kinds::assemble(documents, suite.builtin_unions);
    let mut problems = read.problems;
    problems.extend(assembly.problems.iter().cloned());
    if problems.is_empty() {
        let missing = assembly.missing_beside(&suite.from, "`builtinUnions: OpenAPI`");
        problems.extend(missing.map(|missing| Problem::of_file(&suite.file, missing)));
    }
    (assembly, problems)
}
