#![doc = include_str!("../README.md")]

pub mod admission;
pub mod catalog;
pub mod causes;
pub mod declaration;
pub mod field_path;
pub mod json;
pub mod json_patch;
mod listed;
mod meter;
pub mod names;
pub mod near;
pub mod revision;
pub mod schema;
pub mod union;
pub mod workspace;
