//! Tests of the public interface of the crate, in one binary.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets what it did not expect is meant to stop there"
)]

mod applies;
mod audit;
mod bad_input;
mod cases;
mod declarations;
mod hostile;
mod invariants;
mod json;
mod matrix;
mod revisions;
mod transitions;
mod workspace;
