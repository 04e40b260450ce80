//! Enforcement by policies: keeps the compiled policies of every kind true in the cluster, instead of a webhook.
//!
//! A controller without a write path: it compiles the catalog in force to policies and their bindings, and creates, replaces and
//! deletes them.
//!
//! It must not know how a union becomes a policy (`kube_unions_policies`) or how the webhook is registered. Start at [`ledger`]
//! for the decisions, at [`desired`] for the objects, at [`controller`] for a step, at [`reconciler`](super::reconciler) for the
//! loop.
//!
//! # Invariants
//!
//! - Only objects with the label [`MAINTAINED_BY`] of this installation are replaced or deleted.
//! - A kind is reported as covered only after its policies have been in the cluster for the handover time, and its policies are
//!   deleted only after the webhook has been registered for it for that time. An API server learns of either within it.
//! - A policy that normalises is written before the policy that rejects, so that no write is rejected for lack of the first.

mod api;
mod controller;
mod desired;
mod ledger;
mod stored;

pub use api::PolicyResource;
pub use controller::PolicySignals;
pub use desired::{PolicyDuty, PolicyEnforcement};
pub use stored::MAINTAINED_BY;
pub(crate) use stored::SELECTOR;

use super::object::OwnerReader;
use super::reconciler::{WAITS, merged, news, publish, run};
use crate::telemetry::LogOnce;
use api::ServedPolicies;
use controller::{PolicyChange, PolicyController};
use futures::StreamExt;
use kube::Client;
use kube_unions_api::{Doubling, RequestError};
use std::time::Duration;
use stored::PolicyFrame;

/// Time after which the API server's version and the owner are read again.
const REREAD: Duration = Duration::from_mins(1);

/// Keeps the policies in sync until the sender of catalogs is dropped.
pub async fn enforce(client: Client, enforcement: PolicyEnforcement, signals: PolicySignals) {
    let mut owner =
        OwnerReader::new("the policies: they stay after an uninstallation until `kube-unions unregister` deletes them");
    let (mut waits, mut failure) = (Doubling::new(WAITS), LogOnce::default());
    loop {
        let known = match surroundings(&client, &enforcement, &mut owner).await {
            Ok(known) => known,
            Err(error) => {
                let reason = error.to_string();
                if failure.is_new(&reason) {
                    tracing::warn!(reason, "cannot keep the admission policies; retrying");
                }
                tokio::time::sleep(waits.next_wait()).await;
                continue;
            }
        };
        failure.is_over();
        waits.reset();
        let (served, frame) = known.clone();
        tracing::info!(
            version = %served.version,
            mutating = served.mutating.unwrap_or("none"),
            validating = served.validating.unwrap_or("none"),
            "keeping admission policies"
        );
        publish(&signals.coverage, enforcement.duty.first_coverage());
        let inputs = [news(&signals.catalogs), news(&signals.registered)];
        let inputs = inputs.map(|input| input.map(|()| PolicyChange::Input).boxed());
        let stored = served.watch(&client).map(PolicyChange::Stored).boxed();
        let changes = merged(&signals.catalogs, inputs.into_iter().chain([stored]));
        let mut controller = PolicyController::new(client.clone(), &enforcement, &signals, served, frame);
        let other_surroundings = async {
            loop {
                tokio::time::sleep(REREAD).await;
                if surroundings(&client, &enforcement, &mut owner).await.is_ok_and(|now| now != known) {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            () = run(&mut controller, changes) => return,
            () = other_surroundings => {}
        }
    }
}

/// Returns the sources of the policies beside the catalog: the APIs of the API server, and the metadata of every object.
async fn surroundings(
    client: &Client,
    enforcement: &PolicyEnforcement,
    owner: &mut OwnerReader,
) -> Result<(ServedPolicies, PolicyFrame), RequestError> {
    let served = ServedPolicies::read(client).await?;
    let mut frame = PolicyFrame { installation: enforcement.installation.clone(), owner: None };
    if let Some(name) = enforcement.owner.as_ref().filter(|_| enforcement.duty.is_enforcing()) {
        frame.owner = owner.read(client, name).await?;
    }
    Ok((served, frame))
}
