//! The certificate in a directory, as a kubelet mounts a Secret.

use super::source::{CertificateError, read};
use super::tls::{CHAIN, CertificateFiles, KEY, certificates};
use crate::authority::valid_seconds;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

const AUTHORITIES: &str = "ca.crt";

/// The symbolic link to the files of a version, which a kubelet replaces.
const VERSION: &str = "..data";

/// The most reads of files that are replaced meanwhile. A kubelet replaces them once in a minute.
const MOST_READS: usize = 3;

/// Reads the pair in a directory: both files of one version.
pub(super) fn read_pair(directory: &Path, client_ca: Option<Vec<u8>>) -> Result<CertificateFiles, CertificateError> {
    let version = || fs::read_link(directory.join(VERSION)).ok();
    let (chain, key, authorities) = at_once(version, || {
        let (chain, key) = (read(&directory.join(CHAIN))?, read(&directory.join(KEY))?);
        // `read_authorities` reports its faults, if it is of use.
        Ok((chain, key, read(&directory.join(AUTHORITIES)).unwrap_or_default()))
    })?;
    Ok(CertificateFiles { chain, key, authorities, client_ca })
}

/// Reads again if the version is another one afterwards.
fn at_once<V: PartialEq, T>(version: impl Fn() -> V, mut read: impl FnMut() -> T) -> T {
    let mut before = version();
    for _ in 1..MOST_READS {
        let found = read();
        let after = version();
        if after == before {
            return found;
        }
        before = after;
    }
    read()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn files_that_are_replaced_while_they_are_read_are_read_again_within_a_bound() {
        for (replaced, reads) in [(0, 1), (1, 2), (2, 3), (9, MOST_READS)] {
            let (version, count) = (Cell::new(0), Cell::new(0));
            let found = at_once(
                || version.get(),
                || {
                    count.set(count.get() + 1);
                    version.set(count.get().min(replaced));
                    version.get()
                },
            );
            assert_eq!((found, count.get()), (replaced.min(MOST_READS), reads), "{replaced}");
        }
    }
}
