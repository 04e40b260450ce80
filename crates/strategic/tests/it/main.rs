//! Strategic merge patch.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets what it did not expect is meant to stop there"
)]

mod attacks;
mod bad_input;
mod cases;
mod differential;
mod documents;
mod generate;
mod keys;
mod laws;
