//! The guide for users: what unions mean here, how to declare them, and how to run the webhook.

#[doc = include_str!("guide/semantics.md")]
pub mod semantics {}

#[doc = include_str!("guide/declaring.md")]
pub mod declaring {}

#[doc = include_str!("guide/operating.md")]
pub mod operating {}
