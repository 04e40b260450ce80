//! The serving certificate that the replicas agree on, in one Secret of the Service's namespace.
//!
//! Each replica reads the Secret every half minute and when it changes, decides what should stand in it ([`plan`]), and
//! writes that if nobody else was faster: a write names the version that it was decided on. What stands there is served
//! and trusted; what could not be read or written leaves all as it is.
//!
//! The Secret is of type `kubernetes.io/tls`: `tls.crt` and `tls.key` are what is served, `ca.crt` is the bundle of CAs to
//! trust, the newest first, and `ca.key` is that one's key.

mod contents;
mod log;
mod plan;

use super::trust::{Held, ServiceReference, Trust};
use crate::authority::{AuthorityError, CertificatePair, Offer};
use contents::{Contents, since_1970};
use futures::StreamExt;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use log::Log;
use plan::{Id, Lifetimes, Settling, State};
use prometheus_client::metrics::gauge::Gauge;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// The type of a Secret with a certificate.
const TLS: &str = "kubernetes.io/tls";

const NAME_LABEL: &str = "app.kubernetes.io/name";
const NAME: &str = "kube-unions";

/// A watch is asked for anew after so long.
const WATCH_SECONDS: u32 = 120;

/// For one request.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest wait after a failure.
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Attempts to write before a pause: another replica may be faster each time, but there is an end to what it has to do.
const ATTEMPTS: usize = 8;

/// So many writes a minute are more than replicas need who agree.
const MOST_WRITES: u32 = 6;

/// When things are done.
#[derive(Clone)]
pub struct Timing {
    /// How often the Secret is read, whether it changes or not.
    pub check: Duration,
    /// How long the webhook configurations have to hold a new CA before it signs. Longer than `check`, since a replica
    /// that sees the Secret late could take the new CA out of them once more.
    pub settle: Duration,
    /// The first wait after a failure. It doubles.
    pub retry: Duration,
    /// The time by which certificates are made.
    pub clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            check: Duration::from_secs(30),
            settle: Duration::from_mins(1),
            retry: Duration::from_secs(1),
            clock: Arc::new(SystemTime::now),
        }
    }
}

impl fmt::Debug for Timing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { check, settle, retry, clock: _ } = self;
        out.debug_struct("Timing").field("check", check).field("settle", settle).field("retry", retry).finish()
    }
}

/// One replica's part in the agreement.
pub struct Agreement {
    secrets: Api<Secret>,
    name: String,
    namespace: String,
    dns_names: Vec<String>,
    timing: Timing,
    going_by: State,
    pair: Option<Arc<CertificatePair>>,
    settling: Settling,
    started: Instant,
    /// How many since when.
    writes: (SystemTime, u32),
    log: Log,
}

/// Why it could not be looked at, or changed.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("cannot {action} the Secret `{secret}`")]
    Request { action: &'static str, secret: String, source: kube::Error },
    #[error("cannot {action} the Secret `{secret}`: the API server has not answered within {PATIENCE:?}")]
    Timeout { action: &'static str, secret: String },
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error("the Secret `{0}` is changed by somebody else again and again")]
    Contended(String),
}

/// Returns what a replica that serves nothing yet writes to a Secret with these data, for a server of these names; `None` if it
/// leaves them as they are. The webhook configurations hold every CA of the Secret.
pub fn renewed(
    data: &BTreeMap<String, ByteString>,
    dns_names: &[String],
    now: SystemTime,
) -> Result<Option<BTreeMap<String, ByteString>>, AuthorityError> {
    let contents = Contents::read(data, dns_names.first().map(String::as_str).unwrap_or_default());
    let lifetimes = lifetimes(Duration::ZERO);
    let plan = plan::plan(&contents.state, &State::default(), Some(0), since_1970(now), lifetimes);
    if !plan.changes(&contents.state) {
        return Ok(None);
    }
    contents.carry_out(&plan, None, dns_names, now, lifetimes).map(Some)
}

/// How long CAs and certificates are valid. `settle`: see [`Timing::settle`].
fn lifetimes(settle: Duration) -> Lifetimes {
    const DAY: i64 = 24 * 3600;
    Lifetimes { authority: 365 * DAY, leaf: 90 * DAY, settle: i64::try_from(settle.as_secs()).unwrap_or(i64::MAX) }
}

/// Where its results go.
struct Outlets<'a> {
    offers: &'a watch::Sender<Offer>,
    trust: &'a watch::Sender<Option<Trust>>,
    expiry: &'a Gauge,
}

