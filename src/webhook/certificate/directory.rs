//! The certificate in a folder, as a Secret is mounted there: followed while it changes, and its CA announced first.
//!
//! Contents are compared, not times: a kubelet changes a mounted Secret by swapping one symbolic link.
//!
//! A new CA comes in one swap together with the pair that it has signed, and not to all replicas at once. So the pair
//! waits until the API server is known to trust its CA, while the one before it is served on.

use super::wake::Wake;
use super::{
    Certificate, CertificateError, Contents, Loaded, ReloadLog, Validity, certificates, read, read_client_ca, ticks,
};
use futures::FutureExt;
use futures::future::{BoxFuture, OptionFuture};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub(super) const CHAIN: &str = "tls.crt";
pub(super) const KEY: &str = "tls.key";
const AUTHORITIES: &str = "ca.crt";

/// Makes the API server trust these CAs, PEM, too; resolves when it does.
pub type Announcer = Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>;

/// Whoever writes two files writes them one after the other.
const CALM: Duration = Duration::from_millis(100);

/// So long a new pair waits for its CA to be trusted.
const PATIENCE: Duration = Duration::from_mins(5);

/// The folder.
#[derive(Debug, Clone)]
pub(super) struct Files {
    directory: PathBuf,
}

impl Files {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn read_pair(&self, client_ca: Option<Vec<u8>>) -> Result<Contents, CertificateError> {
        let Self { directory } = self;
        Ok(Contents { chain: read(&directory.join(CHAIN))?, key: read(&directory.join(KEY))?, client_ca })
    }

    /// `ca.crt`, and when the last CA in it ends. Some issuers leave the file empty.
    fn read_authorities(&self) -> Result<Option<(String, i64)>, CertificateError> {
        let path = self.directory.join(AUTHORITIES);
        let pem = match read(&path) {
            Err(CertificateError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        if pem.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let ends = certificates(&pem, &path)?.into_iter().map(|it| Ok(Validity::of(&it)?.not_after));
        let ends = ends.collect::<Result<Vec<_>, CertificateError>>()?;
        let Some(ends) = ends.into_iter().max() else { return Err(CertificateError::Empty { path }) };
        let pem = String::from_utf8(pem).map_err(|_| CertificateError::Empty { path })?;
        Ok(Some((pem, ends)))
    }
}

/// What a look at the folder has found.
struct Found {
    /// `None`: what is in force.
    pair: Option<Loaded>,
    authorities: Option<(String, i64)>,
}

/// Follows it, for ever.
pub(super) async fn follow(
    certificate: &Arc<Certificate>,
    files: &Files,
    interval: Duration,
    announcer: Option<Announcer>,
) {
    let wake = Wake::of(&files.directory);
    let mut ticks = ticks(interval);
    let mut log = ReloadLog::default();
    let mut announcements = announcer.map(Announcements::new);
    let mut next = None;
    loop {
        let trusted = OptionFuture::from(announcements.as_mut().and_then(|it| it.under_way.as_mut()));
        tokio::select! {
            _ = ticks.tick() => {}
            () = wake.changed() => tokio::time::sleep(CALM).await,
            Some(()) = trusted => {
                if let Some(announcements) = &mut announcements {
                    announcements.under_way = None;
                }
            }
        }
        let (reader, folder, noticing) = (Arc::clone(certificate), files.clone(), wake.clone());
        let with_authorities = announcements.is_some();
        // A Secret is a file system that can hang.
        let look = tokio::task::spawn_blocking(move || {
            noticing.renew(&folder.directory);
            look(&reader, &folder, with_authorities)
        });
        let Ok(found) = look.await else { continue };
        let found = found.map(|Found { pair, authorities }| {
            if let Some(announcements) = &mut announcements {
                announcements.announce(certificate, authorities);
            }
            pair
        });
        let waits = announcements.as_ref().is_some_and(|it| it.under_way.is_some())
            && certificate.check(SystemTime::now()).is_ok();
        let changed = match found {
            Ok(Some(loaded)) if waits => {
                if next.replace(loaded.validity.not_after).is_none() {
                    tracing::info!("a new certificate waits until the API server trusts its CA");
                }
                Ok(false)
            }
            Ok(Some(loaded)) => {
                next = None;
                certificate.put_in_force(loaded);
                Ok(true)
            }
            Ok(None) => {
                next = None;
                Ok(false)
            }
            Err(error) => Err(error),
        };
        log.say(certificate, changed);
    }
}

fn look(certificate: &Certificate, files: &Files, with_authorities: bool) -> Result<Found, CertificateError> {
    // First the pair: if the folder is swapped in between, the CAs are ahead of it, and not it of them.
    let pair = certificate.load_other(files.read_pair(read_client_ca(certificate.clients.as_ref())?)?)?;
    let authorities = if with_authorities { files.read_authorities()? } else { None };
    Ok(Found { pair, authorities })
}

/// What the API server was asked to trust.
struct Announcements {
    announcer: Announcer,
    last: Option<String>,
    /// It was said that there is nothing to announce.
    said: bool,
    under_way: Option<BoxFuture<'static, ()>>,
}

impl Announcements {
    fn new(announcer: Announcer) -> Self {
        Self { announcer, last: None, said: false, under_way: None }
    }

    fn announce(&mut self, certificate: &Certificate, authorities: Option<(String, i64)>) {
        let Some((authorities, ends)) = authorities else {
            if self.last.is_none() && !std::mem::replace(&mut self.said, true) {
                tracing::warn!(
                    "the certificate's folder has no `ca.crt`, or an empty one: nothing is registered without"
                );
            }
            return;
        };
        if self.last.as_ref() == Some(&authorities) {
            return;
        }
        certificate.authority_expiry.set(ends);
        let announced = tokio::time::timeout(PATIENCE, (self.announcer)(authorities.clone()));
        let announced = announced.map(|in_time| {
            if in_time.is_err() {
                tracing::warn!("the API server is not known to trust the CA in `ca.crt` after {PATIENCE:?}");
            }
        });
        self.under_way = Some(announced.boxed());
        self.last = Some(authorities);
    }
}
