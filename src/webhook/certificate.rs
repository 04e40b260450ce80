//! The serving certificate: its source, its reload without a restart, and the verification of clients.
//!
//! Chain, key and the clients' CA are read together and take effect together. A pair that does not parse or does not match
//! leaves the previous one in force. So does a pair that is not valid now, while the previous one is.
//!
//! It must not know who makes certificates: pairs arrive from files ([`directory`]) or as a [`ServingCertificate`].
//! [`tls`] turns them into a server's configuration.

mod client;
mod directory;
mod self_signed;
mod tls;
mod wake;

pub use directory::Announcer;

use super::{Clock, Config};
use crate::authority::{AuthorityError, ServingCertificate};
use crate::causes::with_causes;
use crate::telemetry::Metrics;
use arc_swap::ArcSwapOption;
use directory::CertificateDirectory;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use rustls::pki_types::pem;
use rustls::server::{ServerConfig, VerifierBuilderError};
use std::borrow::Cow;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tls::{CertificateFiles, LoadedCertificate};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// Source of the serving certificate.
#[derive(Debug, Clone)]
pub enum CertificateSource {
    /// A directory with `tls.crt` and `tls.key`, for example a mounted Secret of type `kubernetes.io/tls`.
    Directory(PathBuf),
    /// A certificate made at the start, for `localhost`, `127.0.0.1` and `::1`.
    SelfSigned {
        /// File to which the CA's certificate is written, for clients to trust.
        ca_file: PathBuf,
    },
    /// Pairs from a channel. Connections are refused until the first pair arrives.
    Offered(watch::Receiver<ServingCertificate>),
}

/// Clients that may connect to the webhook port. Without a policy all may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientPolicy {
    /// File with the CA of the clients' certificates, PEM.
    pub ca_file: PathBuf,
    /// Accept only client certificates with one of these common names or alternative names. Empty accepts any name.
    pub names: Vec<String>,
}

/// An error of loading or making a certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    Read { path: PathBuf, source: std::io::Error },
    /// A file cannot be written.
    #[error("cannot write `{path}`")]
    Write { path: PathBuf, source: std::io::Error },
    /// A file is not the expected PEM.
    #[error("`{path}` holds no usable PEM {what}")]
    Pem { path: PathBuf, what: &'static str, source: pem::Error },
    /// A file holds no certificate.
    #[error("`{path}` holds no certificate: use PEM, the serving certificate first")]
    Empty { path: PathBuf },
    /// Chain and key cannot be used together.
    #[error(
        "the certificate and its key cannot be used together: tls.key must belong to the first certificate in tls.crt"
    )]
    Pair(#[source] rustls::Error),
    /// The clients' CA cannot be used.
    #[error("the clients' CA cannot be used")]
    ClientCa(#[source] VerifierBuilderError),
    /// The certificate is not X.509.
    #[error("the certificate cannot be parsed as X.509")]
    X509(#[source] x509_parser::asn1_rs::Err<x509_parser::error::X509Error>),
    /// The new certificate is not valid, and the previous one is.
    #[error("the new certificate is {0}, the previous one is valid")]
    Validity(&'static str),
    /// No certificate could be made.
    #[error("cannot make a self-signed certificate")]
    SelfSigned(#[source] AuthorityError),
}

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

    /// Reloads the certificate when its source changes. Files are read every `interval` besides.
    pub(super) async fn keep_fresh(self: Arc<Self>, interval: Duration, announcer: Option<Announcer>) {
        match &self.source {
            ReloadSource::None => pending().await,
            ReloadSource::Directory(directory) => directory::follow(&self, directory, interval, announcer).await,
            ReloadSource::Offered(offers) => Arc::clone(&self).follow_offers(offers.clone(), interval).await,
        }
    }

    async fn follow_offers(self: Arc<Self>, mut offers: watch::Receiver<ServingCertificate>, interval: Duration) {
        // The clients' CA is a file and is polled.
        let mut ticks = ticks(interval);
        let mut log = ReloadLog::default();
        let mut open = true;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                changed = offers.changed(), if open => open = changed.is_ok(),
            }
            let offer = offers.borrow_and_update().clone();
            let Ok(pair) = offer else { continue };
            let this = Arc::clone(&self);
            // A mounted file system may hang.
            let loading = tokio::task::spawn_blocking(move || {
                let client_ca = read_client_ca(this.clients.as_ref())?;
                this.load_if_new(CertificateFiles::new((*pair).clone(), client_ca))
            });
            let Ok(loaded) = loading.await else { continue };
            log.reloaded(&self, loaded.map(|loaded| loaded.map(|it| self.put_in_force(it)).is_some()));
        }
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

/// The log of reloads: each change, and each failure once.
#[derive(Default)]
struct ReloadLog {
    failure: Option<String>,
}

impl ReloadLog {
    /// Logs the result of a reload. `Ok(true)`: another certificate is in force.
    fn reloaded(&mut self, certificate: &CertificateReloader, reloaded: Result<bool, CertificateError>) {
        match reloaded {
            Ok(changed) => {
                if changed {
                    tracing::info!(expires = certificate.expiry.get(), "certificate reloaded");
                }
                self.failure = None;
            }
            Err(error) => {
                certificate.failures.inc();
                let reason = with_causes(&error);
                if self.failure.as_ref() != Some(&reason) {
                    tracing::warn!(reason, "certificate not reloaded; the previous one stays in force");
                }
                self.failure = Some(reason);
            }
        }
    }
}

fn ticks(interval: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

fn read_client_ca(clients: Option<&ClientPolicy>) -> Result<Option<Vec<u8>>, CertificateError> {
    clients.map(|policy| read(&policy.ca_file)).transpose()
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source })
}
