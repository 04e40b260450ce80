//! Skeleton, filled in by the core's author.
pub mod admission;
pub mod catalog;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "server")]
pub mod cluster;
pub mod declaration;
pub mod field_path;
pub mod json_patch;
pub mod schema;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod telemetry;
pub mod union;
