//! Replicas that share a Secret with a CA and a serving certificate. The API server is a fake that keeps one Secret and
//! refuses the writes that a real one refuses.

mod faults;
mod store;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fixtures::wait::{SOON, until};
use kube_unions_webhook::authority::{CertificateAuthority, CertificatePair, ServingCertificate, Validity};
use kube_unions_webhook::controllers::{
    CertificateSignals, RegisteredBundle, ServiceReference, Timing, Trust, ca_bundle, share_certificate,
};
use kube_unions_webhook::telemetry::Metrics;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::Store;
use tempfile::NamedTempFile;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::instrument::WithSubscriber;
use tracing::{Dispatch, Level};

const DAY: u64 = 24 * 3600;

/// A clock that the test sets, in seconds since 1970.
#[derive(Clone)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_800_000_000)))
    }

    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0.load(Ordering::SeqCst))
    }

    fn pass(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

/// The log of one replica, at the level `INFO` and above.
struct Log(NamedTempFile);

impl Log {
    fn subscriber(&self) -> Dispatch {
        let file = Mutex::new(self.0.reopen().unwrap());
        Dispatch::new(tracing_subscriber::fmt().json().with_max_level(Level::INFO).with_writer(file).finish())
    }

    /// Returns the lines with this text.
    fn lines(&self, part: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.0.path()).unwrap();
        text.lines().filter(|it| it.contains(part)).map(str::to_owned).collect()
    }

    /// Returns the lines at the level `WARN` and above.
    fn warnings(&self) -> Vec<String> {
        [self.lines("\"level\":\"WARN\""), self.lines("\"level\":\"ERROR\"")].concat()
    }
}

/// A replica, and the test's ends of its channels.
struct Replica {
    number: usize,
    offers: watch::Receiver<ServingCertificate>,
    trust: watch::Receiver<Option<Trust>>,
    held: watch::Sender<RegisteredBundle>,
    log: Log,
    controller: JoinHandle<()>,
}

impl Replica {
    fn start(store: &Store, clock: &Clock) -> Self {
        Self::of("team/hook", store, clock)
    }

    fn of(service: &str, store: &Store, clock: &Clock) -> Self {
        let service: ServiceReference = service.parse().unwrap();
        let (number, client) = store.client();
        let (clock, uptime) = (clock.clone(), clock.clone());
        let timing = Timing {
            check: Duration::from_millis(5),
            settle: Duration::ZERO,
            waits: [Duration::from_millis(5), Duration::from_millis(100)],
            clock: Arc::new(move || clock.now()),
            uptime: Arc::new(move || uptime.now().duration_since(UNIX_EPOCH).unwrap()),
        };
        let (offer, offers) = watch::channel(Err("not asked".into()));
        let (tell, trust) = watch::channel(None);
        let (held, holds) = watch::channel(RegisteredBundle::Unknown);
        let gauge = Metrics::new().certificate_authority_expiry;
        let signals = CertificateSignals { offers: offer, trust: tell, held: holds, expiry: gauge };
        let log = Log(NamedTempFile::new().unwrap());
        let controller = async move { share_certificate(client, &service, "cert", timing, signals).await };
        let controller = controller.with_subscriber(log.subscriber());
        Self { number, offers, trust, held, log, controller: tokio::spawn(controller) }
    }

    /// Stops the replica and waits until it has finished.
    async fn end(self) {
        let Self { offers, trust, held, controller, .. } = self;
        drop((offers, trust, held));
        tokio::time::timeout(SOON, controller).await.expect("the replica stops").unwrap();
    }

    async fn pair(&mut self) -> Arc<CertificatePair> {
        let offered = tokio::time::timeout(SOON, self.offers.wait_for(Result::is_ok)).await;
        Arc::clone(offered.expect("the replica offers a pair").unwrap().as_ref().unwrap())
    }

    async fn reason(&mut self, part: &str) -> String {
        let holds = |it: &ServingCertificate| it.as_ref().is_err_and(|it| it.contains(part));
        let offered = tokio::time::timeout(SOON, self.offers.wait_for(holds)).await;
        let offered = offered.unwrap_or_else(|_| panic!("no offer fails with `{part}`")).unwrap();
        offered.as_ref().unwrap_err().to_string()
    }

