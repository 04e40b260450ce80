//! Logs, metrics and traces: their setup, and the metrics that several parts of the program share.
//!
//! This module must not know a union or a review. Counters with labels from the catalog live in `webhook::review_metrics`, and
//! join the same [`Metrics`] as a collector. `otlp` sends spans to a collector of traces.

#[cfg(feature = "otlp")]
mod otlp;
mod spans;

#[cfg(feature = "otlp")]
pub use otlp::{Endpoint, Otlp, OtlpError};
pub use spans::{Span, SpanStart, Spans};

use kube_unions_command::credentials::without_credentials;
use kube_unions_command::escape::escaped;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::io::{self, IsTerminal};
use std::panic::PanicHookInfo;
use tracing_subscriber::EnvFilter;

/// Content type of [`Metrics::encode`].
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The log filter if `RUST_LOG` is not set. The Kubernetes client logs each failed attempt; its callers log its errors once
/// instead.
const DEFAULT_FILTER: &str = "info,kube_client=off";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// One JSON object for each line.
    Json,
    /// Text for people.
    #[default]
    Text,
}

/// Logging cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// `RUST_LOG` is not a filter.
    #[error("invalid `RUST_LOG`: use a level, for example info, or `target=level,…`")]
    Filter(#[source] tracing_subscriber::filter::ParseError),
    /// Another subscriber is already installed.
    #[error("logging is already set up in this process")]
    Installed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Logs events and panics to standard error, filtered by `RUST_LOG` (level `info` if it is not set).
pub fn init(format: LogFormat) -> Result<(), TelemetryError> {
    let filter = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = EnvFilter::builder()
        .parse(if filter.is_empty() { DEFAULT_FILTER } else { &filter })
        .map_err(TelemetryError::Filter)?;
    let colour = format == LogFormat::Text
        && io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
    // An event is one write, and one line.
    let writer = move || EscapedLines { colour };
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(colour);
    match format {
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
        LogFormat::Text => subscriber.try_init(),
    }
    .map_err(TelemetryError::Installed)?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Standard error, on which no text of a stranger begins a line or an escape sequence.
struct EscapedLines {
    colour: bool,
}

impl io::Write for EscapedLines {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = without_credentials(text.strip_suffix('\n').unwrap_or(&text));
        let line = text.replace('\n', "\\n");
        let line = escaped(&line, |rest| style_length(rest).filter(|_| self.colour));
        writeln!(io::stderr().lock(), "{line}").map(|()| event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Returns the length of the style that a text begins with, if the formatter uses it. In the text of a stranger it hides nothing.
fn style_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find('m')?;
    let used = matches!(parameters.get(..end)?, "0" | "1" | "2" | "3" | "31" | "32" | "33" | "34" | "35");
    used.then_some(end + 3)
}

/// Declares structs of metrics. `/metrics` shows each by its name, with a help text, in the order of the fields. The values of a
/// label are shown at zero from the start.
macro_rules! metrics {
    ($($(#[$of:meta])* $group:ident { $($(#[$doc:meta])* $see:vis $field:ident: $type:ty { $($metric:tt)+ })* })*) => {
        $(
            $(#[$of])*
            #[derive(Debug)]
            pub struct $group { $($(#[$doc])* $see $field: $type,)* }

            impl $group {
                fn registered(registry: &mut Registry) -> Self {
                    Self { $($field: metrics!(@registered registry, $type, $($metric)+),)* }
                }
            }
        )*
    };
    (@registered $registry:ident, $type:ty, all) => {
        <$type>::registered($registry)
    };
    (@registered $registry:ident, $type:ty, none) => {
        <$type>::default()
    };
    (@registered $registry:ident, $type:ty, $new:ident, $name:literal, $help:expr) => {{
        let metric = $new();
        $registry.register($name, $help, metric.clone());
        metric
    }};
    (@registered $registry:ident, $type:ty, $name:literal, $help:expr $(, $label:literal: $($value:literal)+)?) => {{
        let metric = <$type>::default();
        $($(drop(metric.get_or_create(&[($label, $value)]));)+)?
        $registry.register($name, $help, metric.clone());
        metric
    }};
}

metrics! {
    /// The metrics that `/metrics` shows.
    Metrics {
        registry: Registry { none }
        /// Reviews being answered now.
        pub in_flight: Gauge { "admission_in_flight", "Reviews being answered now" }
        /// Large reviews that wait for their turn or have it.
        pub queued: Gauge { "admission_queued", "Large reviews that wait for their turn or are being answered" }
        /// Time that reviews took, by `phase`.
        pub review_durations: ReviewDurations {
            review_durations, "admission_review_duration_seconds", "Time from a whole body to a whole answer"
        }
        /// Members that patches cleared.
        pub fields_cleared: Counter { "fields_cleared", "Members cleared by patches" }
        /// Requests that ended in a panic.
        pub panics: Counter { "panics", "Requests that ended in a panic and were answered with 500" }
        /// Connections evicted to make room for others, by `port` (`webhook` or `ops`) and `reason`, the activity of the connection.
        pub connections_evicted: LabelledCounters<2> {
            "connections_evicted", "Connections closed to make room for others, by port and by what the connection was doing"
        }
        /// Connections refused because their address has reached its limit.
        pub connections_refused: Counter {
            "connections_refused", "Connections closed at once because their address has reached its limit"
        }
        /// Expiry of the serving certificate or its chain, in seconds since 1970.
        pub certificate_expiry: Gauge {
            "certificate_expiry_timestamp_seconds",
            "Expiry of the serving certificate, or of an intermediate before it, in seconds since 1970"
        }
        /// Expiry of the serving certificate's CA, in seconds since 1970. 0 while it is unknown.
        pub certificate_authority_expiry: Gauge {
            "certificate_authority_expiry_timestamp_seconds",
            "Expiry of the serving certificate's CA, in seconds since 1970; 0 while it is unknown"
        }
        /// Reloads that found no usable certificate.
        pub certificate_reload_failures: Counter {
            "certificate_reload_failures", "Reloads of the certificate's source that found no usable certificate"
        }
        /// 1 while definitions are watched.
        pub watch_connected: Gauge {
            "watch_connected", "1 while definitions are watched, 0 while the watch is broken or there is none"
        }
        /// Time of the newest evidence that the catalog is current, in seconds since 1970.
        pub watch_proven: Gauge {
            "watch_proven_timestamp_seconds",
            "Time of the newest evidence that the catalog is current (a watch of CRDs begins, or has an event or bookmark), in \
             seconds since 1970; 0 before the first"
        }
        /// Seconds by which this machine's clock is ahead of the API server's.
        pub clock_difference: Gauge {
            "clock_difference_seconds",
            "Seconds by which this machine's clock is ahead of the API server's; a replica with more than 300 is not ready"
        }
        /// 1 while the API server's own groups are known.
        pub own_groups_known: Gauge {
            "own_groups_known",
            "1 while the groups that the API server itself serves are known; 0 while CRDs of groups that end in .k8s.io or \
             .kubernetes.io are ignored because they are not known"
        }
        /// Metrics of the registration.
        pub registration: RegistrationMetrics { all }
        /// Metrics of the admission policies.
        pub policies: PolicyMetrics { all }
        /// Reviews of objects that declare unions, by `kind` and `outcome`.
        pub inspections: LabelledCounters<2> {
            "inspections",
            "Reviews of UnionDeclarations and of CRDs that declare unions: `unchecked` ones were allowed, `busy` ones \
             refused"
        }
        /// Reviews refused for lack of memory or time, by `reason`.
        pub refused: LabelledCounters<1> {
            "admission_refused",
            "Reviews refused for lack of memory or time: other reviews use the memory (budget), one review needs more than \
             there is (never_fits), its body is longer than allowed (body), or the reviews ahead take longer than the API \
             server waits (late)",
            "reason": "budget" "never_fits" "body" "late"
        }
        /// Reviews given up before their answer, by `reason`.
        pub given_up: LabelledCounters<1> {
            "admission_given_up",
            "Reviews given up before their answer: the timeout of the request has passed (deadline), or the API server has \
             closed the connection (gone)",
            "reason": "deadline" "gone"
        }
    }

    /// Metrics of the registration.
    #[derive(Clone)]
    RegistrationMetrics {
        /// 1 while the webhook configurations are as this replica wants them.
        pub registered: Gauge { "registered", "1 while the webhook configurations are as this replica wants them" }
        /// Writes of the webhook configurations, by `outcome`.
        pub writes: LabelledCounters<1> {
            "registration_writes", "Writes of the webhook configurations", "outcome": "applied" "failed"
        }
        /// Rounds of writes that corrected changes by others.
        pub corrections: Counter {
            "registration_corrections", "Rounds of writes that corrected changes of the webhook configurations by others"
        }
        /// Registered kinds, by the `condition` of their entry.
        pub kinds: Family<[(&'static str, &'static str); 1], Gauge> {
            "registration_kinds",
            "Registered kinds, by the condition of their entry: updates that touch no union are not sent (unions), or \
             updates that change no field with unions (fields). Every write is sent if conditions are turned off (off), a \
             declaration audits (audited), a discriminator is deduced where a condition cannot look (deduced), the unions \
             are too many (too_many), or the API server refuses the condition (refused)",
            "condition": "unions" "fields" "off" "audited" "deduced" "too_many" "refused"
        }
        /// 1 while another installation keeps the webhook configurations.
        pub other_installation: Gauge {
            "other_installation",
            "1 while another installation keeps the webhook configurations, so that this one registers nothing"
        }
        /// 1 if this replica keeps the webhook configurations.
        pub registering: Gauge { "registering", "1 if this replica keeps the webhook configurations" }
    }

    /// Metrics of the admission policies that this replica keeps.
    #[derive(Clone)]
    PolicyMetrics {
        /// Policies and bindings that should exist.
        pub desired: Gauge {
            "policies_desired", "Admission policies and bindings that this replica wants in the cluster"
        }
        /// Policies and bindings that exist as they should.
        pub in_sync: Gauge {
            "policies_in_sync", "Admission policies and bindings that are as this replica wants them"
        }
        /// Kinds that policies enforce.
        pub kinds_covered: Gauge {
            "policy_kinds_covered", "Kinds that admission policies enforce instead of the webhook"
        }
        /// Kinds that policies cannot express as a whole.
        pub kinds_refused: Gauge {
            "policy_kinds_refused", "Kinds with a union that admission policies cannot express"
        }
        /// Writes of policies and bindings, by `outcome`.
        pub writes: LabelledCounters<1> {
            "policy_writes", "Writes of admission policies and bindings", "outcome": "applied" "deleted" "failed"
        }
    }
}

/// Counters by the values of some labels.
pub type LabelledCounters<const LABELS: usize> = Family<[(&'static str, &'static str); LABELS], Counter>;

/// Time that reviews took, in seconds, by `phase`.
pub type ReviewDurations = Family<[(&'static str, &'static str); 1], Histogram, fn() -> Histogram>;

/// Upper bounds of the buckets of [`ReviewDurations`]. The smallest review takes about ten microseconds.
const DURATION_BUCKETS: [f64; 16] =
    [1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0];

fn review_durations() -> ReviewDurations {
    ReviewDurations::new_with_constructor(|| Histogram::new(DURATION_BUCKETS))
}

impl Metrics {
    /// Returns all metrics at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("kube_unions");
        let metrics = Self::registered(&mut registry);
        for kind in ["UnionDeclaration", "CustomResourceDefinition"] {
            for outcome in ["allowed", "warned", "denied", "unchecked"] {
                drop(metrics.inspections.get_or_create(&[("kind", kind), ("outcome", outcome)]));
            }
        }
        drop(metrics.inspections.get_or_create(&[("kind", "other"), ("outcome", "busy")]));
        registry.register("build", "Version of the program", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        Self { registry, ..metrics }
    }

    /// Adds the metrics of `collector`.
    pub fn register(&mut self, collector: Box<dyn Collector>) {
        self.registry.register_collector(collector);
    }

    /// Returns all metrics in the text format of `OpenMetrics`, see [`METRICS_CONTENT_TYPE`].
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// A failure that is logged once, until it is over or has another reason.
#[derive(Debug, Default)]
pub(crate) struct LogOnce(Option<String>);

impl LogOnce {
    /// Returns true if the reason differs from the last one.
    pub(crate) fn is_new(&mut self, reason: &str) -> bool {
        let is_new = self.0.as_deref() != Some(reason);
        self.0 = Some(reason.to_owned());
        is_new
    }

    /// Ends the failure. Returns true if there was one.
    pub(crate) fn is_over(&mut self) -> bool {
        self.0.take().is_some()
    }
}

/// Logs the location of a panic. Its message may quote a value of an object, which must not be logged.
fn log_panic(info: &PanicHookInfo<'_>) {
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(location, "panic");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_is_logged_without_its_message() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(log_panic));
        let panicked = tracing::subscriber::with_default(subscriber, || {
            std::panic::catch_unwind(|| assert_eq!("s3cret", "another", "of an object: {}", "s3cret"))
        });
        std::panic::set_hook(before);
        assert!(panicked.is_err());
        let log = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        assert!(log.contains("\"panic\"") && log.contains("src/telemetry.rs:"), "{log}");
        assert!(!log.contains("s3cret"), "{log}");
    }
}
