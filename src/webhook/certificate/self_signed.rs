//! A self-signed serving certificate for trials: a CA in memory, and a leaf for this machine.

use super::source::{CertificateError, ClientPolicy, read_client_ca};
use super::tls::CertificateFiles;
use crate::authority::{AuthorityError, CertificateAuthority, CertificatePair, LOCAL, Validity};
use crate::files::{self, FileAccess};
use std::path::Path;
use std::time::{Duration, SystemTime};

const LIFETIME: Duration = Duration::from_hours(365 * 24);

/// Makes a CA and a leaf, and writes the CA's certificate to `ca_file`. The keys stay in memory.
pub(super) fn make(ca_file: &Path, clients: Option<&ClientPolicy>) -> Result<CertificateFiles, CertificateError> {
    let (authority, pair) = generate().map_err(CertificateError::SelfSigned)?;
    files::replace(ca_file, authority.certificate().as_bytes(), FileAccess::Everyone)
        .map_err(|source| CertificateError::Write { path: ca_file.to_owned(), source })?;
    Ok(CertificateFiles::new(pair, read_client_ca(clients)?))
}

fn generate() -> Result<(CertificateAuthority, CertificatePair), AuthorityError> {
    let validity = Validity::new(SystemTime::now(), LIFETIME);
    let authority = CertificateAuthority::new("kube-unions self-signed CA", validity)?;
    let pair = authority.issue("kube-unions", &LOCAL.map(str::to_owned), validity)?;
    Ok((authority, pair))
}
