//! The clock of the API server, by the `Date` of its answers.
//!
//! Certificates are made and judged by it: a replica whose own clock is wrong decides as the others do, and cannot replace what
//! they serve. If API servers differ, the one that answered last counts.

use hyper::HeaderMap;
use hyper::header::DATE;
use k8s_openapi::jiff::fmt::rfc2822;
use prometheus_client::metrics::gauge::Gauge;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

/// Difference between the clocks, in seconds, up to which this machine's own is right. An answer takes time.
const TOLERATED: i64 = 30;

/// Difference, in seconds, beyond which a replica is not ready.
const LONGEST: i64 = 300;

/// The clock of the API server.
#[derive(Clone)]
pub struct ServerClock {
    /// This machine's clock.
    own: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// Seconds by which this machine's clock is ahead; 0 before the first answer.
    ahead: Arc<AtomicI64>,
    gauge: Gauge,
}

impl Default for ServerClock {
    fn default() -> Self {
        Self::new(SystemTime::now, Gauge::default())
    }
}

impl ServerClock {
    /// Returns the clock before the first answer. `own` is this machine's clock, and `gauge` has the seconds by which it is ahead.
    pub fn new(own: impl Fn() -> SystemTime + Send + Sync + 'static, gauge: Gauge) -> Self {
        Self { own: Arc::new(own), ahead: Arc::default(), gauge }
    }

    /// Returns the time of the API server.
    pub fn now(&self) -> SystemTime {
        let own = (self.own)();
        let ahead = self.ahead.load(Ordering::Relaxed);
        if ahead.abs() <= TOLERATED {
            return own;
        }
        let difference = Duration::from_secs(ahead.unsigned_abs());
        let right = if ahead > 0 { own.checked_sub(difference) } else { own.checked_add(difference) };
        right.unwrap_or(own)
    }

    /// Returns what is wrong with this machine's clock.
    pub fn fault(&self) -> Option<String> {
        fault(self.ahead.load(Ordering::Relaxed))
    }

    /// Compares the clocks.
    pub fn record(&self, headers: &HeaderMap) {
        let date = headers.get(DATE).and_then(|date| rfc2822::parse(date.to_str().ok()?).ok());
        let own = (self.own)().duration_since(SystemTime::UNIX_EPOCH);
        let (Some(date), Ok(own)) = (date, own) else { return };
        let own = i64::try_from(own.as_secs()).unwrap_or(i64::MAX);
        let ahead = own.saturating_sub(date.timestamp().as_second());
        self.gauge.set(ahead);
        let before = self.ahead.swap(ahead, Ordering::Relaxed);
        match (fault(before), fault(ahead)) {
            (None, Some(reason)) => tracing::warn!(reason, "this replica is not ready until its clock is right"),
            (Some(_), None) => tracing::info!("the clock is right again"),
            (None, None) | (Some(_), Some(_)) => {}
        }
    }
}

fn fault(ahead: i64) -> Option<String> {
    let side = if ahead > 0 { "ahead of" } else { "behind" };
    let seconds = ahead.unsigned_abs();
    (ahead.abs() > LONGEST).then(|| format!("the clock of this machine is {seconds} s {side} the API server's"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::jiff::{Timestamp, ToSpan};

    /// Returns a clock after an answer of a server that is this many seconds behind.
    fn ahead_by(seconds: i64) -> ServerClock {
        let clock = ServerClock::default();
        let date = Timestamp::now().saturating_sub(seconds.seconds()).unwrap().strftime("%a, %d %b %Y %H:%M:%S GMT");
        clock.record(&HeaderMap::from_iter([(DATE, date.to_string().parse().unwrap())]));
        clock
    }

    #[test]
    fn the_time_is_that_of_the_api_server() {
        for seconds in [0, 20, -20, 100, -100, 7200, -7200, 400 * 86_400, -400 * 86_400] {
            let clock = ahead_by(seconds);
            let behind = |it: SystemTime| it.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs().cast_signed();
            let corrected = if seconds.abs() > TOLERATED { seconds } else { 0 };
            let difference = behind(SystemTime::now()) - behind(clock.now()) - corrected;
            assert!(difference.abs() <= 2, "{seconds}: {difference}");
            assert_eq!(clock.fault().is_some(), seconds.abs() > LONGEST, "{seconds}");
        }
    }

    #[test]
    fn an_answer_without_a_date_changes_nothing() {
        let clock = ahead_by(7200);
        for date in ["", "soon", "Wed, 25 Nov 2026"] {
            clock.record(&HeaderMap::from_iter([(DATE, date.parse().unwrap())]));
        }
        clock.record(&HeaderMap::new());
        assert!(clock.fault().is_some());
    }
}
