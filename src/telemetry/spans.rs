//! Spans of traces: what is known of a piece of work once it is over, and who wants to know.
//!
//! A span is told of afterwards and whole, so that work that nobody traces costs nothing but the question.

use hyper::HeaderMap;
use std::fmt::Debug;
use std::time::{Duration, Instant, SystemTime};

/// Takes spans. May not wait.
pub trait Spans: Debug + Send + Sync {
    /// Takes one.
    fn record(&self, span: &Span<'_>);

    /// No more will come. Passes on what there is; gives up after so long.
    fn finish(&self, within: Duration);
}

/// A piece of work that is over.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// What kind of work; one of few.
    pub name: &'static str,
    /// When it began, and for whom.
    pub begin: &'a Begin,
    /// What it was about, by name.
    pub attributes: &'a [(&'static str, &'a str)],
    /// Whether it came to nothing.
    pub failed: bool,
}

/// When a piece of work began, and of whose work it is a part.
#[derive(Debug, Clone)]
pub struct Begin {
    clock: SystemTime,
    instant: Instant,
    parent: Option<String>,
    state: Option<String>,
}

impl Begin {
    /// Now, as a part of what the headers of a request say (W3C Trace Context).
    pub fn now(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        let (parent, state) = (text("traceparent"), text("tracestate"));
        Self { clock: SystemTime::now(), instant: Instant::now(), parent, state }
    }

    /// By the clock.
    pub fn clock(&self) -> SystemTime {
        self.clock
    }

    /// How long ago.
    pub fn elapsed(&self) -> Duration {
        self.instant.elapsed()
    }

    /// The value of a header that was there: `traceparent` or `tracestate`.
    pub fn header(&self, name: &str) -> Option<&str> {
        match name {
            "traceparent" => self.parent.as_deref(),
            "tracestate" => self.state.as_deref(),
            _ => None,
        }
    }
}
