//! Deadlines of requests to the API server, as a layer of the client: no request and no body of an answer is waited for without
//! end, whoever asks.
//!
//! A connection that is half open, a server that accepts and never answers, and a body that drips are errors here, which
//! callers retry like any other. The client below retries 429, 503 and 504 itself, see [`retry`](super::retry), within the same
//! deadlines.

use super::server_clock::ServerClock;
use futures::future::BoxFuture;
use futures::stream::unfold;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body, Bytes, Frame};
use hyper::{Method, Request, Response};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tower::{BoxError, Service};

/// Wait for the headers of the answer to a read, with all retries of the client.
const READ_HEADERS: Duration = Duration::from_secs(15);

/// Time of a read from the request to the end of the answer.
const READ: Duration = Duration::from_secs(30);

/// Time of a write. It exceeds the longest webhook call that the API server may wait for.
const WRITE: Duration = Duration::from_secs(35);

/// Wait for the next bytes of a body.
const PROGRESS: Duration = Duration::from_secs(15);

/// Maximum size of an answer, in bytes. The largest are pages of lists, and OpenAPI documents.
const LONGEST: u64 = 64 << 20;

/// Maximum size of an event of a watch, in bytes. An event is a line.
const LONGEST_EVENT: u64 = 16 << 20;

/// A client with deadlines. It also compares the clocks at each answer.
#[derive(Clone)]
pub(super) struct Bounded<S> {
    pub(super) inner: S,
    pub(super) clock: ServerClock,
}

/// The bounds of the body of an answer.
enum BodyBounds {
    Answer {
        whole: Duration,
        end: Instant,
        /// Bytes that may still come.
        left: u64,
    },
    /// A watch may be silent, and has as many bytes as there are events. `list_and_watch` bounds its time.
    Watch {
        /// Bytes since the end of the last event.
        event: u64,
    },
}

impl<S, B, T> Service<Request<T>> for Bounded<S>
where
    S: Service<Request<T>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<UnsyncBoxBody<Bytes, BoxError>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<T>) -> Self::Future {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let watches = request.uri().query().is_some_and(|query| query.split('&').any(|it| it == "watch=true"));
        let (headers, whole) = if reads { (READ_HEADERS, READ) } else { (WRITE, WRITE) };
        let began = Instant::now();
        let (answer, clock) = (self.inner.call(request), self.clock.clone());
        Box::pin(async move {
            let late = |_| format!("the API server did not answer within {} s", headers.as_secs());
            let answer = timeout_at(began + headers, answer).await.map_err(late)?.map_err(Into::into)?;
            clock.record(answer.headers());
            let bounds = if watches {
                BodyBounds::Watch { event: 0 }
            } else {
                BodyBounds::Answer { whole, end: began + whole, left: LONGEST }
            };
            Ok(answer.map(|body| {
                let frames = unfold((body, bounds), async |(mut body, mut bounds)| {
                    let frame = bounds.next(&mut body).await.transpose()?;
                    Some((frame, (body, bounds)))
                });
                StreamBody::new(frames).boxed_unsync()
            }))
        })
    }
}

