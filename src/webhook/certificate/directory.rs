//! The certificate in a directory, as a kubelet mounts a Secret.
//!
//! File contents are compared, not times: a kubelet updates a mounted Secret by replacing one symbolic link.

use super::source::{CertificateError, read};
use super::tls::{CHAIN, CertificateFiles, KEY, ValidityPeriod, certificates};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const AUTHORITIES: &str = "ca.crt";

/// A directory with `tls.crt`, `tls.key` and perhaps `ca.crt`.
#[derive(Debug, Clone)]
pub(super) struct CertificateDirectory {
    path: PathBuf,
}

impl CertificateDirectory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read_pair(&self, client_ca: Option<Vec<u8>>) -> Result<CertificateFiles, CertificateError> {
        Ok(CertificateFiles { chain: read(&self.path.join(CHAIN))?, key: read(&self.path.join(KEY))?, client_ca })
    }

    /// Returns `ca.crt` and the latest expiry of its CAs; `None` if the file is missing or blank, as some issuers leave it.
    pub(super) fn read_authorities(&self) -> Result<Option<(String, i64)>, CertificateError> {
        let path = self.path.join(AUTHORITIES);
        let pem = match read(&path) {
            Err(CertificateError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        if pem.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let ends = certificates(&pem, &path)?.into_iter().map(|it| Ok(ValidityPeriod::of(&it)?.not_after));
        let ends = ends.collect::<Result<Vec<_>, CertificateError>>()?;
        let Some(ends) = ends.into_iter().max() else { return Err(CertificateError::Empty { path }) };
        let pem = String::from_utf8(pem).map_err(|_| CertificateError::Empty { path })?;
        Ok(Some((pem, ends)))
    }
}
