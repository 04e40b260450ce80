//! Judges objects, counts them, and reports findings, wherever the objects come from.

use super::report::AuditReport;
use super::rules::{AuditRule, ObjectFinding, title};
use super::tally::Tally;
use crate::input::require::RequireArg;
use crate::report::conclusion::{Conclusion, kept_from};
use crate::report::sarif::FilePlace;
use crate::report::{Verdict, output};
use indicatif::ProgressBar;
use kube_unions_api::ListedObject;
use kube_unions_core::admission::StoredObject;
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::field_path::FieldPath;
use kube_unions_manifests::counts::count;
use std::fmt::Display;

/// An audit in progress.
pub(super) struct Auditor {
    pub(super) report: AuditReport,
    require: RequireArg,
    pub(super) tally: Tally,
    /// The first problems that kept something from being audited. Each was printed when it occurred.
    problems: Vec<String>,
    /// The number of all problems.
    problem_count: usize,
}

/// Most problems that the report repeats at its end.
const MOST_PROBLEMS: usize = 100;

impl Auditor {
    pub(super) fn new(report: AuditReport, require: RequireArg) -> Self {
        Self { report, require, tally: Tally::default(), problems: Vec::new(), problem_count: 0 }
    }

    /// Audits an object of a kind. `locate` returns the place of a field in a file.
    pub(super) fn audit<'o>(
        &mut self,
        entry: &CatalogEntry,
        object: ListedObject<'o>,
        locate: impl Fn(&FieldPath) -> Option<FilePlace<'o>>,
    ) -> anyhow::Result<()> {
        self.tally.objects += 1;
        let ListedObject { namespace, name, text } = object;
        let kind = entry.gvk();
        let stored = match StoredObject::judge(entry, text) {
            Ok(stored) => stored,
            Err(error) => {
                let slash = if namespace.is_empty() { "" } else { "/" };
                let object = format!("{} `{namespace}{slash}{name}`", title(kind));
                self.problem(format_args!("{object}: cannot be judged: {error}"), None);
                return Ok(());
            }
        };
        let (violations, repaired) = (stored.violations(), stored.is_repaired());
        let (warnings, observed) = (stored.warnings(), stored.observed());
        self.tally.invalid += u64::from(!violations.is_empty());
        self.tally.mended_by_next_write += u64::from(repaired);
        self.tally.would_warn += u64::from(!warnings.is_empty());
        self.tally.would_audit += u64::from(!observed.is_empty());

        let mut add = |rule, path: &FieldPath, message, repaired| {
            let (field, location) = (path.to_string(), locate(path));
            self.report.add(&ObjectFinding { rule, kind, namespace, name, field, message, repaired, location })
        };
        for it in violations.kept() {
            add(AuditRule::of_violation(it), &it.path, it.message(), repaired)?;
        }
        if violations.left_out() > 0 {
            let message = left_out(violations.left_out());
            add(AuditRule::MORE_VIOLATIONS, &FieldPath::default(), message, repaired)?;
        }
        for (rule, tolerated) in [(AuditRule::WOULD_WARN, warnings), (AuditRule::WOULD_AUDIT, observed)] {
            for it in tolerated.kept() {
                add(rule, &it.path, it.message(), false)?;
            }
            if tolerated.left_out() > 0 {
                add(rule, &FieldPath::default(), left_out(tolerated.left_out()), false)?;
            }
        }
        let mut changes = 0;
        for it in stored.changes() {
            changes += 1;
            add(AuditRule::WOULD_CHANGE, &it.path, it.reason.to_string(), false)?;
        }
        self.tally.would_change += u64::from(changes > 0);
        Ok(())
    }

    /// Prints a problem that keeps something from being audited. The audit goes on.
    pub(super) fn problem(&mut self, problem: impl Display, progress: Option<&ProgressBar>) {
        let problem = problem.to_string();
        let print = || output::error(&problem);
        match progress {
            Some(progress) => progress.suspend(print),
            None => print(),
        }
        self.problem_count += 1;
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// Closes the report and prints the summary. `interrupted` says how far the audit came.
    pub(super) fn finish(self, interrupted: Option<String>) -> anyhow::Result<Verdict> {
        let Self { report, require, tally, mut problems, problem_count } = self;
        let interrupted = interrupted.map(|progress| format!("interrupted {progress}"));
        problems.extend(interrupted.clone());
        let failure = interrupted.map(anyhow::Error::msg).or_else(|| kept_from(problem_count, "audited"));
        let nothing = (tally.objects == 0 && failure.is_none()).then(|| tally.nothing());
        let conclusion = Conclusion::new(require, nothing, tally.invalid > 0, tally.sentence());
        let conclusion = conclusion.beside(problems, failure);
        report.close(&tally, &conclusion)?;
        conclusion.end()
    }
}

/// Prints a warning if declarations have errors.
pub(super) fn warn_of_faults(catalog: &Catalog, where_to_look: &str) {
    let errors = catalog.errors();
    if errors > 0 {
        let faults = count(errors, "fault");
        output::warn(format_args!("{faults} in declarations of unions; {where_to_look}"));
    }
}

fn left_out(number: usize) -> String {
    format!("and {} that are not listed", count(number, "more violation"))
}
