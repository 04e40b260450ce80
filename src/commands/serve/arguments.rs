//! The arguments of `serve`, the parsers of their values, and the configurations that follow from them.

use super::entries::EntryArgs;
use crate::controllers::{EntryOptions, PolicyDuty, PolicyEnforcement, Registering, Registration, ServiceReference};
use crate::telemetry::{LogFormat, Spans};
use crate::webhook::{CertificateSource, ClientPolicy, Config, Limits};
use anyhow::bail;
use clap::{ArgAction, ArgGroup, Args, ValueEnum, ValueHint};
use kube_unions_command::sources::{SourceArgs, or_cluster};
use kube_unions_command::values::{RatchetingArg, accept, namespace, only};
use kube_unions_core::names::{is_dns_label, is_dns_subdomain};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

const EXAMPLES: &str = "\
Examples:
  # Serve the unions of the cluster, and register the webhook behind a Service
  kube-unions serve --service kube-unions/kube-unions \\
    --tls-secret kube-unions-tls

  # Enforce unions by admission policies, without a webhook
  kube-unions serve --enforcement=policies --webhook=never --tls-self-signed

  # Serve the unions that files declare, without a cluster
  kube-unions serve --from crds/ --tls-self-signed";

/// Serve the admission webhook
#[derive(Debug, Args)]
#[command(mut_args(only("from", or_cluster)), after_help = EXAMPLES)]
#[command(group = ArgGroup::new("certificate").required(true))]
pub struct ServeArgs {
    #[command(flatten)]
    pub(super) sources: SourceArgs,

    /// Watch the cluster of this kubeconfig [default: `KUBECONFIG`, ~/.kube/config, or the pod's own cluster]
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub(super) kubeconfig: Option<PathBuf>,

    /// Answer reviews at this address, over TLS; with port 0, the log names the port
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:10250")]
    pub(super) bind: SocketAddr,

    /// Answer /livez, /readyz and /metrics at this address, without TLS
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:8080")]
    ops_bind: SocketAddr,

    /// Share a CA and a certificate with the other replicas in this Secret of the Service's namespace, and renew them
    #[arg(
        long, value_name = "NAME", group = "certificate", requires = "service", conflicts_with = "from",
        value_parser = secret_name
    )]
    pub(super) tls_secret: Option<String>,

    /// Serve with tls.crt and tls.key of this directory, and reload them when they change
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, group = "certificate")]
    pub(super) tls_cert_dir: Option<PathBuf>,

    /// Serve with a new certificate for localhost, 127.0.0.1 and `::1`; the log names the file of its CA
    #[arg(long, group = "certificate", conflicts_with = "service")]
    pub(super) tls_self_signed: bool,

    /// Write the CA of --tls-self-signed to this file [default: a file in the directory for temporary files]
    #[arg(long, value_name = "FILE", conflicts_with = "tls_cert_dir")]
    tls_ca_file: Option<PathBuf>,

    /// Accept only clients with a certificate of this CA (PEM)
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// Accept only client certificates with this common name or alternative name; repeat for more names
    #[arg(long, value_name = "NAME", requires = "client_ca")]
    client_name: Vec<String>,

    /// Allow or deny a write that leaves an invalid union as it was
    #[arg(long, value_enum, default_value_t)]
    ratcheting: RatchetingArg,

    /// Keep serving this long after SIGTERM, unready, while the cluster sends its requests elsewhere
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(super) shutdown_delay: Duration,

    /// Keep at most this many connections to the webhook; one more closes another that is idle or slow
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().connections, value_parser = connections)]
    max_connections: usize,

    /// Keep at most this many connections to the webhook from one address [default: no limit]
    ///
    /// API servers behind one gateway or konnectivity agent share an address: allow 100 for each of them.
    #[arg(long, value_name = "COUNT", value_parser = connections)]
    max_connections_per_source: Option<usize>,

    /// Use at most this much memory for all requests in flight; refuse more with 429
    #[arg(long, value_name = "SIZE", default_value = "64Mi", value_parser = budget)]
    max_bytes_in_flight: usize,

    /// Write the log in this format
    #[arg(long, value_enum, default_value_t)]
    pub(super) log_format: LogFormatArg,

    /// Register the webhook behind this Service, and make its certificate for this Service
    #[arg(long, value_name = "NAMESPACE/NAME[:PORT]", conflicts_with = "from")]
    pub(super) service: Option<ServiceReference>,

    /// Keep the two webhook configurations `kube-unions` in step with the unions that exist; needs --service
    #[arg(
        long, value_name = "BOOL", requires = "service", conflicts_with_all = ["from", "tls_self_signed"],
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true
    )]
    pub(super) register: bool,

    /// Let cert-manager inject `caBundle` from this Certificate
    #[arg(
        long, value_name = "NAMESPACE/NAME", requires_all = ["service", "tls_cert_dir"],
        conflicts_with_all = ["from", "tls_self_signed"], value_parser = certificate_name
    )]
    pub(super) inject_ca_from: Option<String>,

    /// Never review objects of this namespace, of kube-system and of the Service's namespace; repeat for more namespaces
    #[arg(
        long, value_name = "NAME", requires = "service", conflicts_with_all = ["from", "tls_self_signed"],
        value_parser = namespace
    )]
    pub(super) exclude_namespace: Vec<String>,

    /// Make this `ClusterRole` the owner of the webhook configurations, so that they are deleted with it
    #[arg(
        long, value_name = "NAME", requires = "service", conflicts_with_all = ["from", "tls_self_signed"],
        value_parser = cluster_role_name
    )]
    owner_cluster_role: Option<String>,

    #[command(flatten)]
    entries: EntryArgs,

    /// Enforce unions by the webhook, by admission policies, or not at all: with `off`, the webhook runs and reviews no object
    #[arg(long, value_enum, default_value_t)]
    pub(super) enforcement: Enforcement,

    /// With --enforcement=policies, register the webhook for kinds that policies cannot express, or for no kind [default: rest]
    #[arg(long, value_enum)]
    webhook: Option<WebhookPart>,

    /// With --enforcement=policies, begin the names of policies so [default: unions-]
    #[arg(long, value_name = "PREFIX", value_parser = name_prefix)]
    policy_name_prefix: Option<String>,

    /// Without --enforcement=policies, delete the policies that it made, once the webhook is registered for their kinds
    #[arg(long, conflicts_with = "from")]
    remove_policies: bool,

    /// Between policies and webhook, let both enforce a kind this long, so that every API server learns of the change
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    handover_delay: Duration,

    /// Be ready this long before the first registration in a cluster, so that the Service can find this replica
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub(super) registration_delay: Duration,

    /// Send a span of every review to the collector at this URL, by OTLP over HTTP to its /v1/traces
    ///
    /// The OTEL_ variables set everything else: headers, sampling, the name of the service.
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<crate::telemetry::Endpoint>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormatArg {
    /// One JSON object for each line.
    Json,
    /// Text for people.
    #[default]
    Text,
}