impl BodyBounds {
    async fn next<B>(&mut self, body: &mut B) -> Result<Option<Frame<Bytes>>, BoxError>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        let frame = match *self {
            Self::Watch { .. } => body.frame().await,
            Self::Answer { whole, end, .. } => {
                let progress = Instant::now() + PROGRESS;
                let late = || {
                    if end <= progress {
                        format!("the answer of the API server was not complete within {} s", whole.as_secs())
                    } else {
                        format!("the API server sent nothing more for {} s", PROGRESS.as_secs())
                    }
                };
                // A body that never pauses comes to its end, too.
                if end <= Instant::now() {
                    return Err(late().into());
                }
                timeout_at(end.min(progress), body.frame()).await.map_err(|_| late())?
            }
        };
        let frame = frame.transpose().map_err(Into::into)?;
        if let Some(bytes) = frame.as_ref().and_then(Frame::data_ref) {
            self.count(bytes)?;
        }
        Ok(frame)
    }

    /// Counts bytes that arrived.
    fn count(&mut self, bytes: &[u8]) -> Result<(), String> {
        let length = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        match self {
            Self::Answer { left, .. } => {
                let too_long = || format!("the answer of the API server has more than {LONGEST} bytes");
                *left = left.checked_sub(length(bytes)).ok_or_else(too_long)?;
            }
            Self::Watch { event } => {
                let last = bytes.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
                if last.len() < bytes.len() {
                    *event = 0;
                }
                *event += length(last);
                if *event > LONGEST_EVENT {
                    return Err(format!("an event of the API server has more than {LONGEST_EVENT} bytes"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;
    use http_body_util::Empty;
    use std::convert::Infallible;
    use tokio::time::sleep;
    use tower::{ServiceExt, service_fn};

    /// Returns the text of the answer to a request, whose headers come after `wait`, or the error.
    async fn answer<B>(method: Method, path: &str, wait: Duration, body: B) -> Result<usize, String>
    where
        B: Body<Data = Bytes, Error = Infallible> + Unpin + Send + 'static,
    {
        let mut body = Some(body);
        let server = service_fn(move |_: Request<Empty<Bytes>>| {
            let body = body.take();
            async move {
                sleep(wait).await;
                Ok::<_, Infallible>(Response::new(body.unwrap()))
            }
        });
        let request = Request::builder().method(method).uri(path).body(Empty::new()).unwrap();
        let client = Bounded { inner: server, clock: ServerClock::default() };
        let answer = client.oneshot(request).await.map_err(|error| error.to_string())?;
        let body = answer.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok(body.to_bytes().len())
    }

    /// Returns a body of blanks, in chunks of `size` bytes.
    fn chunks(
        number: usize,
        wait: Duration,
        size: usize,
    ) -> impl Body<Data = Bytes, Error = Infallible> + Unpin + Send {
        pieces(number, wait, vec![b' '; size])
    }

    /// Returns a body of `number` copies of a chunk, each after a wait.
    fn pieces(
        number: usize,
        wait: Duration,
        chunk: Vec<u8>,
    ) -> impl Body<Data = Bytes, Error = Infallible> + Unpin + Send {
        let chunk = Bytes::from(chunk);
        let frames = futures::stream::iter(0..number).then(move |_| {
            let chunk = chunk.clone();
            async move {
                sleep(wait).await;
                Ok(Frame::data(chunk))
            }
        });
        StreamBody::new(frames.boxed())
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn every_wait_for_an_answer_has_an_end() {
        const DAY: Duration = Duration::from_hours(24);
        let rows = [
            (Method::GET, "/a", DAY, 1, SECOND, "the API server did not answer within 15 s"),
            (Method::GET, "/a?watch=true", DAY, 1, SECOND, "the API server did not answer within 15 s"),
            (Method::PUT, "/a", DAY, 1, SECOND, "the API server did not answer within 35 s"),
            (Method::GET, "/a", SECOND, 2, DAY, "the API server sent nothing more for 15 s"),
            (Method::GET, "/a", SECOND, 100, SECOND, "the answer of the API server was not complete within 30 s"),
        ];
        for (method, path, headers, number, wait, says) in rows {
            let answered = answer(method, path, headers, chunks(number, wait, 1)).await;
            assert_eq!(answered.unwrap_err(), says);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_within_their_deadlines_arrive_and_a_watch_may_be_silent() {
        assert_eq!(answer(Method::GET, "/a", 10 * SECOND, chunks(3, 5 * SECOND, 7)).await, Ok(21));
        assert_eq!(answer(Method::PATCH, "/a", 30 * SECOND, chunks(1, SECOND, 7)).await, Ok(7));
        assert_eq!(answer(Method::GET, "/a?limit=1&watch=true", SECOND, chunks(3, 30 * SECOND, 7)).await, Ok(21));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_without_an_end_is_cut_off() {
        let answered = answer(Method::GET, "/a", SECOND, chunks(100, Duration::ZERO, 1 << 20)).await;
        assert_eq!(answered.unwrap_err(), "the answer of the API server has more than 67108864 bytes");
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_without_an_end_is_cut_off_and_a_watch_of_many_events_is_not() {
        const WATCH: &str = "/a?watch=true";
        let mut event = vec![b' '; 1 << 20];
        let answered = answer(Method::GET, WATCH, SECOND, pieces(100, Duration::ZERO, event.clone())).await;
        assert_eq!(answered.unwrap_err(), "an event of the API server has more than 16777216 bytes");
        event[1000] = b'\n';
        let answered = answer(Method::GET, WATCH, SECOND, pieces(100, Duration::ZERO, event)).await;
        assert_eq!(answered, Ok(100 << 20));
    }
}
