//! One write of an object, and its result.

use super::api::ServedPolicies;
use super::ledger::PolicyWrite;
use super::stored::PolicyFrame;
use crate::api::RequestError;
use kube::Client;
use serde_json::Value;

/// The result of a write.
pub(super) enum WriteOutcome {
    /// The object as it is stored.
    Stored(Value),
    /// Another replica has created the object.
    Found(Value),
    /// The object does not exist.
    Gone,
    /// The object has changed since it was read.
    Raced,
    /// An object of this name belongs to another writer.
    Foreign,
    /// The API server refused it.
    Refused(String),
    /// The API server did not answer.
    Unanswered(String),
    /// Not tried, because the API server does not answer.
    Skipped,
}

/// Carries out a write.
pub(super) async fn perform(
    client: &Client,
    served: ServedPolicies,
    frame: &PolicyFrame,
    write: &PolicyWrite,
) -> WriteOutcome {
    match write {
        PolicyWrite::Create(key, body) => match served.create(client, key, body).await {
            Ok(object) => WriteOutcome::Stored(object),
            Err(refused) if refused.code() == Some(409) => match served.get(client, key).await {
                Ok(object) if frame.maintains(&object) => WriteOutcome::Found(object),
                Ok(_) => WriteOutcome::Foreign,
                Err(refused) => failure(&refused),
            },
            Err(refused) => failure(&refused),
        },
        PolicyWrite::Replace(key, body) => match served.get(client, key).await {
            Ok(object) if !frame.maintains(&object) => WriteOutcome::Foreign,
            Ok(object) => match served.replace(client, key, &frame.merged(object, body)).await {
                Ok(object) => WriteOutcome::Stored(object),
                Err(refused) => failure(&refused),
            },
            Err(refused) if refused.is_not_found() => WriteOutcome::Gone,
            Err(refused) => failure(&refused),
        },
        PolicyWrite::Delete(key, resource_version) => match served.delete(client, key, resource_version).await {
            Ok(()) => WriteOutcome::Gone,
            Err(refused) if refused.is_not_found() => WriteOutcome::Gone,
            Err(refused) => failure(&refused),
        },
    }
}

fn failure(refused: &RequestError) -> WriteOutcome {
    match refused.code() {
        Some(404 | 409) => WriteOutcome::Raced,
        Some(code) if (400..500).contains(&code) && code != 429 => WriteOutcome::Refused(refused.to_string()),
        Some(_) | None => WriteOutcome::Unanswered(refused.to_string()),
    }
}