impl Agreement {
    /// On the Secret `name` in the namespace of `service`, with a certificate for that.
    pub fn new(client: Client, service: &ServiceReference, name: &str) -> Self {
        Self {
            secrets: Api::namespaced(client, &service.namespace),
            name: name.to_owned(),
            namespace: service.namespace.to_string(),
            dns_names: service.dns_names().to_vec(),
            timing: Timing::default(),
            going_by: State::default(),
            pair: None,
            settling: Settling::default(),
            started: Instant::now(),
            writes: (SystemTime::UNIX_EPOCH, 0),
            log: Log::new(format!("{}/{name}", service.namespace)),
        }
    }

    /// The same at other times.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// Keeps to it until nobody receives `offers` any more. `held`: what the configurations hold; nobody has to say.
    /// `expiry`: when the newest CA ends.
    pub async fn follow(
        mut self,
        offers: watch::Sender<Offer>,
        trust: watch::Sender<Option<Trust>>,
        mut held: watch::Receiver<Held>,
        expiry: Gauge,
    ) {
        let only = watcher::Config::default().fields(&format!("metadata.name={}", self.name)).timeout(WATCH_SECONDS);
        let mut changes = pin!(watcher(self.secrets.clone(), only));
        let outlets = Outlets { offers: &offers, trust: &trust, expiry: &expiry };
        let mut retry = self.timing.retry;
        let mut watch_again = None;
        let mut told = true;
        loop {
            let holding = held.borrow_and_update().clone();
            let pause = match self.look(&Holding::new(&holding), &outlets).await {
                Ok(pause) => {
                    retry = self.timing.retry;
                    if self.log.well() {
                        watch_again = None;
                    }
                    pause
                }
                Err(trouble) => {
                    let reason = self.log.trouble(&trouble, self.pair.is_some());
                    if self.pair.is_none() {
                        offers.send_modify(|it| *it = Err(reason));
                    }
                    let pause = retry;
                    retry = (retry * 2).min(LONGEST_RETRY);
                    pause
                }
            };
            let mut pause = pin!(tokio::time::sleep(pause));
            loop {
                tokio::select! {
                    () = &mut pause => break,
                    news = held.changed(), if told => {
                        told = news.is_ok();
                        if *held.borrow_and_update() != holding {
                            break;
                        }
                    }
                    change = changes.next(), if watch_again.is_none() => match change {
                        Some(Ok(watcher::Event::Apply(_) | watcher::Event::Delete(_) | watcher::Event::InitDone)) => {
                            self.log.watching();
                            break;
                        }
                        Some(Ok(watcher::Event::Init | watcher::Event::InitApply(_))) => {}
                        // The regular look goes on. It does not depend on the watch.
                        Some(Err(error)) => {
                            self.log.not_watching(&error);
                            watch_again = Some(tokio::time::Instant::now() + self.timing.check.min(LONGEST_RETRY));
                        }
                        None => watch_again = Some(tokio::time::Instant::now() + LONGEST_RETRY),
                    },
                    () = until(watch_again) => watch_again = None,
                    () = offers.closed() => return,
                }
            }
        }
    }

    /// Serves and trusts what stands in the Secret, and has it say what it should. Returns how long that will do.
    async fn look(&mut self, holding: &Holding, outlets: &Outlets<'_>) -> Result<Duration, Trouble> {
        let mut secret = self.read().await?;
        for _ in 0..ATTEMPTS {
            let now = (self.timing.clock)();
            let data = secret.as_ref().and_then(|it| it.data.as_ref());
            let first = self.dns_names.first().map(String::as_str).unwrap_or_default();
            let contents = data.map(|data| Contents::read(data, first)).unwrap_or_default();
            self.go_by(&contents, holding, since_1970(now), outlets);

            let signer = contents.state.signer.as_ref();
            let started = i64::try_from(self.started.elapsed().as_secs()).unwrap_or(i64::MAX);
            let held_for = self.settling.held_for(signer, |id| holding.has(id), started);
            let plan = plan::plan(&contents.state, &self.going_by, held_for, since_1970(now), self.lifetimes());
            self.log.waiting(&contents.state, &plan, holding.is_known(), since_1970(now));
            if !plan.changes(&contents.state) {
                let again = u64::try_from(plan.again - since_1970(now)).unwrap_or_default();
                return Ok(self.timing.check.min(Duration::from_secs(again)));
            }
            self.count_write(now)?;
            let data = contents.carry_out(&plan, self.pair.as_deref(), &self.dns_names, now, self.lifetimes())?;
            secret = match self.write(secret, data).await? {
                Some(written) => {
                    self.log.wrote(&plan, &contents);
                    Some(written)
                }
                None => self.read().await?,
            };
        }
        Err(Trouble::Contended(self.secret()))
    }

