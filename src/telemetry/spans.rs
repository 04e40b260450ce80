//! Spans of traces, recorded when the work is done.
//!
//! A span is recorded as a whole and afterwards, so that work without tracing costs one check. `otlp` implements [`Spans`].

use hyper::HeaderMap;
use std::time::{Duration, Instant, SystemTime};

/// A receiver of spans.
pub trait Spans: Send + Sync {
    /// Takes a span. It must not block.
    fn record(&self, span: &Span<'_>);

    /// Passes on the spans that are still queued, for `within` at most. No span follows.
    fn finish(&self, within: Duration);
}

/// A finished piece of work.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// The name of the operation, one of few.
    pub name: &'static str,
    /// The start of the work, and its parent.
    pub start: &'a SpanStart,
    /// Attributes by name.
    pub attributes: &'a [(&'static str, &'a str)],
    /// True if the work failed.
    pub failed: bool,
}

/// The start of a piece of work, with the trace context of the request that caused it (W3C Trace Context).
#[derive(Debug, Clone)]
pub struct SpanStart {
    /// The wall-clock time.
    pub clock: SystemTime,
    /// The same time on the monotonic clock.
    pub instant: Instant,
    parent: Option<String>,
    state: Option<String>,
}

impl SpanStart {
    /// Starts now, with the trace context in the headers of a request.
    pub fn now(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        let (parent, state) = (text("traceparent"), text("tracestate"));
        Self { clock: SystemTime::now(), instant: Instant::now(), parent, state }
    }

    /// Returns the request's header `traceparent` or `tracestate`.
    pub fn header(&self, name: &str) -> Option<&str> {
        match name {
            "traceparent" => self.parent.as_deref(),
            "tracestate" => self.state.as_deref(),
            _ => None,
        }
    }
}
