//! Waiting for a condition, never for a time.

use std::thread;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(20);

/// Far more than a question takes, whoever is asked.
const ANSWERED: Duration = Duration::from_millis(300);

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

/// Asks again and again until `condition` holds, for as long as it was promised to take, and gives how long it took; `None` if
/// it did not hold in time.
///
/// What a question takes beyond [`ANSWERED`] does not count: then the machine, or the API server that is asked, stood still,
/// and nobody can keep a promise meanwhile.
pub(crate) fn promised(within: Duration, mut condition: impl FnMut() -> bool) -> Option<Duration> {
    let start = Instant::now();
    let mut stood_still = Duration::ZERO;
    loop {
        let asked = Instant::now();
        let late = start.elapsed().saturating_sub(stood_still) >= within;
        let holds = condition();
        stood_still += asked.elapsed().saturating_sub(ANSWERED);
        if holds {
            return Some(start.elapsed().saturating_sub(stood_still));
        }
        if late {
            return None;
        }
        thread::sleep(INTERVAL);
    }
}
