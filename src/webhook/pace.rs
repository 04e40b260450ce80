//! A connection with a deadline for whatever it is waiting for.
//!
//! hyper's own `header_read_timeout` also runs while a connection is idle between two requests, where the API server
//! must find it open for longer than its own 90 seconds (a close would race a request, which it does not send again);
//! set as long as that, it guards nothing against a client that sends its header byte by byte. So the waits are told
//! apart here: for the first byte of the first request, for the next request, for the rest of a header, for room to
//! write. The body of a request is the handler's to time.

use super::Timeouts;
use super::connections::Place;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A stream that fails with [`io::ErrorKind::TimedOut`] when its peer is too slow, and reports to its [`Place`] what passes.
pub(super) struct Paced<S> {
    stream: S,
    place: Arc<Place>,
    timeouts: Timeouts,
    /// A request has been answered, and no byte of the next has arrived.
    idle: bool,
    /// No byte of the next request has arrived.
    silent: bool,
    read_deadline: Pin<Box<Sleep>>,
    /// `None`: the client has taken all that was written.
    write_deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S, place: Arc<Place>, timeouts: Timeouts) -> Self {
        let read_deadline = Box::pin(tokio::time::sleep(timeouts.first_byte));
        Self { stream, place, timeouts, idle: false, silent: true, read_deadline, write_deadline: None }
    }

    fn expect(&mut self, within: Duration) {
        self.read_deadline.as_mut().reset(Instant::now() + within);
    }

    fn has_read(&mut self, bytes: usize) {
        if std::mem::take(&mut self.silent) {
            self.expect(self.timeouts.header);
        }
        if std::mem::take(&mut self.idle) {
            self.place.header_begins();
        }
        self.place.progress(bytes);
    }

    fn has_answered(&mut self) {
        (self.idle, self.silent) = (true, true);
        self.place.is_idle_now();
        self.expect(self.timeouts.idle);
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

    fn wrote(&self, poll: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = poll {
            self.place.progress(*bytes);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        if poll.is_ready() {
            let bytes = buffer.filled().len() - before;
            if bytes > 0 {
                self.has_read(bytes);
            }
            return poll;
        }
        if self.place.is_serving() {
            return poll;
        }
        self.read_deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(&poll);
        self.check_write(context, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(&poll);
        self.check_write(context, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        if let Poll::Ready(Ok(())) = &poll {
            self.write_deadline = None;
            if self.place.is_answering() {
                self.has_answered();
                // Nobody may read before the next request wakes the task.
                if self.read_deadline.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        self.check_write(context, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(context);
        self.check_write(context, poll)
    }
}
