//! The client: from a kubeconfig, the environment or a pod's service account.

mod fault;

pub use fault::ConnectError;

use super::deadline::Bounded;
use super::plugin::{self, PluginCredential, PluginToken};
use super::retry::BoundedRetries;
use super::server_clock::ServerClock;
use super::token::MountedToken;
use crate::files;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fault::unusable;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper::rt::{Read, Write};
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::config::{AuthInfo, ExecConfig, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use kube_unions_core::causes::with_causes;
use rustls::pki_types::ServerName;
use serde_json::Value;
use std::io;
use std::net::IpAddr;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tower::filter::AsyncFilterLayer;
use tower::retry::RetryLayer;
use tower::util::MapRequestLayer;
use tower::{BoxError, Service, ServiceBuilder};

/// A variable that every pod has.
const POD_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";

/// The folder of a pod's service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

const ANY_PROXY: &str = "http://proxy.invalid";

/// Wait for a TCP connection, over all addresses of a host name.
const CONNECT: Duration = Duration::from_secs(10);

/// Silence on a connection before the first probe.
const IDLE: Duration = Duration::from_secs(15);

/// Wait between two probes.
const PROBE: Duration = Duration::from_secs(5);

/// Probes without an answer before a connection ends.
const PROBES: u32 = 3;

/// A way to a cluster, as a kubeconfig or a pod describes it.
pub struct ClusterAccess {
    config: Config,
    /// The plugin that has the credentials.
    plugin: Option<ExecConfig>,
    tokens: ChangingTokens,
}

/// The token of a client that does not stay the same: at most one.
#[derive(Default)]
struct ChangingTokens {
    mounted: Option<Arc<MountedToken>>,
    plugin: Option<PluginToken>,
}

/// Returns a client for a cluster, see [`ClusterAccess`].
pub async fn connect(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
    clock: &ServerClock,
    remedy: &'static str,
) -> Result<Client, ConnectError> {
    ClusterAccess::read(kubeconfig, context, remedy).await?.connect(clock).await
}

/// Returns a client that sends each request once, by a service in place of a connection. It has the deadlines of [`connect`], and each
/// answer sets `clock`.
pub fn client_of<S, B>(service: S, clock: &ServerClock) -> Client
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send> + Send + 'static,
    B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    ClientBuilder::new(Bounded { inner: service, clock: clock.clone() }, "default").build()
}

impl ClusterAccess {
    /// Reads the way to the cluster of `kubeconfig` or of `context`, else of `KUBECONFIG` or `~/.kube/config`, else of this pod. `remedy`
    /// says what to do if there is none of them.
    pub async fn read(
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        remedy: &'static str,
    ) -> Result<Self, ConnectError> {
        let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
        let config = loaded(kubeconfig, &options).await.or_else(|error| {
            let reason = unusable(&error);
            match (kubeconfig, context) {
                (Some(path), _) => Err(format!("cannot use the kubeconfig `{}`: {reason}", path.display())),
                (None, Some(_)) => Err(format!("cannot use this context of the kubeconfig: {reason}")),
                (None, None) => of_pod(&reason).map_err(|reason| format!("no cluster: {remedy}: {reason}")),
            }
        });
        let mut config = without_needless_proxy(without_user_info(config.map_err(ConnectError)?));
        // kube panics at the first request to a URL of another scheme.
        if !matches!(config.cluster_url.scheme_str(), Some("http" | "https")) {
            return Err(ConnectError::unbuilt(fault::SERVER));
        }
        // An empty name is none, as in kubectl.
        config.tls_server_name = config.tls_server_name.filter(|name| !name.is_empty());
        if config.tls_server_name.as_deref().is_some_and(|name| ServerName::try_from(name).is_err()) {
            return Err(ConnectError::unbuilt(fault::TLS_SERVER_NAME));
        }
        check_credentials(&config.auth_info).map_err(ConnectError::unbuilt)?;
        let plugin = plugin::take(&mut config.auth_info);
        let mounted = MountedToken::take(&mut config.auth_info);
        let mounted = mounted.map_err(|error| ConnectError::unbuilt(&error.to_string()))?.map(Arc::new);
        Ok(Self { config, plugin, tokens: ChangingTokens { mounted, plugin: None } })
    }

    /// Returns true if a program will be asked for the credentials. It ends if the future of [`connect`](Self::connect) is dropped.
    pub fn has_plugin(&self) -> bool {
        self.plugin.is_some()
    }

    /// Returns a client. Each of its answers sets `clock`. Sends nothing, so that a cluster that is down is not an error here.
    pub async fn connect(self, clock: &ServerClock) -> Result<Client, ConnectError> {
        let Self { mut config, plugin, mut tokens } = self;
        if let Some(plugin) = plugin {
            let credential = PluginCredential::ask(plugin).await;
            let credential = credential.map_err(|error| ConnectError::unbuilt(&with_causes(&error)))?;
            if let Some([certificate, key]) = credential.identity {
                config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
                config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
            }
            tokens.plugin = credential.token;
        }
        connected(&config, tokens, clock).map_err(|error| ConnectError::unbuilt(&fault::unbuilt(&error)))
    }
}

/// Returns the configuration of this pod. `reason`: why there is no kubeconfig.
fn of_pod(reason: &str) -> Result<Config, String> {
    // Outside of a pod, the lack of a service account is no news.
    let is_pod = std::env::var_os(POD_VARIABLE).is_some();
    bounded(Path::new(SERVICE_ACCOUNT)).and_then(|()| Config::incluster()).map_err(|error| {
        if is_pod {
            format!("{}; without the pod's service account: {reason}", fault::no_pod(&error))
        } else {
            reason.to_owned()
        }
    })
}

