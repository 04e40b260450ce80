//! Strategic merge patch.

mod cases;
mod differential;
