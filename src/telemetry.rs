//! Logs, metrics and traces that are not about one union: how they are switched on, and the instruments that several parts
//! share.
//!
//! Nothing here knows what a union or a review is. Counters that carry labels of a catalog live with what counts them
//! (`server`), and join the same [`Metrics`] as a collector. No instrument takes a lock where requests pass.

#[cfg(feature = "otlp")]
mod otlp;
mod spans;

#[cfg(feature = "otlp")]
pub use otlp::{Endpoint, Otlp, OtlpError};
pub use spans::{Begin, Span, Spans};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use tracing_subscriber::EnvFilter;

/// The media type of [`Metrics::encode`].
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What is logged where nobody says otherwise. The client of the API server logs each failed attempt for itself; what it
/// returns is logged once by whoever asked.
const DEFAULT_FILTER: &str = "info,kube_client=off,kube_runtime=off";

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    #[default]
    Text,
}

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// `RUST_LOG` is set to something that is no filter.
    #[error("`RUST_LOG` is not a log filter; write a level, or `target=level,…`")]
    Filter(#[source] tracing_subscriber::filter::ParseError),
    /// Another subscriber is installed already.
    #[error("logging is already set up in this process")]
    Installed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Sends events to standard error, filtered by `RUST_LOG` (level `info` when it is not set), and panics too.
pub fn init(format: LogFormat) -> Result<(), TelemetryError> {
    let filter = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = EnvFilter::builder()
        .parse(if filter.is_empty() { DEFAULT_FILTER } else { &filter })
        .map_err(TelemetryError::Filter)?;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
        LogFormat::Text => {
            let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
            subscriber.with_ansi(colour).try_init()
        }
    }
    .map_err(TelemetryError::Installed)?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Everything that `/metrics` shows.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    in_flight: Gauge,
    fields_cleared: Counter,
    panics: Counter,
    connections_evicted: ConnectionsEvicted,
    connections_refused: Counter,
    certificate_expiry: Gauge,
    certificate_authority_expiry: Gauge,
    certificate_reload_failures: Counter,
    watch_connected: Gauge,
    own_groups_known: Gauge,
    registration: RegistrationMetrics,
    inspections: Inspections,
    refused: Refused,
}

/// Reviews refused for want of memory, by `reason`: `budget`, `never_fits` or `body`.
pub type Refused = Family<[(&'static str, &'static str); 1], Counter>;

/// Writes of the webhook configurations, by `outcome`: `applied` or `failed`.
pub type RegistrationWrites = Family<[(&'static str, &'static str); 1], Counter>;

/// Reviews of objects that declare unions, by `kind` and `outcome`.
pub type Inspections = Family<[(&'static str, &'static str); 2], Counter>;

/// Connections told to end, by `port` (`webhook` or `ops`) and `reason`: what the connection was doing.
pub type ConnectionsEvicted = Family<[(&'static str, &'static str); 2], Counter>;

/// Metrics of the registration.
#[derive(Debug, Clone, Default)]
pub struct RegistrationMetrics {
    /// 1 while the webhook configurations are as this replica wants them.
    pub registered: Gauge,
    /// Writes of the webhook configurations.
    pub writes: RegistrationWrites,
    /// Changes by others that were put right.
    pub corrections: Counter,
    /// 1 while another installation keeps the webhook configurations.
    pub other_installation: Gauge,
    /// 1 where this replica is to keep the webhook configurations.
    pub registering: Gauge,
}

impl RegistrationMetrics {
    fn new(registry: &mut Registry) -> Self {
        let it = Self::default();
        registry.register(
            "registered",
            "1 while the webhook configurations are as this replica wants them",
            it.registered.clone(),
        );
        for outcome in ["applied", "failed"] {
            drop(it.writes.get_or_create(&[("outcome", outcome)]));
        }
        registry.register("registration_writes", "Writes of the webhook configurations", it.writes.clone());
        registry.register(
            "registration_corrections",
            "Rounds of writes that put right what others had changed of the webhook configurations",
            it.corrections.clone(),
        );
        registry.register(
            "other_installation",
            "1 while another installation keeps the webhook configurations, so that nothing is registered here",
            it.other_installation.clone(),
        );
        registry.register(
            "registering",
            "1 where this replica is to keep the webhook configurations",
            it.registering.clone(),
        );
        it
    }
}

