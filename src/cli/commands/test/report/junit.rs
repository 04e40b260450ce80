//! A report in the XML of JUnit. It has no times: two runs with the same results have the same report.

use super::{message, name, place_of};
use crate::cli::commands::test::run::{SuiteRun, SuitesRun, TestResult};
use crate::cli::commands::test::suite::SuiteTest;
use crate::cli::input::manifest::Problem;
use anyhow::Context;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite, XmlString};

pub(super) fn report(run: &SuitesRun) -> anyhow::Result<String> {
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
