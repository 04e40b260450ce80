//! Reloads the certificate when its source changes: a directory, or the offers of a channel.
//!
//! A mounted Secret brings a new CA and the pair that it signed at once, and replicas get it at different times. So the new
//! pair waits until the API server trusts its CA, and the previous pair is served meanwhile.

use super::directory::CertificateDirectory;
use super::source::{CertificateError, read_client_ca};
use super::tls::{CertificateFiles, LoadedCertificate};
use super::wake::DirectoryWake;
use super::{CertificateReloader, ReloadSource};
use crate::authority::ServingCertificate;
use crate::causes::with_causes;
use futures::FutureExt;
use futures::future::{BoxFuture, OptionFuture};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// Makes the API server trust additional CAs, PEM. The future resolves when it does.
pub type Announcer = Arc<dyn Fn(String) -> BoxFuture<'static, ()> + Send + Sync>;

/// Wait after a change, in case a writer writes one file after another.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Longest wait of a new pair for its CA to be trusted.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_mins(5);

impl CertificateReloader {
    /// Reloads the certificate when its source changes. Files are read every `interval` besides.
    pub(in crate::webhook) async fn keep_fresh(self: Arc<Self>, interval: Duration, announcer: Option<Announcer>) {
        match &self.source {
            ReloadSource::None => pending().await,
            ReloadSource::Directory(directory) => follow_directory(&self, directory, interval, announcer).await,
            ReloadSource::Offered(offers) => Arc::clone(&self).follow_offers(offers.clone(), interval).await,
        }
    }

    async fn follow_offers(self: Arc<Self>, mut offers: watch::Receiver<ServingCertificate>, interval: Duration) {
        // The clients' CA is a file and is polled.
        let mut ticks = ticks(interval);
        let mut log = ReloadLog::default();
        let mut open = true;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                changed = offers.changed(), if open => open = changed.is_ok(),
            }
            let offer = offers.borrow_and_update().clone();
            let Ok(pair) = offer else { continue };
            let this = Arc::clone(&self);
            // A mounted file system may hang.
            let loading = tokio::task::spawn_blocking(move || {
                let client_ca = read_client_ca(this.clients.as_ref())?;
                this.load_if_new(CertificateFiles::new((*pair).clone(), client_ca))
            });
            let Ok(loaded) = loading.await else { continue };
            log.reloaded(&self, loaded.map(|loaded| loaded.map(|it| self.put_in_force(it)).is_some()));
        }
    }
}

/// The contents of the directory.
struct DirectoryContents {
    /// The new pair; `None` if the pair in force is there.
    pair: Option<LoadedCertificate>,
    authorities: Option<(String, i64)>,
}

/// Reloads the certificate for ever: when the directory changes, and every `interval`.
async fn follow_directory(
    certificate: &Arc<CertificateReloader>,
    directory: &CertificateDirectory,
    interval: Duration,
    announcer: Option<Announcer>,
) {
    let wake = DirectoryWake::new(directory.path());
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
            renewed.renew(folder.path());
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

/// The log of reloads: each change, and each failure once.
#[derive(Default)]
struct ReloadLog {
    failure: Option<String>,
}

impl ReloadLog {
    /// Logs the result of a reload. `Ok(true)`: another certificate is in force.
    fn reloaded(&mut self, certificate: &CertificateReloader, reloaded: Result<bool, CertificateError>) {
        match reloaded {
            Ok(changed) => {
                if changed {
                    tracing::info!(expires = certificate.expiry.get(), "certificate reloaded");
                }
                self.failure = None;
            }
            Err(error) => {
                certificate.failures.inc();
                let reason = with_causes(&error);
                if self.failure.as_ref() != Some(&reason) {
                    tracing::warn!(reason, "certificate not reloaded; the previous one stays in force");
                }
                self.failure = Some(reason);
            }
        }
    }
}

fn ticks(interval: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
