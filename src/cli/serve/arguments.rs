//! The arguments of `serve`: as typed, and what follows from them.

use crate::cli::Ratcheting;
use crate::cli::kinds::BuiltinUnions;
use crate::cluster;
use crate::cluster::{EntryOptions, LabelSelector, MatchConditions, Registering, Registration, ServiceReference};
use crate::telemetry::{self, Spans};
use crate::webhook::{CertificateSource, ClientPolicy, Config, Limits};
use clap::{ArgAction, ArgGroup, Args, ValueEnum};
use kube_unions_core::names::{is_dns_label, is_dns_subdomain};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Run the admission webhook
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("certificate").required(true))]
pub(in crate::cli) struct ServeArgs {
    /// Files and folders with CRDs, `UnionDeclarations` and saved OpenAPI documents, instead of a cluster
    ///
    /// Folders are searched for .yaml, .yml and .json, hidden ones excepted. Documents of other kinds are passed over.
    #[arg(long, num_args = 1.., value_name = "PATH")]
    pub(super) from: Vec<PathBuf>,

    /// The cluster to watch [default: that of `KUBECONFIG` or ~/.kube/config, else the pod's own]
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub(super) kubeconfig: Option<PathBuf>,

    /// Whether unions count that OpenAPI documents themselves declare for built-in types
    #[arg(long, value_enum, default_value_t)]
    pub(super) builtin_unions: BuiltinUnions,

    /// Where to answer reviews, over TLS; with port 0 the log says which port it became
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:10250")]
    pub(super) bind: SocketAddr,

    /// Where to answer /livez, /readyz and /metrics, in the clear
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:8080")]
    ops_bind: SocketAddr,