impl From<LogFormatArg> for LogFormat {
    fn from(format: LogFormatArg) -> Self {
        match format {
            LogFormatArg::Json => Self::Json,
            LogFormatArg::Text => Self::Text,
        }
    }
}

/// Choice of `--enforcement`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Enforcement {
    /// Review every resource that has unions
    #[default]
    #[value(alias = "on")]
    Webhook,
    /// Keep admission policies for every kind that they can express
    Policies,
    /// Review nothing
    Off,
}

/// Choice of `--webhook`: the kinds that policies cannot express.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum WebhookPart {
    /// Register the webhook for them
    #[default]
    Rest,
    /// Report them in the log and in the metrics
    Never,
}

impl ServeArgs {
    /// Returns the configuration of the server.
    pub(super) fn config(&self, certificate: CertificateSource) -> Config {
        Config {
            webhook: self.bind,
            ops: self.ops_bind,
            server_name: self.service.as_ref().map(|service| service.server_name().clone()),
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

    /// Returns the exporter of spans, which sends on `runtime`; `None` if reviews are not traced.
    #[cfg(feature = "otlp")]
    pub(super) fn spans(&self, runtime: &Handle) -> Result<Option<Arc<dyn Spans>>, crate::telemetry::OtlpError> {
        let Some(endpoint) = &self.otlp_endpoint else { return Ok(None) };
        Ok(Some(Arc::new(crate::telemetry::Otlp::new(endpoint, runtime.clone())?)))
    }

    /// Returns `None`: this build cannot trace.
    #[cfg(not(feature = "otlp"))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "with the feature `otlp` it may fail")]
    pub(super) fn spans(&self, _runtime: &Handle) -> anyhow::Result<Option<Arc<dyn Spans>>> {
        Ok(None)
    }

    /// Returns the registration; `None` if this replica keeps no webhook configuration.
    pub(super) fn registration(&self) -> Option<Registration> {
        let service = self.service.clone()?;
        let registering = match (self.register, &self.tls_secret) {
            (true, _) => Registering::Everything,
            (false, Some(_)) => Registering::Bundles,
            (false, None) => return None,
        };
        let mut entries = EntryOptions::from(&self.entries);
        // Without ratcheting, a write that touches no union may be refused.
        entries.skips_untouched &= self.ratcheting == RatchetingArg::Enabled;
        Some(Registration {
            registering,
            service,
            entries,
            owner: self.owner_cluster_role.clone(),
            excluded_namespaces: self.exclude_namespace.clone(),
            enforcing: self.enforcement != Enforcement::Off,
            delay: self.registration_delay,
        })
    }

    /// Returns the file for the self-signed CA. The default differs for each process.
    pub(super) fn ca_file(&self) -> PathBuf {
        self.tls_ca_file
            .clone()
            .unwrap_or_else(|| std::env::temp_dir().join(format!("kube-unions-ca-{}.crt", std::process::id())))
    }

    /// Returns the enforcement by policies; `None` if this replica neither keeps nor deletes policies.
    pub(super) fn policies(&self) -> anyhow::Result<Option<PolicyEnforcement>> {
        let Some(duty) = self.policy_duty()? else { return Ok(None) };
        let mut excluded: Vec<String> = self.exclude_namespace.clone();
        excluded.push("kube-system".to_owned());
        excluded.extend(self.service.as_ref().map(|service| service.namespace.to_string()));
        excluded.sort();
        excluded.dedup();
        Ok(Some(PolicyEnforcement {
            duty,
            name_prefix: self.policy_name_prefix.clone().unwrap_or_else(|| "unions-".to_owned()),
            ratchet: self.ratcheting == RatchetingArg::Enabled,
            excluded_namespaces: excluded,
            installation: self.service.as_ref().map(ServiceReference::installation),
            owner: self.owner_cluster_role.clone(),
            entries: EntryOptions::from(&self.entries),
            handover: self.handover_delay,
        }))
    }

    fn policy_duty(&self) -> anyhow::Result<Option<PolicyDuty>> {
        let registers = self.service.is_some() && self.register;
        if self.enforcement == Enforcement::Policies {
            if !self.sources.from.is_empty() {
                bail!("--enforcement=policies keeps policies in a cluster: it cannot be used with --from");
            }
            if self.remove_policies {
                bail!(
                    "--enforcement=policies keeps the policies that --remove-policies would delete: give one of the two"
                );
            }
            return match self.webhook.unwrap_or_default() {
                WebhookPart::Never => Ok(Some(PolicyDuty::Alone)),
                WebhookPart::Rest if registers => Ok(Some(PolicyDuty::BesideWebhook)),
                WebhookPart::Rest => bail!(
                    "--enforcement=policies registers the webhook for the kinds that policies cannot express: give --service \
                     and let it register, or give --webhook=never"
                ),
            };
        }
        if self.webhook.is_some() || self.policy_name_prefix.is_some() {
            bail!("--webhook and --policy-name-prefix need --enforcement=policies");
        }
        match (self.remove_policies, self.enforcement) {
            (false, _) => Ok(None),
            (true, Enforcement::Off) => Ok(Some(PolicyDuty::Remove)),
            (true, _) if registers => Ok(Some(PolicyDuty::RemoveOnceRegistered)),
            (true, _) => bail!(
                "--remove-policies waits until the webhook is registered: give --service and let it register, or delete the \
                 policies with `kube-unions unregister`"
            ),
        }
    }
}

/// Parses `10s`, `500ms`, `1m30s`, `2h`, or `0`.
pub(in crate::commands) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(text)
        .map_err(|_| format!("invalid duration {text:?}: use a number and a unit, for example 10s"))
}

/// Parses `64Mi`, `512Ki`, `1Gi`, or a number of bytes. The budget must hold one body at least.
pub(super) fn budget(text: &str) -> Result<usize, String> {
    let (number, unit) = text.split_at(text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len()));
    let factor: Option<usize> = match unit {
        "" => Some(1),
        "Ki" => Some(1 << 10),
        "Mi" => Some(1 << 20),
        "Gi" => Some(1 << 30),
        _ => None,
    };
    let (Ok(number), Some(factor)) = (number.parse::<usize>(), factor) else {
        return Err(format!("invalid size {text:?}: use a number and Ki, Mi or Gi, for example 64Mi"));
    };
    let (least, most) = (Limits::default().body, tokio::sync::Semaphore::MAX_PERMITS);
    match number.checked_mul(factor) {
        Some(size) if size < least => Err(format!("invalid size {text:?}: use {least} bytes or more, for one request")),
        Some(size) if size <= most => Ok(size),
        Some(_) | None => Err(format!("invalid size {text:?}: use {most} bytes or less")),
    }
}

