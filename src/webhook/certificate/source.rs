//! The source of the serving certificate, the policy about clients, and the errors of both.

use crate::authority::{AuthorityError, CertificatePair, LOCAL, ServingCertificate, for_development};
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
    #[error("`{path}` holds no usable PEM {what}: {}", pem_fault(fault))]
    Pem { path: PathBuf, what: &'static str, fault: pem::Error },
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
    /// The key is not that of the certificate.
    #[error(
        "the certificate and its key cannot be used together: tls.key must belong to the first certificate in tls.crt"
    )]
    Pair,
    /// TLS does not serve the certificate.
    #[error("the first certificate in `{path}` cannot be served")]
    Unserved { path: PathBuf, source: rustls::Error },
    /// TLS does not serve the certificate because of an extension.
    #[error(
        "the first certificate in `{path}` cannot be served: it has the critical extension {extension}, which is not read \
         here: issue one without it"
    )]
    Extension {
        path: PathBuf,
        /// Its object identifier.
        extension: String,
    },
    /// The clients' CA cannot be used.
    #[error("the clients' CA cannot be used")]
    ClientCa(#[source] VerifierBuilderError),
    /// A certificate is not X.509.
    #[error("certificate {number} in `{path}` cannot be parsed as X.509")]
    X509 {
        path: PathBuf,
        /// Its place in the file, from 1.
        number: usize,
    },
    /// Clients do not read that much.
    #[error("`{path}` holds more than 256 KiB of certificates: leave out those that did not sign another")]
    TooLong { path: PathBuf },
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
    /// It signed another certificate without the right to.
    #[error("no CA: issue one with the basic constraint `cA`, and with the key usage `keyCertSign` or without any")]
    NoAuthority,
    /// Clients do not read or take its key.
    #[error(
        "of a key that the API server refuses: use RSA of 2048 to 8192 bits, or ECDSA on P-224, P-256, P-384 or P-521"
    )]
    Key,
    /// It has a critical extension that clients do not read: its object identifier.
    #[error("of no use to the API server, which does not read its critical extension {0}: issue one without it")]
    Extension(String),
    /// Another certificate of its chain has a fault.
    #[error("in a chain whose certificate {number} in tls.crt is {fault}")]
    Chain {
        /// The place in the file, from 1.
        number: usize,
        fault: Box<CertificateFault>,
    },
    /// Clients give up before they find a path to a CA.
    #[error(
        "in a chain with so many issuers of the same name that the API server gives up: leave out those that did not sign \
         another certificate of the chain"
    )]
    Namesakes,
}

/// Returns what is wrong with a PEM file. It quotes nothing, because the file may be a key.
fn pem_fault(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "its line `-----END …` is missing; was the file cut?",
        pem::Error::IllegalSectionStart { .. } => "a line that begins with `-----` ends without `-----`",
        pem::Error::Base64Decode(_) => "between its lines `-----` it is not base64",
        pem::Error::NoItemsFound => "it has none that is not encrypted",
        pem::Error::SectionTooLarge | pem::Error::Io(_) | _ => "it cannot be read",
    }
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
