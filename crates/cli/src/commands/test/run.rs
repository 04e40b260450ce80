//! Runs suites and counts the results. The webhook's code answers the write of a test, and the answer is compared with the expected one. A
//! difference is a unified diff of bounded length.

use super::find::{self, FoundSuites};
use super::suite::{self, CauseManifest, Suite, SuiteTest, TestedObject, TestedWrite, Want, single};
use crate::input::builtin::{self, OfflineKinds, PresetsArg};
use crate::input::kinds::Assembly;
use crate::input::manifest::{self, Document, Problem};
use crate::input::values::Subresource;
use crate::report::difference;
use kube_unions_core::admission::{Phase, Review, ReviewOutcome};
use kube_unions_core::causes::with_causes;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::Part;
use kube_unions_manifests::counts::{count, grouped};
use kube_unions_manifests::is_built_in_group;
use kube_unions_manifests::misspelt::KnownKinds;
use kube_unions_manifests::request::{ReviewedObject, edits_below};
use kube_unions_offline::AddedUnions;
use serde_json::Value;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::PathBuf;

/// The results of all suites.
#[derive(Debug, Default)]
pub(super) struct SuitesRun {
    pub(super) suites: Vec<SuiteRun>,
    /// The problems with files that no suite could be read from.
    pub(super) problems: Vec<Problem>,
    pub(super) without_suite: Vec<PathBuf>,
    /// The number of tests whose names do not match the filter.
    pub(super) left_out: usize,
}

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
    pub(super) fn of(paths: &[PathBuf], filter: Option<&str>, presets: PresetsArg) -> Self {
        let FoundSuites { suites, problems, without_suite } = find::find(paths);
        let mut run = Self { problems, without_suite, ..Self::default() };
        for mut suite in suites {
            let all = suite.tests.len();
            suite.tests.retain(|test| filter.is_none_or(|text| test.name.contains(text)));
            run.left_out += all - suite.tests.len();
            if !suite.tests.is_empty() {
                run.suites.push(SuiteRun::of(suite, presets));
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
    fn of(suite: Suite, presets: PresetsArg) -> Self {
        let (offline, problems) = unions(&suite, presets);
        let result = |test: &SuiteTest| {
            let write = test.write.as_ref().map_err(String::clone)?;
            judge(write, &offline).map_err(|problem| problem.to_string())
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
fn unions(suite: &Suite, presets: PresetsArg) -> (OfflineKinds, Vec<Problem>) {
    let objects = suite.tests.iter().filter_map(|test| test.write.as_ref().ok()).map(|write| write.new.read());
    let named: BTreeSet<GroupVersionKind> =
        objects.filter_map(|object| Some(object.ok()?.group_version_kind())).collect();
    if suite.from.is_empty() && !named.iter().any(|kind| is_built_in_group(&kind.group)) {
        let message = "nothing beside the tests declares unions: add the CRD or UnionDeclaration, or write a suite file \
                       whose `from` names it";
        return (OfflineKinds::default(), vec![Problem::of_file(&suite.file, message.to_owned())]);
    }
    let read = manifest::files(&suite.from);
    let documents = read.documents().collect();
    let added = AddedUnions { published: suite.builtin_unions.into(), presets: presets.are_used() };
    let (offline, failure) = match builtin::assemble(documents, &named, added) {
        Ok(offline) => (offline, None),
        Err(error) => (OfflineKinds::default(), Some(Problem::of_file(&suite.file, error.to_string()))),
    };
    let assembly = &offline.assembly;
    let mut problems = read.problems;
    problems.extend(failure);
    problems.extend(assembly.problems.iter().cloned());
    if problems.is_empty() && !suite.from.is_empty() {
        let missing = assembly.missing_beside(&suite.from, "`builtinUnions: OpenAPI`");
        problems.extend(missing.map(|missing| Problem::of_file(&suite.file, missing)));
    }
    (offline, problems)
}

/// The answer was not the expected one.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) message: String,
    /// The lines of a diff: `-` is expected and absent, `+` is there and not expected. It shows the objects of the test to
    /// their author.
    pub(super) difference: Vec<String>,
}

/// Judges a write with the unions of an assembly. `None`: the answer is the expected one.
pub(super) fn judge(write: &TestedWrite, offline: &OfflineKinds) -> Result<Option<Failure>, Problem> {
    let kinds = &offline.assembly;
    let new = write.new.read()?;
    let old = write.old.as_ref().map(TestedObject::read).transpose()?;
    if let Some(old) = &old {
        check_identity(old, &new)?;
    }
    if let Some(failure) = without_union(write, &new, kinds) {
        return Ok(Some(failure));
    }
    let completed =
        |document: &Document| kinds.completed_document(document).map_err(|error| problem_of(document, &error));
    let (completed_new, old) = (completed(&new)?, old.as_ref().map(completed).transpose()?);
    let kind = new.group_version_kind();
    let subresource = write.subresource.map(Subresource::name);
    let object = ReviewedObject { kind: &kind, new: &completed_new, old: old.as_ref(), subresource, manifest: None };
    let ratcheting = if subresource.is_some() { write.ratcheting } else { offline.ratcheting(&kind, write.ratcheting) };
    let review = object
        .review(&kinds.catalog, Phase::Both, ratcheting)
        .map_err(|error| Problem::of_document(&new, "", error.to_string()))?;
    let review = if subresource.is_some() {
        review
    } else {
        offline.with_refusals(review, old.as_ref(), &completed_new, None).0
    };
    let answer = ReviewedWrite { review: &review, new: &completed_new, kinds };
    match &write.want {
        Want::Accepted { warnings } => answer.is_object(&completed_new, Some(warnings), "accepted unchanged"),
        Want::Normalized { object, warnings } => {
            answer.is_object(&completed(&object.read()?)?, warnings.as_deref(), "accepted")
        }
        Want::Rejected(causes) => Ok(answer.is_rejection(causes)),
        Want::File(file) => {
            let document = single(file)?;
            if document.kind.is_none() && document.api_version.is_none() {
                return Ok(answer.is_rejection(&suite::rejection(&document)?));
            }
            answer.is_object(&completed(&TestedObject::Inline(document).read()?)?, None, "accepted")
        }
    }
}

/// An update keeps the kind and the name of its object.
fn check_identity(old: &Document, new: &Document) -> Result<(), Problem> {
    let differing = old.identity().into_iter().zip(new.identity()).find(|(old, new)| old != new);
    let Some((before, after)) = differing else { return Ok(()) };
    let shown = |value: Option<&str>| value.map_or("none".to_owned(), |value| format!("`{value}`"));
    let message = format!(
        "`{}` is {} in the new object and {} in the old one: an update keeps it",
        after.name,
        shown(after.value),
        shown(before.value)
    );
    Err(Problem::of_document(new, after.pointer, message))
}

/// Returns a failure if no union could judge the object. Every expectation but a rejection would hold.
fn without_union(write: &TestedWrite, new: &Document, kinds: &Assembly) -> Option<Failure> {
    let gvk = new.group_version_kind();
    let (kind, api_version) = (&gvk.kind, new.api_version.as_deref().unwrap_or_default());
    let part = write.subresource.map_or(Part::Main, |_| Part::Status);
    let message = match kinds.catalog.lookup(&gvk.group, &gvk.version, &gvk.kind) {
        Some(entry) if entry.plan().has(part) => return None,
        Some(_) => match part {
            Part::Main => {
                format!("all unions of `{kind}` of `{api_version}` are in `status`: add `subresource: status`")
            }
            Part::Status => format!("`{kind}` of `{api_version}` has no union in `status`, or no status subresource"),
        },
        None => {
            let near = KnownKinds::new(kinds.kinds()).advice(new).map(|near| format!("; {near}")).unwrap_or_default();
            let has_errors = kinds.catalog.errors() > 0;
            let faults = if has_errors { "; `kube-unions lint` shows the faults of the declarations" } else { "" };
            format!("`{kind}` of `{api_version}` has no union here{near}{faults}")
        }
    };
    Some(Failure { message, difference: Vec::new() })
}

fn problem_of(document: &Document, error: &dyn Error) -> Problem {
    Problem::of_document(document, "", with_causes(error))
}

struct ReviewedWrite<'a> {
    review: &'a Review,
    /// The new object, with its defaults.
    new: &'a Document,
    kinds: &'a Assembly,
}

impl ReviewedWrite<'_> {
    /// Compares the stored object and the warnings.
    fn is_object(&self, want: &Document, warnings: Option<&[String]>, state: &str) -> Result<Option<Failure>, Problem> {
        if self.review.outcome() == ReviewOutcome::Denied {
            let message = format!("the object is rejected, not {state}");
            let causes: Vec<String> = self.causes().iter().map(line).collect();
            return Ok(Some(Failure { message, difference: difference::of_lines(&[], &causes) }));
        }
        let parse = |document: &Document| {
            serde_json::from_str::<Value>(&document.text).map_err(|error| problem_of(document, &error))
        };
        let stored = manifest::applied(parse(self.new)?, &edits_below(&[], self.review));
        // The API server sets defaults again after the patch of a webhook.
        let stored = self
            .kinds
            .completed_document(&self.new.with_text(stored.to_string()))
            .map_err(|error| problem_of(self.new, &error))?;
        let (want, stored) = (parse(want)?, parse(&stored)?);
        if want != stored {
            let message = if state == "accepted" {
                "the normalised object is not the expected one".to_owned()
            } else {
                format!("the object is changed, not {state}")
            };
            let difference = difference::of_values(want, stored).map_err(|error| problem_of(self.new, &*error))?;
            return Ok(Some(Failure { message, difference }));
        }
        let Some(warnings) = warnings.filter(|warnings| *warnings != self.review.warnings()) else { return Ok(None) };
        let message = "the warnings are not the expected ones".to_owned();
        let difference = difference::of_lines(warnings, self.review.warnings());
        Ok(Some(Failure { message, difference }))
    }

    /// Compares the causes of a rejection, in any order.
    fn is_rejection(&self, want: &[CauseManifest]) -> Option<Failure> {
        let causes = self.causes();
        // A cause with more details matches fewer violations, so it chooses first.
        let mut wanted: Vec<&CauseManifest> = want.iter().collect();
        wanted.sort_by_key(|cause| (cause.message.is_none(), cause.reason.is_none()));
        let (mut found, mut missing) = (BTreeSet::new(), Vec::new());
        for cause in wanted {
            let free = causes.iter().enumerate().filter(|(index, _)| !found.contains(index));
            match free.into_iter().find(|(_, actual)| is(actual, cause)).map(|(index, _)| index) {
                Some(index) => {
                    found.insert(index);
                }
                None => missing.push(cause),
            }
        }
        if missing.is_empty() && found.len() == causes.len() {
            return None;
        }
        let message = if causes.is_empty() {
            "the object is accepted, not rejected"
        } else {
            "the causes of the rejection are not the expected ones"
        };
        let actual: Vec<String> = causes.iter().map(line).collect();
        let expected =
            actual.iter().enumerate().filter(|(index, _)| found.contains(index)).map(|(_, line)| line.clone());
        let expected: Vec<String> = expected.chain(missing.into_iter().map(line)).collect();
        Some(Failure { message: message.to_owned(), difference: difference::of_lines(&expected, &actual) })
    }

    fn causes(&self) -> Vec<CauseManifest> {
        let cause = |((field, message), reason): ((&str, &str), &str)| CauseManifest {
            field: field.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
        };
        self.review.causes().zip(self.review.reasons()).map(cause).collect()
    }
}

/// Returns true if an actual cause is the wanted one.
fn is(actual: &CauseManifest, want: &CauseManifest) -> bool {
    want.field == actual.field
        && want.message.as_deref().is_none_or(|part| actual.message.as_deref().is_some_and(|it| it.contains(part)))
        && (want.reason.is_none() || want.reason == actual.reason)
}

/// Returns a cause as a line of a diff, for example `spec.oci (FieldValueForbidden): Forbidden: …`.
fn line(CauseManifest { field, reason, message }: &CauseManifest) -> String {
    let field = if field.is_empty() { "the whole object" } else { field };
    let reason = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let message = message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
    format!("{field}{reason}{message}")
}