/// Parses the beginning of the names of policies. A hash and a suffix follow it.
pub(super) fn name_prefix(text: &str) -> Result<String, String> {
    let valid = text.len() <= 40 && is_dns_subdomain(&format!("{text}a"));
    accept(
        text,
        valid,
        "prefix",
        "use at most 40 lower-case letters, digits, `-` and `.`, beginning with a letter or digit",
    )
}

/// Parses NAMESPACE/NAME.
fn certificate_name(text: &str) -> Result<String, String> {
    let parts = text.split_once('/');
    let valid =
        parts.is_some_and(|(namespace, name)| is_dns_label(namespace) && !name.is_empty() && !name.contains('/'));
    accept(text, valid, "Certificate", "use NAMESPACE/NAME")
}

/// Parses the name of a Secret, which is a DNS subdomain (RFC 1123).
fn secret_name(text: &str) -> Result<String, String> {
    accept(text, is_dns_subdomain(text), "Secret name", "use lower-case letters, digits, `-` and `.`")
}

/// Parses the name of a `ClusterRole`, which is any one segment of a path.
fn cluster_role_name(text: &str) -> Result<String, String> {
    let allowed = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | ':' | '_');
    let valid = (1..=253).contains(&text.len()) && text != "." && text != ".." && text.chars().all(allowed);
    accept(text, valid, "ClusterRole name", "use letters, digits, `-`, `.`, `:` and `_`")
}

