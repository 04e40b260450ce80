//! A connection with a deadline for whatever it is waiting for.
//!
//! hyper's own `header_read_timeout` also runs while a connection is idle between two requests, where the API server
//! must find it open for longer than its own 90 seconds (a close would race a request, which it does not send again);
//! set as long as that, it guards nothing against a client that sends its header byte by byte. So the waits are told
//! apart here: for the first byte of the first request, for the next request, for the rest of a header, for room to
//! write. The body of a request is the handler's to time.

use super::Timeouts;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How many requests of a connection have begun and ended; shared by the connection and its service.
#[derive(Debug, Default)]
pub(super) struct Requests {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Requests {
    pub(super) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a connection is waiting for when it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// The first byte of a request.
    Request,
    /// The rest of a header.
    Header,
    /// Nothing that has a deadline here: a request is being answered.
    Answer,
}

/// A stream that fails with [`io::ErrorKind::TimedOut`] when its peer is too slow.
pub(super) struct Paced<S> {
    stream: S,
    requests: Arc<Requests>,
    /// Requests that had ended at the last read.
    ended: usize,
    timeouts: Timeouts,
    waiting: Waiting,
    read_deadline: Pin<Box<Sleep>>,
    /// `None`: the client has taken all that was written.
    write_deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S, requests: Arc<Requests>, timeouts: Timeouts) -> Self {
        let read_deadline = Box::pin(tokio::time::sleep(timeouts.first_byte));
        Self { stream, requests, ended: 0, timeouts, waiting: Waiting::Request, read_deadline, write_deadline: None }
    }

    /// Takes note of what the service has done since the last read.
    fn catch_up(&mut self) {
        let ended = self.requests.ended.load(Ordering::Relaxed);
        if self.requests.begun.load(Ordering::Relaxed) != ended {
            self.waiting = Waiting::Answer;
        } else if self.ended != ended {
            // A short request may begin and end between two reads: what tells is the number, not what was waited for.
            self.ended = ended;
            self.expect(Waiting::Request, self.timeouts.idle);
        }
    }

    fn expect(&mut self, waiting: Waiting, within: Duration) {
        self.waiting = waiting;
        self.read_deadline.as_mut().reset(Instant::now() + within);
    }

    /// The deadline stands from the first wait until all is written: one that takes a byte now and then is as slow as one
    /// that takes none, and keeps as much waiting here.
    fn check_write<T>(&mut self, context: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            return poll;
        }
        let within = self.timeouts.write;
        let deadline = self.write_deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.catch_up();
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.waiting == Waiting::Answer {
            return poll;
        }
        if poll.is_ready() {
            if buffer.filled().len() > before && self.waiting == Waiting::Request {
                let within = self.timeouts.header;
                self.expect(Waiting::Header, within);
            }
            return poll;
        }
        self.read_deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check_write(context, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.check_write(context, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        if poll.is_ready() {
            self.write_deadline = None;
        }
        self.check_write(context, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(context);
        self.check_write(context, poll)
    }
}
