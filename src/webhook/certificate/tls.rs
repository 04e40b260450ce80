//! From PEM files to the TLS configuration of a server: TLS 1.2 and 1.3, HTTP/1.1, optional verification of clients.
//!
//! It knows neither where files come from nor when they change.

use super::chain::ServedChain;
use super::client::NamedClients;
use super::rules::{parsed, rsa_bits, unserved_extension};
use super::source::{CertificateError, CertificateFault, ClientPolicy};
use crate::authority::{CertificatePair, since_1970};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ServerConfig, WebPkiClientVerifier};
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
    /// CAs that clients trust, as far as the source knows.
    pub(super) authorities: Vec<u8>,
    pub(super) client_ca: Option<Vec<u8>>,
}

impl CertificateFiles {
    pub(super) fn new(pair: &CertificatePair, client_ca: Option<Vec<u8>>) -> Self {
        let (chain, key) = (pair.chain.clone().into_bytes(), pair.key.clone().into_bytes());
        Self { chain, key, authorities: Vec::new(), client_ca }
    }
}

/// A certificate that is ready to serve with.
pub(super) struct LoadedCertificate {
    pub(super) files: CertificateFiles,
    pub(super) config: Arc<ServerConfig>,
    chain: ServedChain,
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
        if chain.is_empty() {
            return Err(CertificateError::Empty { path: chain_path });
        }
        let roots = certificates(&files.authorities, directory).unwrap_or_default();
        let judged = ServedChain::new(&chain, &roots, name, &chain_path)?;
        let leaf = chain.first().and_then(|leaf| parsed(leaf).ok());
        let (rsa_bits, extension) = (leaf.as_ref().and_then(rsa_bits), leaf.as_ref().and_then(unserved_extension));
        let key = PrivateKeyDer::from_pem_slice(&files.key).map_err(|fault| CertificateError::Pem {
            path: directory.join(KEY),
            what: "private key",
            fault,
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        if let Err(source) = provider.key_provider.load_private_key(key.clone_key()) {
            return Err(CertificateError::Key { rsa_bits, source });
        }
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(|source| CertificateError::Unserved { path: chain_path.clone(), source })?;
        let builder = match client_verifier(clients, files.client_ca.as_deref())? {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|source| match (source, extension) {
            (rustls::Error::InconsistentKeys(_), _) => CertificateError::Pair,
            (_, Some(extension)) => CertificateError::Extension { path: chain_path, extension },
            (source, None) => CertificateError::Unserved { path: chain_path, source },
        })?;
        // The API server never speaks HTTP/2 to a Service.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { files, config: Arc::new(config), chain: judged })
    }

    /// Returns the second since 1970 in which clients begin to refuse the certificate, and an error with the reason if they refuse it at
    /// `now`.
    pub(super) fn check(&self, now: SystemTime) -> Result<i64, CertificateFault> {
        self.chain.check(since_1970(now))
    }

    /// Returns the second since 1970 in which the certificate expires.
    pub(super) fn expiry(&self) -> i64 {
        *self.chain.validity().end()
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
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|fault| CertificateError::Pem {
        path: path.to_owned(),
        what: "certificate",
        fault,
    })
}
