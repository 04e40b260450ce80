//! The serving certificate: where it comes from, its reload without a restart, and who may connect.
//!
//! Chain, key and the clients' CA are read together and put in force together, or not at all: a pair that does not
//! parse or does not match leaves the one before it in force. So does one that is not valid now, while that before is.

mod client;
mod directory;
mod self_signed;
mod wake;

pub use directory::Announcer;

use crate::authority::{AuthorityError, CertificatePair, Offer};
use crate::causes::with_causes;
use crate::telemetry::Metrics;
use arc_swap::ArcSwapOption;
use client::NamedClients;
use directory::Files;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ServerConfig, VerifierBuilderError, WebPkiClientVerifier};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// Where the serving certificate comes from.
#[derive(Debug, Clone)]
pub enum CertificateSource {
    /// A folder with `tls.crt` and `tls.key`, as a Secret of type `kubernetes.io/tls` is mounted.
    Directory(PathBuf),
    /// Made at the start, for `localhost`, `127.0.0.1` and `::1`.
    SelfSigned {
        /// Where the CA's certificate is written, for clients to trust.
        ca_file: PathBuf,
    },
    /// Whatever arrives here. Until the first pair nobody is served.
    Offered(watch::Receiver<Offer>),
}

/// Who may connect to the webhook port. Without one, everybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientPolicy {
    /// The CA that signs the certificates of clients, PEM.
    pub ca_file: PathBuf,
    /// Common names, or alternative names, of which a client's certificate must have one. Empty: any.
    pub names: Vec<String>,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file is missing or cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// As given.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write `{path}`")]
    Write {
        /// As given.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file is not the PEM it should be.
    #[error("`{path}` holds no usable PEM {what}")]
    Pem {
        /// As given.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
        /// What the parser says.
        source: pem::Error,
    },
    /// A file holds no certificate.
    #[error("`{path}` holds no certificate; it must be PEM, the serving certificate first")]
    Empty {
        /// As given.
        path: PathBuf,
    },
    /// Chain and key cannot be used together.
    #[error(
        "the certificate and its key cannot be used together; tls.key must belong to the first certificate in tls.crt"
    )]
    Pair(#[source] rustls::Error),
    /// The clients' CA cannot be used.
    #[error("the clients' CA cannot be used")]
    ClientCa(#[source] VerifierBuilderError),
    /// The certificate's times cannot be read.
    #[error("the certificate cannot be read as X.509")]
    X509(#[source] x509_parser::asn1_rs::Err<x509_parser::error::X509Error>),
    /// It would be a change for the worse.
    #[error("the new certificate is {0}, that before it is not")]
    Validity(&'static str),
    /// No certificate could be made.
    #[error("no self-signed certificate could be made")]
    SelfSigned(#[source] AuthorityError),
}

/// The certificate in force, and how to get the next.
#[derive(Debug)]
pub(super) struct Certificate {
    source: Source,
    clients: Option<ClientPolicy>,
    current: ArcSwapOption<Loaded>,
    expiry: Gauge,
    authority_expiry: Gauge,
    failures: Counter,
}

#[derive(Debug)]
enum Source {
    Fixed,
    Files(Files),
    Offered(watch::Receiver<Offer>),
}

impl Certificate {
    /// Loads or makes it. One that is offered may come later.
    pub(super) fn new(
        source: &CertificateSource,
        clients: Option<&ClientPolicy>,
        metrics: &Metrics,
    ) -> Result<Self, CertificateError> {
        let (source, contents) = match source {
            CertificateSource::Directory(directory) => {
                let files = Files::new(directory.clone());
                let contents = files.read_pair(read_client_ca(clients)?)?;
                (Source::Files(files), Some(contents))
            }
            CertificateSource::SelfSigned { ca_file } => (Source::Fixed, Some(self_signed::make(ca_file, clients)?)),
            CertificateSource::Offered(offers) => {
                // What cannot be used is said before anything is offered.
                Loaded::verifier_of(clients, read_client_ca(clients)?.as_deref())?;
                (Source::Offered(offers.clone()), None)
            }
        };
        let this = Self {
            source,
            clients: clients.cloned(),
            current: ArcSwapOption::empty(),
            expiry: metrics.certificate_expiry().clone(),
            authority_expiry: metrics.certificate_authority_expiry().clone(),
            failures: metrics.certificate_reload_failures().clone(),
        };
        if let Some(contents) = contents {
            this.put_in_force(this.load(contents)?);
        }
        Ok(this)
    }

    /// For the next connection; `None`: there is no certificate yet.
    pub(super) fn config(&self) -> Option<Arc<ServerConfig>> {
        self.current.load().as_ref().map(|it| Arc::clone(&it.config))
    }

    /// Says what is wrong at `now`.
    pub(super) fn check(&self, now: SystemTime) -> Result<(), Cow<'static, str>> {
        if let Some(loaded) = &*self.current.load() {
            return loaded.validity.check(now).map_err(Cow::Borrowed);
        }
        let reason = match &self.source {
            Source::Offered(offers) => offers.borrow().as_ref().err().map(|reason| format!("none yet: {reason}")),
            Source::Fixed | Source::Files(_) => None,
        };
        Err(reason.map_or(Cow::Borrowed("none yet"), Cow::Owned))
    }

    /// Follows its source, for ever. Files are looked at every `interval`.
    pub(super) async fn keep_fresh(self: Arc<Self>, interval: Duration, announcer: Option<Announcer>) {
        match &self.source {
            Source::Fixed => {}
            Source::Files(files) => directory::follow(&self, files, interval, announcer).await,
            Source::Offered(offers) => self.follow_offers(offers.clone(), interval).await,
        }
    }

    async fn follow_offers(&self, mut offers: watch::Receiver<Offer>, interval: Duration) {
        // For the clients' CA, which is a file.
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
            let loaded = read_client_ca(self.clients.as_ref()).map(|it| Contents::new((*pair).clone(), it));
            let loaded = loaded.and_then(|contents| self.load_other(contents));
            log.say(self, loaded.map(|loaded| loaded.map(|it| self.put_in_force(it)).is_some()));
        }
    }

    /// `None`: it is in force already.
    fn load_other(&self, contents: Contents) -> Result<Option<Loaded>, CertificateError> {
        let current = self.current.load();
        let Some(current) = &*current else { return self.load(contents).map(Some) };
        if current.contents == contents {
            return Ok(None);
        }
        let loaded = self.load(contents)?;
        let now = SystemTime::now();
        match loaded.validity.check(now) {
            Err(fault) if current.validity.check(now).is_ok() => Err(CertificateError::Validity(fault)),
            Ok(()) | Err(_) => Ok(Some(loaded)),
        }
    }

    fn load(&self, contents: Contents) -> Result<Loaded, CertificateError> {
        let directory = match &self.source {
            Source::Files(files) => files.directory(),
            Source::Fixed | Source::Offered(_) => Path::new(""),
        };
        Loaded::new(contents, self.clients.as_ref(), directory)
    }

    fn put_in_force(&self, loaded: Loaded) {
        let not_after = loaded.validity.not_after;
        self.current.store(Some(Arc::new(loaded)));
        self.expiry.set(not_after);
    }
}

/// What is said of a source: each change, and each reason why there is none once.
#[derive(Default)]
struct ReloadLog {
    said: Option<String>,
}

impl ReloadLog {
    /// `Ok(true)`: another certificate is in force.
    fn say(&mut self, certificate: &Certificate, reloaded: Result<bool, CertificateError>) {
        match reloaded {
            Ok(changed) => {
                if changed {
                    tracing::info!(expires = certificate.expiry.get(), "certificate reloaded");
                }
                self.said = None;
            }
            Err(error) => {
                certificate.failures.inc();
                let reason = with_causes(&error);
                if self.said.as_ref() != Some(&reason) {
                    tracing::warn!(reason, "certificate not reloaded; the one before stays in force");
                }
                self.said = Some(reason);
            }
        }
    }
}

fn ticks(interval: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// When a certificate may be used, in seconds since 1970, both ends included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Validity {
    not_before: i64,
    not_after: i64,
}

impl Validity {
    /// Says what is wrong at `now`.
    pub(super) fn check(self, now: SystemTime) -> Result<(), &'static str> {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |it| i64::try_from(it.as_secs()).unwrap_or(i64::MAX));
        if now < self.not_before {
            Err("not valid yet")
        } else if now > self.not_after {
            Err("expired")
        } else {
            Ok(())
        }
    }

    fn of(certificate: &CertificateDer<'_>) -> Result<Self, CertificateError> {
        let (_, certificate) = x509_parser::parse_x509_certificate(certificate).map_err(CertificateError::X509)?;
        let validity = certificate.validity();
        Ok(Self { not_before: validity.not_before.timestamp(), not_after: validity.not_after.timestamp() })
    }
}

/// What is in the files, PEM.
#[derive(PartialEq, Eq)]
struct Contents {
    chain: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Contents {
    fn new(pair: CertificatePair, client_ca: Option<Vec<u8>>) -> Self {
        Self { chain: pair.chain.into_bytes(), key: pair.key.into_bytes(), client_ca }
    }
}

impl std::fmt::Debug for Contents {
    /// Never shows the key.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Contents").finish_non_exhaustive()
    }
}

/// One certificate, ready to serve.
#[derive(Debug)]
struct Loaded {
    contents: Contents,
    config: Arc<ServerConfig>,
    validity: Validity,
}

impl Loaded {
    fn new(contents: Contents, clients: Option<&ClientPolicy>, directory: &Path) -> Result<Self, CertificateError> {
        let chain_path = directory.join(CHAIN);
        let chain = certificates(&contents.chain, &chain_path)?;
        let leaf = chain.first().ok_or(CertificateError::Empty { path: chain_path })?;
        let validity = Validity::of(leaf)?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(|source| CertificateError::Pem {
            path: directory.join(KEY),
            what: "private key",
            source,
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(CertificateError::Pair)?;
        let builder = match Self::verifier_of(clients, contents.client_ca.as_deref())? {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(CertificateError::Pair)?;
        // The API server never speaks HTTP/2 to a Service.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { contents, config: Arc::new(config), validity })
    }

    fn verifier_of(
        clients: Option<&ClientPolicy>,
        client_ca: Option<&[u8]>,
    ) -> Result<Option<Arc<dyn ClientCertVerifier>>, CertificateError> {
        clients.zip(client_ca).map(|(policy, pem)| verifier(policy, pem)).transpose()
    }
}

use directory::{CHAIN, KEY};

fn verifier(policy: &ClientPolicy, pem: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, CertificateError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(pem, &policy.ca_file)?);
    let inner = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(CertificateError::ClientCa)?;
    Ok(if policy.names.is_empty() { inner } else { Arc::new(NamedClients::new(inner, policy.names.clone())) })
}

fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|source| CertificateError::Pem {
        path: path.to_owned(),
        what: "certificate",
        source,
    })
}

fn read_client_ca(clients: Option<&ClientPolicy>) -> Result<Option<Vec<u8>>, CertificateError> {
    clients.map(|policy| read(&policy.ca_file)).transpose()
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source })
}
