//! The system's limit on open files. Each connection is an open file.
//!
//! Without a reserve, full webhook connections would leave none for the ops port, and a busy webhook would fail its
//! liveness probe. It knows nothing of how connections are admitted; see [`super::connections`].

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files reserved beside the webhook's connections: connections to the ops port, both listeners, the runtime's own files,
/// the API server's client, certificates.
const RESERVED: usize = 200;

/// Raises the soft limit on open files as far as `places` connections need, and returns how many of them fit.
///
/// Many containers begin with a soft limit of 1,024.
pub(super) fn room_for(places: usize) -> usize {
    let needed = places.saturating_add(RESERVED);
    let mut limit = getrlimit(Resource::Nofile);
    let most = bound(limit.maximum);
    if bound(limit.current) < needed {
        limit.current = Some(u64::try_from(needed.min(most)).unwrap_or(u64::MAX));
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "cannot raise the limit on open files");
        }
    }
    let room = bound(getrlimit(Resource::Nofile).current).saturating_sub(RESERVED).max(2);
    if room < places {
        tracing::warn!(
            wanted = places,
            possible = room,
            "the limit on open files (`ulimit -Hn`) allows fewer connections than configured"
        );
    }
    room.min(places)
}

/// Returns the limit as a number. `None` means unlimited.
fn bound(limit: Option<u64>) -> usize {
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}
