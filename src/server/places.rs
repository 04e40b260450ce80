//! Who may be connected: a bound on connections that nobody can fill by doing nothing.
//!
//! A connection is a newcomer until its first whole request has arrived. There are some more places than connections
//! may stay; when all are taken, one that comes is given that of the oldest newcomer, which is closed. So half-open
//! connections, slow headers and slow bodies only ever drive each other out, and what the API server keeps open between
//! two reviews is never closed under it: a request that races a close is lost, since it does not send a POST again.
//!
//! Whether a connection may stay is decided at its first request, by the seats that are left. Requests after it touch
//! nothing that connections share.

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use prometheus_client::metrics::counter::Counter;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

/// What every newcomer is given, however many come: enough for a handshake and a review by a client that hurries. With
/// the least number of newcomers (a fifth of all places), as many as the system's queue holds wait for about a second.
const GRACE: Duration = Duration::from_millis(250);

/// The places of one listener.
#[derive(Debug)]
pub(super) struct Places {
    /// For connections of any kind.
    all: Arc<Semaphore>,
    /// For those that have delivered a request; fewer, so that there are always places that newcomers pass on.
    seats: Arc<Semaphore>,
    newcomers: Mutex<Newcomers>,
    evicted: Counter,
}

/// By the order in which they came.
#[derive(Debug, Default)]
struct Newcomers {
    next: u64,
    waiting: BTreeMap<u64, Newcomer>,
}

#[derive(Debug)]
struct Newcomer {
    since: Instant,
    /// Tells the connection to end.
    leave: oneshot::Sender<()>,
}

impl Places {
    /// For so many connections that stay, or as many fewer as the places that `room` gives for what is asked; who is
    /// driven out is counted.
    pub(super) fn new(seats: usize, room: impl FnOnce(usize) -> usize, evicted: Counter) -> Arc<Self> {
        let places = room(seats + seats / 4 + 1);
        // At least one passes on.
        let seats = seats.min((places - places / 5).min(places.saturating_sub(1)));
        Arc::new(Self {
            all: Arc::new(Semaphore::new(places)),
            seats: Arc::new(Semaphore::new(seats)),
            newcomers: Mutex::default(),
            evicted,
        })
    }

    /// A place for a connection that has been accepted, and what resolves (to `Ok`) when it has to give it up. Waits for
    /// the oldest newcomer to have had its [`GRACE`], and where there is none for whichever connection ends first.
    ///
    /// To be called by one task only: two would drive out more than they need.
    pub(super) async fn take(self: &Arc<Self>) -> (Guest, oneshot::Receiver<()>) {
        let place = loop {
            let free = Arc::clone(&self.all).acquire_owned();
            let Some(since) = self.oldest() else { break free.await };
            if let Ok(place) = tokio::time::timeout_at(since + GRACE, free).await {
                break place;
            }
            if self.evict() {
                // It is told, and ends at its next step. Until it has, nobody else is.
                break Arc::clone(&self.all).acquire_owned().await;
            }
        };
        let (leave, left) = oneshot::channel();
        let ticket = {
            let mut newcomers = self.newcomers();
            let ticket = newcomers.next;
            newcomers.next += 1;
            newcomers.waiting.insert(ticket, Newcomer { since: Instant::now(), leave });
            ticket
        };
        let guest = Guest {
            places: Arc::clone(self),
            ticket,
            arrived: AtomicBool::new(false),
            seat: OnceLock::new(),
            _place: place.ok(),
        };
        (guest, left)
    }

    /// Tells the oldest newcomer to end, if it has had its [`GRACE`]. False: there is none.
    pub(super) fn evict(&self) -> bool {
        let mut newcomers = self.newcomers();
        let Some(oldest) = newcomers.waiting.first_entry().filter(|it| it.get().since.elapsed() >= GRACE) else {
            return false;
        };
        let oldest = oldest.remove();
        self.evicted.inc();
        // One that has just ended by itself takes no notice.
        oldest.leave.send(()).ok();
        true
    }

    fn oldest(&self) -> Option<Instant> {
        self.newcomers().waiting.first_key_value().map(|(_, it)| it.since)
    }

