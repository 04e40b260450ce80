//! All talk to the API server.
//!
//! What is learnt of a cluster leaves this module as a [`Catalog`](crate::catalog::Catalog) through a channel. It knows
//! nothing of who serves it.

mod connection;
mod raw;
mod watch;

pub use connection::{ConnectError, Link, connect};
pub use raw::RawDefinition;
pub use watch::follow;
