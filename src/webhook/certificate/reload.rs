//! Reloads the certificate when its source changes: a directory, or the offers of a channel.
//!
//! A mounted Secret brings a new CA and the pair that it signed at once, and replicas get it at different times. So the new
//! pair waits until the API server trusts its CA, and the previous pair is served meanwhile.

use super::directory::read_authorities;
use super::source::CertificateError;
use super::{CertificateReloader, ReloadSource};
use crate::telemetry::LogOnce;
use crate::webhook::config::Announcer;
use futures::FutureExt;
use futures::future::{BoxFuture, OptionFuture};
use kube_unions_core::causes::with_causes;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// Longest wait of a new pair for its CA to be trusted.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_mins(5);

impl ReloadSource {
    /// Resolves when another pair is offered. A directory is polled: network file systems and exhausted inotify limits report no
    /// changes.
    async fn changed(&mut self) {
        // After the last sender is dropped, nothing changes.
        if let Self::Offered(offers) = self
            && offers.changed().await.is_ok()
        {
            return;
        }
        pending::<()>().await;
    }
}

impl CertificateReloader {
    /// Returns true if a look at the source reads files.
    fn reads_files(&self) -> bool {
        matches!(self.source, ReloadSource::Directory(_)) || self.clients.is_some()
    }

    /// Reloads the certificate for ever: when another pair is offered, and every `interval`.
    pub(in crate::webhook) async fn keep_fresh(self: Arc<Self>, interval: Duration, announcer: Option<Announcer>) {
        let mut source = self.source.clone();
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failure = LogOnce::default();
        let mut announcements = announcer.map(Announcements::new);
        let mut waits = false;
        loop {
            let trusted = OptionFuture::from(announcements.as_mut().and_then(|it| it.under_way.as_mut()));
            tokio::select! {
                biased;
                _ = ticks.tick() => {}
                () = source.changed() => {}
                Some(()) = trusted => {
                    if let Some(announcements) = &mut announcements {
                        announcements.under_way = None;
                    }
                }
            }
            let reader = Arc::clone(&self);
            let with_authorities = announcements.is_some();
            let read = move || {
                let directory = match &reader.source {
                    ReloadSource::Directory(path) if with_authorities => Some(path),
                    ReloadSource::Directory(_) | ReloadSource::Offered(_) => None,
                };
                // The pair first: if the directory is replaced in between, the CAs are newer than the pair, never older.
                let pair = reader.read()?;
                let authorities = directory.map(|directory| read_authorities(directory)).transpose()?.flatten();
                Ok::<_, CertificateError>((pair, authorities))
            };
            // A mounted file system may hang.
            let found = if self.reads_files() {
                let Ok(found) = tokio::task::spawn_blocking(read).await else { continue };
                found
            } else {
                read()
            };
            let reloaded = found.map(|(pair, authorities)| {
                if let Some(announcements) = &mut announcements {
                    announcements.announce(&self, authorities);
                }
                let is_announcing = announcements.as_ref().is_some_and(|it| it.under_way.is_some());
                let must_wait = is_announcing && pair.is_some() && self.check().is_ok();
                if must_wait && !waits {
                    tracing::info!("a new certificate waits until the API server trusts its CA");
                }
                waits = must_wait;
                pair.filter(|_| !must_wait).map(|loaded| self.put_in_force(loaded)).is_some()
            });
            match reloaded {
                Ok(changed) => {
                    if changed {
                        tracing::info!(expires = self.expiry.get(), "certificate reloaded");
                    }
                    failure.is_over();
                    self.failure.store(None);
                }
                Err(error) => {
                    self.failures.inc();
                    let reason = with_causes(&error);
                    if failure.is_new(&reason) {
                        tracing::warn!(reason, "certificate not reloaded; the previous one stays in force");
                    }
                    self.failure.store(Some(Arc::new(reason)));
                }
            }
        }
    }
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
