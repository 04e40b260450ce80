//! The serving certificate: where it comes from, and how the API server comes to trust it.

use super::ServeArgs;
use crate::authority::Offer;
use crate::cluster::{Agreement, Held, ServiceReference, Trust};
use crate::webhook::{Announcer, CertificateSource};
use futures::FutureExt;
use kube::Client;
use prometheus_client::metrics::gauge::Gauge;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// API servers take a moment to learn of a configuration that has changed.
const PROPAGATION: Duration = Duration::from_secs(2);

/// What is said before the Secret has been looked at.
const NOT_ASKED: &str = "the Secret has not been read";

/// Where a server's certificate comes from, and whom to tell what is to be trusted.
pub(super) struct Supply {
    pub(super) source: CertificateSource,
    /// With --tls-secret: what the replicas' agreement needs.
    agreed: Option<Agreed>,
    trust: watch::Sender<Option<Trust>>,
    held: watch::Receiver<Held>,
    register: bool,
}

struct Agreed {
    service: ServiceReference,
    secret: String,
    offers: watch::Sender<Offer>,
}

impl Supply {
    pub(super) fn new(arguments: &ServeArgs, trust: watch::Sender<Option<Trust>>, held: watch::Receiver<Held>) -> Self {
        let agreed = arguments.service.clone().zip(arguments.tls_secret.clone());
        let (source, agreed) = match (agreed, &arguments.tls_cert_dir) {
            (Some((service, secret)), _) => {
                let (offers, offered) = watch::channel(Err(NOT_ASKED.into()));
                (CertificateSource::Offered(offered), Some(Agreed { service, secret, offers }))
            }
            (None, Some(directory)) => (CertificateSource::Directory(directory.clone()), None),
            (None, None) => (CertificateSource::SelfSigned { ca_file: arguments.ca_file() }, None),
        };
        if let Some(certificate) = &arguments.inject_ca_from {
            trust.send_replace(Some(Trust::InjectedFrom(certificate.as_str().into())));
        }
        // Whoever writes `caBundle` takes it from one place.
        let register = arguments.service.is_some() && arguments.register && arguments.inject_ca_from.is_none();
        Self { source, agreed, trust, held, register }
    }

    /// Of a folder's `ca.crt`, where it is registered.
    pub(super) fn announcer(&self) -> Option<Announcer> {
        if !self.register || !matches!(self.source, CertificateSource::Directory(_)) {
            return None;
        }
        let (trust, held) = (self.trust.clone(), self.held.clone());
        Some(Arc::new(move |authorities| {
            trust.send_replace(Some(Trust::Local(authorities.as_str().into())));
            let mut held = held.clone();
            async move {
                if held.wait_for(|held| held.holds(&authorities)).await.is_err() {
                    // Nobody is left who would say so.
                    return std::future::pending().await;
                }
                tokio::time::sleep(PROPAGATION).await;
            }
            .boxed()
        }))
    }

    /// Keeps the certificate, and what was said of it, for as long as there is a server.
    pub(super) async fn keep(self, client: Option<Client>, authority_expiry: Gauge) {
        let Self { agreed, trust, held, .. } = self;
        if let (Some(Agreed { service, secret, offers }), Some(client)) = (agreed, client) {
            Agreement::new(client, &service, &secret).follow(offers, trust, held, authority_expiry).await;
        } else {
            trust.closed().await;
        }
    }
}
