//! `test`: runs the tests that authors write of their unions, without a cluster.
//!
//! [`find`] finds suites: files of the kind `Suite`, which [`format`](mod@format) describes and [`read`] reads, and files by their names,
//! which [`convention`] knows. [`run`](mod@run) runs them, [`judge`](mod@judge) compares one answer of the webhook's code with the
//! expected one, and [`report`](mod@report) prints.

mod convention;
mod diff;
mod find;
mod format;
mod judge;
mod read;
mod report;
mod run;
mod suite;

pub use self::format::suite_schema;

use self::report::TestsFormat;
use self::run::SuitesRun;
use crate::cli::input::manifest::{self, PathArgs};
use crate::cli::input::require::RequireArg;
use crate::cli::input::values::only;
use crate::cli::report::{Verdict, output};
use anyhow::bail;
use clap::Args;
use kube_unions_manifests::counts::count;
use std::path::Path;

/// Returns the number of tests of each suite in a text of manifests. Nothing is run.
pub fn suites(text: &str) -> anyhow::Result<Vec<usize>> {
    let documents = manifest::parse(Path::new("-"), text.as_bytes().to_vec())?;
    let suites = documents.iter().filter(|document| read::is_suite(document));
    suites.map(|document| Ok(read::suite(document)?.tests.len())).collect()
}

const PATHS: &str = "Files and folders with suites, `-` is standard input";

/// Arguments of `test`.
#[derive(Debug, Args)]
#[command(mut_args(only("paths", |paths| paths.required_unless_present("filename").help(PATHS))), after_help = "\
A folder is searched for two sorts of suites.

Files by their names: NAME.new.yaml is written, and becomes NAME.want.yaml, as
an update of NAME.old.yaml if there is one, else as a create. A NAME.want.yaml
with `causes` expects a rejection. valid-NAME.yaml is accepted unchanged. The
CRDs and UnionDeclarations of the same folder declare the unions.

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
    require: RequireArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: TestsFormat,
}

/// Runs the tests, and prints their report.
pub(super) fn run(arguments: &TestArgs) -> anyhow::Result<Verdict> {
    let run = SuitesRun::of(&arguments.paths.all(), arguments.filter.as_deref());
    output::tell(report::report(&run, arguments.output)?)?;
    let unread = run.unread();
    if run.tests().next().is_none() && unread == 0 {
        return Ok(arguments.require.warn(arguments.missing(&run)));
    }
    for path in &run.without_suite {
        output::warn(format_args!("no suite in `{}`", path.display()));
    }
    output::note(run.summary());
    if unread > 0 {
        bail!("{} kept something from being tested", count(unread, "problem"));
    }
    Ok(Verdict::rejected_if(run.failed() > 0))
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
