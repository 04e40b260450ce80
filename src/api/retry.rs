//! Retries: the waits between attempts, and watches that are retried for ever.

use backon::ExponentialBuilder;
use futures::future::ready;
use futures::{Stream, StreamExt};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, ExponentialBackoff};
use std::time::{Duration, Instant};

/// The longest wait is short, so that a restart of the API server is noticed soon.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// After this time without a failure the next one counts as the first.
const CALM: Duration = Duration::from_secs(10);

/// Returns waits that double from `first` to `longest` and never end.
pub(crate) fn doubling(first: Duration, longest: Duration) -> ExponentialBackoff {
    let builder = ExponentialBuilder::default().with_min_delay(first).with_max_delay(longest);
    builder.with_factor(2.0).without_max_times().into()
}

/// The waits between attempts at a watch or a list.
pub(crate) struct Retry {
    waits: ExponentialBackoff,
    last: Option<Instant>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { waits: doubling(FIRST_WAIT, LONGEST_WAIT), last: None }
    }
}

impl Iterator for Retry {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.last.replace(Instant::now()).is_some_and(|last| last.elapsed() > CALM) {
            self.waits.reset();
        }
        self.waits.next()
    }
}

impl Backoff for Retry {
    /// Does nothing. kube calls it for every event that is not an error. Each attempt at a list begins with such an event, so
    /// that the waits would never grow. Only time resets them.
    fn reset(&mut self) {}
}

/// Returns the events of a watcher, and retries it after every error.
///
/// When the API server has forgotten the `resourceVersion` of a watch, as after its restart, the watcher relists at once: a
/// wait would hide the changes meanwhile. That is no error, unless it happens again within a short time.
pub(crate) fn persistent<T>(events: impl Stream<Item = watcher::Result<T>>) -> impl Stream<Item = watcher::Result<T>> {
    let mut last_expiry = None;
    events
        .filter(move |event| ready(!is_first_expiry(event, &mut last_expiry, Instant::now())))
        .backoff(Retry::default())
}

/// Returns true if the `resourceVersion` of a watch expired, and has not expired shortly before.
fn is_first_expiry<T>(event: &watcher::Result<T>, last: &mut Option<Instant>, now: Instant) -> bool {
    const GONE: u16 = 410;
    let Err(watcher::Error::WatchError(status)) = event else { return false };
    let again = |last: Instant| now.saturating_duration_since(last) < CALM;
    status.code == GONE && !last.replace(now).is_some_and(again)
}

/// Returns the HTTP status with which the API server refused a list or a watch.
pub(crate) fn code(error: &watcher::Error) -> Option<u16> {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return None;
    };
    if let kube::Error::Api(status) = error { Some(status.code) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_grow_to_two_seconds_and_never_end() {
        let mut retry = Retry::default();
        let waits: Vec<Duration> = (0..40)
            .filter_map(|_| {
                retry.reset();
                retry.next()
            })
            .collect();
        assert_eq!(waits.len(), 40);
        assert_eq!(waits[0], Duration::from_millis(100));
        assert!(waits.is_sorted());
        assert_eq!(waits[39], Duration::from_secs(2));
    }

    #[test]
    fn an_expired_watch_is_relisted_at_once_and_not_again_and_again() {
        let error = |code| {
            let status = kube::core::Status { code, ..kube::core::Status::default() };
            watcher::Result::<()>::Err(watcher::Error::WatchError(Box::new(status)))
        };
        let (mut last, now) = (None, Instant::now());
        assert!(!is_first_expiry(&Ok(()), &mut last, now));
        assert!(!is_first_expiry(&error(500), &mut last, now));
        assert!(is_first_expiry(&error(410), &mut last, now));
        assert!(!is_first_expiry(&error(410), &mut last, now + CALM / 2));
        assert!(!is_first_expiry(&error(410), &mut last, now + CALM), "it has expired again meanwhile");
        assert!(is_first_expiry(&error(410), &mut last, now + CALM * 2));
    }

    #[test]
    fn a_failure_after_a_calm_time_waits_as_short_as_the_first() {
        let mut retry = Retry::default();
        assert!(retry.by_ref().take(30).last().is_some_and(|wait| wait == LONGEST_WAIT));
        retry.last = Instant::now().checked_sub(CALM + Duration::from_secs(1));
        assert!(retry.last.is_some());
        assert_eq!(retry.next(), Some(FIRST_WAIT));
    }
}
