//! Watch channels that wake a receiver only for news.

use tokio::sync::watch;

/// Sends a value if it differs from the last one.
pub(super) fn publish<T: PartialEq>(sender: &watch::Sender<T>, value: T) {
    sender.send_if_modified(|known| {
        let is_new = *known != value;
        *known = value;
        is_new
    });
}
