//! The client: from a kubeconfig, the environment or a pod's service account.

use super::deadline::Bounded;
use super::server_clock::ServerClock;
use super::token::MountedToken;
use crate::files;
use hyper::Uri;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioExecutor;
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use kube_unions_core::causes::with_causes;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tower::retry::RetryLayer;
use tower::util::MapRequestLayer;
use tower::{BoxError, Service, ServiceBuilder};

/// A variable that every pod has.
const POD_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";

/// Wait for a TCP connection, over all addresses of a host name.
const CONNECT: Duration = Duration::from_secs(10);

/// Silence on a connection before the first probe.
const IDLE: Duration = Duration::from_secs(15);

/// Wait between two probes.
const PROBE: Duration = Duration::from_secs(5);

/// Probes without an answer before a connection ends.
const PROBES: u32 = 3;

/// The reason why there is no client. Shows nothing of a kubeconfig's content, which may be secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(String);

/// Describes the lack of a kubeconfig. kube tells at length, too, that this is not a pod, which only matters in a pod.
fn missing(kubeconfig: &KubeconfigError, pod: &InClusterError) -> String {
    let kubeconfig = unusable(kubeconfig);
    match std::env::var_os(POD_VARIABLE) {
        Some(_) => format!("{}; without the pod's service account: {kubeconfig}", with_causes(pod)),
        None => kubeconfig,
    }
}

/// Describes a fault of a kubeconfig.
fn unusable(error: &KubeconfigError) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the texts of the others are clear")]
    match error {
        KubeconfigError::ReadConfig(reading, path) if reading.kind() == ErrorKind::NotFound => {
            format!("there is no `{}`", path.display())
        }
        KubeconfigError::ReadConfig(reading, path) => format!("cannot read `{}`: {reading}", path.display()),
        KubeconfigError::FindPath => "there is no home folder".to_owned(),
        KubeconfigError::CurrentContextNotSet => "it has no current context: give --context".to_owned(),
        KubeconfigError::LoadContext(name) => format!("it has no context `{name}`"),
        KubeconfigError::LoadClusterOfContext(name) => format!("it has no cluster `{name}`"),
        KubeconfigError::Parse(fault) => match fault.location() {
            Some(at) => format!("it is not a kubeconfig: see line {}, column {}", at.line(), at.column()),
            None => "it is not a kubeconfig".to_owned(),
        },
        other => with_causes(other),
    }
}

/// Returns a client for the cluster of `kubeconfig` or of `context`, else of `KUBECONFIG` or `~/.kube/config`, else of this pod.
/// `remedy` says what to do if there is none of them.
///
/// Each of its answers sets `clock`. Sends nothing, so that a cluster that is down is not an error here.
pub async fn connect(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    clock: &ServerClock,
    remedy: &'static str,
) -> Result<Client, ConnectError> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = match (loaded(kubeconfig, &options).await, kubeconfig, context) {
        (Ok(config), Some(_), _) | (Ok(config), None, Some(_)) => Ok(config),
        (Ok(mut config), None, None) => {
            config.apply_debug_overrides();
            Ok(config)
        }
        (Err(error), Some(path), _) => {
            Err(format!("cannot use the kubeconfig `{}`: {}", path.display(), unusable(&error)))
        }
        (Err(error), None, Some(_)) => Err(format!("cannot use this context of the kubeconfig: {}", unusable(&error))),
        (Err(error), None, None) => {
            Config::incluster().map_err(|pod| format!("no cluster: {remedy}: {}", missing(&error, &pod)))
        }
    };
    let mut config = without_needless_proxy(config.map_err(ConnectError)?);
    let unbuilt = |cause| ConnectError(format!("cannot build a client for the cluster: {cause}"));
    let token = MountedToken::take(&mut config.auth_info).map_err(|error| unbuilt(error.to_string()))?;
    connected(&config, token.map(Arc::new), clock).map_err(|error| unbuilt(with_causes(&error)))
}

