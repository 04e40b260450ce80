//! The certificate in a directory, as a kubelet mounts a Secret: reloaded when it changes, after its CA was announced.
//!
//! File contents are compared, not times: a kubelet updates a mounted Secret by replacing one symbolic link.
//!
//! A mounted Secret brings a new CA and the pair that it signed at once, and replicas get it at different times. So the new
//! pair waits until the API server trusts its CA, and the previous pair is served meanwhile.

use super::tls::{CHAIN, CertificateFiles, KEY, LoadedCertificate, ValidityPeriod, certificates};
use super::wake::DirectoryWake;
use super::{CertificateError, CertificateReloader, ReloadLog, read, read_client_ca, ticks};
use futures::FutureExt;
use futures::future::{BoxFuture, OptionFuture};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const AUTHORITIES: &str = "ca.crt";

/// Makes the API server trust additional CAs, PEM. The future resolves when it does.
pub type Announcer = Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>;

/// Wait after a change, in case a writer writes one file after another.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Longest wait of a new pair for its CA to be trusted.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_mins(5);

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
    fn read_authorities(&self) -> Result<Option<(String, i64)>, CertificateError> {
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

/// The contents of the directory.
struct DirectoryContents {
    /// The new pair; `None` if the pair in force is there.
    pair: Option<LoadedCertificate>,
    authorities: Option<(String, i64)>,
}

/// Reloads the certificate for ever: when the directory changes, and every `interval`.
pub(super) async fn follow(
    certificate: &Arc<CertificateReloader>,
    directory: &CertificateDirectory,
    interval: Duration,
    announcer: Option<Announcer>,
) {
    let wake = DirectoryWake::new(&directory.path);
    let mut ticks = ticks(interval);
    let mut log = ReloadLog::default();
    let mut announcements = announcer.map(Announcements::new);
    let mut waits = false;
    loop {
        let trusted = OptionFuture::from(announcements.as_mut().and_then(|it| it.under_way.as_mut()));
        tokio::select! {
            _ = ticks.tick() => {}
            () = wake.changed() => tokio::time::sleep(DEBOUNCE).await,
            Some(()) = trusted => {
                if let Some(announcements) = &mut announcements {
                    announcements.under_way = None;
                }
            }
        }
        let (reader, folder, renewed) = (Arc::clone(certificate), directory.clone(), wake.clone());
        let with_authorities = announcements.is_some();
        // A mounted file system may hang.
        let reading = tokio::task::spawn_blocking(move || {
            renewed.renew(&folder.path);
            read_all(&reader, &folder, with_authorities)
        });
        let Ok(found) = reading.await else { continue };
        let reloaded = found.map(|DirectoryContents { pair, authorities }| {
            if let Some(announcements) = &mut announcements {
                announcements.announce(certificate, authorities);
            }
            let is_announcing = announcements.as_ref().is_some_and(|it| it.under_way.is_some());
            let must_wait = is_announcing && pair.is_some() && certificate.check().is_ok();
            if must_wait && !waits {
                tracing::info!("a new certificate waits until the API server trusts its CA");
            }
            waits = must_wait;
            pair.filter(|_| !must_wait).map(|loaded| certificate.put_in_force(loaded)).is_some()
        });
        log.reloaded(certificate, reloaded);
    }
}

fn read_all(
    certificate: &CertificateReloader,
    directory: &CertificateDirectory,
    with_authorities: bool,
) -> Result<DirectoryContents, CertificateError> {
    // The pair first: if the directory is replaced in between, the CAs are newer than the pair, never older.
    let pair = certificate.load_if_new(directory.read_pair(read_client_ca(certificate.clients.as_ref())?)?)?;
    let authorities = if with_authorities { directory.read_authorities()? } else { None };
    Ok(DirectoryContents { pair, authorities })
}

/// The CAs that were announced to the API server.
struct Announcements {
    announcer: Announcer,
    last: Option<String>,
    /// True after the missing `ca.crt` was logged.
    logged_missing: bool,
    under_way: Option<BoxFuture<'static, ()>>,
}

impl Announcements {
    fn new(announcer: Announcer) -> Self {
        Self { announcer, last: None, logged_missing: false, under_way: None }
    }

    fn announce(&mut self, certificate: &CertificateReloader, authorities: Option<(String, i64)>) {
        let Some((authorities, ends)) = authorities else {
            if self.last.is_none() && !std::mem::replace(&mut self.logged_missing, true) {
                tracing::warn!("cannot register: the certificate's directory has no `ca.crt`, or a blank one");
            }
            return;
        };
        if self.last.as_ref() == Some(&authorities) {
            return;
        }
        certificate.authority_expiry.set(ends);
        let announced = tokio::time::timeout(ANNOUNCEMENT_TIMEOUT, (self.announcer)(authorities.clone()));
        let announced = announced.map(|in_time| {
            if in_time.is_err() {
                tracing::warn!(
                    "the API server does not trust the CA in `ca.crt` after {ANNOUNCEMENT_TIMEOUT:?}; the new certificate is \
                     served anyway"
                );
            }
        });
        self.under_way = Some(announced.boxed());
        self.last = Some(authorities);
    }
}
