//! Tests of the library through its public face, in one binary.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets what it did not expect is meant to stop there"
)]

mod api_server;
mod audit;
#[cfg(all(feature = "schemars", feature = "server"))]
mod author;
mod bad_input;
mod cases;
#[cfg(feature = "server")]
mod certificates;
mod chart;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "server")]
mod cluster;
#[cfg(feature = "server")]
mod custom_resource;
mod declarations;
mod hostile;
mod invariants;
mod laws;
mod layers;
mod manifests;
mod matrix;
mod presets;
mod samples;
#[cfg(feature = "server")]
mod server;
mod strategic;
mod transitions;
