//! The exit codes of every command. Scripts depend on them.

use super::output;
use std::process::ExitCode;

/// The exit code after wrong usage, input that cannot be read, or failed I/O.
pub const FAILED: u8 = 2;

/// The result of a command whose input was understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to object to: exit code 0.
    Accepted,
    /// Denied, invalid, or problems were found: exit code 1.
    Rejected,
}

/// Returns the exit code of a command. Prints the error if it failed.
pub fn exit_code(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        // The reader of standard output has read enough, as in `kube-unions explain … | head`.
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::report(&error);
            ExitCode::from(FAILED)
        }
    }
}

/// Prints help or the version, or why the arguments are wrong, and returns the exit code: 0 or 2.
pub fn usage_code(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        output::report_usage(error);
        return ExitCode::from(FAILED);
    }
    exit_code(output::print_help(error).map(|()| ExitCode::SUCCESS))
}

impl Verdict {
    pub fn rejected_if(rejected: bool) -> Self {
        if rejected { Self::Rejected } else { Self::Accepted }
    }

    pub fn code(self) -> u8 {
        match self {
            Self::Accepted => 0,
            Self::Rejected => 1,
        }
    }
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        Self::from(verdict.code())
    }
}
