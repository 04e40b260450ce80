//! Reads the body of a request, within the byte budget and the deadline of bodies.
//!
//! It must not know what a body means: `routes` hands it to a review. When bytes run out, it evicts slow transfers
//! (`connections`) and waits for the memory that they free.

use super::Timeouts;
use super::budget::{Budget, Growth, Reserved};
use super::connections::{Activity, Connection, Eviction};
use super::refusal::RequestRefusal;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, EXPECT};
use http_body_util::{BodyExt, Limited};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::time::{Instant, timeout, timeout_at};

/// Most bytes that the server reads of the body of a request that it refuses. A client that is cut off while it sends sees a
/// broken connection, and not the reason.
const DISCARDED: usize = 32 * 1024 * 1024;

/// Reads bodies.
#[derive(Debug)]
pub(super) struct BodyReader {
    limit: usize,
    timeouts: Timeouts,
    budget: Arc<Budget>,
}

impl BodyReader {
    /// Returns a reader of bodies of at most `limit` bytes.
    pub(super) fn new(limit: usize, timeouts: Timeouts, budget: Arc<Budget>) -> Self {
        Self { limit, timeouts, budget }
    }

    /// Reads the whole body of a request that sends JSON.
    pub(super) async fn read(&self, request: Request, connection: &Connection) -> Result<Reserved, RequestRefusal> {
        let deadline = Instant::now() + self.timeouts.body;
        if !is_json(&request) {
            return Err(refuse(request, deadline, RequestRefusal::MediaType).await);
        }
        let size = request.body().size_hint();
        if usize::try_from(size.lower()).is_ok_and(|lower| lower > self.limit) {
            return Err(refuse(request, deadline, RequestRefusal::TooLarge(self.limit)).await);
        }
        // A body without Content-Length may have any length up to the limit.
        let expected = size.exact().and_then(|exact| usize::try_from(exact).ok()).unwrap_or(self.limit);
        let mut body = request.into_body();
        // An eviction wakes the connection's task, which polls this future.
        let evicted = std::future::poll_fn(|_| if connection.is_evicted() { Poll::Ready(()) } else { Poll::Pending });
        let read = async {
            tokio::select! {
                biased;
                read = self.read_frames(&mut body, expected, connection) => read,
                () = evicted => Err(RequestRefusal::TooSlow),
            }
        };
        match timeout_at(deadline, read).await {
            Ok(Err(refusal)) if refusal != RequestRefusal::TooSlow => {
                discard(body, deadline).await;
                Err(refusal)
            }
            Ok(result) => result,
            Err(_elapsed) => Err(RequestRefusal::BodyTimeout),
        }
    }

    async fn read_frames(
        &self,
        body: &mut Body,
        expected: usize,
        connection: &Connection,
    ) -> Result<Reserved, RequestRefusal> {
        let mut arrived = Reserved::new(&self.budget);
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| RequestRefusal::BadRequest(format!("the body cannot be read: {error}")))?;
            // Trailers mean nothing to a review.
            let Ok(data) = frame.into_data() else { continue };
            if data.len() > self.limit - arrived.len() {
                return Err(RequestRefusal::TooLarge(self.limit));
            }
            if arrived.extend(&data, expected).is_err() {
                // The client is not slow while the server does not read.
                connection.mark(Activity::Busy);
                let extended = async {
                    while arrived.extend(&data, expected).is_err() {
                        self.until_room(connection, arrived.lacks()).await?;
                    }
                    Ok(())
                };
                self.for_memory(extended).await?;
                connection.mark(Activity::Body);
            }
        }
        connection.mark(Activity::Busy);
        Ok(arrived)
    }

    /// Limits the time that a request waits for memory.
    pub(super) async fn for_memory<T>(
        &self,
        wait: impl Future<Output = Result<T, RequestRefusal>>,
    ) -> Result<T, RequestRefusal> {
        timeout(self.timeouts.memory, wait).await.unwrap_or(Err(RequestRefusal::Budget))
    }

    /// Resolves when the budget has what a request lacks. Evicts slow transfers until then, the slowest first. Fails if no transfer
    /// can be evicted: the other requests may need the bytes that this one holds.
    ///
    /// That bytes have returned is not enough: a review without room returns those that it took, and would wait for itself.
    pub(super) async fn until_room(&self, connection: &Connection, lacks: Growth) -> Result<(), RequestRefusal> {
        loop {
            let mut returned = pin!(self.budget.returned());
            returned.as_mut().enable();
            if self.budget.has(lacks) {
                return Ok(());
            }
            match connection.table.evict_transfer() {
                Eviction::NotBefore(time) => drop(timeout_at(time, returned).await),
                Eviction::Started => returned.await,
                Eviction::Impossible => return Err(RequestRefusal::Budget),
            }
        }
    }

    /// Reads what the client still sends, and returns `refusal`.
    pub(super) async fn refuse(&self, request: Request, refusal: RequestRefusal) -> RequestRefusal {
        refuse(request, Instant::now() + self.timeouts.body, refusal).await
    }
}

async fn refuse(request: Request, deadline: Instant, refusal: RequestRefusal) -> RequestRefusal {
    // A client that sent `Expect` has not begun to send the body, and does not after a refusal.
    if !request.headers().contains_key(EXPECT) {
        discard(request.into_body(), deadline).await;
    }
    refusal
}

/// Reads the rest of a body that is refused, unless it is too long.
async fn discard(body: Body, deadline: Instant) {
    if usize::try_from(body.size_hint().lower()).is_ok_and(|length| length <= DISCARDED) {
        let mut body = Limited::new(body, DISCARDED);
        let drained = async { while let Some(Ok(_)) = body.frame().await {} };
        // The answer is the same whether or not the rest arrives.
        timeout_at(deadline, drained).await.ok();
    }
}

/// Returns true if the content type is `application/json`, with or without parameters.
fn is_json(request: &Request) -> bool {
    let value = request.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}
