//! Work that goes on behind a test until it is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Threads that each do one thing again and again. Dropping it tells them to stop.
pub(crate) struct Background {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Background {
    /// A thread for each of `works`, which is called again and again.
    pub(crate) fn start<W: FnMut() + Send + 'static>(works: impl IntoIterator<Item = W>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = works.into_iter().map(|mut work| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    work();
                }
            })
        });
        Self { threads: threads.collect(), stop }
    }

    /// Ends it once each thread has done what it was at; fails where one of them has failed.
    pub(crate) fn finish(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("what went on in the background has not failed");
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
