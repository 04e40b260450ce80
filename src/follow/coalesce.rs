//! Coalesces concurrent reads: one task reads, and the others share its result.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Reads in progress, by name. A name is kept while a task waits for it.
pub(super) struct Coalesced<T> {
    readings: Mutex<HashMap<String, Weak<CachedRead<T>>>>,
}

/// The last read of one name, and the time at which it began.
type CachedRead<T> = tokio::sync::Mutex<Option<(Instant, T)>>;

impl<T> Default for Coalesced<T> {
    fn default() -> Self {
        Self { readings: Mutex::default() }
    }
}

impl<T: Clone> Coalesced<T> {
    /// Returns a value whose read began after this call, so that it is no older than the result of a read alone. One task reads
    /// a name at a time.
    pub(super) async fn read(&self, name: &str, read: impl Future<Output = T>) -> T {
        let asked = Instant::now();
        let reading = self.reading(name);
        let mut last = reading.lock().await;
        if let Some((began, value)) = &*last
            && *began >= asked
        {
            return value.clone();
        }
        let began = Instant::now();
        let value = read.await;
        *last = Some((began, value.clone()));
        value
    }

    fn reading(&self, name: &str) -> Arc<CachedRead<T>> {
        let mut readings = self.readings.lock();
        if let Some(reading) = readings.get(name).and_then(Weak::upgrade) {
            return reading;
        }
        readings.retain(|_, reading| reading.strong_count() > 0);
        let reading = Arc::<CachedRead<T>>::default();
        readings.insert(name.to_owned(), Arc::downgrade(&reading));
        reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn callers_that_arrive_during_a_read_share_the_next_one() {
        let (coalesced, read, go) = (Coalesced::default(), AtomicUsize::new(0), Notify::new());
        let ask = |name: &'static str| {
            let (coalesced, read, go) = (&coalesced, &read, &go);
            async move {
                let reading = async {
                    let number = read.fetch_add(1, Ordering::Relaxed) + 1;
                    go.notified().await;
                    number
                };
                coalesced.read(name, reading).await
            }
        };
        let first = ask("a");
        let others = futures::future::join_all((0..100).map(|_| ask("a")));
        let elsewhere = ask("b");
        let release = async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
                go.notify_one();
            }
        };
        let (first, others, elsewhere, ()) = futures::join!(first, others, elsewhere, release);
        assert_eq!(first, 1);
        // The first reader may have read before the others asked, and another name is another object.
        assert!(others.iter().all(|number| *number == others[0] && *number > 1), "{others:?}");
        assert!(elsewhere > 1 && elsewhere != others[0]);
        assert_eq!(read.load(Ordering::Relaxed), 3);
        assert!(coalesced.readings.lock().values().all(|reading| reading.upgrade().is_none()));
    }

    #[tokio::test]
    async fn a_cancelled_read_is_taken_over_by_the_next_caller() {
        let coalesced = Coalesced::default();
        let mut given_up = Box::pin(coalesced.read("a", std::future::pending()));
        assert!(futures::poll!(&mut given_up).is_pending());
        let mut next = Box::pin(coalesced.read("a", async { 7 }));
        assert!(futures::poll!(&mut next).is_pending());
        drop(given_up);
        assert_eq!(next.await, 7);
    }
}
