//! Retries: the waits between attempts, and the attempts at one request.

use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::{Request, Response};
use kube::client::Body;
use kube::client::retry::RetryPolicy;
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use tower::BoxError;
use tower::retry::Policy;

/// Longest wait that the API server may ask for with `Retry-After`, in seconds. A new CRD takes several requests, one after the other, and
/// one of a proxy in between says nothing of the next.
const LONGEST_ASKED: u16 = 5;

/// Time within which a request is sent again. It is shorter than any deadline of a request, so that the caller learns what the API server
/// answers.
const PATIENCE: Duration = Duration::from_secs(12);

/// First and longest wait between attempts at a watch or a list. The longest is short, so that a restart of the API server is
/// noticed soon.
pub(super) const WAITS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// Waits that double from a first to a longest one.
#[derive(Debug, Clone, Copy)]
pub struct Doubling {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Doubling {
    /// Takes the first and the longest wait.
    pub fn new([first, longest]: [Duration; 2]) -> Self {
        Self { first, longest, next: first }
    }

    /// Returns the next wait.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.longest);
        wait
    }

    /// Begins again with the first wait.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

/// The attempts at one request that is answered with 429, 503 or 504: those of kube, within bounds.
#[derive(Clone)]
pub(super) struct BoundedRetries {
    policy: RetryPolicy,
    /// The time of the first answer.
    began: Option<Instant>,
}

impl Default for BoundedRetries {
    fn default() -> Self {
        Self { policy: RetryPolicy::server_retry(), began: None }
    }
}

impl<T> Policy<Request<Body>, Response<T>, BoxError> for BoundedRetries {
    type Future = Sleep;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        answer: &mut Result<Response<T>, BoxError>,
    ) -> Option<Self::Future> {
        if let Ok(answer) = answer {
            let asked = answer.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
            if asked.is_some_and(|asked| asked > LONGEST_ASKED.into()) {
                answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(LONGEST_ASKED));
            }
        }
        let end = *self.began.get_or_insert_with(Instant::now) + PATIENCE;
        self.policy.retry(request, answer).filter(|wait| wait.deadline() <= end)
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        Policy::<Request<Body>, Response<T>, BoxError>::clone_request(&mut self.policy, request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_longest_and_begin_again_after_a_success() {
        let mut waits = Doubling::new(WAITS);
        let grown: Vec<Duration> = (0..40).map(|_| waits.next_wait()).collect();
        assert!(grown.is_sorted());
        assert_eq!([grown[0], grown[39]], WAITS);
        waits.reset();
        assert_eq!(waits.next_wait(), grown[0]);
    }
}