    /// Agree with the other replicas on a CA and a certificate that are kept, and renewed, in this Secret of the Service's
    /// namespace
    #[arg(
        long, value_name = "NAME", group = "certificate", requires = "service", conflicts_with = "from",
        value_parser = object_name
    )]
    pub(super) tls_secret: Option<String>,

    /// Serve with tls.crt and tls.key of this folder, and follow their changes
    #[arg(long, value_name = "DIR", group = "certificate")]
    pub(super) tls_cert_dir: Option<PathBuf>,

    /// Serve with a certificate made now for this machine (localhost, by name and address); the log names the file of its CA
    #[arg(long, group = "certificate", conflicts_with = "service")]
    pub(super) tls_self_signed: bool,

    /// Where --tls-self-signed writes its CA [default: a file in the folder for temporary files]
    #[arg(long, value_name = "FILE", conflicts_with = "tls_cert_dir")]
    tls_ca_file: Option<PathBuf>,

    /// Only let clients connect whose certificate is signed by this CA (PEM)
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// Of those, only such as have this common name or alternative name; may be repeated
    #[arg(long, value_name = "NAME", requires = "client_ca")]
    client_name: Vec<String>,

    /// Whether a write that leaves an invalid union as it was is let through
    #[arg(long, value_enum, default_value_t)]
    ratcheting: Ratcheting,

    /// How long to serve on after SIGTERM, unready, while the cluster sends its requests elsewhere
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(super) shutdown_delay: Duration,

    /// Connections to the webhook at a time; for one more, another that is idle or slow is closed
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().connections, value_parser = connections)]
    max_connections: usize,

    /// Connections to the webhook at a time from one address [default: no limit]
    ///
    /// API servers behind one gateway, or one konnectivity agent, share an address: allow 100 for each of them.
    #[arg(long, value_name = "COUNT", value_parser = connections)]
    max_connections_per_source: Option<usize>,

    /// Bytes of all requests that are being answered; more are answered with 429
    #[arg(long, value_name = "SIZE", default_value = "64Mi", value_parser = bytes)]
    max_bytes_in_flight: usize,

    /// How to write the log
    #[arg(long, value_enum, default_value_t)]
    pub(super) log_format: LogFormat,

    /// The Service through which the API server reaches this webhook: what is registered, and what a certificate is made for
    #[arg(long, value_name = "NAMESPACE/NAME[:PORT]", conflicts_with = "from")]
    pub(super) service: Option<ServiceReference>,

    /// Whether the two webhook configurations `kube-unions` are kept true to the unions that there are; without --service
    /// they never are
    #[arg(
        long, value_name = "BOOL", requires = "service", conflicts_with_all = ["from", "tls_self_signed"],
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true
    )]
    pub(super) register: bool,

    /// Leave `caBundle` to cert-manager, which takes it from this Certificate
    #[arg(
        long, value_name = "NAMESPACE/NAME", requires_all = ["service", "tls_cert_dir"],
        conflicts_with_all = ["from", "tls_self_signed"], value_parser = namespaced_name
    )]
    pub(super) inject_ca_from: Option<String>,

    /// A namespace whose objects are never sent here, beside kube-system and that of --service; may be repeated
    #[arg(
        long, value_name = "NAME", requires = "service", conflicts_with_all = ["from", "tls_self_signed"],
        value_parser = namespace
    )]
    pub(super) exclude_namespace: Vec<String>,

    /// Own the two webhook configurations by this `ClusterRole`, so that the garbage collector removes them when it goes
    #[arg(
        long, value_name = "NAME", requires = "service", conflicts_with_all = ["from", "tls_self_signed"],
        value_parser = cluster_role
    )]
    owner_cluster_role: Option<String>,

    /// Policy of the entries for custom resources: fail a write for which the webhook can't be called, or let it through
    #[arg(long, value_enum, default_value_t = Policy::Fail, requires = "service")]
    failure_policy: Policy,

    /// Policy of the entries for built-in types, likewise
    #[arg(long, value_enum, default_value_t = Policy::Ignore, requires = "service")]
    builtin_failure_policy: Policy,

    /// Seconds that the API server waits for an answer about an object, from 1 to 30
    #[arg(
        long, value_name = "SECONDS", default_value_t = EntryOptions::default().timeout_seconds, requires = "service",
        value_parser = clap::value_parser!(u8).range(1..=30)
    )]
    timeout_seconds: u8,

    /// Send only requests that meet all of these CEL conditions, as JSON: [{"name": "...", "expression": "..."}]
    #[arg(long, value_name = "JSON", requires = "service")]
    match_conditions: Option<MatchConditions>,

    /// Send only objects that this label selector matches, as JSON: {"matchLabels": {...}, "matchExpressions": [...]}
    #[arg(long, value_name = "JSON", requires = "service")]
    object_selector: Option<LabelSelector>,

    /// Send only objects of namespaces that this label selector matches, as JSON; the exclusions of kube-system, of the
    /// Service's own namespace and of --exclude-namespace hold besides
    #[arg(long, value_name = "JSON", requires = "service")]
    namespace_selector: Option<LabelSelector>,

    /// Whether rules are registered: `off` leaves the webhook running, and every object alone
    #[arg(long, value_enum, default_value_t)]
    pub(super) enforcement: Enforcement,

    /// How long to have been ready before the first registration in a cluster, so that the Service has found this replica
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub(super) registration_delay: Duration,

    /// Send a span of every review to this collector, by OTLP over HTTP, to /v1/traces below this URL
    ///
    /// What is not said here comes from the OTEL_ variables: headers, sampling, the service's name.
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<telemetry::Endpoint>,
}

/// Whether rules are registered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Enforcement {
    /// Every resource that has unions is sent here
    #[default]
    On,
    /// Nothing is
    Off,
}

/// Fate of a write for which the webhook can't be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(super) enum Policy {
    /// The write fails
    Fail,
    /// The write goes on without the webhook
    Ignore,
}

impl From<Policy> for cluster::FailurePolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Fail => Self::Fail,
            Policy::Ignore => Self::Ignore,
        }
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// One JSON object a line
    Json,
    /// For people
    #[default]
    Text,
}

