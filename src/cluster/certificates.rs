//! The CA and the serving certificate that the replicas share in one Secret of the Service's namespace.
//!
//! Each replica reads the Secret every half minute and when it changes, [plans](plan) its next contents, and writes them
//! under the `resourceVersion` that it read. After a conflict it reads again. A failed read or write leaves the served
//! certificate in force.
//!
//! The Secret has the type `kubernetes.io/tls`: `tls.crt` and `tls.key` are served, `ca.crt` is the bundle of CAs to trust,
//! the newest first, and `ca.key` is the newest CA's key.
//!
//! It must not know who serves the certificate or who registers the bundle: pairs leave through `offers` and bundles
//! through [`Trust`]. Start at [`plan`] for the decisions, at [`contents`] for the Secret's data.

mod contents;
mod log;
mod plan;
mod secret;
mod state;

use crate::api::doubling;
use crate::authority::{AuthorityError, ServingCertificate};
use crate::controllers::{RegisteredBundle, ServiceReference, Trust, changed, publish};
use contents::{Contents, bundle_of, since_1970};
use futures::StreamExt;
use k8s_openapi::ByteString;
use kube::Client;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher;
use log::Log;
use prometheus_client::metrics::gauge::Gauge;
use secret::{SecretError, SharedSecret};
use state::{CertificateState, Seconds, Settling};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// Longest wait after a failure.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Writes tried in a row before a pause. Another replica may be faster each time, but replicas that agree stop writing.
const ATTEMPTS: usize = 8;

/// Writes in a [`MINUTE`]. Replicas that agree need fewer.
const MOST_WRITES: usize = 6;

const MINUTE: Duration = Duration::from_mins(1);

/// The intervals and the clock of a [`CertificateController`].
#[derive(Clone)]
pub struct Timing {
    /// Time between two reads of the Secret if no change is reported.
    pub check: Duration,
    /// Time for which the webhook configurations must hold a new CA before it signs. It must be longer than `check`: a replica
    /// with a stale view of the Secret could take the new CA out of them once more.
    pub settle: Duration,
    /// First wait after a failure. It doubles up to half a minute.
    pub retry: Duration,
    /// Wall clock by which certificates are made.
    pub clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// Monotonic clock by which waits and writes are counted.
    pub uptime: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl Default for Timing {
    fn default() -> Self {
        let started = Instant::now();
        Self {
            check: Duration::from_secs(30),
            settle: Duration::from_mins(1),
            retry: Duration::from_secs(1),
            clock: Arc::new(SystemTime::now),
            uptime: Arc::new(move || started.elapsed()),
        }
    }
}

/// One replica's side of the shared Secret.
pub struct CertificateController {
    secret: SharedSecret,
    dns_names: Vec<String>,
    timing: Timing,
    in_force: CertificateState,
    settling: Settling,
    /// Times of the writes of the last minute.
    writes: Vec<Duration>,
    log: Log,
}

/// Returns the data that a new replica writes into a Secret with this data; `None` if it writes nothing.
///
/// It assumes that the webhook configurations have held every CA of the Secret for long enough. The first of `dns_names` is
/// the name that the API server uses.
pub fn renewed(
    data: &BTreeMap<String, ByteString>,
    dns_names: &[String],
    now: SystemTime,
) -> Result<Option<BTreeMap<String, ByteString>>, AuthorityError> {
    let contents = Contents::read(data, dns_names.first().map(String::as_str).unwrap_or_default());
    let in_force = CertificateState::default();
    let plan = plan::plan(&contents.state, &in_force, true, since_1970(now));
    let data = plan.changes(&contents.state).then(|| contents.carry_out(&plan, &in_force, dns_names, now));
    data.transpose()
}

/// Receivers of the results.
struct Outlets<'a> {
    offers: &'a watch::Sender<ServingCertificate>,
    trust: &'a watch::Sender<Option<Trust>>,
    expiry: &'a Gauge,
}

impl CertificateController {
    /// Shares the Secret `name` in the Service's namespace. Certificates carry the Service's DNS names.
    pub fn new(client: Client, service: &ServiceReference, name: &str) -> Self {
        let secret = SharedSecret::new(client, service, name);
        Self {
            log: Log::new(secret.to_string()),
            secret,
            dns_names: service.dns_names().to_vec(),
            timing: Timing::default(),
            in_force: CertificateState::default(),
            settling: Settling::default(),
            writes: Vec::new(),
        }
    }