    fn trusted(&self) -> String {
        match &*self.trust.borrow() {
            Some(Trust::Agreed(bundle)) => bundle.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn hold(&self, bundle: &str) {
        self.held.send_replace(RegisteredBundle::Bundle(ca_bundle(bundle)));
    }
}

/// Waits until every replica has read the Secret, acted on it and read it again.
async fn reconciled(store: &Store, replicas: &[&Replica]) {
    for replica in replicas {
        let before = store.reads(replica.number);
        until("the replica reads the Secret", async || store.reads(replica.number) > before + 3).await;
    }
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect()
}

/// Verifies a pair as the API server does.
fn accepts(bundle: &str, pair: &CertificatePair, now: SystemTime) -> Result<(), rustls::Error> {
    let mut roots = rustls::RootCertStore::empty();
    for authority in certificates(bundle) {
        roots.add(authority).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let name = ServerName::try_from("hook.team.svc").unwrap();
    let now = UnixTime::since_unix_epoch(now.duration_since(UNIX_EPOCH).unwrap());
    let chain = certificates(&pair.chain);
    verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], now).map(drop)
}

fn pair_of(secret: &Value) -> CertificatePair {
    CertificatePair { chain: value(secret, "tls.crt"), key: value(secret, "tls.key") }
}

fn value(secret: &Value, key: &str) -> String {
    let encoded = secret["data"][key].as_str().unwrap_or_else(|| panic!("no `{key}`: {secret}"));
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

/// Returns a Secret with this data.
fn secret(data: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<_, _> =
        data.iter().map(|(key, text)| ((*key).to_owned(), json!(STANDARD.encode(text)))).collect();
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "cert", "namespace": "team"}, "data": data})
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_with_an_old_bundle_accept_every_certificate_for_years() {
    let (store, clock) = (Store::new(), Clock::new());
    // Releases before made a CA for one year.
    let made_at = clock.now() - Duration::from_secs(200 * DAY);
    let validity = Validity::new(made_at, Duration::from_secs(365 * DAY));
    let authority = CertificateAuthority::unique("kube-unions CA", validity).unwrap();
    store.put(secret(&[("ca.crt", authority.certificate()), ("ca.key", &authority.key())]));
    let mut replicas = [Replica::start(&store, &clock), Replica::start(&store, &clock)];
    let (mut authorities, mut leaves) = (BTreeSet::new(), BTreeSet::new());
    let mut held = String::new();
    for round in 0..3 * 365 / 15 {
        for replica in &mut replicas {
            let pair = replica.pair().await;
            if round > 0 {
                // Clients may have the bundle of the last round or the current one.
                accepts(&held, &pair, clock.now()).unwrap_or_else(|error| panic!("round {round}, before: {error}"));
            }
            accepts(&replica.trusted(), &pair, clock.now()).unwrap_or_else(|error| panic!("round {round}: {error}"));
            leaves.insert(pair.chain.clone());
        }
        assert_eq!(replicas[0].trusted(), replicas[1].trusted(), "round {round}");
        held = replicas[0].trusted();
        let bundle = certificates(&held);
        assert!(bundle.len() <= 2, "round {round}: {} CAs", bundle.len());
        authorities.extend(bundle.iter().map(|it| it.to_vec()));
        for replica in &replicas {
            replica.hold(&held);
        }
        reconciled(&store, &replicas.each_ref()).await;
        clock.pass(15 * DAY);
        reconciled(&store, &replicas.each_ref()).await;
    }
    // A CA is replaced after two thirds of its lifetime, a leaf after two thirds of ninety days, in steps of fifteen days.
    assert_eq!(authorities.len(), 2);
    assert!((16..=24).contains(&leaves.len()), "{} certificates", leaves.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_secret_is_recreated_with_a_new_ca_beside_the_old_one() {
    let (store, clock) = (Store::new(), Clock::new());
    let mut replicas = [Replica::start(&store, &clock), Replica::start(&store, &clock)];
    let first = replicas[0].pair().await;
    assert_eq!(replicas[1].pair().await, first);
    let old = replicas[0].trusted();
    for replica in &replicas {
        replica.hold(&old);
    }
    store.delete();
    until("the Secret is recreated", async || store.secret().is_some()).await;
    reconciled(&store, &replicas.each_ref()).await;
    let stored = store.secret().unwrap();
    let bundle = certificates(&value(&stored, "ca.crt"));
    assert_eq!(bundle.len(), 2);
    assert_eq!(bundle[1], certificates(&old)[0], "the newest comes first");
    for replica in &mut replicas {
        assert_eq!(replica.pair().await, first, "no client trusts the new CA yet");
        assert_eq!(certificates(&replica.trusted()), bundle);
    }

    // It is enough that one replica knows that the configurations hold the new CA.
    let both = replicas[0].trusted();
    replicas[0].hold(&both);
    until("the new CA signs", async || pair_of(&store.secret().unwrap()) != *first).await;
    let second = pair_of(&store.secret().unwrap());
    accepts(&both, &second, clock.now()).unwrap();
    assert!(accepts(&old, &second, clock.now()).is_err());
    reconciled(&store, &replicas.each_ref()).await;
    assert_eq!(*replicas[0].pair().await, second);
    assert_eq!(replicas[1].pair().await, first, "the other replica does not know that the new CA is held");
    replicas[1].held.send_replace(RegisteredBundle::Nothing);
    until("the other replica serves it too", async || {
        replicas[1].offers.borrow().as_ref().is_ok_and(|it| **it == second)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_rights_are_named_and_the_replica_recovers() {
    let clock = Clock::new();
    for verb in ["get", "create", "update"] {
        let store = Store::new();
        if verb == "update" {
            store.put(secret(&[]));
        }
        store.forbid(verb);
        let mut replica = Replica::start(&store, &clock);
        let reason = replica.reason(&format!("cannot {verb} resource \"secrets\"")).await;
        assert!(reason.contains("team/cert") && reason.contains("get, list, watch and update"), "{reason}");
        store.forbid("");
        replica.pair().await;
    }
    // The right to watch is not needed.
    let store = Store::new();
    store.forbid("watch");
    let mut replica = Replica::start(&store, &clock);
    let first = replica.pair().await;
    store.put(secret(&[]));
    until("the Secret is restored", async || store.secret().is_some_and(|it| it["data"]["tls.crt"].is_string())).await;
    assert_eq!(pair_of(&store.secret().unwrap()), *first);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_api_server_is_unreachable_the_certificate_in_force_is_served() {
    let (store, clock) = (Store::new(), Clock::new());
    store.set_unreachable(true);
    let mut replica = Replica::start(&store, &clock);
    replica.reason("connection refused").await;
    store.set_unreachable(false);
    let first = replica.pair().await;

    store.set_unreachable(true);
    store.put(secret(&[]));
    reconciled(&store, &[&replica]).await;
    assert_eq!(replica.pair().await, first);
    store.set_unreachable(false);
    until("the Secret is restored", async || pair_of_any(&store) == Some((*first).clone())).await;
}

fn pair_of_any(store: &Store) -> Option<CertificatePair> {
    store.secret().filter(|it| it["data"]["tls.crt"].is_string()).map(|it| pair_of(&it))
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_of_a_renamed_service_agree_on_one_certificate() {
    let (store, clock) = (Store::new(), Clock::new());
    let mut old = Replica::of("team/old", &store, &clock);
    old.pair().await;
    let mut new = Replica::start(&store, &clock);
    new.pair().await;
    until("both serve one certificate", async || {
        old.offers.borrow().as_ref().ok() == new.offers.borrow().as_ref().ok()
    })
    .await;
    reconciled(&store, &[&old, &new]).await;
    let pair = new.pair().await;
    accepts(&new.trusted(), &pair, clock.now()).unwrap();
    let names = |pair: &CertificatePair| {
        let chain = certificates(&pair.chain);
        let (_, leaf) = x509_parser::parse_x509_certificate(&chain[0]).unwrap();
        leaf.subject_alternative_name().unwrap().unwrap().value.general_names.iter().map(ToString::to_string).collect()
    };
    let both: BTreeSet<String> = names(&pair);
    assert_eq!(both.len(), 8, "{both:?}");
    assert_eq!(store.versions(), 2);

    old.end().await;
    clock.pass(61 * DAY);
    until("the certificate is renewed", async || pair_of(&store.secret().unwrap()) != *pair).await;
    let renewed: BTreeSet<String> = names(&pair_of(&store.secret().unwrap()));
    assert_eq!(renewed.len(), 4, "{renewed:?}");
}

#[tokio::test]
async fn a_secret_that_is_deleted_again_and_again_costs_a_write_each_time_and_what_is_served_stays() {
    let (store, clock) = (Store::new(), Clock::new());
    let mut first = Replica::start(&store, &clock);
    let served = first.pair().await;
    for _ in 0..40 {
        let before = store.versions();
        // More than a few writes in a minute are refused.
        clock.pass(61);
        store.delete();
        until("the Secret is written again", async || store.secret().is_some()).await;
        reconciled(&store, &[&first]).await;
        assert_eq!(store.versions(), before + 1);
    }
    let mut second = Replica::start(&store, &clock);
    assert_eq!(second.pair().await, served);
    assert!(certificates(&second.trusted()).len() <= 32, "no more CAs than are read");
}
