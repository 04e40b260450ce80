//! The activity of a connection, and the earliest time of its eviction.

use tokio::time::Instant;

/// The present activity of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::webhook) enum Activity {
    /// Its first request has not arrived: it is in the handshake, is silent, or has sent a part of a header.
    HalfOpen,
    /// It is between two requests: the client has read a whole answer.
    Idle,
    /// The header of a later request is arriving, after its first byte.
    Header,
    /// A body is arriving.
    Body,
    /// The server is preparing an answer, or has no memory for more of the body.
    Busy,
    /// The client is reading an answer.
    Response,
    /// It was evicted, and has not closed yet.
    Evicted,
}

/// The label `reason` of evictions, by activity.
pub(super) const REASONS: [(Activity, &str); 5] = [
    (Activity::HalfOpen, "half_open"),
    (Activity::Idle, "idle"),
    (Activity::Header, "slow_header"),
    (Activity::Body, "slow_body"),
    (Activity::Response, "slow_answer"),
];

impl Activity {
    /// Returns true while bytes pass, and a slow client holds memory.
    pub(super) fn is_transfer(self) -> bool {
        matches!(self, Self::Header | Self::Body | Self::Response)
    }
}

/// Everything about a connection that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConnectionState {
    pub(super) activity: Activity,
    /// The earliest time of an eviction.
    pub(super) evictable_from: Instant,
    /// A request was answered with status 200.
    pub(super) proven: bool,
}
