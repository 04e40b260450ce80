//! Whom the API server is told to trust, step by step: registration in this process, on a real API server, with what
//! certificates would say given by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kube_unions::cluster::{
    BuiltinUnions, Cluster as Watched, EntryOptions, Held, Link, Registering, Registration, Signals, Trust, connect,
};
use kube_unions::telemetry::Metrics;
use kube_unions_core::catalog::Builder;
use kube_unions_core::declaration::Definition;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::{KINDS, SETTLED, certificates, decoded, patch_json, path, with_rights};
use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::kind::parse;
use fixtures::certificates::TestAuthority;
use fixtures::wait::eventually;

/// Less than the pause before what harms nobody is put right.
const STAYS: Duration = Duration::from_secs(2);

/// Registration that hears what a test says.
struct Registrar {
    control_plane: ControlPlane,
    runtime: Runtime,
    trust: watch::Sender<Option<Trust>>,
    held: watch::Receiver<Held>,
    ready: Arc<AtomicBool>,
    /// How often it has looked, and asked first whether it is ready.
    looks: Arc<AtomicUsize>,
    metrics: Metrics,
}

impl Registrar {
    /// With the unions of a sample in force; unready, and nothing known of trust.
    fn start(control_plane: ControlPlane) -> Self {
        control_plane.kubectl("setup").apply(&with_rights()).accepted();
        let runtime = Runtime::new().unwrap();
        let (trust, _) = watch::channel(None);
        let (_, held) = watch::channel(Held::default());
        Self {
            control_plane,
            runtime,
            trust,
            held,
            ready: Arc::default(),
            looks: Arc::default(),
            metrics: Metrics::new(),
        }
    }

    /// Runs one until the answer is dropped.
    fn run(&mut self, registering: Registering) -> watch::Sender<Option<Arc<kube_unions_core::catalog::Catalog>>> {
        let crd = parse(&std::fs::read_to_string(crate::kind::samples().join("rollout/crd.yaml")).unwrap());
        let mut builder = Builder::new();
        builder.apply(Definition::from_json(&crd.to_string()).unwrap());
        let (catalogs, in_force) = watch::channel(Some(Arc::new(builder.build())));
        let held = watch::Sender::new(Held::default());
        self.held = held.subscribe();
        let (ready, looks) = (Arc::clone(&self.ready), Arc::clone(&self.looks));
        let signals = Signals {
            catalogs: in_force,
            trust: self.trust.subscribe(),
            held,
            inspection: watch::Sender::new(None),
            ready: Box::new(move || {
                looks.fetch_add(1, Ordering::SeqCst);
                ready.load(Ordering::SeqCst)
            }),
            metrics: self.metrics.registration().clone(),
        };
        let registration = Registration {
            registering,
            service: "kube-unions/kube-unions".parse().unwrap(),
            entries: EntryOptions::default(),
            owner: None,
            excluded_namespaces: Vec::new(),
            enforcing: true,
            delay: Duration::ZERO,
        };
        let (kubeconfig, metrics) = (self.control_plane.webhook_kubeconfig(), self.metrics.watch_connected().clone());
        self.runtime.spawn(async move {
            let link = Link::new(metrics);
            let client = connect(Some(&kubeconfig), &link).await.unwrap();
            Watched::new(client, BuiltinUnions::Ignored).register(registration, signals).await;
        });
        catalogs
    }

    fn stored(&self, plural: &str) -> Option<Value> {
        let answer = self.control_plane.client().get(&path(plural)).unwrap();
        answer.is_success().then_some(answer.body)
    }

    /// The `caBundle` of every entry of both configurations, as it is.
    fn bundles(&self) -> Vec<String> {
        let webhooks = KINDS.into_iter().filter_map(|plural| self.stored(plural)?["webhooks"].as_array().cloned());
        webhooks.flatten().map(|webhook| decoded(&webhook["clientConfig"]["caBundle"])).collect()
    }

    /// Waits until every entry, of which there are so many, holds these certificates, and that has been said.
    #[track_caller]
    fn wait_for(&self, entries: usize, pem: &str) {
        let wanted = certificates(pem);
        let holds =
            |bundles: &[String]| bundles.len() == entries && bundles.iter().all(|it| certificates(it) == wanted);
        let said = || match &*self.held.borrow() {
            Held::Unknown => false,
            Held::Nothing => entries == 0,
            Held::Bundle(pem) => entries > 0 && certificates(pem) == wanted,
        };
        let so = eventually(SETTLED, || holds(&self.bundles()) && said());
        assert!(so, "{:?}\n{:?}", self.bundles(), self.held.borrow());
    }

    /// Watches that it stays so for some seconds from `since` on: longer than it takes to act on what has changed, and less than what
    /// harms nobody is left alone for. What is read later tells nothing, however slow the machine.
    #[track_caller]
    fn stays(&self, since: Instant, entries: usize, pem: &str) {
        let mut seen = 0;
        loop {
            let bundles = self.bundles();
            if since.elapsed() > STAYS {
                assert!(seen > 0, "nothing was read within {STAYS:?}");
                return;
            }
            let is_so = bundles.len() == entries && bundles.iter().all(|it| certificates(it) == certificates(pem));
            assert!(is_so, "after {:?}: {bundles:?}", since.elapsed());
            seen += 1;
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::SeqCst);
    }