/// Returns a client each of whose requests has a deadline, and whose connections are kept alive. It reaches the API server directly,
/// or through the proxy of the configuration.
///
/// [`ClientBuilder::try_from`] of kube adds the same layers to connections without keep-alive.
fn connected(config: &Config, token: Option<Arc<MountedToken>>, clock: &ServerClock) -> kube::Result<Client> {
    let tcp = kept_alive();
    let Some(url) = &config.proxy_url else { return layered(config, token, tcp, clock) };
    let proxy = Matcher::builder().all(url.to_string()).build().intercept(&config.cluster_url);
    match (proxy, url.scheme_str()) {
        (Some(proxy), Some("http")) => layered(config, token, tunnel(&proxy, tcp), clock),
        (Some(proxy), Some("https")) => {
            let encrypted = config.rustls_https_connector_with_connector(tcp)?;
            layered(config, token, tunnel(&proxy, encrypted), clock)
        }
        (Some(proxy), Some("socks5")) => layered(config, token, SocksV5::new(proxy.uri().clone(), tcp), clock),
        _ => Err(kube::Error::ProxyProtocolUnsupported { proxy_url: Box::new(url.clone()) }),
    }
}

fn tunnel<C>(proxy: &Intercept, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.basic_auth() {
        Some(credentials) => tunnel.with_auth(credentials.clone()),
        None => tunnel,
    }
}

/// Returns a connector whose connections end if the other side is gone, also while a watch is silent.
fn kept_alive() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(CONNECT));
    tcp.set_keepalive(Some(IDLE));
    tcp.set_keepalive_interval(Some(PROBE));
    tcp.set_keepalive_retries(Some(PROBES));
    tcp
}

fn layered<C>(
    config: &Config,
    token: Option<Arc<MountedToken>>,
    connector: C,
    clock: &ServerClock,
) -> kube::Result<Client>
where
    C: Service<Uri, Error: std::error::Error + Send + Sync, Future: Send> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
{
    let encrypted = config.rustls_https_connector_with_connector(connector)?;
    let service = ServiceBuilder::new()
        .layer_fn(|inner| Bounded { inner, clock: clock.clone() })
        .layer(config.base_uri_layer())
        .layer(RetryLayer::new(RetryPolicy::server_retry()))
        .option_layer(config.auth_layer()?)
        .option_layer(token.map(|token| MapRequestLayer::new(move |request| token.authorize(request))))
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(HttpClient::builder(TokioExecutor::new()).build::<_, Body>(encrypted));
    Ok(ClientBuilder::new(service, &*config.default_namespace).build())
}

/// Drops a proxy of the environment if the cluster is on this machine or `NO_PROXY` names it, as kubectl does. A proxy of the
/// kubeconfig always counts. kube compares `NO_PROXY` with the address of the proxy instead.
fn without_needless_proxy(mut config: Config) -> Config {
    let variable = |names: [&str; 2]| {
        let mut values = names.into_iter().filter_map(|name| std::env::var(name).ok());
        values.find(|value| !value.is_empty()).unwrap_or_default()
    };
    let proxy = variable(["HTTPS_PROXY", "https_proxy"]);
    if proxy.parse().ok() == config.proxy_url && !proxy.is_empty() {
        let environment = Matcher::builder().all(proxy).no(variable(["NO_PROXY", "no_proxy"])).build();
        if is_loopback(&config.cluster_url) || environment.intercept(&config.cluster_url).is_none() {
            config.proxy_url = None;
        }
    }
    config
}

fn is_loopback(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|it| it.is_loopback())
}

/// Loads a kubeconfig and the files that it names: the one at `path`, else those of `KUBECONFIG`, else `~/.kube/config`.
///
/// kube reads each file to its end, so none may be without one.
async fn loaded(path: Option<&Path>, options: &KubeConfigOptions) -> Result<Config, KubeconfigError> {
    let check =
        |path: &Path| files::check_end(path).map_err(|error| KubeconfigError::ReadConfig(error, path.to_owned()));
    let kubeconfig = if let Some(path) = path {
        check(path)?;
        Kubeconfig::read_from(path)?
    } else {
        let paths = std::env::var_os("KUBECONFIG").unwrap_or_default();
        std::env::split_paths(&paths).try_for_each(|path| check(&path))?;
        Kubeconfig::read()?
    };
    let clusters = kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref());
    let identities = kubeconfig.auth_infos.iter().filter_map(|named| named.auth_info.as_ref());
    let of_identities = identities.flat_map(|it| [&it.client_certificate, &it.client_key]);
    let named = clusters.map(|it| &it.certificate_authority).chain(of_identities).flatten();
    named.map(PathBuf::from).try_for_each(|path| check(&path))?;
    Config::from_custom_kubeconfig(kubeconfig, options).await
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
