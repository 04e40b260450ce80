//! The certificate in a directory, as a kubelet mounts a Secret.

use super::source::{CertificateError, read};
use super::tls::{CHAIN, CertificateFiles, KEY, certificates};
use crate::authority::valid_seconds;
use std::io::ErrorKind;
use std::path::Path;

const AUTHORITIES: &str = "ca.crt";

/// Reads the pair in a directory.
pub(super) fn read_pair(directory: &Path, client_ca: Option<Vec<u8>>) -> Result<CertificateFiles, CertificateError> {
    let (chain, key) = (read(&directory.join(CHAIN))?, read(&directory.join(KEY))?);
    // `read_authorities` reports its faults, if it is of use.
    let authorities = read(&directory.join(AUTHORITIES)).unwrap_or_default();
    Ok(CertificateFiles { chain, key, authorities, client_ca })
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
    let ends = authorities.iter().enumerate().map(|(at, it)| {
        let unreadable = |_| CertificateError::X509 { path: path.clone(), number: at + 1 };
        valid_seconds(it).map(|it| *it.end()).map_err(unreadable)
    });
    let Some(ends) = ends.collect::<Result<Vec<_>, _>>()?.into_iter().max() else {
        return Err(CertificateError::Empty { path });
    };
    let pem = String::from_utf8(pem).map_err(|_| CertificateError::Empty { path })?;
    Ok(Some((pem, ends)))
}
