//! From PEM files to the TLS configuration of a server: TLS 1.2 and 1.3, HTTP/1.1, optional verification of clients.
//!
//! It knows neither where files come from nor when they change.

use super::client::NamedClients;
use super::source::{CertificateError, CertificateFault, ClientPolicy};
use crate::authority::{CertificatePair, X509Fault, broken_hash, is_for_servers, rsa_bits, since_1970, valid_seconds};
use rustls::RootCertStore;
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, ServerConfig, WebPkiClientVerifier};
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
    /// The reason why clients refuse it at any time.
    refused: Option<CertificateFault>,
}

impl LoadedCertificate {
    /// Parses the files. `directory` names them in errors. `name` is the one that clients ask for, if it is known.
    pub(super) fn new(
        files: CertificateFiles,
        clients: Option<&ClientPolicy>,
        name: Option<&ServerName<'static>>,
        directory: &Path,
    ) -> Result<Self, CertificateError> {
        let chain_path = directory.join(CHAIN);
        let chain = certificates(&files.chain, &chain_path)?;
        let leaf = chain.first().ok_or(CertificateError::Empty { path: chain_path })?;
        let validity = valid_seconds(leaf).map_err(CertificateError::X509)?;
        let refused = fault_of(leaf, name).map_err(CertificateError::X509)?;
        let key = PrivateKeyDer::from_pem_slice(&files.key).map_err(|source| CertificateError::Pem {
            path: directory.join(KEY),
            what: "private key",
            source,
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        if let Err(source) = provider.key_provider.load_private_key(key.clone_key()) {
            return Err(CertificateError::Key { rsa_bits: rsa_bits(leaf).map_err(CertificateError::X509)?, source });
        }
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
        Ok(Self { files, config: Arc::new(config), validity, refused })
    }

    /// Returns an error with the reason if clients refuse the certificate at `now`.
    pub(super) fn check(&self, now: SystemTime) -> Result<(), CertificateFault> {
        match (since_1970(now), &self.refused) {
            (now, _) if now < *self.validity.start() => Err(CertificateFault::NotYetValid),
            (now, _) if now > *self.validity.end() => Err(CertificateFault::Expired),
            (_, Some(fault)) => Err(fault.clone()),
            (_, None) => Ok(()),
        }
    }
}

/// Returns the reason why clients that ask for `name` refuse a certificate at any time.
fn fault_of(
    certificate: &CertificateDer<'_>,
    name: Option<&ServerName<'static>>,
) -> Result<Option<CertificateFault>, X509Fault> {
    if !is_for_servers(certificate)? {
        return Ok(Some(CertificateFault::Usage));
    }
    if let Some(hash) = broken_hash(certificate)? {
        return Ok(Some(CertificateFault::Hash(hash)));
    }
    Ok(name.filter(|name| !has_name(certificate, name)).cloned().map(CertificateFault::Name))
}

/// Returns true if clients that ask for `name` accept the names of a certificate. The API server is a Go program: for the name of
/// a Service, its rules for wildcards, case and trailing dots are those of webpki.
fn has_name(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> bool {
    ParsedCertificate::try_from(certificate).is_ok_and(|parsed| verify_server_name(&parsed, name).is_ok())
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
