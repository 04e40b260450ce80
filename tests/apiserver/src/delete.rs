//! Deletions: at once, or when the finalizers are gone.

use crate::admission::Operation;
use crate::answer::Answer;
use crate::controllers::{CLEAN_UP, FOREGROUND, ORPHAN, finalizers, is_being_deleted, marked_for_deletion};
use crate::error::{ApiError, OPTIMISTIC_LOCK};
use crate::instance::Instance;
use crate::kinds;
use crate::read::presented;
use crate::resource::{BuiltinKind, ResourceInfo, has_condition};
use crate::state::set_condition;
use crate::write::{ATTEMPTS, Attempt, Target, WriteOptions, metadata, text_at};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio::time::Instant;

impl Instance {
    /// Deletes an object. Admission is asked about the other target, which has no name if a collection is deleted.
    pub(crate) async fn delete(
        &self,
        target: &Target,
        asked: &Target,
        sent: &Value,
        options: &WriteOptions,
    ) -> Result<Answer, ApiError> {
        let resource = &target.resource;
        let collection = resource.collection();
        for _ in 0..ATTEMPTS {
            let stored =
                self.shared.state().get(&collection, &target.key()).cloned().ok_or_else(|| target.not_found())?;
            let old = presented(resource, &stored.object);
            check_preconditions(target, sent, &old, stored.revision)?;
            let immortal = ["default", "kube-public", "kube-system"];
            if resource.builtin == Some(BuiltinKind::Namespace) && immortal.contains(&&*target.name) {
                return Err(ApiError::forbidden(resource, &target.name, "this namespace may not be deleted"));
            }
            self.admit(asked, Operation::Delete, (Value::Null, Some(&old)), options).await?;
            self.validate(asked, Operation::Delete, (&Value::Null, Some(&old)), options).await?;
            if let Attempt::Done(answer) = self.store_deletion(target, sent, old, stored.revision, options) {
                return Ok(answer);
            }
        }
        Err(ApiError::conflict(resource, &target.name, OPTIMISTIC_LOCK))
    }

    fn store_deletion(
        &self,
        target: &Target,
        sent: &Value,
        old: Value,
        revision: u64,
        options: &WriteOptions,
    ) -> Attempt {
        let (resource, now) = (&target.resource, Instant::now());
        let (collection, key) = (resource.collection(), target.key());
        let mut state = self.shared.state();
        if state.get(&collection, &key).is_none_or(|stored| stored.revision != revision) {
            return Attempt::Again;
        }
        let is_new = !is_being_deleted(&old);
        let (mut changed, is_pending) = match resource.builtin {
            Some(BuiltinKind::Namespace) if is_new => {
                (with_phase_terminating(old.clone(), &state.timestamp(now)), true)
            }
            Some(BuiltinKind::Namespace) => {
                let all = old.pointer("/spec/finalizers").and_then(Value::as_array);
                (old.clone(), all.is_some_and(|all| !all.is_empty()))
            }
            Some(BuiltinKind::CustomResourceDefinition) if is_new => {
                (with_clean_up(old.clone(), &state.timestamp(now)), true)
            }
            _ => (old.clone(), false),
        };
        set_propagation(&mut changed, sent);
        let is_pending = is_pending || finalizers(&changed).next().is_some();
        let answered = if is_pending {
            let is_special = is_new
                && matches!(resource.builtin, Some(BuiltinKind::Namespace | BuiltinKind::CustomResourceDefinition));
            let is_namespace = resource.builtin == Some(BuiltinKind::Namespace);
            if !is_special && !is_namespace {
                changed = marked_for_deletion(&state, changed, now);
            }
            if !options.dry_run && changed != old {
                changed = Arc::unwrap_or_clone(state.store(&collection, &key, Some(changed), now));
            }
            presented(resource, &changed)
        } else {
            let is_returned = matches!(
                resource.builtin,
                Some(BuiltinKind::Namespace | BuiltinKind::Service | BuiltinKind::ServiceAccount)
            );
            let deleted = if options.dry_run { Arc::new(old) } else { state.store(&collection, &key, None, now) };
            if is_returned { presented(resource, &deleted) } else { deletion_status(resource, &deleted) }
        };
        drop(state);
        self.shared.notify();
        Attempt::Done(Answer::of(answered))
    }
}

