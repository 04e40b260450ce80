//! Strategic merge patch.

mod cases;
