//! The text of `/metrics`, in bounded memory even if its readers are slow.

use crate::telemetry::Metrics;
use parking_lot::Mutex;
use std::fmt;
use std::sync::{Arc, Weak};

/// Most texts in memory. While this many are being sent, more readers get the newest of them.
const TEXTS: usize = 4;

/// The metrics, and the texts that are being sent.
#[derive(Debug)]
pub(super) struct Exposition {
    metrics: Arc<Metrics>,
    sent: Mutex<Vec<Weak<[u8]>>>,
}

impl Exposition {
    /// Returns the exposition of `metrics`.
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, sent: Mutex::default() }
    }

    /// Returns the metrics as text. While slow readers hold too many texts, it returns the newest of these.
    pub(super) fn text(&self) -> Result<Arc<[u8]>, fmt::Error> {
        let mut sent = self.sent.lock();
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
    fn slow_readers_hold_only_a_few_texts() {
        let metrics = Arc::new(Metrics::new());
        let exposition = Exposition::new(Arc::clone(&metrics));
        let read = || {
            metrics.panics.inc();
            exposition.text().unwrap()
        };
        let mut held: Vec<_> = (0..TEXTS).map(|_| read()).collect();
        assert!(held.windows(2).all(|pair| pair[0] != pair[1]), "each text is new");
        let shared: Vec<_> = (0..100).map(|_| read()).collect();
        assert!(shared.iter().all(|text| Arc::ptr_eq(text, &held[TEXTS - 1])));
        held.remove(0);
        let fresh = read();
        assert!(shared[0] != fresh, "a text is new again after one is sent");
    }
}
