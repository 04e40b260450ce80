//! A cluster in one process: three replicas of the webhook, as the program runs them, on a simulated API server.
//!
//! There is one thread, time is paused, and everything random follows from a seed. So a run of eight simulated minutes takes about a second
//! of a processor, and a seed has one trace.
//!
//! [`schedule`] makes the events of a seed, [`world`] carries them out, and [`invariants`] says what must hold. [`network`] and
//! [`service`] are the two ways between the API server and the [`replica`]s. [`sweep`] runs many seeds, and drops the events that
//! a failing one does not need.

#![allow(
    clippy::missing_panics_doc,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test"
)]

pub mod invariants;
pub mod network;
pub mod replica;
pub mod schedule;
pub mod service;
pub mod sweep;
pub mod trace;
pub mod users;
pub mod world;
