//! The text of `/metrics`, in memory that readers who take none of it cannot fill.

use crate::telemetry::Metrics;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Texts that are being sent at a time. While so many are, further readers get the newest of them.
const TEXTS: usize = 4;

/// The metrics, and the texts of them that are being sent.
#[derive(Debug)]
pub(super) struct Exposition {
    metrics: Arc<Metrics>,
    sent: Mutex<Vec<Weak<[u8]>>>,
}

impl Exposition {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, sent: Mutex::default() }
    }

    /// Returns a text of the metrics as they are, or as they were a moment ago where slow readers hold too many of them.
    pub(super) fn text(&self) -> Result<Arc<[u8]>, fmt::Error> {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.retain(|text| text.strong_count() > 0);
        if sent.len() >= TEXTS
            && let Some(newest) = sent.last().and_then(Weak::upgrade)
        {
            return Ok(newest);
        }
        let text: Arc<[u8]> = self.metrics.encode()?.into_bytes().into();
        sent.push(Arc::downgrade(&text));
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_who_take_nothing_hold_no_more_than_a_few_texts() {
        let metrics = Arc::new(Metrics::new());
        let exposition = Exposition::new(Arc::clone(&metrics));
        let read = || {
            metrics.panics().inc();
            exposition.text().unwrap()
        };
        let mut held: Vec<_> = (0..TEXTS).map(|_| read()).collect();
        assert!(held.windows(2).all(|pair| pair[0] != pair[1]), "each is up to date");
        let shared: Vec<_> = (0..100).map(|_| read()).collect();
        assert!(shared.iter().all(|text| Arc::ptr_eq(text, &held[TEXTS - 1])));
        held.remove(0);
        let fresh = read();
        assert!(shared[0] != fresh, "as soon as one has been taken");
    }
}