fn deletion_status(resource: &ResourceInfo, deleted: &Value) -> Value {
    let mut details = Map::new();
    details.insert("name".to_owned(), text_at(deleted, "/metadata/name").into());
    if !resource.group.is_empty() {
        details.insert("group".to_owned(), resource.group.clone().into());
    }
    details.insert("kind".to_owned(), resource.plural.clone().into());
    details.insert("uid".to_owned(), text_at(deleted, "/metadata/uid").into());
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

fn with_phase_terminating(mut namespace: Value, time: &Value) -> Value {
    metadata(&mut namespace).insert("deletionTimestamp".to_owned(), time.clone());
    kinds::set_or_remove(&mut namespace, "status", Some(json!({"phase": "Terminating"})));
    namespace
}

fn with_clean_up(mut definition: Value, time: &Value) -> Value {
    let metadata = metadata(&mut definition);
    metadata.insert("deletionTimestamp".to_owned(), time.clone());
    let all = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut().filter(|all| !all.iter().any(|it| it == CLEAN_UP)) {
        all.push(CLEAN_UP.into());
    }
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    if !has_condition(&definition, "Terminating") {
        set_condition(&mut definition, ["Terminating", "True", "InstanceDeletionPending", message], time);
    }
    definition
}

/// Sets the finalizers that a policy of propagation asks for.
fn set_propagation(object: &mut Value, sent: &Value) {
    let policy = sent.get("propagationPolicy").and_then(Value::as_str);
    let orphans = sent.get("orphanDependents").and_then(Value::as_bool);
    let (orphan, foreground) = match (policy, orphans) {
        (Some("Orphan"), _) | (None, Some(true)) => (true, false),
        (Some("Foreground"), _) => (false, true),
        (Some(_), _) | (None, Some(false)) => (false, false),
        // Without a policy, finalizers that are there decide.
        (None, None) => return,
    };
    let metadata = metadata(object);
    let all = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut() {
        all.retain(|it| it != ORPHAN && it != FOREGROUND);
        if orphan {
            all.push(ORPHAN.into());
        }
        if foreground {
            all.push(FOREGROUND.into());
        }
        if all.is_empty() {
            metadata.remove("finalizers");
        }
    }
}

fn check_preconditions(target: &Target, sent: &Value, old: &Value, revision: u64) -> Result<(), ApiError> {
    let conditions = sent.get("preconditions").unwrap_or(&Value::Null);
    let uid = conditions.get("uid").and_then(Value::as_str);
    let version = conditions.get("resourceVersion").and_then(Value::as_str);
    let resource = &target.resource;
    let is_special = matches!(resource.builtin, Some(BuiltinKind::Namespace | BuiltinKind::CustomResourceDefinition));
    let stored = text_at(old, "/metadata/uid");
    if let Some(uid) = uid.filter(|uid| *uid != stored) {
        let why = if is_special {
            format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}")
        } else {
            format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({stored}). The object might have been \
                 deleted and then recreated"
            )
        };
        return Err(precondition_failed(target, &why, is_special));
    }
    if let Some(version) = version.filter(|version| *version != revision.to_string()) {
        let why = if is_special {
            format!(
                "Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: {revision}"
            )
        } else {
            format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({revision}). \
                 The object might have been modified"
            )
        };
        return Err(precondition_failed(target, &why, is_special));
    }
    Ok(())
}

/// The API server names the kind in place of the resource, except for its own deletions.
fn precondition_failed(target: &Target, why: &str, is_special: bool) -> ApiError {
    if is_special {
        return ApiError::conflict(&target.resource, &target.name, why);
    }
    let resource = ResourceInfo { plural: target.resource.kind.clone(), ..target.resource.clone() };
    ApiError::conflict(&resource, &target.name, why)
}