    /// Replaces the default intervals and clock.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// Keeps the Secret in order until every receiver of `offers` is dropped.
    ///
    /// `held` carries the CAs in the webhook configurations. `expiry` is set to the expiry of the newest CA.
    pub async fn follow(
        mut self,
        offers: watch::Sender<ServingCertificate>,
        trust: watch::Sender<Option<Trust>>,
        mut held: watch::Receiver<RegisteredBundle>,
        expiry: Gauge,
    ) {
        let mut changes = self.secret.watch();
        let outlets = Outlets { offers: &offers, trust: &trust, expiry: &expiry };
        let mut retry = doubling(self.timing.retry, LONGEST_RETRY);
        loop {
            let holding = held.borrow_and_update().clone();
            let pause = match self.reconcile(&holding, &outlets).await {
                Ok(()) => {
                    retry.reset();
                    let is_calm = self.recent_writes() == 0;
                    self.log.succeeded(is_calm);
                    self.timing.check
                }
                Err(error) => {
                    let now = since_1970((self.timing.clock)());
                    let reason = self.log.failed(&error, self.in_force.usable_leaf(now).is_some());
                    if self.in_force.leaf.is_none() {
                        offers.send_modify(|it| *it = Err(reason));
                    }
                    retry.next().unwrap_or(LONGEST_RETRY)
                }
            };
            let mut pause = pin!(tokio::time::sleep(pause));
            loop {
                tokio::select! {
                    () = &mut pause => break,
                    () = changed(&mut held) => break,
                    Some(change) = changes.next() => match change {
                        Ok(watcher::Event::Apply(_) | watcher::Event::Delete(_) | watcher::Event::InitDone) => {
                            self.log.watching();
                            break;
                        }
                        Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                        Err(error) => self.log.not_watching(&error),
                    },
                    () = offers.closed() => return,
                }
            }
        }
    }

    /// Reads the Secret, adopts its certificates and writes what is missing.
    async fn reconcile(&mut self, held: &RegisteredBundle, outlets: &Outlets<'_>) -> Result<(), SecretError> {
        let mut secret = self.secret.read().await?;
        for _ in 0..ATTEMPTS {
            let clock = (self.timing.clock)();
            let now = since_1970(clock);
            let data = secret.as_ref().and_then(|it| it.data.as_ref());
            let name = self.dns_names.first().map(String::as_str).unwrap_or_default();
            let contents = data.map(|data| Contents::read(data, name)).unwrap_or_default();
            self.log.read(&contents);
            self.adopt(&contents.state, held, now, outlets);

            let (uptime, settle) = ((self.timing.uptime)(), self.timing.settle);
            let settled = self.settling.is_over(contents.state.signer.as_ref(), |it| held.trusts(it), uptime, settle);
            let plan = plan::plan(&contents.state, &self.in_force, settled, now);
            self.log.waiting(&contents.state, &plan, *held != RegisteredBundle::Unknown, now);
            if !plan.changes(&contents.state) {
                return Ok(());
            }
            self.count_write()?;
            let data = contents.carry_out(&plan, &self.in_force, &self.dns_names, clock)?;
            secret = match self.secret.write(secret, data).await? {
                Some(written) => {
                    self.log.wrote(&plan, &contents);
                    Some(written)
                }
                None => self.secret.read().await?,
            };
        }
        Err(SecretError::Contended(self.secret.to_string()))
    }

    /// Serves and trusts the stored certificates where they are better than those in force.
    fn adopt(&mut self, stored: &CertificateState, held: &RegisteredBundle, now: Seconds, outlets: &Outlets<'_>) {
        let replaced = self.in_force.adopt(stored, |it| held.trusts(it), now);
        if let Some(newest) = self.in_force.authorities.first() {
            outlets.expiry.set(newest.not_after);
            publish(outlets.trust, Some(Trust::Agreed(bundle_of(&self.in_force.authorities).into())));
        }
        // After the bundle: no certificate is served before its CA is published.
        if let Some(leaf) = self.in_force.leaf.as_ref().filter(|_| replaced) {
            outlets.offers.send_modify(|it| *it = Ok(Arc::clone(&leaf.pair)));
        }
    }

    /// Refuses more than [`MOST_WRITES`] in a minute, in case another writer reverts every one.
    fn count_write(&mut self) -> Result<(), SecretError> {
        if self.recent_writes() >= MOST_WRITES {
            return Err(SecretError::Contended(self.secret.to_string()));
        }
        self.writes.push((self.timing.uptime)());
        Ok(())
    }

    /// Returns the number of writes, with success or without, in the last minute.
    fn recent_writes(&mut self) -> usize {
        let now = (self.timing.uptime)();
        self.writes.retain(|it| now.saturating_sub(*it) < MINUTE);
        self.writes.len()
    }
}
