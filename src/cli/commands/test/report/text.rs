//! A report for people: a line for each problem and each test that failed, with a diff.

use super::words::{self, message, name, place, place_of};
use crate::cli::commands::test::run::{SuitesRun, TestResult};
use crate::cli::report::output::Paint;

pub(super) fn report(run: &SuitesRun, paint: Paint) -> String {
    let mut lines = Vec::new();
    for (_, problem) in words::problems(run) {
        let place = paint.strong(&format!("{}:", place(&problem.file, problem.position)));
        lines.push(format!("{place} {} {}", paint.error("error:"), message(&problem.message)));
    }
    for test in run.tests() {
        let head = format!("{} {}", paint.strong(&format!("{}:", place_of(test))), name(&test.name));
        match &test.result {
            TestResult::Passed => {}
            TestResult::Broken(error) => lines.push(format!("{head}: {} {}", paint.error("error:"), message(error))),
            TestResult::Failed(failure) => {
                lines.push(format!("{head}: {} {}", paint.error("failed:"), message(&failure.message)));
                lines.extend(failure.difference.iter().map(|line| format!("  {}", painted(line, paint))));
            }
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn painted(line: &str, paint: Paint) -> String {
    if line.starts_with('-') {
        paint.removed(line)
    } else if line.starts_with('+') {
        paint.added(line)
    } else {
        paint.faint(line)
    }
}
