//! `test`: runs the tests that authors write of their unions, without a cluster.
//!
//! [`find`] finds suites: files of the kind `Suite`, which [`format`](mod@format) describes and [`read`] reads, and files by their names,
//! which [`convention`] knows. [`run`] runs them, [`judge`](mod@judge) compares one answer of the webhook's code with the
//! expected one, [`report`](mod@report) prints, and [`watch`] runs them again. [`arguments`] has the verdict.

mod arguments;
mod convention;
mod diff;
mod find;
mod format;
mod judge;
mod read;
mod report;
mod run;
mod suite;
mod watch;

pub(super) use self::arguments::TestArgs;
pub use self::format::suite_schema;

use std::process::ExitCode;

pub(super) fn run(arguments: &TestArgs) -> anyhow::Result<ExitCode> {
    if arguments.watch {
        return watch::run(arguments);
    }
    Ok(arguments.conclude(&arguments.tested())?.into())
}
