//! Whom the API server is to trust: what certificates tell registration, what registration tells them, and the Service
//! that both are about.
//!
//! A certificate must not be served before the API server trusts its CA, and a CA must stay trusted for as long as
//! anybody serves what it signed. So whoever has a new CA says so first, and serves when it is held.

use kube_unions_core::names::is_dns_label;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Where `caBundle` comes from. The bundles are PEM, one certificate or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// What the replicas have agreed on: the configurations hold this and nothing else.
    Agreed(Arc<str>),
    /// What this replica was given. Others may have been given more, or not yet as much, so that what else the
    /// configurations hold stays for a while.
    Local(Arc<str>),
    /// It is cert-manager's to write, from this Certificate, `namespace/name`.
    InjectedFrom(Arc<str>),
}

/// What the webhook configurations hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Held {
    /// They have not been read yet.
    #[default]
    Unknown,
    /// No entry: nobody is called, and so nobody has to be trusted.
    Nothing,
    /// Every entry holds at least these CAs, PEM.
    Bundle(Arc<str>),
}

/// A Service, and its port. Displays and parses as `namespace/name:port`; the port is 443 where none is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceReference {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// The port of the Service, not of the pod.
    pub port: u16,
}

/// What was written is no Service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no Service; write NAMESPACE/NAME or NAMESPACE/NAME:PORT")]
pub struct ServiceReferenceError(String);

impl ServiceReference {
    /// The names by which the API server, and anybody in the cluster, calls it. The first is the API server's.
    pub fn dns_names(&self) -> [String; 4] {
        let Self { namespace, name, .. } = self;
        [
            format!("{name}.{namespace}.svc"),
            format!("{name}.{namespace}.svc.cluster.local"),
            format!("{name}.{namespace}"),
            name.to_string(),
        ]
    }
}

impl FromStr for ServiceReference {
    type Err = ServiceReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || ServiceReferenceError(text.to_owned());
        let (namespace, rest) = text.split_once('/').ok_or_else(fail)?;
        let (name, port) = match rest.split_once(':') {
            Some((name, port)) => (name, port.parse().ok().filter(|port| *port > 0).ok_or_else(fail)?),
            None => (rest, 443),
        };
        if !is_dns_label(namespace) || !is_dns_label(name) {
            return Err(fail());
        }
        Ok(Self { namespace: namespace.into(), name: name.into(), port })
    }
}

impl fmt::Display for ServiceReference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}:{}", self.namespace, self.name, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_a_namespace_a_name_and_perhaps_a_port() {
        for (text, want) in
            [("a/b", "a/b:443"), ("a/b:8443", "a/b:8443"), ("kube-unions/kube-unions", "kube-unions/kube-unions:443")]
        {
            assert_eq!(text.parse::<ServiceReference>().unwrap().to_string(), want);
        }
        for text in ["", "b", "a/", "/b", "a/b:", "a/b:0", "a/b:65536", "a/b/c", "A/b", "a/-b", "a/b:443:1"] {
            let error = text.parse::<ServiceReference>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{text}` is no Service")), "{error}");
        }
    }

    #[test]
    fn the_api_server_calls_a_service_by_its_first_name() {
        let service: ServiceReference = "ns/it".parse().unwrap();
        assert_eq!(service.dns_names(), ["it.ns.svc", "it.ns.svc.cluster.local", "it.ns", "it"]);
    }
}
