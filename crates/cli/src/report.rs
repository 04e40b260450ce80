//! Output of commands: lines, trees, diagnostics, SARIF, progress, and the exit codes.

pub(crate) mod conclusion;
pub(crate) mod diagnostic;
pub(crate) mod difference;
pub(crate) mod findings;
pub(crate) mod json_list;
pub(crate) mod progress;
pub(crate) mod sarif;
pub(crate) mod tree;

pub(crate) use kube_unions_command::{Verdict, exit, output};
