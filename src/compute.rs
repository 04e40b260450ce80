//! Work that takes a processor for long.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{JoinHandle, spawn_blocking};

/// Runs work on a thread of its own, so that it delays no other task.
///
/// A runtime of one thread has the work in turn with its other tasks, so that a run of it can be repeated.
pub(crate) fn compute<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        tokio::spawn(async { work() })
    } else {
        spawn_blocking(work)
    }
}
