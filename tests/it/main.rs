//! Tests of the library through its public face, in one binary.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets what it did not expect is meant to stop there"
)]

mod certificates;
mod chart;
mod circles;
mod cli;
mod cluster;
mod crates;
mod custom_resource;
mod documentation;
mod image;
mod names;
mod presets;
mod reference;
mod release;
mod samples;
mod versions;
mod webhook;
