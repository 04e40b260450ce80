//! The certificate in a directory, as a kubelet mounts a Secret.

use super::source::{CertificateError, read};
use super::tls::{CHAIN, CertificateFiles, KEY, certificates};
use crate::authority::valid_seconds;
use std::io::ErrorKind;
use std::path::Path;

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
