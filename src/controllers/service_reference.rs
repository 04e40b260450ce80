//! The Service that the API server calls, as flags name it.

use kube_unions_core::names::is_dns_label;
use rustls::pki_types::ServerName;
use std::fmt;
use std::str::FromStr;

/// A Service and its port. Displays and parses as `namespace/name:port`; without a port it parses as port 443.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceReference {
    /// Namespace of the Service.
    pub namespace: Box<str>,
    /// Name of the Service.
    pub name: Box<str>,
    /// Port of the Service, not of its pods.
    pub port: u16,
    server_name: ServerName<'static>,
}

impl ServiceReference {
    /// Returns the name of the installation behind the Service, `namespace/name`.
    pub(crate) fn installation(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Returns the name that the API server asks for: the first of [`Self::dns_names`].
    pub fn server_name(&self) -> &ServerName<'static> {
        &self.server_name
    }

    /// Returns the DNS names by which clients in the cluster call the Service. The API server uses the first.
    pub fn dns_names(&self) -> [String; 4] {
        let Self { namespace, name, .. } = self;
        [
            self.server_name.to_str().into_owned(),
            format!("{name}.{namespace}.svc.cluster.local"),
            format!("{name}.{namespace}"),
            name.to_string(),
        ]
    }
}

impl FromStr for ServiceReference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || format!("invalid Service `{text}`: use NAMESPACE/NAME or NAMESPACE/NAME:PORT");
        let (namespace, rest) = text.split_once('/').ok_or_else(fail)?;
        let (name, port) = match rest.split_once(':') {
            Some((name, port)) => (name, port.parse().ok().filter(|port| *port > 0).ok_or_else(fail)?),
            None => (rest, 443),
        };
        if !is_dns_label(namespace) || !is_dns_label(name) {
            return Err(fail());
        }
        let server_name = ServerName::try_from(format!("{name}.{namespace}.svc")).map_err(|_| fail())?;
        Ok(Self { namespace: namespace.into(), name: name.into(), port, server_name })
    }
}

impl fmt::Display for ServiceReference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.installation(), self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_parses_with_and_without_a_port() {
        for (text, want) in
            [("a/b", "a/b:443"), ("a/b:8443", "a/b:8443"), ("kube-unions/kube-unions", "kube-unions/kube-unions:443")]
        {
            assert_eq!(text.parse::<ServiceReference>().unwrap().to_string(), want);
        }
        let long = format!("a/{}", "b".repeat(64));
        for text in ["", "b", "a/", "/b", "a/b:", "a/b:0", "a/b:65536", "a/b/c", "A/b", "a/-b", "a/b:443:1", &long] {
            let error = text.parse::<ServiceReference>().unwrap_err();
            assert!(error.starts_with(&format!("invalid Service `{text}`")), "{error}");
        }
    }

    #[test]
    fn the_first_dns_name_is_the_one_that_the_api_server_uses() {
        let service: ServiceReference = "ns/it".parse().unwrap();
        assert_eq!(service.dns_names(), ["it.ns.svc", "it.ns.svc.cluster.local", "it.ns", "it"]);
    }
}
