//! How the writes get to the webhook: the two configurations, written by hand.
//!
//! The one place that knows: where the webhook registers itself, this only waits until the API server does as
//! [`Registration::trust`] says.

use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::http::Client;
use crate::kind::SAMPLES_GROUP;
use crate::kubectl::Kubectl;
use crate::wait::eventually;
use crate::webhook;

use super::SETTLED;
use super::installation::collection;

const NAME: &str = "loss.tests.example";
/// An object with this label, and the number of an edition of the configurations, is let pass by that edition alone.
/// An API server takes a moment to read a change, and says nowhere when it has: such an object tells.
const EDITION: &str = "loss.example/edition";

pub(crate) struct Registration {
    kubectl: Kubectl,
    client: Client,
    port: u16,
    authorities: String,
    edition: u32,
}

impl Registration {
    /// Of a webhook that is reached through this port of loopback. Nothing is registered yet.
    pub(crate) fn new(control_plane: &ControlPlane, port: u16) -> Self {
        let (kubectl, client) = (control_plane.kubectl(NAME), control_plane.new_client());
        Self { kubectl, client, port, authorities: String::new(), edition: 0 }
    }

    /// Has the API server trust a webhook whose certificate one of these has signed (PEM), and returns once it does.
    pub(crate) fn trust(&mut self, authorities: &str) {
        authorities.clone_into(&mut self.authorities);
        self.apply();
    }

    /// The same authorities in other words: the API server has connections of their own for every bundle.
    pub(crate) fn trust_anew(&mut self) {
        self.authorities.push('\n');
        self.apply();
    }

    /// Has the API server send nothing any more.
    pub(crate) fn remove(&mut self) {
        let kinds = "mutatingwebhookconfiguration,validatingwebhookconfiguration";
        self.kubectl.run(&["delete", kinds, NAME]).accepted();
    }

    fn apply(&mut self) {
        self.edition += 1;
        let rule = json!({
            "apiGroups": [SAMPLES_GROUP], "apiVersions": ["*"], "resources": ["backups", "backups/status"],
            "operations": ["CREATE", "UPDATE"],
        });
        let mut list = webhook::registration(self.port, &self.authorities, NAME, &[rule], "Fail");
        let passes = json!({"key": EDITION, "operator": "NotIn", "values": [self.edition.to_string()]});
        for configuration in list["items"].as_array_mut().expect("a list has items") {
            configuration["webhooks"][0]["objectSelector"] = json!({"matchExpressions": [passes]});
        }
        self.kubectl.apply(&list.to_string()).accepted();
        let in_force = eventually(SETTLED, || {
            let passes = self.edition.to_string();
            self.is_mutated("none")
                && self.is_validated("none")
                && !self.is_mutated(&passes)
                && !self.is_validated(&passes)
        });
        assert!(in_force, "the API server never did as it was told");
    }

    fn is_mutated(&self, edition: &str) -> bool {
        let answer = self.post(edition, &json!({"s3": {"bucket": "b"}}));
        answer.is_some_and(|object| object["spec"]["destination"]["type"] == "S3")
    }

    fn is_validated(&self, edition: &str) -> bool {
        let answer = self.post(edition, &json!({"s3": {"bucket": "b"}, "gcs": {"bucket": "b"}}));
        answer.is_some_and(|status| status["reason"] == "Invalid")
    }

    fn post(&self, edition: &str, destination: &Value) -> Option<Value> {
        let object = json!({
            "apiVersion": format!("{SAMPLES_GROUP}/v1"), "kind": "Backup",
            "metadata": {"name": "probe", "labels": {EDITION: edition}}, "spec": {"destination": destination},
        });
        let answer = self.client.post(&format!("{}?dryRun=All", collection()), &object).ok()?;
        Some(answer.body)
    }
}
