//! The supply of the serving certificate: connects its source to the server, and its CA to the registration.

use super::ServeArgs;
use crate::api::ServerClock;
use crate::authority::ServingCertificate;
use crate::controllers::{
    CaBundle, CertificateSignals, RegisteredBundle, ServiceReference, Timing, Trust, share_certificate,
};
use crate::webhook::{Announcer, CertificateSource};
use futures::FutureExt;
use kube::Client;
use prometheus_client::metrics::gauge::Gauge;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Time in which API servers learn of a changed webhook configuration.
const PROPAGATION: Duration = Duration::from_secs(2);

/// Reason for the missing certificate before the first read of the Secret.
const NOT_READ: &str = "the Secret has not been read yet";

/// The source of a server's certificate, and the channels of its CA.
pub(super) struct Supply {
    pub(super) source: CertificateSource,
    /// The shared Secret, with --tls-secret.
    shared: Option<SharedSource>,
    trust: watch::Sender<Option<Trust>>,
    held: watch::Receiver<RegisteredBundle>,
    register: bool,
}

struct SharedSource {
    service: ServiceReference,
    secret: String,
    offers: watch::Sender<ServingCertificate>,
}

impl Supply {
    pub(super) fn new(
        arguments: &ServeArgs,
        trust: watch::Sender<Option<Trust>>,
        held: watch::Receiver<RegisteredBundle>,
    ) -> Self {
        let shared = arguments.service.clone().zip(arguments.tls_secret.clone());
        let (source, shared) = match (shared, &arguments.tls_cert_dir) {
            (Some((service, secret)), _) => {
                let (offers, offered) = watch::channel(Err(NOT_READ.into()));
                (CertificateSource::Offered(offered), Some(SharedSource { service, secret, offers }))
            }
            (None, Some(directory)) => (CertificateSource::Directory(directory.clone()), None),
            (None, None) => (CertificateSource::SelfSigned { ca_file: arguments.ca_file() }, None),
        };
        if let Some(certificate) = &arguments.inject_ca_from {
            trust.send_replace(Some(Trust::InjectedFrom(certificate.as_str().into())));
        }
        // With --inject-ca-from cert-manager writes `caBundle`.
        let register = arguments.service.is_some() && arguments.register && arguments.inject_ca_from.is_none();
        Self { source, shared, trust, held, register }
    }

    /// Returns the announcer of a directory's `ca.crt`, if this replica registers it.
    pub(super) fn announcer(&self) -> Option<Announcer> {
        if !self.register || !matches!(self.source, CertificateSource::Directory(_)) {
            return None;
        }
        let (trust, held) = (self.trust.clone(), self.held.clone());
        Some(Arc::new(move |authorities| {
            trust.send_replace(Some(Trust::Local(authorities.as_str().into())));
            let announced = CaBundle::from_pem(&authorities);
            let mut held = held.clone();
            async move {
                if held.wait_for(|held| held.holds(&announced)).await.is_err() {
                    // The registration has ended and reports nothing more.
                    return pending().await;
                }
                tokio::time::sleep(PROPAGATION).await;
            }
            .boxed()
        }))
    }

    /// Keeps the certificate and the channels for ever.
    pub(super) async fn keep(self, client: Option<Client>, clock: ServerClock, authority_expiry: Gauge) {
        let Self { shared, trust, held, .. } = self;
        if let (Some(SharedSource { service, secret, offers }), Some(client)) = (shared, client) {
            let timing = Timing { clock: Arc::new(move || clock.now()), ..Timing::default() };
            let signals = CertificateSignals { offers, trust, held, expiry: authority_expiry };
            share_certificate(client, &service, &secret, timing, signals).await;
        } else {
            // The registration waits for changes of `trust`, which must stay open.
            pending::<()>().await;
            drop(trust);
        }
    }
}
