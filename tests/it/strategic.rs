//! Strategic merge patch.

mod bad_input;
mod cases;
mod differential;
mod documents;
mod generate;
mod keys;
mod laws;
