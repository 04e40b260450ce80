//! `--require`: fails a command that finds nothing to check.
//!
//! A command that checks nothing would otherwise be as quiet as one that finds no fault, for example because of a typo.

use crate::report::Verdict;
use clap::Args;

/// The flag of commands that check everything they find.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct RequireArg {
    /// Exit with 1 if there is nothing to check
    #[arg(long)]
    require: bool,
}

impl RequireArg {
    /// Returns the verdict on an input with nothing to check.
    pub(crate) fn verdict(self) -> Verdict {
        Verdict::rejected_if(self.require)
    }
}
