//! Says why there is no client, without anything of a kubeconfig or of the environment that may be secret: of their contents, only names
//! and paths are shown.
//!
//! The texts of kube quote tokens, URLs with passwords, lines of keys and what a plugin prints. So each fault has a text of its own here.

use crate::plugin::PluginError;
use kube::client::AuthError;
use kube::config::{InClusterError, KubeconfigError, LoadDataError};
use kube_unions_core::causes::with_causes;
use std::error::Error;
use std::io::ErrorKind;

/// The reason why there is no client. Shows nothing of a kubeconfig's content, which may be secret.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectError(pub(super) String);

impl ConnectError {
    pub(super) fn unbuilt(reason: &str) -> Self {
        Self(format!("cannot build a client for the cluster: {reason}"))
    }
}

pub(super) const SERVER: &str = "the `server` of the kubeconfig must begin with https:// or http://";

pub(super) const TLS_SERVER_NAME: &str =
    "the `tls-server-name` of the kubeconfig is neither a DNS name nor an IP address";

/// Names the schemes of proxies.
pub(super) const PROXY: &str =
    "the proxy URL of the kubeconfig or of HTTPS_PROXY must begin with http://, https:// or socks5://";

/// Refuses a command of a provider, which kubectl has not run since 1.26.
pub(super) const PROVIDER: &str =
    "the `auth-provider` of the kubeconfig is not supported: use `exec`, a token or a client certificate";

pub(super) const TOKEN: &str = "the token of the kubeconfig has a line break or another control character";

/// Describes a fault of a kubeconfig.
pub(super) fn unusable(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(reading, path) if reading.kind() == ErrorKind::NotFound => {
            format!("there is no `{}`", path.display())
        }
        KubeconfigError::ReadConfig(reading, path) => format!("cannot read `{}`: {reading}", path.display()),
        KubeconfigError::FindPath => "there is no home folder".to_owned(),
        KubeconfigError::CurrentContextNotSet => "it has no current context: give --context".to_owned(),
        KubeconfigError::LoadContext(name) => format!("it has no context `{name}`"),
        KubeconfigError::LoadClusterOfContext(name) => format!("it has no cluster `{name}`"),
        KubeconfigError::KindMismatch | KubeconfigError::ApiVersionMismatch => {
            "its files have different kinds or versions".to_owned()
        }
        KubeconfigError::Parse(fault) => match fault.location() {
            Some(at) => format!("it is not a kubeconfig: see line {}, column {}", at.line(), at.column()),
            None => "it is not a kubeconfig".to_owned(),
        },
        KubeconfigError::MissingClusterUrl => "its cluster has no `server`".to_owned(),
        KubeconfigError::ParseClusterUrl(_) => "the `server` of its cluster is not a URL".to_owned(),
        KubeconfigError::ParseProxyUrl(_) => PROXY.to_owned(),
        KubeconfigError::ParseNoProxy(_) => "NO_PROXY is not a list of hosts, addresses and networks".to_owned(),
        KubeconfigError::LoadCertificateAuthority(fault) => unread("certificate-authority", fault),
        KubeconfigError::LoadClientCertificate(fault) => unread("client-certificate", fault),
        KubeconfigError::LoadClientKey(fault) => unread("client-key", fault),
        KubeconfigError::ParseCertificates(_) => "its `certificate-authority` is not PEM".to_owned(),
    }
}

fn unread(field: &str, fault: &LoadDataError) -> String {
    match fault {
        LoadDataError::DecodeBase64(_) => format!("its `{field}-data` is not base64"),
        LoadDataError::ReadFile(reading, path) => format!("cannot read its `{field}` `{}`: {reading}", path.display()),
        LoadDataError::NoBase64DataOrFile => format!("it has no `{field}`"),
    }
}

/// Describes the lack of a service account, which a pod has.
pub(super) fn no_pod(error: &InClusterError) -> String {
    match error {
        InClusterError::ReadDefaultNamespace(reading) => format!("cannot read the namespace of the pod: {reading}"),
        InClusterError::ReadCertificateBundle(reading) => format!("cannot read the CAs of the pod: {reading}"),
        InClusterError::ParseCertificates(_) => "the CAs of the pod are not PEM".to_owned(),
        InClusterError::ReadEnvironmentVariable(_)
        | InClusterError::ParseClusterPort(_)
        | InClusterError::ParseClusterUrl(_) => {
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not the address of an API server".to_owned()
        }
    }
}

/// Describes why a client cannot be built.
pub(super) fn unbuilt(error: &kube::Error) -> String {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(fault) = cause {
        if let Some(fault) = fault.downcast_ref::<PluginError>() {
            return with_causes(fault);
        }
        if let Some(fault) = fault.downcast_ref::<KubeconfigError>() {
            return format!("the kubeconfig cannot be used: {}", unusable(fault));
        }
        if let Some(fault) = fault.downcast_ref::<AuthError>() {
            return without_credentials(fault);
        }
        cause = fault.source();
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others may quote what is secret")]
    match error {
        kube::Error::ProxyProtocolUnsupported { .. } | kube::Error::ProxyProtocolDisabled { .. } => PROXY.to_owned(),
        kube::Error::RustlsTls(_) => "its certificates or its key are not valid PEM".to_owned(),
        kube::Error::HttpError(_) => "the impersonation of the kubeconfig has a control character".to_owned(),
        _ => "the kubeconfig cannot be used".to_owned(),
    }
}

fn without_credentials(error: &AuthError) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others come from the provider")]
    match error {
        AuthError::ReadTokenFile(reading, path) => {
            format!("cannot read the token file `{}`: {reading}", path.display())
        }
        AuthError::InvalidBearerToken(_) => TOKEN.to_owned(),
        _ => PROVIDER.to_owned(),
    }
}
