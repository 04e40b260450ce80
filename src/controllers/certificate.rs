//! The CA and the serving certificate that the replicas share in one Secret of the Service's namespace.
//!
//! Each replica reads the Secret every half minute and when it changes, [plans](plan) its next contents, and writes them
//! under the `resourceVersion` that it read. A failed read or write leaves the served certificate in force.
//!
//! The Secret has the type `kubernetes.io/tls`: `tls.crt` and `tls.key` are served, `ca.crt` is the bundle of CAs to trust,
//! the newest first, and `ca.key` is the newest CA's key.
//!
//! It must not know who serves the certificate or who registers the bundle: pairs leave through `offers` and bundles
//! through [`Trust`]. Start at [`plan`] for the decisions, at [`contents`] for the Secret's data, at
//! [`reconciler`](super::reconciler) for the loop.

mod contents;
mod log;
mod plan;
mod secret;
mod state;

use super::ServiceReference;
use super::handover::{RegisteredBundle, Trust};
use super::reconciler::{Controller, Reconciled, StepError, changes, news, publish, run};
use crate::authority::{AuthorityError, ServingCertificate, since_1970};
use contents::{Contents, bundle_of};
use futures::StreamExt;
use futures::future::ready;
use futures::stream::select;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube_unions_api::{RequestError, by_name, list_and_watch};
use kube_unions_core::causes::with_causes;
use log::CertificateLog;
use plan::{CertificatePlan, plan};
use prometheus_client::metrics::gauge::Gauge;
use secret::SharedSecret;
use state::{CertificateState, Settling};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::Instant;

/// Writes in a [`MINUTE`]. Replicas that agree need fewer.
const MOST_WRITES: usize = 6;

const MINUTE: Duration = Duration::from_mins(1);

/// The intervals and the clocks by which a certificate is shared.
#[derive(Clone)]
pub struct Timing {
    /// Time between two reads of the Secret if no change is reported.
    pub check: Duration,
    /// Time for which the webhook configurations must hold a new CA before it signs. It must be longer than `check`: a replica
    /// with a stale view of the Secret could take the new CA out of them once more.
    pub settle: Duration,
    /// First and longest wait after a failure.
    pub waits: [Duration; 2],
    /// Wall clock by which certificates are made.
    pub clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// Monotonic clock by which a CA settles and writes are counted.
    pub uptime: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl Default for Timing {
    fn default() -> Self {
        let started = Instant::now();
        Self {
            check: Duration::from_secs(30),
            settle: Duration::from_mins(1),
            waits: [Duration::from_secs(1), Duration::from_secs(30)],
            clock: Arc::new(SystemTime::now),
            uptime: Arc::new(move || started.elapsed()),
        }
    }
}

/// Inputs and outputs of a shared certificate.
pub struct CertificateSignals {
    /// Receives the pair to serve.
    pub offers: watch::Sender<ServingCertificate>,
    /// Receives the CAs to register.
    pub trust: watch::Sender<Option<Trust>>,
    /// CAs in the webhook configurations.
    pub held: watch::Receiver<RegisteredBundle>,
    /// Is set to the expiry of the newest CA.
    pub expiry: Gauge,
}

/// Keeps the Secret `name` in the Service's namespace in order until every receiver of offers is dropped. Certificates carry the
/// Service's DNS names.
pub async fn share_certificate(
    client: Client,
    service: &ServiceReference,
    name: &str,
    timing: Timing,
    signals: CertificateSignals,
) {
    let secrets = secret::collection(service);
    let watched = list_and_watch(&client, secrets, by_name(name), || {});
    let watched = watched.filter_map(|event| ready(changes(event).map(Some)));
    let held = news(&signals.held).map(|()| None);
    let offers = signals.offers.clone();
    let events = select(watched, held).take_until(async move { offers.closed().await }).boxed();
    let secret = SharedSecret::new(client, service, name);
    let mut controller = CertificateController {
        log: CertificateLog::new(secret.to_string()),
        secret,
        dns_names: service.dns_names().to_vec(),
        timing,
        signals,
        in_force: CertificateState::default(),
        settling: Settling::default(),
        writes: Vec::new(),
    };
    run(&mut controller, events).await;
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
    let plan = plan(&contents.state, &in_force, true, since_1970(now));
    let data = plan.changes(&contents.state).then(|| contents.carry_out(&plan, &in_force, dns_names, now));
    data.transpose()
}

/// One replica's side of the shared Secret.
struct CertificateController {
    secret: SharedSecret,
    dns_names: Vec<String>,
    timing: Timing,
    signals: CertificateSignals,
    in_force: CertificateState,
    settling: Settling,
    /// Times of the writes of the last minute.
    writes: Vec<Duration>,
    log: CertificateLog,
}

impl Controller for CertificateController {
    /// A change or a failure of the watch; `None` if the configurations hold other CAs.
    type Event = Option<Result<(), RequestError>>;

