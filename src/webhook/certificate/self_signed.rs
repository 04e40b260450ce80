//! A certificate for trying things out: a CA of its own that nothing else trusts, and a leaf for this machine.

use super::{CertificateError, ClientPolicy, Contents, read_client_ca};
use crate::authority::{AuthorityError, CertificateAuthority, CertificatePair, LOCAL, Validity};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

const LIFETIME: Duration = Duration::from_hours(365 * 24);

/// Makes both, and writes the CA's certificate to `ca_file`. The keys stay in memory.
pub(super) fn make(ca_file: &Path, clients: Option<&ClientPolicy>) -> Result<Contents, CertificateError> {
    let (authority, pair) = generate().map_err(CertificateError::SelfSigned)?;
    write(ca_file, authority.certificate().as_bytes())
        .map_err(|source| CertificateError::Write { path: ca_file.to_owned(), source })?;
    Ok(Contents::new(pair, read_client_ca(clients)?))
}

fn generate() -> Result<(CertificateAuthority, CertificatePair), AuthorityError> {
    let validity = Validity::new(SystemTime::now(), LIFETIME);
    let authority = CertificateAuthority::new("kube-unions self-signed CA", validity)?;
    let pair = authority.issue("kube-unions", &LOCAL.map(str::to_owned), validity)?;
    Ok((authority, pair))
}

/// Whole or not at all, so that nobody reads half a file; and never through a link that somebody else has laid.
fn write(path: &Path, contents: &[u8]) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    let result = OpenOptions::new().write(true).create_new(true).open(&new).and_then(|mut file| {
        file.write_all(contents)?;
        std::fs::rename(&new, path)
    });
    if result.is_err() {
        // Best effort: the first error is the one to report.
        std::fs::remove_file(&new).ok();
    }
    result
}