    /// Puts in force what stands in the Secret, as far as that is better than what is in force.
    fn go_by(&mut self, contents: &Contents, holding: &Holding, now: i64, outlets: &Outlets<'_>) {
        let stored = &contents.state;
        let is_new = contents.pair != self.pair;
        let takes_over = is_new && plan::takes_over(stored, &self.going_by, |id| holding.has(id), now);
        if takes_over {
            self.going_by.leaf.clone_from(&stored.leaf);
            // Its CA goes with it.
            self.going_by.authorities.clone_from(&stored.authorities);
            self.pair.clone_from(&contents.pair);
        }
        let trusted = plan::trusted(stored, &self.going_by, now);
        self.going_by.authorities = trusted;
        if let Some(newest) = self.going_by.authorities.first() {
            outlets.expiry.set(newest.not_after);
            let trust = Trust::Agreed(contents::bundle(&self.going_by.authorities));
            outlets.trust.send_if_modified(|it| {
                let other = it.as_ref() != Some(&trust);
                *it = Some(trust);
                other
            });
        }
        // Last, so that nothing is served of which nobody has been told whom to trust for it.
        if let Some(pair) = self.pair.as_ref().filter(|_| takes_over) {
            outlets.offers.send_modify(|it| *it = Ok(Arc::clone(pair)));
        }
    }

    fn lifetimes(&self) -> Lifetimes {
        lifetimes(self.timing.settle)
    }

    /// Somebody else who keeps this Secret to his own mind is not argued with at the speed of the API server.
    fn count_write(&mut self, now: SystemTime) -> Result<(), Trouble> {
        let (since, count) = &mut self.writes;
        // An error is a clock that was set back.
        if now.duration_since(*since).is_ok_and(|it| it < Duration::from_mins(1)) {
            *count += 1;
        } else {
            (*since, *count) = (now, 1);
        }
        if *count > MOST_WRITES { Err(Trouble::Contended(self.secret())) } else { Ok(()) }
    }

    async fn read(&self) -> Result<Option<Secret>, Trouble> {
        self.request("read", self.secrets.get_opt(&self.name)).await
    }

    /// `None`: somebody else was faster.
    async fn write(&self, secret: Option<Secret>, data: contents::Data) -> Result<Option<Secret>, Trouble> {
        let parameters = PostParams { field_manager: Some(NAME.to_owned()), ..PostParams::default() };
        let exists = secret.is_some();
        let mut secret = secret.unwrap_or_else(|| Secret { type_: Some(TLS.to_owned()), ..Secret::default() });
        // What else somebody has put there stays. So does the version, for which the API server refuses to replace a newer.
        secret.data.get_or_insert_default().extend(data);
        secret.metadata.name = Some(self.name.clone());
        secret.metadata.namespace = Some(self.namespace.clone());
        let labels = secret.metadata.labels.get_or_insert_with(BTreeMap::new);
        labels.entry(NAME_LABEL.to_owned()).or_insert_with(|| NAME.to_owned());
        let written = if exists {
            self.request("update", self.secrets.replace(&self.name, &parameters, &secret)).await
        } else {
            self.request("create", self.secrets.create(&parameters, &secret)).await
        };
        match written {
            Ok(written) => Ok(Some(written)),
            Err(Trouble::Request { source: kube::Error::Api(status), .. })
                if status.is_conflict() || status.is_already_exists() || (exists && status.is_not_found()) =>
            {
                Ok(None)
            }
            Err(trouble) => Err(trouble),
        }
    }

    async fn request<T>(
        &self,
        action: &'static str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Trouble> {
        match tokio::time::timeout(PATIENCE, request).await {
            Ok(answer) => answer.map_err(|source| Trouble::Request { action, secret: self.secret(), source }),
            Err(_elapsed) => Err(Trouble::Timeout { action, secret: self.secret() }),
        }
    }

    fn secret(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for Agreement {
    /// Never shows the key.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Agreement").field("secret", &self.secret()).finish_non_exhaustive()
    }
}

/// What the configurations hold, to be compared with.
enum Holding {
    Unknown,
    Nothing,
    These(Vec<Id>),
}

impl Holding {
    fn new(held: &Held) -> Self {
        match held {
            Held::Unknown => Self::Unknown,
            Held::Nothing => Self::Nothing,
            Held::Bundle(pem) => Self::These(contents::ids(pem)),
        }
    }

    /// Whether all who are called by them accept what `authority` has signed.
    fn has(&self, authority: &Id) -> bool {
        match self {
            Self::Unknown => false,
            Self::Nothing => true,
            Self::These(held) => held.contains(authority),
        }
    }

    fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown)
    }
}

impl Held {
    /// Whether these CAs, PEM, are among what is held, or nobody has to trust anything.
    pub fn holds(&self, authorities: &str) -> bool {
        let holding = Holding::new(self);
        contents::ids(authorities).iter().all(|id| holding.has(id)) && holding.is_known()
    }
}

async fn until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
