//! The serving certificate: its source, its reload without a restart, and the verification of clients.
//!
//! Chain, key and the clients' CA are read together and take effect together. A pair that does not parse or does not match
//! leaves the previous one in force. So does a pair that is not valid now, while the previous one is.
//!
//! It must not know who makes certificates: pairs arrive from files ([`directory`]) or as a [`ServingCertificate`].
//! [`tls`] turns them into a server's configuration, and [`reload`] follows the source.

mod client;
mod directory;
mod reload;
mod self_signed;
mod source;
mod tls;
mod wake;

pub use reload::Announcer;
pub use source::{CertificateError, CertificateSource, ClientPolicy};

use super::{Clock, Config};
use crate::authority::ServingCertificate;
use crate::telemetry::Metrics;
use arc_swap::ArcSwapOption;
use directory::CertificateDirectory;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use rustls::server::ServerConfig;
use source::read_client_ca;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use tls::{CertificateFiles, LoadedCertificate};
use tokio::sync::watch;

/// The certificate in force and its source.
#[derive(Debug)]
pub(super) struct CertificateReloader {
    source: ReloadSource,
    clients: Option<ClientPolicy>,
    clock: Clock,
    current: ArcSwapOption<LoadedCertificate>,
    expiry: Gauge,
    authority_expiry: Gauge,
    failures: Counter,
}

/// Source of later certificates.
#[derive(Debug)]
enum ReloadSource {
    None,
    Directory(CertificateDirectory),
    Offered(watch::Receiver<ServingCertificate>),
}

impl CertificateReloader {
    /// Loads or makes the certificate. An offered one may arrive later.
    pub(super) fn new(
        Config { certificate: source, clients, clock, .. }: &Config,
        metrics: &Metrics,
    ) -> Result<Self, CertificateError> {
        let clients = clients.as_ref();
        let (source, files) = match source {
            CertificateSource::Directory(path) => {
                let directory = CertificateDirectory::new(path.clone());
                let files = directory.read_pair(read_client_ca(clients)?)?;
                (ReloadSource::Directory(directory), Some(files))
            }
            CertificateSource::SelfSigned { ca_file } => {
                (ReloadSource::None, Some(self_signed::make(ca_file, clients)?))
            }
            CertificateSource::Offered(offers) => {
                // An unusable CA of clients fails the start, not the first offer.
                tls::client_verifier(clients, read_client_ca(clients)?.as_deref())?;
                (ReloadSource::Offered(offers.clone()), None)
            }
        };
        let this = Self {
            source,
            clients: clients.cloned(),
            clock: clock.clone(),
            current: ArcSwapOption::empty(),
            expiry: metrics.certificate_expiry.clone(),
            authority_expiry: metrics.certificate_authority_expiry.clone(),
            failures: metrics.certificate_reload_failures.clone(),
        };
        if let Some(files) = files {
            this.put_in_force(this.load(files)?);
        }
        Ok(this)
    }

    /// Returns the configuration for the next connection; `None` if there is no certificate yet.
    pub(super) fn config(&self) -> Option<Arc<ServerConfig>> {
        self.current.load().as_ref().map(|it| Arc::clone(&it.config))
    }

    /// Returns the reason why there is no valid certificate now as an error.
    pub(super) fn check(&self) -> Result<(), Cow<'static, str>> {
        if let Some(loaded) = &*self.current.load() {
            return loaded.validity.check((self.clock.now)()).map_err(Cow::Borrowed);
        }
        let reason = match &self.source {
            ReloadSource::Offered(offers) => offers.borrow().as_ref().err().map(|reason| format!("none yet: {reason}")),
            ReloadSource::None | ReloadSource::Directory(_) => None,
        };
        Err(reason.map_or(Cow::Borrowed("none yet"), Cow::Owned))
    }

    /// Loads a certificate; `None` if these files are in force already.
    fn load_if_new(&self, files: CertificateFiles) -> Result<Option<LoadedCertificate>, CertificateError> {
        let current = self.current.load();
        let Some(current) = &*current else { return self.load(files).map(Some) };
        if current.files == files {
            return Ok(None);
        }
        let loaded = self.load(files)?;
        let now = (self.clock.now)();
        match loaded.validity.check(now) {
            Err(fault) if current.validity.check(now).is_ok() => Err(CertificateError::Validity(fault)),
            Ok(()) | Err(_) => Ok(Some(loaded)),
        }
    }

    fn load(&self, files: CertificateFiles) -> Result<LoadedCertificate, CertificateError> {
        let directory = match &self.source {
            ReloadSource::Directory(directory) => directory.path(),
            ReloadSource::None | ReloadSource::Offered(_) => Path::new(""),
        };
        LoadedCertificate::new(files, self.clients.as_ref(), directory)
    }

    fn put_in_force(&self, loaded: LoadedCertificate) {
        let not_after = loaded.validity.not_after;
        self.current.store(Some(Arc::new(loaded)));
        self.expiry.set(not_after);
    }
}
