//! Tests of server-side apply.

mod bad_input;
mod differential;
mod generate;
mod types;
