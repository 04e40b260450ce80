//! Tests of strategic merge patch and server-side apply.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod apply;
mod attacks;
mod bad_input;
mod differential;
mod documents;
mod generate;
mod keys;
mod laws;
mod rules;
