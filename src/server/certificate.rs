//! The serving certificate: where it comes from, its reload without a restart, and who may connect.
//!
//! Chain, key and the clients' CA are read together and put in force together, or not at all: a pair that does not
//! parse or does not match leaves the one before it in force. Files are compared by content, on a timer, since what a
//! kubelet does to a mounted Secret (it swaps a symbolic link) is no change of the file.

mod client;
mod self_signed;

use crate::authority::{AuthorityError, Pair};
use crate::telemetry::{Metrics, with_causes};
use arc_swap::ArcSwap;
use client::NamedClients;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ServerConfig, VerifierBuilderError, WebPkiClientVerifier};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where the serving certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// A folder with `tls.crt` and `tls.key`, as a Secret of type `kubernetes.io/tls` is mounted.
    Directory(PathBuf),
    /// Made at the start, for `localhost`, `127.0.0.1` and `::1`.
    SelfSigned {
        /// Where the CA's certificate is written, for clients to trust.
        ca_file: PathBuf,
    },
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
    #[error("the certificate and its key cannot be used together")]
    Pair(#[source] rustls::Error),
    /// The clients' CA cannot be used.
    #[error("the clients' CA cannot be used")]
    ClientCa(#[source] VerifierBuilderError),
    /// The certificate's times cannot be read.
    #[error("the certificate cannot be read as X.509")]
    X509(#[source] x509_parser::asn1_rs::Err<x509_parser::error::X509Error>),
    /// No certificate could be made.
    #[error("no self-signed certificate could be made")]
    SelfSigned(#[source] AuthorityError),
}

/// The certificate in force, and how to get the next.
#[derive(Debug)]
pub(super) struct Certificate {
    /// `None`: never reloaded.
    files: Option<Files>,
    current: ArcSwap<Loaded>,
    expiry: Gauge,
    failures: Counter,
}

impl Certificate {
    /// Loads or makes it.
    pub(super) fn new(
        source: &CertificateSource,
        clients: Option<&ClientPolicy>,
        metrics: &Metrics,
    ) -> Result<Self, CertificateError> {
        let (files, contents) = match source {
            CertificateSource::Directory(directory) => {
                let files = Files { directory: directory.clone(), clients: clients.cloned() };
                let contents = files.read()?;
                (Some(files), contents)
            }
            CertificateSource::SelfSigned { ca_file } => (None, self_signed::make(ca_file, clients)?),
        };
        let loaded = Loaded::new(contents, clients, directory_of(source))?;
        let expiry = metrics.certificate_expiry().clone();
        expiry.set(loaded.validity.not_after);
        let failures = metrics.certificate_reload_failures().clone();
        Ok(Self { files, current: ArcSwap::from_pointee(loaded), expiry, failures })
    }

    /// For the next connection.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.load().config)
    }

    pub(super) fn validity(&self) -> Validity {
        self.current.load().validity
    }

    /// Looks at the files every `interval`, for ever.
    pub(super) async fn keep_fresh(self: Arc<Self>, interval: Duration) {
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut logged = None;
        loop {
            ticks.tick().await;
            let certificate = Arc::clone(&self);
            // A Secret is a file system that can hang.
            let Ok(result) = tokio::task::spawn_blocking(move || certificate.reload()).await else { continue };
            match result {
                Ok(changed) => {
                    if changed {
                        tracing::info!(expires = self.validity().not_after, "certificate reloaded");
                    }
                    logged = None;
                }
                Err(error) => {
                    self.failures.inc();
                    let reason = with_causes(&error);
                    if logged.as_ref() != Some(&reason) {
                        tracing::warn!(reason, "certificate not reloaded; the one before stays in force");
                    }
                    logged = Some(reason);
                }
            }
        }
    }

    /// Whether another certificate is in force now.
    fn reload(&self) -> Result<bool, CertificateError> {
        let Some(files) = &self.files else { return Ok(false) };
        let contents = files.read()?;
        if contents == self.current.load().contents {
            return Ok(false);
        }
        let loaded = Loaded::new(contents, files.clients.as_ref(), &files.directory)?;
        self.expiry.set(loaded.validity.not_after);
        self.current.store(Arc::new(loaded));
        Ok(true)
    }
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

#[derive(Debug)]
struct Files {
    directory: PathBuf,
    clients: Option<ClientPolicy>,
}

impl Files {
    fn read(&self) -> Result<Contents, CertificateError> {
        Ok(Contents {
            chain: read(&self.directory.join(CHAIN))?,
            key: read(&self.directory.join(KEY))?,
            client_ca: read_client_ca(self.clients.as_ref())?,
        })
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
    fn new(pair: Pair, client_ca: Option<Vec<u8>>) -> Self {
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
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(CertificateError::Pair)?;
        let builder = match clients.zip(contents.client_ca.as_deref()) {
            Some((policy, pem)) => builder.with_client_cert_verifier(verifier(policy, pem, provider)?),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(CertificateError::Pair)?;
        // The API server never speaks HTTP/2 to a Service.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { contents, config: Arc::new(config), validity })
    }
}

const CHAIN: &str = "tls.crt";
const KEY: &str = "tls.key";

fn verifier(
    policy: &ClientPolicy,
    pem: &[u8],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, CertificateError> {
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

fn directory_of(source: &CertificateSource) -> &Path {
    match source {
        CertificateSource::Directory(directory) => directory,
        CertificateSource::SelfSigned { .. } => Path::new(""),
    }
}
