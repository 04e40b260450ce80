//! The door to the API server: a client with deadlines, single requests, lists and watches.
//!
//! Knows nothing of unions. Every request and every watch goes through the client of [`connect`] or [`client()`], so that none is waited
//! for without end ([`deadline`]).

mod backoff;
mod client;
mod deadline;
mod reason;
mod request;
mod retry;
mod server_clock;
mod watch;

pub(crate) use backoff::doubling;
pub use client::{ConnectError, client, connect};
pub(crate) use reason::reason;
pub use request::RequestError;
pub(crate) use request::{APPLY, MERGE, send, text, write};
pub(crate) use retry::{Retry, code};
pub use server_clock::ServerClock;
pub(crate) use watch::{ObjectSelection, list_and_watch};