impl From<BuiltinUnions> for cluster::BuiltinUnions {
    fn from(unions: BuiltinUnions) -> Self {
        match unions {
            BuiltinUnions::Ignored => Self::Ignored,
            BuiltinUnions::OpenApi => Self::OpenApi,
        }
    }
}

impl From<LogFormat> for telemetry::LogFormat {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Json => Self::Json,
            LogFormat::Text => Self::Text,
        }
    }
}

impl ServeArgs {
    pub(super) fn config(&self, certificate: CertificateSource) -> Config {
        Config {
            webhook: self.bind,
            ops: self.ops_bind,
            clients: self.client_ca.clone().map(|ca_file| ClientPolicy { ca_file, names: self.client_name.clone() }),
            ratcheting: self.ratcheting.into(),
            shutdown_delay: self.shutdown_delay,
            limits: Limits {
                connections: self.max_connections,
                connections_per_source: self
                    .max_connections_per_source
                    .unwrap_or(Limits::default().connections_per_source),
                in_flight: self.max_bytes_in_flight,
                ..Limits::default()
            },
            ..Config::new(certificate)
        }
    }

    /// Who wants to know of reviews; sends on `runtime`.
    #[cfg(feature = "otlp")]
    pub(super) fn spans(&self, runtime: &Handle) -> Result<Option<Arc<dyn Spans>>, telemetry::OtlpError> {
        let Some(endpoint) = &self.otlp_endpoint else { return Ok(None) };
        Ok(Some(Arc::new(telemetry::Otlp::new(endpoint, runtime.clone())?)))
    }

    /// Nobody wants to know of reviews.
    #[cfg(not(feature = "otlp"))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "with the feature `otlp` it may fail")]
    pub(super) fn spans(&self, _runtime: &Handle) -> anyhow::Result<Option<Arc<dyn Spans>>> {
        Ok(None)
    }

    /// What is to be registered, if anything is.
    pub(super) fn registration(&self) -> Option<Registration> {
        let service = self.service.clone()?;
        let registering = match (self.register, &self.tls_secret) {
            (true, _) => Registering::Everything,
            (false, Some(_)) => Registering::Bundles,
            (false, None) => return None,
        };
        Some(Registration {
            registering,
            service,
            entries: EntryOptions {
                custom: self.failure_policy.into(),
                builtin: self.builtin_failure_policy.into(),
                timeout_seconds: self.timeout_seconds,
                match_conditions: self.match_conditions.clone().unwrap_or_default().0,
                object_selector: self.object_selector.clone().unwrap_or_default(),
                namespace_selector: self.namespace_selector.clone().unwrap_or_default(),
            },
            owner: self.owner_cluster_role.clone(),
            excluded_namespaces: self.exclude_namespace.clone(),
            enforcing: self.enforcement == Enforcement::On,
            delay: self.registration_delay,
        })
    }

    /// Two servers on one machine do not write the same file.
    pub(super) fn ca_file(&self) -> PathBuf {
        self.tls_ca_file
            .clone()
            .unwrap_or_else(|| std::env::temp_dir().join(format!("kube-unions-ca-{}.crt", std::process::id())))
    }
}

/// `10s`, `500ms`, `2m`, or `0`.
pub(in crate::cli) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split_unit(text);
    let number: u64 =
        number.parse().map_err(|_| format!("`{text}` is no duration; write for instance 10s or 500ms"))?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs).ok_or_else(|| format!("`{text}` is too long")),
        "" if number == 0 => Ok(Duration::ZERO),
        _ => Err(format!("`{text}` has no unit of time; write ms, s or m after the number")),
    }
}

/// `64Mi`, `512Ki`, `1Gi`, or a plain number; no less than one body, no more than a request can reserve.
fn bytes(text: &str) -> Result<usize, String> {
    let (number, unit) = split_unit(text);
    let number: usize = number.parse().map_err(|_| format!("`{text}` is no size; write for instance 64Mi"))?;
    let factor = match unit {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return Err(format!("`{text}` has no unit of size; write Ki, Mi or Gi after the number")),
    };
    let (least, most) = (Limits::default().body, tokio::sync::Semaphore::MAX_PERMITS);
    match number.checked_mul(factor) {
        Some(size) if size > most => Err(format!("`{text}` is too large")),
        Some(size) if size >= least => Ok(size),
        Some(_) => Err(format!("`{text}` is less than one request may have, {least} bytes")),
        None => Err(format!("`{text}` is too large")),
    }
}

