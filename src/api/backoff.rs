//! The waits between attempts.

use backon::ExponentialBuilder;
use kube::runtime::watcher::ExponentialBackoff;
use std::time::Duration;

/// Returns waits that double from `first` to `longest` and never end.
pub(crate) fn doubling(first: Duration, longest: Duration) -> ExponentialBackoff {
    let builder = ExponentialBuilder::default().with_min_delay(first).with_max_delay(longest);
    builder.with_factor(2.0).without_max_times().into()
}