/// Parses a number of connections.
pub(super) fn connections(text: &str) -> Result<usize, String> {
    const MOST: usize = 1_000_000;
    match text.parse() {
        Ok(count) if (1..=MOST).contains(&count) => Ok(count),
        Ok(_) | Err(_) => Err(format!("invalid number {text:?}: use a number from 1 to {MOST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that the parser refuses each text and names it.
    fn assert_refused<T: std::fmt::Debug>(parse: fn(&str) -> Result<T, String>, texts: &[&str]) {
        for text in texts {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with("invalid ") && error.contains(&format!("{text:?}: use ")), "{error}");
        }
    }

    #[test]
    fn a_duration_has_a_unit() {
        for (text, want) in [
            ("10s", 10_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("0", 0),
            ("0s", 0),
            ("007s", 7_000),
            ("2h", 7_200_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(want)), "{text}");
        }
        assert_eq!(duration("18446744073709551615s"), Ok(Duration::from_secs(u64::MAX)));
        assert_refused(duration, &["", "10", "s", "-1s", "5q", "18446744073709551615m", "99999999999999999999s"]);
    }

    #[test]
    fn a_budget_holds_at_least_one_request() {
        for (text, want) in [("64Mi", 64 << 20), ("7340032", 7 << 20), ("8192Ki", 8 << 20), ("1Gi", 1 << 30)] {
            assert_eq!(budget(text), Ok(want), "{text}");
        }
        let refused = ["", "6Mi", "64MB", "64M", "64m", "-1", "17179869184Gi", "9007199254740992Ki"];
        assert_refused(budget, &refused);
    }

    #[test]
    fn a_name_that_the_api_server_would_refuse_is_refused() {
        assert_eq!(namespace("team-a1"), Ok("team-a1".to_owned()));
        assert_refused(namespace, &["", "A", "-a", "a-", "a,b", "a/b", "a.b", &"a".repeat(64)]);
        assert_eq!(certificate_name("a/b.c"), Ok("a/b.c".to_owned()));
        assert_refused(certificate_name, &["", "a", "a/", "/b", "a/b/c", "A/b"]);
        assert_eq!(cluster_role_name("system:a_b.c-d"), Ok("system:a_b.c-d".to_owned()));
        assert_refused(cluster_role_name, &["", ".", "..", "a/b", "a b", &"a".repeat(254)]);
    }

    #[test]
    fn a_secret_has_the_name_of_an_object() {
        for text in ["a", "kube-unions-tls", "a.b-c.0"] {
            assert_eq!(secret_name(text).as_deref(), Ok(text));
        }
        assert_refused(secret_name, &["", "A", "a_b", "-a", "a-", "a..b", "a/b", &"a".repeat(254)]);
    }

    #[test]
    fn there_is_room_for_at_least_one_connection() {
        assert_eq!(connections("1"), Ok(1));
        assert_refused(connections, &["0", "-1", "x", "1000001"]);
    }
}
