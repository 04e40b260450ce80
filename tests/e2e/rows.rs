//! The rows of `tests/cases` through the webhook on a real API server.

use serde_json::{Value, json};

use crate::native::Api;
use crate::native::player::{Installed, Installer, Played, play};
use crate::support::cluster::Cluster;
use crate::support::http::Answer;
use crate::support::kind::{annotate, forget_unions, parse};
use crate::support::webhook::Webhook;
use fixtures::cases::Alone;

const GROUP: &str = "webhook.rows.example";

/// The webhook with ratcheting, and one without.
struct Webhooks<'w> {
    ratcheting: &'w Webhook,
    strict: &'w Webhook,
}

impl Installer for Webhooks<'_> {
    fn group(&self) -> &'static str {
        GROUP
    }

    fn compile(&self, played: &Played<'_>) -> Result<Installed, String> {
        let webhook = if played.ratchet { self.ratcheting } else { self.strict };
        let plural = &played.subject.api.plural;
        let rule = json!({"apiGroups": [GROUP], "apiVersions": ["*"], "resources": [plural, format!("{plural}/*")],
            "operations": ["CREATE", "UPDATE"]});
        let mut registration = webhook.registration_of(&format!("{plural}.{GROUP}"), &[rule], "Fail");
        let [mutating, validating] = [0, 1].map(|phase| registration["items"][phase].take());
        let mut policies: Vec<Value> = played.declarations().collect();
        policies.extend((played.suite.phase != Some(Alone::Validate)).then_some(mutating));
        policies.extend((played.suite.phase != Some(Alone::Mutate)).then_some(validating));
        Ok(Installed { definition: annotated(played.authored()), policies })
    }

    fn same_warnings(&self, answer: &Answer, wanted: &[String]) -> Result<(), String> {
        let told = &answer.warnings;
        if wanted.is_empty() || told == wanted {
            Ok(())
        } else {
            Err(format!("warned {told:?}\n      want {wanted:?}"))
        }
    }
}

/// Returns a CRD with the extension of its schemas as an annotation.
fn annotated(mut definition: Value) -> Value {
    let mut without = definition.clone();
    forget_unions(&mut without["spec"]);
    if without != definition {
        definition = parse(&annotate(&definition.to_string()));
        forget_unions(&mut definition["spec"]);
    }
    definition
}

#[test]
fn the_rows_hold_through_the_webhook_except_the_listed_ones() {
    let Some(cluster) = Cluster::own() else { return };
    let strict = Webhook::of_cluster(&cluster.control_plane.webhook_kubeconfig(), &["--ratcheting=disabled"]).unwrap();
    let webhooks = Webhooks { ratcheting: &cluster.webhook, strict: &strict };
    play(&Api::new(cluster.client()), &webhooks, "webhook");
}
