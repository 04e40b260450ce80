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

/// Resolves at the next value. After the last sender is dropped it never resolves.
pub(super) async fn changed<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
