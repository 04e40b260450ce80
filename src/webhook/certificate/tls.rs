//! From PEM files to the TLS configuration of a server: TLS 1.2 and 1.3, HTTP/1.1, optional verification of clients.
//!
//! It knows neither where files come from nor when they change.

use super::client::NamedClients;
use super::source::{CertificateError, ClientPolicy};
use crate::authority::{CertificatePair, since_1970, valid_seconds};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Name of the file with the serving certificate and its intermediates.
pub(super) const CHAIN: &str = "tls.crt";
/// Name of the file with the private key.
pub(super) const KEY: &str = "tls.key";

/// The contents of the files of a certificate, PEM.
#[derive(PartialEq, Eq)]
pub(super) struct CertificateFiles {
    pub(super) chain: Vec<u8>,
    pub(super) key: Vec<u8>,
    pub(super) client_ca: Option<Vec<u8>>,
}

impl CertificateFiles {
    pub(super) fn new(pair: &CertificatePair, client_ca: Option<Vec<u8>>) -> Self {
        Self { chain: pair.chain.clone().into_bytes(), key: pair.key.clone().into_bytes(), client_ca }
    }
}

/// A certificate that is ready to serve with.
pub(super) struct LoadedCertificate {
    pub(super) files: CertificateFiles,
    pub(super) config: Arc<ServerConfig>,
    /// Seconds since 1970 in which it is valid.
    pub(super) validity: RangeInclusive<i64>,
}

impl LoadedCertificate {
    /// Parses the files. `directory` names them in errors.
    pub(super) fn new(
        files: CertificateFiles,
        clients: Option<&ClientPolicy>,
        directory: &Path,
    ) -> Result<Self, CertificateError> {
        let chain_path = directory.join(CHAIN);
        let chain = certificates(&files.chain, &chain_path)?;
        let leaf = chain.first().ok_or(CertificateError::Empty { path: chain_path })?;
        let validity = valid_seconds(leaf).map_err(CertificateError::X509)?;
        let key = PrivateKeyDer::from_pem_slice(&files.key).map_err(|source| CertificateError::Pem {
            path: directory.join(KEY),
            what: "private key",
            source,
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(CertificateError::Pair)?;
        let builder = match client_verifier(clients, files.client_ca.as_deref())? {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(CertificateError::Pair)?;
        // The API server never speaks HTTP/2 to a Service.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { files, config: Arc::new(config), validity })
    }

    /// Returns an error with the reason if the certificate is not valid at `now`.
    pub(super) fn check(&self, now: SystemTime) -> Result<(), &'static str> {
        match since_1970(now) {
            now if now < *self.validity.start() => Err("not valid yet"),
            now if now > *self.validity.end() => Err("expired"),
            _ => Ok(()),
        }
    }
}

/// Returns the verifier of a policy. `client_ca` is the PEM of its file.
pub(super) fn client_verifier(
    clients: Option<&ClientPolicy>,
    client_ca: Option<&[u8]>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, CertificateError> {
    let Some((policy, pem)) = clients.zip(client_ca) else { return Ok(None) };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(pem, &policy.ca_file)?);
    let inner = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(CertificateError::ClientCa)?;
    Ok(Some(if policy.names.is_empty() { inner } else { Arc::new(NamedClients::new(inner, policy.names.clone())) }))
}

/// Parses the certificates of a PEM file. `path` names it in errors.
pub(super) fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|source| CertificateError::Pem {
        path: path.to_owned(),
        what: "certificate",
        source,
    })
}
