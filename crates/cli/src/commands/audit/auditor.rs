//! Judges objects, counts them, and reports findings, wherever the objects come from.

use super::report::AuditReport;
use super::rules::PlacedFinding;
use crate::input::builtin;
use crate::input::require::RequireArg;
use crate::report::conclusion::{Conclusion, kept_from};
use crate::report::sarif::FilePlace;
use crate::report::{Verdict, output};
use indicatif::ProgressBar;
use kube_unions_api::ListedObject;
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::FieldPath;
use kube_unions_offline::{HelpPage, RefusedField, ServerSentence};
use kube_unions_webhook::audit::finding::{Impact, ObjectFinding};
use kube_unions_webhook::audit::judge::JudgedObject;
use kube_unions_webhook::audit::tally::Tally;
use std::collections::BTreeMap;
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

/// What an API server says about an object: its refusals, and its sentences about the fields of violations.
#[derive(Debug, Default)]
pub(super) struct ServerAnswer {
    pub(super) refused: Vec<RefusedField>,
    pub(super) sentences: BTreeMap<FieldPath, ServerSentence>,
}

/// Most problems that the report repeats at its end.
const MOST_PROBLEMS: usize = 100;

impl Auditor {
    pub(super) fn new(report: AuditReport, require: RequireArg) -> Self {
        Self { report, require, tally: Tally::default(), problems: Vec::new(), problem_count: 0 }
    }

    /// Judges an object of a kind. `None`: it cannot be judged, which is a problem.
    pub(super) fn judge<'o>(&mut self, entry: &'o CatalogEntry, object: ListedObject<'o>) -> Option<JudgedObject<'o>> {
        self.tally.objects += 1;
        JudgedObject::judge(entry, object).map_err(|problem| self.problem(problem, None)).ok()
    }

    /// Reports the findings about an object. `locate` returns the place of a field in a file. `answer` is what an API server says about the object
    /// and its violations.
    pub(super) fn add<'o>(
        &mut self,
        judged: &JudgedObject<'o>,
        locate: impl Fn(&FieldPath) -> Option<FilePlace<'o>>,
        answer: ServerAnswer,
    ) -> anyhow::Result<()> {
        judged.count(&mut self.tally);
        let ServerAnswer { refused, sentences } = answer;
        self.tally.invalid += u64::from(judged.denied().is_empty() && !refused.is_empty());
        let mut add = |finding: ObjectFinding<'o>, words: Option<(&str, HelpPage)>| {
            let said = words.filter(|_| finding.rule.impact == Impact::Invalid);
            let said = said.map(|(words, help)| (builtin::said(words), help));
            let (field, location) = (finding.path.to_string(), locate(&finding.path));
            self.report.add(&PlacedFinding { finding, field, location, said })
        };
        for finding in judged.findings() {
            let sentence = sentences.get(&finding.path);
            add(finding, sentence.map(|sentence| (sentence.words(), sentence.help)))?;
        }
        for field in refused {
            let said = (field.words(), field.help);
            add(judged.refused(field.path.clone(), field.message.clone()), Some(said))?;
        }
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
