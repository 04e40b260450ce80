//! The source of the serving certificate, the policy about clients, and the errors of both.

use super::tls::{CHAIN, CertificateFiles, KEY, certificates};
use crate::authority::{
    AuthorityError, CertificatePair, LOCAL, ServingCertificate, X509Fault, for_development, valid_seconds,
};
use crate::files::{self, FileAccess};
use rustls::pki_types::pem;
use rustls::server::VerifierBuilderError;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tokio::sync::watch;

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
    X509(#[source] X509Fault),
    /// The new certificate is not valid, and the previous one is.
    #[error("the new certificate is {0}, the previous one is valid")]
    Validity(&'static str),
    /// No certificate could be made.
    #[error("cannot make a self-signed certificate")]
    SelfSigned(#[source] AuthorityError),
}

/// Returns the PEM of the clients' CA; `None` without a policy.
pub(super) fn read_client_ca(clients: Option<&ClientPolicy>) -> Result<Option<Vec<u8>>, CertificateError> {
    clients.map(|policy| read(&policy.ca_file)).transpose()
}

/// Makes a CA in memory and a pair for this machine, and writes the CA's certificate to `ca_file`.
pub(super) fn self_signed(ca_file: &Path) -> Result<CertificatePair, CertificateError> {
    let made = for_development("kube-unions self-signed CA", "kube-unions", &LOCAL.map(str::to_owned));
    let (authority, pair) = made.map_err(CertificateError::SelfSigned)?;
    files::replace(ca_file, authority.certificate().as_bytes(), FileAccess::Everyone)
        .map_err(|source| CertificateError::Write { path: ca_file.to_owned(), source })?;
    Ok(pair)
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    std::fs::read(path).map_err(|source| CertificateError::Read { path: path.to_owned(), source })
}

const AUTHORITIES: &str = "ca.crt";

/// Reads the pair in a directory.
pub(super) fn read_pair(directory: &Path, client_ca: Option<Vec<u8>>) -> Result<CertificateFiles, CertificateError> {
    Ok(CertificateFiles { chain: read(&directory.join(CHAIN))?, key: read(&directory.join(KEY))?, client_ca })
}

/// Returns `ca.crt` of a directory and the latest expiry of its CAs; `None` if the file is missing or blank, as some issuers
/// leave it.
pub(super) fn read_authorities(directory: &Path) -> Result<Option<(String, i64)>, CertificateError> {
    let path = directory.join(AUTHORITIES);
    let pem = match read(&path) {
        Err(CertificateError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    if pem.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let authorities = certificates(&pem, &path)?;
    let ends = authorities.iter().map(|it| valid_seconds(it).map(|it| *it.end())).collect::<Result<Vec<_>, _>>();
    let Some(ends) = ends.map_err(CertificateError::X509)?.into_iter().max() else {
        return Err(CertificateError::Empty { path });
    };
    let pem = String::from_utf8(pem).map_err(|_| CertificateError::Empty { path })?;
    Ok(Some((pem, ends)))
}
