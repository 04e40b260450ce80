//! A stream with a deadline for each wait for its client.
//!
//! hyper's own `header_read_timeout` also runs while a connection is idle between two requests. The API server must find
//! an idle connection open for longer than its own 90 seconds, because it does not repeat a request that races a close. A
//! timeout that long is no guard against a client that sends its header byte by byte. So this module has one deadline for
//! each wait: the first byte of the first request, the next request, the rest of a header, and room to write. `body` has the
//! deadline of a body.

use super::Timeouts;
use super::connections::{Activity, Connection};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A stream that fails with [`io::ErrorKind::TimedOut`] when its client is too slow. It reports to its [`Connection`] the
/// bytes that pass.
pub(super) struct DeadlineStream<S> {
    stream: S,
    connection: Arc<Connection>,
    timeouts: Timeouts,
    /// The last request is answered, and no byte of the next has arrived.
    idle: bool,
    /// No byte of the next request has arrived.
    silent: bool,
    read_deadline: Pin<Box<Sleep>>,
    /// `None` while the client has read everything that was written.
    write_deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> DeadlineStream<S> {
    pub(super) fn new(stream: S, connection: Arc<Connection>, timeouts: Timeouts) -> Self {
        let read_deadline = Box::pin(tokio::time::sleep(timeouts.first_byte));
        Self { stream, connection, timeouts, idle: false, silent: true, read_deadline, write_deadline: None }
    }

    fn restart_read_deadline(&mut self, within: Duration) {
        self.read_deadline.as_mut().reset(Instant::now() + within);
    }

    fn has_read(&mut self, bytes: usize) {
        if std::mem::take(&mut self.silent) {
            self.restart_read_deadline(self.timeouts.header);
        }
        if std::mem::take(&mut self.idle) {
            self.connection.mark(Activity::Header);
        }
        self.connection.transferred(bytes);
    }

    fn has_answered(&mut self) {
        (self.idle, self.silent) = (true, true);
        self.connection.mark(Activity::Idle);
        self.restart_read_deadline(self.timeouts.idle);
    }

    /// Fails at the write deadline, which runs from the first wait until everything is written. A client that reads a byte
    /// now and then holds as much memory as one that reads nothing.
    fn check_write<T>(&mut self, context: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            return poll;
        }
        let within = self.timeouts.write;
        let deadline = self.write_deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn report_write(&self, poll: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = poll {
            self.connection.transferred(*bytes);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for DeadlineStream<S> {
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
        if self.connection.is_serving() {
            return poll;
        }
        self.read_deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for DeadlineStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.report_write(&poll);
        self.check_write(context, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.report_write(&poll);
        self.check_write(context, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        if let Poll::Ready(Ok(())) = &poll {
            self.write_deadline = None;
            if self.connection.is_responding() {
                self.has_answered();
                // This poll registers the wake-up: hyper may not read before the next request arrives.
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
