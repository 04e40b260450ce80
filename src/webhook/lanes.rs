//! The threads that serve connections. Each runs its own connections, and never takes a task of another thread: to wake another thread
//! for a request costs more than to answer a small review.
//!
//! Reviews of large bodies run on blocking threads (`routes`), so that they hold up no other connection of their thread.

use std::num::NonZero;
use std::sync::Arc;
use std::{io, thread};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Most threads. Eight answer some 200,000 small reviews per second. Each has three open files.
const MOST: usize = 8;

/// The threads. They end when this is dropped, and with them everything that still runs there.
#[derive(Debug, Default)]
pub(super) struct Lanes(Vec<Lane>);

#[derive(Debug)]
struct Lane {
    runtime: Handle,
    /// Each connection holds a clone.
    load: Arc<()>,
    _running: oneshot::Sender<()>,
}

impl Lanes {
    /// Starts a thread for each processor, but at most [`MOST`].
    pub(super) fn start(processors: NonZero<usize>) -> io::Result<Self> {
        (0..processors.get().min(MOST)).map(|_| Lane::start()).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the runtime of the thread with the fewest connections; `None` if there are no threads. The connection holds the second
    /// value until it ends.
    pub(super) fn least_loaded(&self) -> Option<(&Handle, Arc<()>)> {
        let lane = self.0.iter().min_by_key(|lane| Arc::strong_count(&lane.load))?;
        Some((&lane.runtime, Arc::clone(&lane.load)))
    }
}

impl Lane {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("reviews".to_owned()).spawn(move || {
            // An error: the sender is gone.
            runtime.block_on(ended).unwrap_or_default();
            runtime.shutdown_background();
        })?;
        Ok(Self { runtime: handle, load: Arc::default(), _running: running })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_are_spread_over_the_threads_and_end_with_them() {
        let lanes = Lanes::start(NonZero::new(3).unwrap()).unwrap();
        let mut held: Vec<_> = (0..6).map(|_| lanes.least_loaded().unwrap()).collect();
        let on = |id| held.iter().filter(|(runtime, _)| runtime.id() == id).count();
        assert!(held.iter().all(|(runtime, _)| on(runtime.id()) == 2));
        let (freed, _) = held.remove(3);
        assert_eq!(lanes.least_loaded().unwrap().0.id(), freed.id());
        let runs = freed.spawn(std::future::pending::<()>());
        drop(held);
        drop(lanes);
        assert!(runs.await.unwrap_err().is_cancelled());
    }
}
