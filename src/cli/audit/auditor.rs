//! What is the same for objects of a cluster and of files: each is judged, counted, and what is found of it reported.

use super::finding::{Finding, Place, Rule, title};
use super::judge::{Judged, Subject, judge};
use super::report::{End, Report};
use super::tally::{Tally, count};
use crate::cli::Verdict;
use crate::cli::output::{self, Paint};
use crate::cli::progress::Progress;
use anyhow::bail;
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::declaration::Severity;
use kube_unions_core::field_path::FieldPath;
use std::fmt::Display;

/// An audit under way.
pub(super) struct Auditor<'c> {
    catalog: &'c Catalog,
    report: Report,
    pub(super) tally: Tally,
    /// The first of what could not be audited, and why. All were said when they happened.
    troubles: Vec<String>,
    problems: u64,
}

/// How much of what could not be audited is said again at the end.
const TROUBLES: usize = 100;

impl<'c> Auditor<'c> {
    pub(super) fn new(catalog: &'c Catalog, report: Report) -> Self {
        Self { catalog, report, tally: Tally::default(), troubles: Vec::new(), problems: 0 }
    }

    /// Audits an object of a kind. `place` tells where a field of it is written.
    pub(super) fn object<'o>(
        &mut self,
        entry: &CatalogEntry,
        object: Subject<'o>,
        place: impl Fn(&FieldPath) -> Option<Place<'o>>,
    ) -> anyhow::Result<()> {
        self.tally.objects += 1;
        let kind = entry.gvk();
        let Judged { violations, warned, changes, mended } = match judge(self.catalog, entry, object) {
            Ok(judged) => judged,
            Err(error) => {
                self.trouble(format_args!("{} `{}`: cannot be judged: {error}", title(kind), path(object)), None);
                return Ok(());
            }
        };
        self.tally.invalid += u64::from(!violations.is_empty());
        self.tally.mended_by_next_write += u64::from(mended);
        self.tally.would_warn += u64::from(!warned.is_empty());
        self.tally.would_change += u64::from(!changes.is_empty());

        let Subject { namespace, name, .. } = object;
        let finding = |rule, path: &FieldPath, message, mended| Finding {
            rule,
            kind,
            namespace,
            name,
            field: path.to_string(),
            message,
            mended,
            place: place(path),
        };
        for it in &violations {
            self.report.add(&finding(Rule::of_violation(it), &it.path, it.message(), mended))?;
        }
        for it in &warned {
            self.report.add(&finding(Rule::of_warning(it), &it.path, it.message(), false))?;
        }
        for it in &changes {
            self.report.add(&finding(Rule::of_change(it), &it.path, it.reason.to_string(), false))?;
        }
        Ok(())
    }

    /// Prints what was found so far, if that is much.
    pub(super) fn drain(&mut self, progress: &Progress) -> anyhow::Result<()> {
        if self.report.is_full() { self.flush(progress) } else { Ok(()) }
    }

    /// Prints what was found so far.
    pub(super) fn flush(&mut self, progress: &Progress) -> anyhow::Result<()> {
        self.report.flush(progress)
    }

    /// Says that something can't be audited, and goes on.
    pub(super) fn trouble(&mut self, what: impl Display, progress: Option<&Progress>) {
        let what = what.to_string();
        let say = || output::note(format_args!("{} {what}", Paint::of(&std::io::stderr()).error("error:")));
        match progress {
            Some(progress) => progress.suspend(say),
            None => say(),
        }
        self.problems += 1;
        if self.troubles.len() < TROUBLES {
            self.troubles.push(what);
        }
    }

    /// Closes the output and says what came of it all. `interrupted` tells how far it came.
    pub(super) fn finish(self, interrupted: Option<String>) -> anyhow::Result<Verdict> {
        let Self { report, tally, mut troubles, problems, .. } = self;
        troubles.extend(interrupted.as_ref().map(|how_far| format!("interrupted {how_far}")));
        let code = match (troubles.is_empty(), tally.invalid) {
            (false, _) => 2,
            (true, 0) => 0,
            (true, _) => 1,
        };
        report.close(&End { tally, troubles: &troubles, code })?;
        output::note(tally.sentence());
        match (interrupted, problems) {
            (Some(how_far), _) => bail!("interrupted {how_far}"),
            (None, 0) => Ok(Verdict::rejected_if(tally.invalid > 0)),
            (None, some) => bail!("{} kept something from being audited", count(some, "problem")),
        }
    }
}

/// Says once that there is something wrong with declarations.
pub(super) fn tell_of_faults(catalog: &Catalog, where_to_look: &str) {
    let errors = catalog.faults().iter().filter(|fault| fault.severity == Severity::Error).count();
    if errors > 0 {
        let warning = Paint::of(&std::io::stderr()).warning("Warning:");
        let faults = count(errors as u64, "fault");
        output::note(format_args!("{warning} {faults} in declarations of unions; {where_to_look}"));
    }
}

/// `namespace/name`, or `name`.
fn path(object: Subject<'_>) -> String {
    let slash = if object.namespace.is_empty() { "" } else { "/" };
    format!("{}{slash}{}", object.namespace, object.name)
}
