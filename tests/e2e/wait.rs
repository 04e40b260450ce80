//! Waiting for a condition, never for a time.

use std::thread;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(20);

/// Asks again and again until `condition` holds; false when it did not in time.
pub(crate) fn eventually(within: Duration, mut condition: impl FnMut() -> bool) -> bool {
    for_some(within, || condition().then_some(())).is_some()
}

/// Asks again and again until there is an answer. The last question is asked after the deadline, so a slow machine that
/// was not scheduled in between gets its chance.
pub(crate) fn for_some<T>(within: Duration, mut question: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + within;
    loop {
        let late = Instant::now() >= deadline;
        let answer = question();
        if answer.is_some() || late {
            return answer;
        }
        thread::sleep(INTERVAL);
    }
}