impl Metrics {
    /// All instruments, at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("kube_unions");
        let in_flight = Gauge::default();
        registry.register("admission_in_flight", "Reviews being answered now", in_flight.clone());
        let fields_cleared = Counter::default();
        registry.register("fields_cleared", "Members cleared by patches", fields_cleared.clone());
        let panics = Counter::default();
        registry.register("panics", "Requests that ended in a panic and were answered with 500", panics.clone());
        let connections_evicted = ConnectionsEvicted::default();
        registry.register(
            "connections_evicted",
            "Connections told to end to make room for others, by port and by what they were doing",
            connections_evicted.clone(),
        );
        let connections_refused = Counter::default();
        registry.register(
            "connections_refused",
            "Connections closed at once because their source address has as many as one may have",
            connections_refused.clone(),
        );
        let certificate_expiry = Gauge::default();
        registry.register(
            "certificate_expiry_timestamp_seconds",
            "When the serving certificate ends, in seconds since 1970",
            certificate_expiry.clone(),
        );
        let certificate_authority_expiry = Gauge::default();
        registry.register(
            "certificate_authority_expiry_timestamp_seconds",
            "When the CA of the serving certificate ends, in seconds since 1970; 0 where that is not known",
            certificate_authority_expiry.clone(),
        );
        let certificate_reload_failures = Counter::default();
        registry.register(
            "certificate_reload_failures",
            "Looks at the certificate's source that found none to serve with",
            certificate_reload_failures.clone(),
        );
        let watch_connected = Gauge::default();
        registry.register(
            "watch_connected",
            "1 while definitions are watched, 0 while the watch is broken or there is none",
            watch_connected.clone(),
        );
        let own_groups_known = Gauge::default();
        registry.register(
            "own_groups_known",
            "1 while it is known which groups the API server serves from its own code, 0 while CRDs of groups that end in \
             .k8s.io or .kubernetes.io do not count for that reason",
            own_groups_known.clone(),
        );
        let registration = RegistrationMetrics::new(&mut registry);
        let inspections = Inspections::default();
        // Before the first inspection, so that a rate can be taken from the first one on.
        for kind in ["UnionDeclaration", "CustomResourceDefinition"] {
            for outcome in ["allowed", "warned", "denied", "unchecked"] {
                drop(inspections.get_or_create(&[("kind", kind), ("outcome", outcome)]));
            }
        }
        drop(inspections.get_or_create(&[("kind", "other"), ("outcome", "busy")]));
        registry.register(
            "inspections",
            "Reviews of UnionDeclarations and of CRDs that declare unions; `unchecked` were let through, `busy` refused",
            inspections.clone(),
        );
        let refused = Refused::default();
        for reason in ["budget", "never_fits", "body"] {
            drop(refused.get_or_create(&[("reason", reason)]));
        }
        registry.register(
            "admission_refused",
            "Reviews refused for want of memory: others use it now (budget), one review needs more than there is \
             (never_fits), or its body is larger than allowed (body)",
            refused.clone(),
        );
        registry.register("build", "The version that runs", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        Self {
            registry,
            in_flight,
            fields_cleared,
            panics,
            connections_evicted,
            connections_refused,
            certificate_expiry,
            certificate_authority_expiry,
            certificate_reload_failures,
            watch_connected,
            own_groups_known,
            registration,
            inspections,
            refused,
        }
    }

    /// Reviews refused for want of memory.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Shows what `collector` counts, too.
    pub fn register(&mut self, collector: Box<dyn Collector>) {
        self.registry.register_collector(collector);
    }

    /// Reviews being answered now.
    pub fn in_flight(&self) -> &Gauge {
        &self.in_flight
    }

    /// Members cleared by patches.
    pub fn fields_cleared(&self) -> &Counter {
        &self.fields_cleared
    }

    /// Requests that ended in a panic.
    pub fn panics(&self) -> &Counter {
        &self.panics
    }

    /// Connections told to end to make room for others.
    pub fn connections_evicted(&self) -> &ConnectionsEvicted {
        &self.connections_evicted
    }

    /// Connections closed at once because their source address has as many as one may have.
    pub fn connections_refused(&self) -> &Counter {
        &self.connections_refused
    }

    /// When the serving certificate ends, in seconds since 1970.
    pub fn certificate_expiry(&self) -> &Gauge {
        &self.certificate_expiry
    }

    /// When its CA ends, likewise. 0 where that is not known.
    pub fn certificate_authority_expiry(&self) -> &Gauge {
        &self.certificate_authority_expiry
    }

    /// Looks at the certificate's source that found none to serve with.
    pub fn certificate_reload_failures(&self) -> &Counter {
        &self.certificate_reload_failures
    }

    /// 1 while definitions are watched.
    pub fn watch_connected(&self) -> &Gauge {
        &self.watch_connected
    }

    /// 1 while it is known which groups the API server serves from its own code.
    pub fn own_groups_known(&self) -> &Gauge {
        &self.own_groups_known
    }

    /// Metrics of the registration.
    pub fn registration(&self) -> &RegistrationMetrics {
        &self.registration
    }

    /// Reviews of objects that declare unions.
    pub fn inspections(&self) -> &Inspections {
        &self.inspections
    }

    /// All of it in the text format of `OpenMetrics`, see [`METRICS_CONTENT_TYPE`].
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

/// The place only: a panic's message may quote what was being read, and an object's values never go to the log.
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
    fn a_panic_is_logged_by_its_place_alone() {
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
