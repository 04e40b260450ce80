//! The door to the API server: a client with deadlines, single requests, discovery, lists and watches.
//!
//! Knows nothing of unions. Every request and every watch goes through the client of [`connect`], so that none is waited for without
//! end (`deadline`).

mod client;
mod deadline;
mod discovery;
mod endless;
pub mod files;
mod list;
mod object;
mod plugin;
mod refusal;
mod request;
mod retry;
mod server_clock;
mod token;
mod watch;

pub use client::{ClusterAccess, ConnectError, client_of, connect};
pub use discovery::{DiscoveredResource, find, no_resource, resource, resources};
pub use endless::EndlessList;
pub use list::{ListedObject, Page, Pages};
pub use object::ObjectPath;
pub use object::{MANAGER, found};
pub use refusal::LiveError;
pub use request::{ApiAnswer, RequestError};
pub use request::{JSON, MERGE, send, text, write};
pub use retry::Doubling;
pub use server_clock::ServerClock;
pub use watch::{ListProgress, WatchChange, Watched, by_name, list_and_watch};
