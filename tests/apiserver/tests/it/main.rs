//! The simulated API server through its public interface: requests in, answers out.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that cannot go on fails")]

mod admission;
mod applies;
mod definitions;
mod objects;
mod sender;
mod watches;