/// What the API server would take for a namespace's name, since it refuses a whole selector for one that it would not.
fn namespace(text: &str) -> Result<String, String> {
    if is_dns_label(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("`{text}` is no namespace; write one name, of lower-case letters, digits and `-`"))
    }
}

fn namespaced_name(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((of, name)) if namespace(of).is_ok() && !name.is_empty() && !name.contains('/') => Ok(text.to_owned()),
        Some(_) | None => Err(format!("`{text}` is no Certificate; write NAMESPACE/NAME")),
    }
}

/// A DNS subdomain (RFC 1123), which the names of most objects are.
fn object_name(text: &str) -> Result<String, String> {
    if is_dns_subdomain(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("`{text}` is no name of an object; it has lower-case letters, digits, `-` and `.`"))
    }
}

/// A name that a `ClusterRole` can have, and that is one segment of a path.
fn cluster_role(text: &str) -> Result<String, String> {
    let sound = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | ':' | '_');
    if !text.is_empty() && text.len() <= 253 && text != "." && text != ".." && text.chars().all(sound) {
        Ok(text.to_owned())
    } else {
        Err(format!("`{text}` is not the name of a ClusterRole"))
    }
}

fn connections(text: &str) -> Result<usize, String> {
    // Room above it for those that are told to come again.
    const MOST: usize = 1_000_000;
    match text.parse() {
        Ok(count) if (1..=MOST).contains(&count) => Ok(count),
        _ => Err(format!("`{text}` is no number from 1 to {MOST}")),
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        for (text, want) in [("10s", 10_000), ("500ms", 500), ("2m", 120_000), ("0", 0), ("0s", 0)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(want)), "{text}");
        }
        for text in ["", "10", "s", "-1s", "1.5s", "1h", "18446744073709551615m", "99999999999999999999s"] {
            assert!(duration(text).is_err_and(|it| it.contains(&format!("`{text}`"))), "{text}");
        }
    }

    #[test]
    fn a_budget_holds_at_least_one_request() {
        for (text, want) in [("64Mi", 64 << 20), ("7340032", 7 << 20), ("8192Ki", 8 << 20), ("1Gi", 1 << 30)] {
            assert_eq!(bytes(text), Ok(want), "{text}");
        }
        for text in ["", "6Mi", "64MB", "64M", "-1", "17179869184Gi", "9007199254740992Ki"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_that_the_api_server_would_refuse_is_refused_first() {
        assert_eq!(namespace("team-a1"), Ok("team-a1".to_owned()));
        for text in ["", "A", "-a", "a-", "a,b", "a/b", "a.b", &"a".repeat(64)] {
            assert!(namespace(text).is_err_and(|it| it.contains(&format!("`{text}`"))), "{text}");
        }
        assert_eq!(namespaced_name("a/b.c"), Ok("a/b.c".to_owned()));
        for text in ["", "a", "a/", "/b", "a/b/c", "A/b"] {
            assert!(namespaced_name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_secret_has_a_name_that_an_object_can_have() {
        for text in ["a", "kube-unions-tls", "a.b-c.0"] {
            assert_eq!(object_name(text).as_deref(), Ok(text));
        }
        for text in ["", "A", "a_b", "-a", "a-", "a..b", "a/b", &"a".repeat(254)] {
            assert!(object_name(text).is_err_and(|it| it.contains(&format!("`{text}`"))), "{text}");
        }
    }

    #[test]
    fn there_is_room_for_at_least_one_connection() {
        assert_eq!(connections("1"), Ok(1));
        for text in ["0", "-1", "x", "1000001"] {
            assert!(connections(text).is_err(), "{text}");
        }
    }
}
