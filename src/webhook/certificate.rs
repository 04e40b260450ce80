//! The serving certificate: its source, its reload without a restart, and the verification of clients.
//!
//! Chain, key and the clients' CA are read together and take effect together. A pair that does not parse or does not match
//! leaves the previous one in force. So does a pair that clients would refuse, while they accept the previous one: it is not valid
//! now, not for the name that the API server asks for, or its chain has a fault. Contents are compared, not times: a kubelet
//! updates a mounted Secret by replacing one symbolic link.
//!
//! It must not know who makes certificates: pairs arrive from files ([`directory`]) or as a [`ServingCertificate`].
//! [`tls`] turns them into a server's configuration, [`chain`] judges them by the [`rules`] of the API server, and [`reload`] follows
//! the source.

mod chain;
mod client;
mod directory;
mod reload;
mod rules;
mod source;
mod tls;

pub use source::{CertificateError, CertificateFault, CertificateSource, ClientPolicy};

use super::{Clock, Config};
use crate::authority::ServingCertificate;
use crate::telemetry::Metrics;
use arc_swap::ArcSwapOption;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use rustls::pki_types::ServerName;
use rustls::server::ServerConfig;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tls::{CertificateFiles, LoadedCertificate};
use tokio::sync::watch;

/// The certificate in force and its source.
pub(super) struct CertificateReloader {
    source: ReloadSource,
    clients: Option<ClientPolicy>,
    /// The name that the API server asks for, if it is known.
    name: Option<ServerName<'static>>,
    clock: Clock,
    current: ArcSwapOption<LoadedCertificate>,
    /// Why the last look at the source changed nothing, if it failed.
    failure: ArcSwapOption<String>,
    expiry: Gauge,
    authority_expiry: Gauge,
    failures: Counter,
}

/// Source of certificates.
#[derive(Clone)]
enum ReloadSource {
    Directory(PathBuf),
    Offered(watch::Receiver<ServingCertificate>),
}

impl CertificateReloader {
    /// Loads or makes the certificate. An offered one may arrive later.
    pub(super) fn new(config: &Config, metrics: &Metrics) -> Result<Self, CertificateError> {
        let clients = config.clients.as_ref();
        let source = match &config.certificate {
            CertificateSource::Directory(path) => ReloadSource::Directory(path.clone()),
            CertificateSource::SelfSigned { ca_file } => {
                ReloadSource::Offered(watch::channel(Ok(Arc::new(source::self_signed(ca_file)?))).1)
            }
            CertificateSource::Offered(offers) => ReloadSource::Offered(offers.clone()),
        };
        // An unusable CA of clients fails the start, not the first offer.
        tls::client_verifier(clients, source::read_client_ca(clients)?.as_deref())?;
        let this = Self {
            source,
            clients: clients.cloned(),
            name: config.server_name.clone(),
            clock: config.clock.clone(),
            current: ArcSwapOption::empty(),
            failure: ArcSwapOption::empty(),
            expiry: metrics.certificate_expiry.clone(),
            authority_expiry: metrics.certificate_authority_expiry.clone(),
            failures: metrics.certificate_reload_failures.clone(),
        };
        if let Some(loaded) = this.read()? {
            this.put_in_force(loaded);
        }
        if this.name.is_none() && matches!(this.source, ReloadSource::Directory(_)) {
            tracing::info!("without --service, a certificate is served whatever its names are");
        }
        Ok(this)
    }

    /// Returns the configuration for the next connection; `None` if there is no certificate yet.
    pub(super) fn config(&self) -> Option<Arc<ServerConfig>> {
        self.current.load().as_ref().map(|it| Arc::clone(&it.config))
    }

    /// Returns why the source has no better certificate than the one in force; `None` if that is its newest.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.load().as_ref().map(|reason| format!("not reloaded: {reason}"))
    }

    /// Returns the reason why there is no valid certificate now as an error.
    pub(super) fn check(&self) -> Result<(), Cow<'static, str>> {
        if let Some(loaded) = &*self.current.load() {
            return match loaded.check((self.clock.now)()) {
                Ok(_) => Ok(()),
                Err(fault) => Err(Cow::Owned(fault.to_string())),
            };
        }
        let reason = match &self.source {
            ReloadSource::Offered(offers) => offers.borrow().as_ref().err().map(|reason| format!("none yet: {reason}")),
            ReloadSource::Directory(_) => None,
        };
        Err(reason.map_or(Cow::Borrowed("none yet"), Cow::Owned))
    }

    /// Reads the source. Returns its certificate; `None` if there is none yet, or if it is in force already.
    fn read(&self) -> Result<Option<LoadedCertificate>, CertificateError> {
        let client_ca = source::read_client_ca(self.clients.as_ref())?;
        let (directory, files) = match &self.source {
            ReloadSource::Directory(path) => (&**path, directory::read_pair(path, client_ca)?),
            ReloadSource::Offered(offers) => match &*offers.borrow() {
                Ok(pair) => (Path::new(""), CertificateFiles::new(pair, client_ca)),
                Err(_) => return Ok(None),
            },
        };
        let current = self.current.load();
        if current.as_ref().is_some_and(|it| it.files == files) {
            return Ok(None);
        }
        let loaded = LoadedCertificate::new(files, self.clients.as_ref(), self.name.as_ref(), directory)?;
        let now = (self.clock.now)();
        match loaded.check(now) {
            Err(fault) if current.as_ref().is_some_and(|it| it.check(now).is_ok()) => {
                Err(CertificateError::Refused(fault))
            }
            Ok(_) | Err(_) => Ok(Some(loaded)),
        }
    }

    /// Serves a certificate, although clients may refuse it: there is no better one.
    fn put_in_force(&self, loaded: LoadedCertificate) {
        let expires = loaded.check((self.clock.now)()).unwrap_or_else(|fault| {
            self.failures.inc();
            tracing::warn!(reason = fault.to_string(), "the API server refuses the certificate in force");
            loaded.expiry()
        });
        self.current.store(Some(Arc::new(loaded)));
        self.expiry.set(expires);
    }
}
