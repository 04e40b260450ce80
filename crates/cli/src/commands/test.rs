//! `test`: runs the tests that authors write of their unions, without a cluster.
//!
//! [`find`] finds suites: files of the kind `Suite`, which [`suite`](mod@suite) reads, and files by their names. [`run`](mod@run) runs
//! them: it compares the answer of the webhook's code with the expected one. The report is lines for people, or JUnit XML for
//! test tools, which has no times: two runs with the same results have the same report.

mod find;
mod run;
mod suite;

pub use self::suite::suite_schema;

use self::run::{SuiteRun, SuitesRun, TestResult};
use self::suite::SuiteTest;
use crate::input::builtin::PresetsArg;
use crate::input::manifest::{self, PathArgs, Problem};
use crate::input::require::RequireArg;
use crate::input::values::only;
use crate::report::Verdict;
use crate::report::conclusion::{Conclusion, kept_from};
use crate::report::output::{self, Paint};
use anyhow::Context;
use clap::{Args, ValueEnum};
use kube_unions_core::field_path::Printable;
use kube_unions_manifests::counts::count;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite, XmlString};
use std::path::Path;

/// Returns the number of tests of each suite in a text of manifests. Nothing is run.
pub fn suites(text: &str) -> anyhow::Result<Vec<usize>> {
    let documents = manifest::parse(Path::new("-"), text.as_bytes().to_vec())?;
    let suites = documents.iter().filter(|document| suite::is_suite(document));
    suites.map(|document| Ok(suite::suite(document)?.tests.len())).collect()
}

const PATHS: &str = "Files and folders with suites, `-` is standard input";

#[derive(Debug, Args)]
#[command(mut_args(only("paths", |paths| paths.required_unless_present("filename").help(PATHS))), after_help = "\
A folder is searched for two sorts of suites.

Files by their names: NAME.new.yaml is written, and becomes NAME.want.yaml, as
an update of NAME.old.yaml if there is one, else as a create. A NAME.want.yaml
with `causes` expects a rejection. valid-NAME.yaml is accepted unchanged. The
CRDs and UnionDeclarations of the same folder declare the unions. Built-in
kinds are known, with the unions of the presets.

Files with a document of apiVersion test.kube-unions.dev/v1alpha1 and kind
Suite: they name their sources, and give each test a name.

Exit codes:
  0  every test passed
  1  a test failed, or with --require: there was none
  2  a suite or an object could not be read; the others were tested

Examples:
  kube-unions test unions/
  kube-unions test --filter canary unions/suite.yaml
  kube-unions test --require -o junit unions/ > report.xml")]
pub(crate) struct TestArgs {
    #[command(flatten)]
    paths: PathArgs,
    /// Run only the tests whose name contains this text
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    #[command(flatten)]
    presets: PresetsArg,
    #[command(flatten)]
    require: RequireArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: TestsFormat,
}

/// Runs the tests, and prints their report.
pub(super) fn run(arguments: &TestArgs) -> anyhow::Result<Verdict> {
    let run = SuitesRun::of(&arguments.paths.all(), arguments.filter.as_deref(), arguments.presets);
    output::print_text(report(&run, arguments.output)?)?;
    let failure = kept_from(run.unread(), "tested");
    let nothing = (run.tests().next().is_none() && failure.is_none()).then(|| arguments.missing(&run));
    if nothing.is_none() {
        for path in &run.without_suite {
            output::warn(format_args!("no suite in `{}`", path.display()));
        }
    }
    let conclusion = Conclusion::new(arguments.require, nothing, run.failed() > 0, run.summary());
    conclusion.beside(Vec::new(), failure).end()
}

impl TestArgs {
    /// Names the reason that there is nothing to test.
    fn missing(&self, run: &SuitesRun) -> String {
        match &self.filter {
            Some(filter) if run.left_out > 0 => {
                format!("nothing to test: no name of {} contains `{filter}`", count(run.left_out, "test"))
            }
            _ => format!(
                "nothing to test: no suite in {} (looked for documents of the kind Suite, and for files like \
                 NAME.new.yaml and NAME.want.yaml)",
                manifest::list(&run.without_suite)
            ),
        }
    }
}

/// Longest name of a suite or test that a report shows, in bytes.
const LONGEST_NAME: usize = 400;

/// Longest message that a report shows, in bytes.
const LONGEST_MESSAGE: usize = 8_192;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum TestsFormat {
    /// Lines for people: the tests that failed
    #[default]
    Text,
    /// JUnit XML, which CI systems read
    Junit,
}

