//! The loop of every controller: read what is stored, compute what is wanted, write under the `resourceVersion` that was read,
//! and after a conflict read again.
//!
//! Every replica runs every controller. Replicas compute the same objects from the same inputs, so the first write spares the
//! others theirs. The loop knows no object: a [`Controller`] reads, decides and writes in one [`step`](Controller::step). It
//! reads and writes by [`object`](super::object), and [`pace`](super::pace) tells it when. `supervision` ends the program if
//! the loop ends.

use futures::StreamExt;
use futures::stream::{BoxStream, select_all, unfold};
use kube_unions_api::{Doubling, RequestError, WatchChange, Watched};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Time for which changes are collected before a step.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(100);

/// First and longest wait after a failure, unless a controller has its own.
pub(super) const WAITS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(2)];

/// One replica's side of some stored objects.
pub(crate) trait Controller: Send {
    /// A change that calls for a step.
    type Event: Send;

    /// First and longest wait after a failure.
    fn waits(&self) -> [Duration; 2] {
        WAITS
    }

    /// Notes a change.
    fn observe(&mut self, event: Self::Event);

    /// Reads the stored objects, and writes those that are due.
    fn step(&mut self, now: Instant) -> impl Future<Output = Result<Reconciled, StepError>> + Send;

    /// Notes that a step failed. It is tried again.
    fn failed(&mut self, error: &StepError);

    /// Notes that a step left nothing to do.
    fn in_sync(&mut self);
}

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reconciled {
    /// The time of the next step if nothing happens before.
    pub(crate) next: Instant,
    /// False if a write is still to come.
    pub(crate) is_in_sync: bool,
}

/// The reason why a step failed.
#[derive(Debug)]
pub(crate) struct StepError {
    /// One line for the log.
    pub(crate) reason: String,
    /// True if an object has changed since it was read: the next step follows at once.
    pub(super) is_conflict: bool,
    /// True if the API server has answered and is healthy itself.
    pub(super) is_answer: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepRequest {
    Read,
    Create,
    Replace,
}

impl StepError {
    /// Returns an error that does not come from the API server.
    pub(super) fn new(reason: String) -> Self {
        Self { reason, is_conflict: false, is_answer: true }
    }

    /// Returns the error of a request. `doing`: the request, in the infinitive.
    pub(super) fn of(request: StepRequest, doing: &str, error: &RequestError) -> Self {
        let is_conflict = match error.code() {
            Some(409) => request != StepRequest::Read,
            // Deleted meanwhile.
            Some(404) => request == StepRequest::Replace,
            // etcd does not take the object, for example because it is too large.
            Some(500) if request != StepRequest::Read => return Self::new(format!("cannot {doing}: {error}")),
            Some(_) | None => false,
        };
        Self { reason: format!("cannot {doing}: {error}"), is_conflict, is_answer: error.is_final() }
    }
}

impl From<RequestError> for StepError {
    fn from(error: RequestError) -> Self {
        Self { reason: error.to_string(), is_conflict: false, is_answer: error.is_final() }
    }
}

impl Reconciled {
    /// Nothing is left to do until `next`.
    pub(crate) fn in_sync(next: Instant) -> Self {
        Self { next, is_in_sync: true }
    }

    /// A write is still to come.
    pub(crate) fn pending(next: Instant) -> Self {
        Self { next, is_in_sync: false }
    }
}

/// Takes steps until `events` ends.
///
/// Changes are collected for [`DEBOUNCE`], or for the first wait if that is shorter. After a failure, a change shortens the wait
/// to no less than the longest one of [`WAITS`].
pub(crate) async fn run<C: Controller>(controller: &mut C, mut events: BoxStream<'_, C::Event>) {
    let [first, _] = controller.waits();
    let mut waits = Doubling::new(controller.waits());
    let debounce = DEBOUNCE.min(first);
    let mut next = Instant::now();
    let mut not_before = next;
    loop {
        tokio::select! {
            // Everything that has arrived is noted before a step.
            biased;
            event = events.next() => {
                let Some(event) = event else { return };
                controller.observe(event);
                next = next.min(Instant::now() + debounce).max(not_before);
            }
            () = tokio::time::sleep_until(next) => {
                let taken = controller.step(Instant::now()).await;
                let now = Instant::now();
                not_before = now + debounce;
                next = match taken {
                    Ok(step) => {
                        if step.is_in_sync {
                            waits.reset();
                            controller.in_sync();
                        }
                        step.next
                    }
                    Err(error) if error.is_conflict => now,
                    Err(error) => {
                        controller.failed(&error);
                        let wait = waits.next_wait();
                        let [_, shortened] = WAITS;
                        not_before = now + wait.min(shortened);
                        now + wait
                    }
                };
                next = next.max(not_before);
            }
        }
    }
}

/// Sends a value to a channel if it differs from the last one.
pub(super) fn publish<T: PartialEq>(sender: &watch::Sender<T>, value: T) {
    sender.send_if_modified(|known| {
        let is_new = *known != value;
        *known = value;
        is_new
    });
}

/// Yields for each new value of a channel. Ends when the sender is dropped.
pub(crate) fn news<T: Send + Sync + 'static>(receiver: &watch::Receiver<T>) -> BoxStream<'static, ()> {
    let next = async |mut receiver: watch::Receiver<T>| receiver.changed().await.ok().map(|()| ((), receiver));
    unfold(receiver.clone(), next).boxed()
}

/// Merges streams. The result ends when the sender of `leading` is dropped.
pub(super) fn merged<T: Send + Sync + 'static, E: Send + 'static>(
    leading: &watch::Receiver<T>,
    streams: impl IntoIterator<Item = BoxStream<'static, E>>,
) -> BoxStream<'static, E> {
    let mut leading = leading.clone();
    select_all(streams).take_until(async move { while leading.changed().await.is_ok() {} }).boxed()
}

/// Returns `Ok` if a watch may have brought a change, its error if it failed, and `None` when a list begins.
pub(super) fn changes(event: Watched) -> Option<Result<(), RequestError>> {
    match event {
        Ok(WatchChange::Listing) => None,
        Ok(WatchChange::Set { .. } | WatchChange::Gone(_) | WatchChange::Listed) => Some(Ok(())),
        Err(error) => Some(Err(error)),
    }
}
