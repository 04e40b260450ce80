//! The guide for users: what unions mean here, how to declare them, by hand or in types of Go and Rust, how to run the webhook, how to
//! recover, and patches.

#[doc = include_str!("guide/semantics.md")]
pub mod semantics {}

#[doc = include_str!("guide/declaring.md")]
pub mod declaring {}

#[doc = include_str!("guide/authoring.md")]
pub mod authoring {}

#[doc = include_str!("guide/operating.md")]
pub mod operating {}

#[doc = include_str!("guide/recovery.md")]
pub mod recovery {}

#[doc = include_str!("guide/patching.md")]
pub mod patching {}