    /// Waits until no look is under way that began before.
    fn wait_for_a_look(&self) {
        let before = self.looks.load(Ordering::SeqCst);
        assert!(eventually(SETTLED, || self.looks.load(Ordering::SeqCst) > before), "it looks again and again");
    }

    fn say(&self, trust: Trust) {
        self.trust.send_replace(Some(trust));
    }

    fn set_bundles(&self, pem: &str) {
        use ::base64::Engine as _;
        let bundle = ::base64::prelude::BASE64_STANDARD.encode(pem);
        for plural in KINDS {
            let count = self.stored(plural).unwrap()["webhooks"].as_array().unwrap().len();
            let set = |index| json!({"op": "add", "path": format!("/webhooks/{index}/clientConfig/caBundle"), "value": bundle});
            let operations = (0..count).map(set).collect();
            let answer = patch_json(&self.control_plane, plural, &operations);
            assert!(answer.is_success(), "{answer:?}");
        }
    }
}

#[test]
fn the_configurations_hold_whom_the_replicas_trust_and_say_so() {
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let mut it = Registrar::start(control_plane);
    let [one, two, three] = ["one", "two", "three"].map(TestAuthority::new);
    let [one, two, three] = [one.pem(), two.pem(), three.pem()];
    let agreed = |pem: &str| Trust::Agreed(pem.into());
    let catalogs = it.run(Registering::Everything);

    // Neither without a CA nor while it is unready.
    it.set_ready(true);
    it.wait_for(0, "");
    it.stays(Instant::now(), 0, "");
    it.say(Trust::Local("# nothing yet".into()));
    it.stays(Instant::now(), 0, "");
    it.set_ready(false);
    it.wait_for_a_look();
    it.say(agreed(one));
    it.stays(Instant::now(), 0, "");
    it.set_ready(true);
    it.wait_for(3, one);
    assert_eq!(it.bundles(), [one, one, one], "what was agreed, to the letter");
    assert_eq!(it.metrics.registration().registered.get(), 1);

    // A rotation, step by step, and what is not agreed goes.
    let both = format!("{one}{two}");
    it.say(agreed(&both));
    it.wait_for(3, &both);
    it.set_bundles(three);
    it.wait_for(3, &both);
    // One more than was agreed harms nobody: another replica may have heard of it first.
    let more = format!("{both}{three}");
    let since = Instant::now();
    it.set_bundles(&more);
    it.stays(since, 3, &more);
    it.wait_for(3, &both);
    // Unready since its certificate is not trusted yet: entries that there are must hold it all the same.
    it.set_ready(false);
    it.say(agreed(two));
    it.wait_for(3, two);
    it.set_ready(true);

    // Given to this replica alone: what others may serve under stays.
    it.say(Trust::Local(three.into()));
    it.wait_for(3, &format!("{two}{three}"));
    it.say(Trust::Local(one.into()));
    it.wait_for(3, &format!("{one}{two}{three}"));
    it.set_bundles("nonsense");
    it.wait_for(3, one);
    drop(catalogs);

    bundles_alone(&mut it, one, two);
}

/// Registered by somebody else, under our names and another.
fn bundles_alone(it: &mut Registrar, one: &str, two: &str) {
    let kubectl = it.control_plane.kubectl("trust");
    let entry = |name: &str| {
        json!({
            "name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 7,
            "clientConfig": {"service": {"namespace": "kube-unions", "name": "kube-unions", "path": "/mutate"}},
            "rules": [{"apiGroups": ["g.example"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["CREATE"]}],
        })
    };
    let by_hand = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "kube-unions"},
        "webhooks": [entry("mutate.kube-unions.dev"), entry("of.others.example")],
    });
    kubectl.run(&["delete", &KINDS.join(","), "kube-unions"]).accepted();
    it.say(Trust::Local(one.into()));
    it.set_ready(false);
    let catalogs = it.run(Registering::Bundles);
    it.wait_for(0, "");
    kubectl.run_with(&["create", "-f", "-"], &by_hand.to_string()).accepted();
    assert!(eventually(SETTLED, || *it.held.borrow() == Held::Bundle("".into())), "{:?}", it.held.borrow());
    assert_eq!(it.bundles(), ["", ""], "what one replica was given is not for it to say");

    let mut wanted = it.stored(KINDS[0]).unwrap()["webhooks"].take();
    for pem in [one, two] {
        it.say(Trust::Agreed(pem.into()));
        assert!(eventually(SETTLED, || it.bundles() == [pem, ""]), "{:?}", it.bundles());
        assert!(eventually(
            SETTLED,
            || matches!(&*it.held.borrow(), Held::Bundle(held) if certificates(held) == certificates(pem))
        ));
    }
    let mut stored = it.stored(KINDS[0]).unwrap()["webhooks"].take();
    for webhooks in [&mut wanted, &mut stored] {
        webhooks[0]["clientConfig"].as_object_mut().unwrap().remove("caBundle");
    }
    assert_eq!(stored, wanted, "nothing else is touched");
    assert!(it.stored(KINDS[1]).is_none(), "nothing is created");
    kubectl.run(&["delete", KINDS[0], "kube-unions"]).accepted();
    it.wait_for(0, "");
    it.stays(Instant::now(), 0, "");
    drop(catalogs);
}
