//! The system's limit on open files, of which each connection is one.
//!
//! Where it ran out, the ops port would be deaf as well, and a webhook that is only busy would be ended for being dead.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files beside the connections to the webhook port: those to the ops port, both listeners, what the runtime has open, the
/// client of the API server, certificates.
const OTHERS: usize = 200;

/// Sees to it that `places` connections can be open, and returns how many can. The soft limit, which is 1,024 in many a
/// container for the sake of programs from another time, is raised as far as that takes.
pub(super) fn room_for(places: usize) -> usize {
    let needed = places.saturating_add(OTHERS);
    let mut limit = getrlimit(Resource::Nofile);
    let most = allowed(limit.maximum);
    if allowed(limit.current) < needed {
        limit.current = Some(u64::try_from(needed.min(most)).unwrap_or(u64::MAX));
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the limit on open files could not be raised");
        }
    }
    let room = allowed(getrlimit(Resource::Nofile).current).saturating_sub(OTHERS).max(2);
    if room < places {
        tracing::warn!(
            wanted = places,
            possible = room,
            "fewer connections than asked for: the limit on open files (`ulimit -Hn`) is too low"
        );
    }
    room.min(places)
}

/// `None`: without a limit.
fn allowed(limit: Option<u64>) -> usize {
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}
