//! The registered CA bundle, and its report: registration in this process against a real API server, with the trust given by the test.
//! The rows of the registrar's unit tests have every step, also of a replica that is not ready.

use std::sync::Arc;
use std::time::Duration;

use kube_unions::api::{ServerClock, connect};
use kube_unions::controllers::{
    CaBundle, Coverage, EntryOptions, RegisteredBundle, RegisteredKinds, Registering, Registration, Signals, Trust,
    ca_bundle, register,
};
use kube_unions::telemetry::Metrics;
use kube_unions_core::catalog::Builder;
use kube_unions_core::declaration::Definition;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::{KINDS, SETTLED, certificates, decoded, patch_json, path, with_rights};
use crate::cluster::Cluster;
use crate::kind::parse;
use crate::lending::Lent;
use crate::webhook::base64;
use fixtures::certificates::TestAuthority;
use fixtures::wait::eventually;

/// A registration whose inputs a test sets.
struct Registrar {
    control_plane: Lent,
    runtime: Runtime,
    trust: watch::Sender<Option<Trust>>,
    held: watch::Receiver<RegisteredBundle>,
    metrics: Metrics,
}

impl Registrar {
    /// Prepares a registration without a trust.
    fn start(control_plane: Lent) -> Self {
        control_plane.kubectl("setup").apply(&with_rights()).accepted();
        let runtime = Runtime::new().unwrap();
        let (trust, _) = watch::channel(None);
        let (_, held) = watch::channel(RegisteredBundle::default());
        Self { control_plane, runtime, trust, held, metrics: Metrics::new() }
    }

    /// Runs it with the unions of a sample until the returned sender is dropped.
    fn run(&mut self, registering: Registering) -> watch::Sender<Option<Arc<kube_unions_core::catalog::Catalog>>> {
        let crd = parse(&std::fs::read_to_string(crate::kind::samples().join("rollout/crd.yaml")).unwrap());
        let mut builder = Builder::new();
        builder.apply(Definition::from_json(&crd.to_string()).unwrap());
        let (catalogs, in_force) = watch::channel(Some(Arc::new(builder.build())));
        let held = watch::Sender::new(RegisteredBundle::default());
        self.held = held.subscribe();
        let signals = Signals {
            coverage: watch::channel(Coverage::none()).1,
            registered: watch::channel(RegisteredKinds::default()).0,
            catalogs: in_force,
            declarable: watch::channel(false).1,
            trust: self.trust.subscribe(),
            held,
            inspection: watch::Sender::new(None),
            ready: Box::new(|| true),
            clock: ServerClock::default(),
            metrics: self.metrics.registration.clone(),
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
        let kubeconfig = self.control_plane.webhook_kubeconfig();
        self.runtime.spawn(async move {
            let client = connect(Some(&kubeconfig), None, &ServerClock::default(), "").await.unwrap();
            register(client, registration, signals).await;
        });
        catalogs
    }

    fn stored(&self, plural: &str) -> Option<Value> {
        let answer = self.control_plane.client().get(&path(plural)).unwrap();
        answer.is_success().then_some(answer.body)
    }

    /// Returns the `caBundle` of every entry of both configurations.
    fn bundles(&self) -> Vec<String> {
        let webhooks = KINDS.into_iter().filter_map(|plural| self.stored(plural)?["webhooks"].as_array().cloned());
        webhooks.flatten().map(|webhook| decoded(&webhook["clientConfig"]["caBundle"])).collect()
    }

    /// Waits until there are this many entries, every one holds these certificates, and that is reported.
    #[track_caller]
    fn wait_for(&self, entries: usize, pem: &str) {
        let wanted = certificates(pem);
        let holds =
            |bundles: &[String]| bundles.len() == entries && bundles.iter().all(|it| certificates(it) == wanted);
        let reported = || match &*self.held.borrow() {
            RegisteredBundle::Unknown => false,
            RegisteredBundle::Nothing => entries == 0,
            RegisteredBundle::Bundle(held) => entries > 0 && *held == ca_bundle(pem),
        };
        let so = eventually(SETTLED, || holds(&self.bundles()) && reported());
        assert!(so, "{:?}\n{:?}", self.bundles(), self.held.borrow());
    }

    fn set_trust(&self, trust: Trust) {
        self.trust.send_replace(Some(trust));
    }

    fn set_bundles(&self, pem: &str) {
        let bundle = base64(pem.as_bytes());
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
fn the_configurations_hold_the_trusted_cas_and_report_them() {
    let Some(control_plane) = Cluster::control_plane_alone() else { return };
    let mut it = Registrar::start(control_plane);
    let [one, two, three] = ["one", "two", "three"].map(TestAuthority::new);
    let [one, two, three] = [one.pem(), two.pem(), three.pem()];
    let agreed = |pem: &str| Trust::Agreed(pem.into());
    let catalogs = it.run(Registering::Everything);

    it.wait_for(0, "");
    it.set_trust(agreed(one));
    it.wait_for(3, one);
    assert_eq!(it.bundles(), [one, one, one], "the agreed bundle, unchanged");
    assert_eq!(it.metrics.registration.registered.get(), 1);

    // A rotation in steps. A CA that is not agreed is removed.
    let both = format!("{one}{two}");
    it.set_trust(agreed(&both));
    it.wait_for(3, &both);
    it.set_bundles(three);
    it.wait_for(3, &both);
    // A CA beyond the agreed ones is removed later. The wait is tested with `Divergence` and `Pace`.
    it.set_bundles(&format!("{both}{three}"));
    it.wait_for(3, &both);
    it.set_trust(agreed(two));
    it.wait_for(3, two);

    // A local bundle: CAs of other replicas stay.
    it.set_trust(Trust::Local(three.into()));
    it.wait_for(3, &format!("{two}{three}"));
    it.set_trust(Trust::Local(one.into()));
    it.wait_for(3, &format!("{one}{two}{three}"));
    it.set_bundles("nonsense");
    it.wait_for(3, one);
    drop(catalogs);

    bundles_alone(&mut it, one, two);
}

/// Entries registered by hand, under our names and another.
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
    it.set_trust(Trust::Local(one.into()));
    let catalogs = it.run(Registering::Bundles);
    it.wait_for(0, "");
    kubectl.run_with(&["create", "-f", "-"], &by_hand.to_string()).accepted();
    assert!(
        eventually(SETTLED, || *it.held.borrow() == RegisteredBundle::Bundle(CaBundle::default())),
        "{:?}",
        it.held.borrow()
    );
    assert_eq!(it.bundles(), ["", ""], "a local bundle is not written into entries of others");

    let mut wanted = it.stored(KINDS[0]).unwrap()["webhooks"].take();
    for pem in [one, two] {
        it.set_trust(Trust::Agreed(pem.into()));
        assert!(eventually(SETTLED, || it.bundles() == [pem, ""]), "{:?}", it.bundles());
        assert!(eventually(SETTLED, || *it.held.borrow() == RegisteredBundle::Bundle(ca_bundle(pem))));
    }
    let mut stored = it.stored(KINDS[0]).unwrap()["webhooks"].take();
    for webhooks in [&mut wanted, &mut stored] {
        webhooks[0]["clientConfig"].as_object_mut().unwrap().remove("caBundle");
    }
    assert_eq!(stored, wanted, "nothing else is touched");
    assert!(it.stored(KINDS[1]).is_none(), "nothing is created");
    kubectl.run(&["delete", KINDS[0], "kube-unions"]).accepted();
    it.wait_for(0, "");
    drop(catalogs);
}
