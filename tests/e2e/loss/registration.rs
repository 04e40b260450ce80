//! The registration of the loss tests: the replicas register a Service that leads to the balancer.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::support::control_plane::ControlPlane;
use crate::support::http::Client;
use crate::support::kind::SAMPLES_GROUP;
use fixtures::wait::eventually;

use super::SETTLED;
use super::installation::collection;

const KINDS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// The beginnings of the names of entries for custom resources.
const CUSTOM: [&str; 2] = ["mutate.", "validate."];

/// The second part of the names of entries for built-in types.
const BUILTIN: &str = "builtin.";

/// Returns the Service, whose port is the balancer's. Its namespace exists.
const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: kube-unions, namespace: kube-unions}
spec: {type: ExternalName, externalName: localhost}
";

/// The registration of the replicas.
pub(crate) struct Registration {
    client: Client,
    port: u16,
}

impl Registration {
    /// Returns the registration of a Service on this port of loopback. Nothing is registered yet.
    pub(crate) fn new(control_plane: &ControlPlane, port: u16) -> Self {
        control_plane.kubectl("loss").apply(SERVICE).accepted();
        Self { client: control_plane.new_client(), port }
    }

    /// Returns the arguments of a replica.
    pub(crate) fn argument(&self) -> String {
        format!("--service=kube-unions/kube-unions:{}", self.port)
    }

    /// Returns true if every entry of both configurations holds all of these CAs (PEM), and there are entries for the written kind.
    pub(crate) fn holds(&self, authorities: &str) -> bool {
        let wanted = certificates(authorities.as_bytes());
        KINDS.iter().zip(CUSTOM).all(|(plural, custom)| {
            let entries = self.entries(plural);
            entries.iter().any(|entry| entry["name"].as_str().is_some_and(|name| name.starts_with(custom)))
                && entries.iter().all(|entry| wanted.is_subset(&bundle_of(entry)))
        })
    }

    #[track_caller]
    pub(crate) fn wait_until_held(&self, authorities: &str) {
        assert!(eventually(SETTLED, || self.holds(authorities)), "both configurations hold a CA that was announced");
    }

    /// Waits until the API server sends writes to the webhook. The API server needs a moment to read a change, and has no status
    /// that shows it.
    #[track_caller]
    pub(crate) fn wait_until_in_force(&self) {
        let in_force = eventually(SETTLED, || self.is_mutated() && self.is_validated());
        assert!(in_force, "the API server asks the webhook: {:?}", KINDS.map(|plural| self.stored(plural)));
    }

    /// Returns the groups of the custom resources in both configurations. `None`: the two differ.
    pub(crate) fn groups(&self) -> Option<BTreeSet<String>> {
        let [mutating, validating] = [0, 1].map(|phase: usize| {
            let entries = self.entries(KINDS[phase]);
            let is_custom = |entry: &&Value| {
                let name = entry["name"].as_str().and_then(|name| name.strip_prefix(CUSTOM[phase]));
                name.is_some_and(|name| !name.starts_with(BUILTIN))
            };
            let rules = entries.iter().filter(is_custom);
            let rules = rules.filter_map(|entry| entry["rules"].as_array()).flatten();
            let groups = rules.filter_map(|rule| rule["apiGroups"].as_array()).flatten();
            groups.filter_map(|group| group.as_str().map(str::to_owned)).collect::<BTreeSet<_>>()
        });
        (mutating == validating).then_some(mutating)
    }

    /// Removes the registration, until a replica repairs it.
    pub(crate) fn remove(&self) {
        for plural in KINDS {
            let answer = self.client.delete(&path(plural)).expect("the API server answers");
            assert!(answer.is_success(), "{answer:?}");
        }
    }

    /// `None`: there is no configuration.
    fn stored(&self, plural: &str) -> Option<Value> {
        let answer = self.client.get(&path(plural)).expect("the API server answers");
        assert!(answer.is_success() || answer.status == 404, "{answer:?}");
        answer.is_success().then_some(answer.body)
    }

    fn entries(&self, plural: &str) -> Vec<Value> {
        self.stored(plural).and_then(|stored| stored["webhooks"].as_array().cloned()).unwrap_or_default()
    }

    fn is_mutated(&self) -> bool {
        let answer = self.post(&json!({"s3": {"bucket": "b"}}));
        answer.is_some_and(|object| object["spec"]["destination"]["type"] == "S3")
    }

    fn is_validated(&self) -> bool {
        let answer = self.post(&json!({"s3": {"bucket": "b"}, "gcs": {"bucket": "b"}}));
        answer.is_some_and(|status| status["reason"] == "Invalid")
    }

    fn post(&self, destination: &Value) -> Option<Value> {
        let object = json!({
            "apiVersion": format!("{SAMPLES_GROUP}/v1"), "kind": "Backup",
            "metadata": {"name": "probe"}, "spec": {"destination": destination},
        });
        let answer = self.client.post(&format!("{}?dryRun=All", collection()), &object).ok()?;
        Some(answer.body)
    }
}

fn path(plural: &str) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/{plural}/kube-unions")
}

fn certificates(pem: &[u8]) -> BTreeSet<Vec<u8>> {
    CertificateDer::pem_slice_iter(pem).map(|it| it.expect("a bundle is PEM").to_vec()).collect()
}

fn bundle_of(entry: &Value) -> BTreeSet<Vec<u8>> {
    let bundle = entry["clientConfig"]["caBundle"].as_str().unwrap_or_default();
    certificates(&STANDARD.decode(bundle).expect("a bundle is base64"))
}
