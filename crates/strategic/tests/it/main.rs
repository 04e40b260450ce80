//! Strategic merge patch.

mod attacks;
mod bad_input;
mod cases;
mod differential;
mod documents;
mod generate;
mod keys;
mod laws;