    fn newcomers(&self) -> MutexGuard<'_, Newcomers> {
        self.newcomers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that has a place, until it is dropped.
#[derive(Debug)]
pub(super) struct Guest {
    places: Arc<Places>,
    ticket: u64,
    /// Its first whole request has.
    arrived: AtomicBool,
    seat: OnceLock<OwnedSemaphorePermit>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Guest {
    /// Whether its next request can be taken on: it has a seat, or there is one left.
    pub(super) fn is_welcome(&self) -> bool {
        self.seat.get().is_some() || self.places.seats.available_permits() > 0
    }

    /// Whether there may be a request after this one.
    pub(super) fn may_stay(&self) -> bool {
        self.seat.get().is_some() || self.is_newcomer()
    }

    fn is_newcomer(&self) -> bool {
        !self.arrived.load(Ordering::Relaxed)
    }

    /// Its first whole request is there: it is no newcomer any more, and has a seat if one is left.
    fn arrive(&self) {
        if self.arrived.swap(true, Ordering::Relaxed) {
            return;
        }
        self.places.newcomers().waiting.remove(&self.ticket);
        if let Ok(seat) = Arc::clone(&self.places.seats).try_acquire_owned() {
            self.seat.set(seat).ok();
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if self.is_newcomer() {
            self.places.newcomers().waiting.remove(&self.ticket);
        }
    }
}

/// The body of a request; its end makes a newcomer one that has arrived.
#[derive(Debug)]
pub(super) struct Arriving<B> {
    body: B,
    guest: Arc<Guest>,
}

impl<B: Body<Data = Bytes> + Unpin + Send + 'static> Arriving<B>
where
    B::Error: Into<axum::BoxError>,
{
    /// `body` as it is where `guest` has arrived already.
    pub(super) fn watch(body: B, guest: &Arc<Guest>) -> axum::body::Body {
        if guest.is_newcomer() && !body.is_end_stream() {
            return axum::body::Body::new(Self { body, guest: Arc::clone(guest) });
        }
        guest.arrive();
        axum::body::Body::new(body)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Arriving<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.guest.arrive();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt as _, Empty, StreamBody};
    use std::task::Waker;

    fn places(seats: usize) -> Arc<Places> {
        Places::new(seats, std::convert::identity, Counter::default())
    }

    /// Ends when it is told to and not when nobody can tell it any more, as a connection does; returns its number.
    async fn leaves(number: usize, guest: Guest, left: oneshot::Receiver<()>) -> usize {
        if left.await.is_err() {
            std::future::pending::<()>().await;
        }
        drop(guest);
        number
    }

    #[tokio::test]
    async fn the_oldest_newcomer_makes_room_and_never_one_that_has_arrived() {
        let places = places(4);
        let mut guests = Vec::new();
        for _ in 0..6 {
            guests.push(places.take().await);
        }
        // All six places are taken. The first, the third and the last have delivered a request.
        for arrived in [0, 2, 5] {
            guests[arrived].0.arrive();
        }
        let mut connections = tokio::task::JoinSet::new();
        for (number, (guest, left)) in guests.into_iter().enumerate() {
            connections.spawn(leaves(number, guest, left));
        }
        let mut late = Vec::new();
        for oldest in [1, 3, 4] {
            late.push(places.take().await);
            assert_eq!(connections.join_next().await.unwrap().unwrap(), oldest);
        }
        assert_eq!(places.evicted.get(), 3);
        // Now it is the turn of those that came late.
        let (first, left) = late.remove(0);
        let leaves = tokio::spawn(leaves(6, first, left));
        late.push(places.take().await);
        assert_eq!(leaves.await.unwrap(), 6);
        assert!(connections.try_join_next().is_none(), "the three that have arrived are there");
    }

    #[tokio::test]
    async fn each_newcomer_has_its_time() {
        let places = places(1);
        let began = Instant::now();
        let (first, left) = places.take().await;
        let (_second, _) = places.take().await;
        assert!(!places.evict(), "both have just come");
        let first = tokio::spawn(leaves(0, first, left));
        let _third = places.take().await;
        assert!(began.elapsed() >= GRACE);
        assert_eq!(first.await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_place_that_is_given_up_is_taken_before_anybody_is_driven_out() {
        let places = places(1);
        let (first, _) = places.take().await;
        let (second, _) = places.take().await;
        let waits = tokio::spawn({
            let places = Arc::clone(&places);
            async move { places.take().await.0 }
        });
        tokio::task::yield_now().await;
        drop(second);
        let third = waits.await.unwrap();
        assert_eq!(places.evicted.get(), 0);
        assert!(first.is_newcomer() && third.is_newcomer());
    }

    #[tokio::test]
    async fn where_everybody_has_arrived_one_waits_for_an_end() {
        let places = places(1);
        let guests = [places.take().await.0, places.take().await.0];
        for guest in &guests {
            guest.arrive();
        }
        let mut waits = std::pin::pin!(places.take());
        let mut context = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        let [seated, other] = guests;
        assert!(seated.may_stay() && seated.is_welcome());
        assert!(!other.may_stay() && !other.is_welcome(), "its answer is its last");
        drop(other);
        let (late, _) = waits.await;
        assert!(late.may_stay() && !late.is_welcome(), "there is a place to say so");
        drop(seated);
        assert!(late.is_welcome());
    }

    #[tokio::test]
    async fn the_end_of_the_first_body_is_the_arrival() {
        let places = places(4);
        let (guest, _) = places.take().await;
        let guest = Arc::new(guest);
        let body = StreamBody::new(futures::stream::iter(
            ["a", "b"].map(|it| Ok::<_, std::io::Error>(Frame::data(Bytes::from(it)))),
        ));
        let mut body = Arriving::watch(body, &guest);
        for _ in 0..2 {
            assert!(guest.is_newcomer());
            body.frame().await.unwrap().unwrap();
        }
        assert!(body.frame().await.is_none());
        assert!(!guest.is_newcomer());

        let guest = Arc::new(places.take().await.0);
        drop(Arriving::watch(Empty::<Bytes>::new(), &guest));
        assert!(!guest.is_newcomer(), "nothing is to come");
    }
}