    fn waits(&self) -> [Duration; 2] {
        self.timing.waits
    }

    fn observe(&mut self, event: Self::Event) {
        if let Some(watched) = event {
            self.log.watched(watched);
        }
    }

    /// Reads the Secret, adopts its certificates and writes what is missing.
    async fn step(&mut self, now: Instant) -> Result<Reconciled, StepError> {
        let check = now + self.timing.check;
        let stored = self.secret.read().await?;
        let (contents, plan) = self.adopt(stored.as_ref());
        if !plan.changes(&contents.state) {
            return Ok(Reconciled::in_sync(check));
        }
        // Another writer may revert every write.
        if self.recent_writes() >= MOST_WRITES {
            return Err(self.log.contended());
        }
        self.writes.push((self.timing.uptime)());
        let data = contents.carry_out(&plan, &self.in_force, &self.dns_names, (self.timing.clock)());
        let data = data.map_err(|error| StepError::new(with_causes(&error)))?;
        let written = self.secret.write(stored, data).await?;
        self.log.wrote(&plan, &contents);
        let (contents, plan) = self.adopt(Some(&written));
        Ok(if plan.changes(&contents.state) { Reconciled::pending(now) } else { Reconciled::in_sync(check) })
    }

    fn failed(&mut self, error: &StepError) {
        let is_serving = self.in_force.usable_leaf(since_1970((self.timing.clock)())).is_some();
        let reason = self.log.failed(&error.reason, is_serving);
        if self.in_force.leaf.is_none() {
            self.signals.offers.send_modify(|it| *it = Err(reason));
        }
    }

    fn in_sync(&mut self) {
        let is_calm = self.recent_writes() == 0;
        self.log.succeeded(is_calm);
    }
}

impl CertificateController {
    /// Serves and trusts the stored certificates where they are better than those in force, and plans the next contents.
    fn adopt(&mut self, secret: Option<&Secret>) -> (Contents, CertificatePlan) {
        let data = secret.and_then(|it| it.data.as_ref());
        let name = self.dns_names.first().map(String::as_str).unwrap_or_default();
        let contents = data.map(|data| Contents::read(data, name)).unwrap_or_default();
        self.log.read(&contents);
        let held = self.signals.held.borrow().clone();
        let (now, uptime) = (since_1970((self.timing.clock)()), (self.timing.uptime)());

        let stored = &contents.state;
        let replaced = self.in_force.adopt(stored, |it| held.trusts(it), now);
        if let Some(newest) = self.in_force.authorities.first() {
            self.signals.expiry.set(newest.not_after);
            publish(&self.signals.trust, Some(Trust::Agreed(bundle_of(&self.in_force.authorities).into())));
        }
        // After the bundle: no certificate is served before its CA is published.
        if let Some(leaf) = self.in_force.leaf.as_ref().filter(|_| replaced) {
            self.signals.offers.send_modify(|it| *it = Ok(Arc::clone(&leaf.pair)));
        }

        let settle = self.timing.settle;
        let settled = self.settling.is_over(stored.signer.as_ref(), |it| held.trusts(it), uptime, settle);
        let plan = plan(stored, &self.in_force, settled, now);
        self.log.waiting(stored, &plan, held != RegisteredBundle::Unknown, now);
        (contents, plan)
    }

    /// Returns the number of writes, with success or without, in the last minute.
    fn recent_writes(&mut self) -> usize {
        let now = (self.timing.uptime)();
        self.writes.retain(|it| now.saturating_sub(*it) < MINUTE);
        self.writes.len()
    }
}
