//! The source of the serving certificate, the policy about clients, and the errors of both.

use crate::authority::{AuthorityError, CertificatePair, LOCAL, ServingCertificate, X509Fault, for_development};
use kube_unions_command::files::{self, FileAccess};
use rustls::pki_types::{ServerName, pem};
use rustls::server::VerifierBuilderError;
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
    /// TLS has no use for the key.
    #[error(
        "tls.key cannot be used: use RSA of 2048 to 4096 bits, ECDSA on P-256 or P-384, or Ed25519{}",
        of_rsa(*rsa_bits)
    )]
    Key {
        /// The size of the certificate's key, if it is RSA.
        rsa_bits: Option<usize>,
        source: rustls::Error,
    },
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
    /// Clients would refuse the new certificate, and accept the previous one.
    #[error("the new certificate is {0}; the previous one is valid")]
    Refused(CertificateFault),
    /// No certificate could be made.
    #[error("cannot make a self-signed certificate")]
    SelfSigned(#[source] AuthorityError),
}

/// The reason why clients would refuse a certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    /// Its validity begins later.
    #[error("not valid yet")]
    NotYetValid,
    /// Its validity has ended.
    #[error("expired")]
    Expired,
    /// Its extended key usage is another one.
    #[error("not for servers: issue one with the extended key usage `serverAuth`, or without any")]
    Usage,
    /// Its signature is by a broken hash function.
    #[error("signed with {0}, which the API server refuses: issue one with SHA-256")]
    Hash(&'static str),
    /// It has not the name that clients ask for. A common name counts for nothing.
    #[error("not for `{name}`, the name that the API server asks for: issue one with this alternative name", name = .0.to_str())]
    Name(ServerName<'static>),
}

fn of_rsa(bits: Option<usize>) -> String {
    bits.map(|bits| format!("; the certificate's key is RSA of {bits} bits")).unwrap_or_default()
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

/// Reads a file of a certificate. A special file or an endless one in its place is an error, and the file can be read again afterwards.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    kube_unions_api::files::read_mounted(path)
        .map_err(|source| CertificateError::Read { path: path.to_owned(), source })
}
