//! Output of commands: lines, trees, diagnostics, SARIF, progress, and the exit codes.

mod credentials;
pub(crate) mod diagnostic;
pub(crate) mod exit;
pub(crate) mod json_list;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod sarif;
pub(crate) mod tree;

pub(crate) use exit::Verdict;
pub use exit::{exit_code, usage_code};