/// Fails if kube would read a file of a service account without end. A missing one is left to kube.
///
/// kube reads `ca.crt` again at a connection after a minute, without this bound. Only the kubelet writes the file, from a `ConfigMap`
/// of at most 1 MiB: whoever mounts another one in its place may as well run another program.
fn bounded(account: &Path) -> Result<(), InClusterError> {
    let read = |name| match files::read_mounted(&account.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(_) | Err(_) => Ok(()),
    };
    read("namespace").map_err(InClusterError::ReadDefaultNamespace)?;
    read("ca.crt").map_err(InClusterError::ReadCertificateBundle)
}

/// Drops the user and the password of the URL, which no request uses and which a log of the connection would show.
fn without_user_info(mut config: Config) -> Config {
    let mut parts = config.cluster_url.clone().into_parts();
    let host = parts.authority.as_ref().and_then(|it| it.as_str().rsplit_once('@')?.1.parse().ok());
    if host.is_some() {
        parts.authority = host;
        config.cluster_url = Uri::from_parts(parts).unwrap_or(config.cluster_url);
    }
    config
}

/// Refuses credentials of which kube would panic, or run a command that no signal ends.
fn check_credentials(user: &AuthInfo) -> Result<(), &'static str> {
    if user.auth_provider.as_ref().is_some_and(|provider| provider.config.contains_key("cmd-path")) {
        return Err(fault::PROVIDER);
    }
    let provided = user.auth_provider.as_ref().and_then(|provider| provider.config.get("id-token").cloned());
    // Only the serialisation shows a token.
    let shown = serde_json::to_value(user).unwrap_or_default();
    let inline = shown.get("token").and_then(Value::as_str);
    let is_header = |token: &str| HeaderValue::from_str(token).is_ok();
    if inline.into_iter().chain(provided.as_deref()).all(is_header) { Ok(()) } else { Err(fault::TOKEN) }
}

/// Returns a client each of whose requests has a deadline, and whose connections are kept alive. It reaches the API server directly,
/// or through the proxy of the configuration.
///
/// [`ClientBuilder::try_from`] of kube adds the same layers to connections without keep-alive.
fn connected(config: &Config, tokens: ChangingTokens, clock: &ServerClock) -> kube::Result<Client> {
    let tcp = kept_alive();
    let Some(url) = &config.proxy_url else { return encrypted(config, tokens, tcp, clock) };
    let proxy = Matcher::builder().all(url.to_string()).build().intercept(&config.cluster_url);
    match (proxy, url.scheme_str()) {
        (Some(proxy), Some("http")) => encrypted(config, tokens, tunnel(&proxy, tcp), clock),
        (Some(proxy), Some("https")) => {
            let to_proxy = config.rustls_https_connector_with_connector(tcp)?;
            encrypted(config, tokens, tunnel(&proxy, to_proxy), clock)
        }
        (Some(proxy), Some("socks5")) => encrypted(config, tokens, SocksV5::new(proxy.uri().clone(), tcp), clock),
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

/// Returns a client that encrypts the connections of a connector.
fn encrypted<C>(config: &Config, tokens: ChangingTokens, connector: C, clock: &ServerClock) -> kube::Result<Client>
where
    C: Service<Uri, Error: std::error::Error + Send + Sync, Future: Send> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
{
    let encrypted = config.rustls_https_connector_with_connector(connector)?;
    layered(config, tokens, HttpClient::builder(TokioExecutor::new()).build::<_, Body>(encrypted), clock)
}

/// Returns a client that sends requests by a service.
fn layered<S, B>(config: &Config, tokens: ChangingTokens, sender: S, clock: &ServerClock) -> kube::Result<Client>
where
    S: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
    B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    let ChangingTokens { mounted, plugin } = tokens;
    let authorized = plugin.map(|token| AsyncFilterLayer::new(move |request| token.clone().authorized(request)));
    let service = ServiceBuilder::new()
        .layer_fn(|inner| Bounded { inner, clock: clock.clone() })
        .layer(config.base_uri_layer())
        .layer(RetryLayer::new(BoundedRetries::default()))
        .option_layer(config.auth_layer()?)
        .option_layer(mounted.map(|token| MapRequestLayer::new(move |request| token.authorize(request))))
        .option_layer(authorized)
        .layer(config.extra_headers_layer()?)
        .map_err(Into::<BoxError>::into)
        .service(sender);
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
        // A proxy that is not well formed is an error, which `NO_PROXY` does not prevent.
        let environment = Matcher::builder().all(ANY_PROXY).no(variable(["NO_PROXY", "no_proxy"])).build();
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
/// A pipe may never be written, so the files are read on a thread of their own, for which a caller that was stopped need not wait.
async fn loaded(path: Option<&Path>, options: &KubeConfigOptions) -> Result<Config, KubeconfigError> {
    let path = path.map(Path::to_owned);
    let read = spawn_blocking(move || read(path.as_deref())).await;
    let kubeconfig = read.unwrap_or_else(|panic| resume_unwind(panic.into_panic()))?;
    Config::from_custom_kubeconfig(kubeconfig, options).await
}

/// Reads a kubeconfig. kube reads each file to its end, so none may be without one. [`Config::infer`] also obeys variables for debugging, and
/// logs them.
fn read(path: Option<&Path>) -> Result<Kubeconfig, KubeconfigError> {
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
    Ok(kubeconfig)
}

#[cfg(test)]
mod retries;
#[cfg(all(test, target_os = "linux"))]
mod tests;
