//! Work beside a test: until it is told to stop, or for many items at the same time.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Runtime};

/// Threads that each do one thing again and again. Dropping it ends them.
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
        for thread in self.threads.drain(..) {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// A runtime with one thread, for servers of a test. Dropping it ends their connections.
pub(crate) struct Servers(Option<Runtime>);

impl Servers {
    pub(crate) fn start(name: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build();
        Self(Some(runtime.expect("a runtime can be started")))
    }
}

impl Deref for Servers {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("it runs until it is dropped")
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Calls the function for every item, for some at the same time.
pub(crate) fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    const WORKERS: usize = 4;
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(item);
                }
            });
        }
    });
}
