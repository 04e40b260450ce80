//! Parts of the commands of both programs: flags of a cluster and of files, output and exit codes, signals.
//!
//! Data goes to standard output, everything else to standard error. Users script against both, and against the exit codes.

#![allow(missing_docs, reason = "a part of two programs: no other program uses it")]

pub mod connection;
pub mod credentials;
pub mod escape;
pub mod exit;
pub mod files;
pub mod json;
pub mod manifest;
pub mod output;
pub mod signals;
pub mod sources;
pub mod values;

pub use exit::Verdict;
