//! The guide for users: what unions mean here, how to declare them, by hand or in types of Go and Rust, how to run the webhook, how to
//! recover, and patches.

#[doc = include_str!("../docs/reference/semantics.md")]
pub mod semantics {}

#[doc = include_str!("../docs/guide/declaring.md")]
pub mod declaring {}

#[doc = include_str!("../docs/guide/authoring.md")]
pub mod authoring {}

#[doc = include_str!("../docs/guide/operating.md")]
pub mod operating {}

#[doc = include_str!("../docs/guide/recovery.md")]
pub mod recovery {}

#[doc = include_str!("../docs/guide/patching.md")]
pub mod patching {}