fn report(run: &SuitesRun, format: TestsFormat) -> anyhow::Result<String> {
    match format {
        TestsFormat::Text => Ok(text(run, Paint::of(&std::io::stdout()))),
        TestsFormat::Junit => junit(run),
    }
}

/// Returns a line for each problem and each test that failed, with a diff.
fn text(run: &SuitesRun, paint: Paint) -> String {
    let mut lines = Vec::new();
    for problem in run.problems.iter().chain(run.suites.iter().flat_map(|suite| &suite.problems)) {
        let place = paint.strong(&format!("{}:", place(&problem.file, problem.position)));
        lines.push(format!("{place} {} {}", paint.error("error:"), message(&problem.message)));
    }
    for (test, result) in run.tests() {
        let head = format!("{} {}", paint.strong(&format!("{}:", place_of(test))), name(&test.name));
        match result {
            Ok(None) => {}
            Err(error) => lines.push(format!("{head}: {} {}", paint.error("error:"), message(error))),
            Ok(Some(failure)) => {
                lines.push(format!("{head}: {} {}", paint.error("failed:"), message(&failure.message)));
                lines.extend(failure.difference.iter().map(|line| format!("  {}", painted(line, paint))));
            }
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn painted(line: &str, paint: Paint) -> String {
    match line.as_bytes().first() {
        Some(b'-') => paint.removed(line),
        Some(b'+') => paint.added(line),
        _ => paint.faint(line),
    }
}

/// Returns `file:line:column`, or the file alone.
fn place(file: &Path, position: Option<(usize, usize)>) -> String {
    let file = name(&file.display().to_string());
    position.map_or(file.clone(), |(line, column)| format!("{file}:{line}:{column}"))
}

fn place_of(test: &SuiteTest) -> String {
    place(&test.file, test.position)
}

/// Returns a name on one line.
fn name(name: &str) -> String {
    Printable::new(name, LONGEST_NAME).to_string()
}

/// Returns a message on one line.
fn message(message: &str) -> String {
    Printable::new(message, LONGEST_MESSAGE).to_string()
}

fn junit(run: &SuitesRun) -> anyhow::Result<String> {
    let mut report = Report::new("kube-unions");
    for problem in &run.problems {
        let file = problem.file.display().to_string();
        let mut suite = TestSuite::new(xml(&file));
        suite.add_test_case(of_problem(&file, problem));
        report.add_test_suite(suite);
    }
    report.add_test_suites(run.suites.iter().map(suite));
    report.to_string().context("cannot write the report")
}

fn suite(run: &SuiteRun) -> TestSuite {
    let mut suite = TestSuite::new(xml(&name(&run.suite.name)));
    let file = run.suite.file.display().to_string();
    suite.add_test_cases(run.problems.iter().map(|problem| of_problem(&file, problem)));
    suite.add_test_cases(run.tests().map(|(ran, result)| test(ran, result)));
    suite
}

/// Returns the case of a problem that kept a suite from running.
fn of_problem(file: &str, problem: &Problem) -> TestCase {
    let status = not_passed(NonSuccessKind::Error, &problem.message, &problem.to_string());
    let mut case = TestCase::new(xml(file), status);
    case.set_classname(xml(file));
    case
}

fn test(run: &SuiteTest, result: &TestResult) -> TestCase {
    let status = match result {
        Ok(None) => TestCaseStatus::success(),
        Err(error) => not_passed(NonSuccessKind::Error, error, &format!("{}: {error}", place_of(run))),
        Ok(Some(failure)) => {
            let mut text = format!("{}: {}", place_of(run), failure.message);
            for line in &failure.difference {
                text.push('\n');
                text.push_str(line);
            }
            not_passed(NonSuccessKind::Failure, &failure.message, &text)
        }
    };
    let file = run.file.display().to_string();
    let mut case = TestCase::new(xml(&name(&run.name)), status);
    case.set_classname(xml(&file));
    case.extra.insert("file".into(), xml(&file));
    case.extra.extend(run.position.map(|(line, _)| ("line".into(), line.to_string().into())));
    case
}

fn not_passed(kind: NonSuccessKind, message: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(xml(&self::message(message))).set_description(xml(text));
    status
}

/// Returns a text for XML: the characters that XML 1.0 does not have become U+FFFD.
fn xml(text: &str) -> XmlString {
    let is_character =
        |it: char| matches!(it, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    XmlString::new(
        text.chars().map(|it| if is_character(it) { it } else { char::REPLACEMENT_CHARACTER }).collect::<String>(),
    )
}
