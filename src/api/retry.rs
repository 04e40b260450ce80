//! Retries: the waits between attempts.

use backon::ExponentialBuilder;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, ExponentialBackoff};
use std::time::{Duration, Instant};

/// The longest wait is short, so that a restart of the API server is noticed soon.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// After this time without a failure the next one counts as the first.
pub(super) const CALM: Duration = Duration::from_secs(10);

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
    fn a_failure_after_a_calm_time_waits_as_short_as_the_first() {
        let mut retry = Retry::default();
        assert!(retry.by_ref().take(30).last().is_some_and(|wait| wait == LONGEST_WAIT));
        retry.last = Instant::now().checked_sub(CALM + Duration::from_secs(1));
        assert!(retry.last.is_some());
        assert_eq!(retry.next(), Some(FIRST_WAIT));
    }
}
