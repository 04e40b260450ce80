//! The control plane's own work: names and establishment of CRDs, `APIService`s, the ends of namespaces and CRDs, garbage.

use crate::resource::{
    self, BUILTIN_GROUPS, DEFINITIONS, LEASES, NAMESPACES, SERVICES, has_condition, namespaced_collections,
};
use crate::state::{Job, State, set_condition};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// The finalizer of a CRD that has objects.
pub(crate) const CLEAN_UP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The finalizers by which a deletion waits for the garbage collector.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

const LEASE: (&str, &str) = ("coordination.k8s.io/leases", "kube-system/apiserver");

/// Stores the objects that an API server makes for itself.
pub(crate) fn bootstrap(state: &mut State) {
    let now = Instant::now();
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        let metadata = json!({"name": name, "labels": {"kubernetes.io/metadata.name": name}});
        let namespace = json!({
            "kind": "Namespace", "apiVersion": "v1", "metadata": created(state, metadata, now),
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        });
        state.store(NAMESPACES, name, Some(namespace), now);
    }
    let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    for (name, rules) in [("cluster-admin", rules), ("view", Value::Null)] {
        let labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
        let metadata = created(state, json!({"name": name, "labels": labels}), now);
        let role = json!({
            "kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata, "rules": rules,
        });
        state.store("rbac.authorization.k8s.io/clusterroles", name, Some(role), now);
    }
    for (group, version, minimum, priority) in BUILTIN_GROUPS.into_iter().chain([LEASES]) {
        store_service(state, group, version, [minimum, priority], "onstart", now);
    }
    if let Some(heartbeat) = state.settings.heartbeat {
        state.schedule(heartbeat, Job::Heartbeat, now);
    }
}

/// Returns metadata with a UID and a time of creation.
fn created(state: &mut State, mut metadata: Value, now: Instant) -> Value {
    if let Some(fields) = metadata.as_object_mut() {
        fields.insert("uid".to_owned(), state.new_uid().into());
        fields.insert("creationTimestamp".to_owned(), state.timestamp(now));
    }
    metadata
}

fn store_service(state: &mut State, group: &str, version: &str, priorities: [u64; 2], managed: &str, now: Instant) {
    let [minimum, priority] = priorities;
    let name = format!("{version}.{group}");
    let metadata = created(state, json!({"name": name, "labels": {AUTOMANAGED: managed}}), now);
    let mut spec = Map::new();
    if !group.is_empty() {
        spec.insert("group".to_owned(), group.into());
    }
    spec.insert("version".to_owned(), version.into());
    spec.insert("groupPriorityMinimum".to_owned(), minimum.into());
    spec.insert("versionPriority".to_owned(), priority.into());
    let mut service = json!({
        "kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1", "metadata": metadata, "spec": spec,
    });
    let time = state.timestamp(now);
    set_condition(&mut service, ["Available", "True", "Local", "Local APIServices are always available"], &time);
    state.store(SERVICES, &name, Some(service), now);
}

/// Plans the work that follows from a write.
pub(crate) fn written(
    state: &mut State,
    collection: &str,
    key: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    now: Instant,
) {
    let is_ending = after.is_some_and(is_being_deleted);
    match collection {
        DEFINITIONS => {
            let spec = |object: Option<&Value>| object.and_then(|object| object.get("spec").cloned());
            if spec(before) != spec(after) {
                let revision = state.storage.revision();
                state.redefined.insert(key.to_owned(), revision);
                let wait = state.settings.accept_names;
                state.schedule(wait, Job::SyncServices, now);
                if after.is_some() {
                    state.schedule(wait, Job::AcceptNames(key.to_owned()), now);
                }
            }
            if is_ending {
                let wait = state.settings.clean_up;
                state.schedule(wait, Job::CleanUp(key.to_owned()), now);
            }
        }
        NAMESPACES if is_ending => state.schedule_controller(Job::EndNamespace(key.to_owned()), now),
        _ => {}
    }
    let waits = |object: &Value| finalizers(object).any(|it| it == FOREGROUND || it == ORPHAN);
    if after.is_none_or(|object| owners(object).next().is_some() || (is_ending && waits(object))) {
        state.schedule_controller(Job::CollectGarbage, now);
    }
    // A namespace waits for its contents.
    if after.is_none()
        && let Some((namespace, _)) = key.split_once('/')
        && state.namespace(namespace).is_some_and(|namespace| is_being_deleted(&namespace.object))
    {
        state.schedule_controller(Job::EndNamespace(namespace.to_owned()), now);
    }
    if after.is_none()
        && let Some((group, plural)) = collection.split_once('/')
    {
        let name = format!("{plural}.{group}");
        if state.get(DEFINITIONS, &name).is_some_and(|definition| is_being_deleted(&definition.object)) {
            let wait = state.settings.clean_up;
            state.schedule(wait, Job::CleanUp(name), now);
        }
    }
}

/// Plans the work that follows from everything that is stored.
pub(crate) fn resume(state: &mut State, now: Instant) {
    let definitions: Vec<String> = state.storage.objects(DEFINITIONS).map(|(key, _)| key.to_owned()).collect();
    for name in definitions {
        state.schedule(state.settings.accept_names, Job::AcceptNames(name.clone()), now);
        state.schedule(state.settings.clean_up, Job::CleanUp(name), now);
    }
    state.schedule(state.settings.accept_names, Job::SyncServices, now);
    let namespaces: Vec<String> = state.storage.objects(NAMESPACES).map(|(key, _)| key.to_owned()).collect();
    for name in namespaces {
        state.schedule_controller(Job::EndNamespace(name), now);
    }
    state.schedule_controller(Job::CollectGarbage, now);
    if state.settings.heartbeat.is_some() {
        state.schedule(Duration::ZERO, Job::Heartbeat, now);
    }
}

/// Carries out some work.
pub(crate) fn run(state: &mut State, job: &Job, now: Instant) {
    match job {
        Job::AcceptNames(name) => accept_names(state, name, now),
        Job::Establish(name) => establish(state, name, now),
        Job::CleanUp(name) => clean_up(state, name, now),
        Job::SyncServices => sync_services(state, now),
        Job::EndNamespace(name) => end_namespace(state, name, now),
        Job::CollectGarbage => collect_garbage(state, now),
        Job::Heartbeat => heartbeat(state, now),
    }
}

fn heartbeat(state: &mut State, now: Instant) {
    let Some(wait) = state.settings.heartbeat else { return };
    let time = crate::clock::rfc3339(state.wall(now)).replace('Z', ".000000Z");
    let (collection, key) = LEASE;
    let stored = state.get(collection, key).map(|stored| (*stored.object).clone());
    let mut lease = stored.unwrap_or_else(|| {
        let metadata = json!({"name": "apiserver", "namespace": "kube-system"});
        let metadata = created(state, metadata, now);
        json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "spec": {}})
    });
    if let Some(spec) = lease.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("renewTime".to_owned(), time.into());
    }
    state.store(collection, key, Some(lease), now);
    state.schedule(wait, Job::Heartbeat, now);
}

/// Returns the names in a status or a spec that no other CRD of a group may have: those in paths, and kinds.
fn claimed(names: &Value) -> [BTreeSet<String>; 2] {
    let text = |field: &str| names.get(field).and_then(Value::as_str).map(str::to_owned).filter(|it| !it.is_empty());
    let short = names.get("shortNames").and_then(Value::as_array);
    let short = short.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned));
    [
        text("plural").into_iter().chain(text("singular")).chain(short).collect(),
        text("kind").into_iter().chain(text("listKind")).collect(),
    ]
}

fn accept_names(state: &mut State, name: &str, now: Instant) {
    let Some(stored) = state.get(DEFINITIONS, name) else { return };
    let mut definition = (*stored.object).clone();
    let group = definition.pointer("/spec/group").cloned().unwrap_or_default();
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for (key, other) in state.storage.objects(DEFINITIONS) {
        if key != name && other.object.pointer("/spec/group") == Some(&group) {
            let [some, others] = claimed(other.object.pointer("/status/acceptedNames").unwrap_or(&Value::Null));
            resources.extend(some);
            kinds.extend(others);
        }
    }
    let requested = definition.pointer("/spec/names").cloned().unwrap_or_default();
    let accepted = definition.pointer("/status/acceptedNames").cloned().unwrap_or_default();
    let mut names = accepted.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    for (field, reason, taken) in [
        ("plural", "PluralConflict", &resources),
        ("singular", "SingularConflict", &resources),
        ("shortNames", "ShortNamesConflict", &resources),
        ("kind", "KindConflict", &kinds),
        ("listKind", "ListKindConflict", &kinds),
    ] {
        let wanted = requested.get(field).cloned().unwrap_or_default();
        let texts: Vec<&str> = match &wanted {
            Value::String(text) => vec![text],
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
        };
        let is_same = accepted.get(field) == Some(&wanted);
        let in_use: Vec<&&str> = texts.iter().filter(|it| !is_same && taken.contains(**it)).collect();
        if let Some(first) = in_use.first() {
            let message = format!("\"{first}\" is already in use");
            conflict = Some((reason, message));
        } else if wanted.is_null() {
            names.remove(field);
        } else {
            names.insert(field.to_owned(), wanted);
        }
    }
    match requested.get("categories") {
        Some(categories) => names.insert("categories".to_owned(), categories.clone()),
        None => names.remove("categories"),
    };
    let time = state.timestamp(now);
    if let Some(status) = definition.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("acceptedNames".to_owned(), names.into());
    }
    let is_accepted = conflict.is_none();
    match conflict {
        None => set_condition(&mut definition, ["NamesAccepted", "True", "NoConflicts", "no conflicts found"], &time),
        Some((reason, message)) => set_condition(&mut definition, ["NamesAccepted", "False", reason, &message], &time),
    }
    if !has_condition(&definition, "Established") {
        let condition = if is_accepted {
            ["Established", "False", "Installing", "the initial names have been accepted"]
        } else {
            ["Established", "False", "NotAccepted", "not all names are accepted"]
        };
        set_condition(&mut definition, condition, &time);
        if is_accepted {
            state.schedule(state.settings.establish, Job::Establish(name.to_owned()), now);
        }
    }
    store_changed(state, DEFINITIONS, name, definition, now);
}

fn establish(state: &mut State, name: &str, now: Instant) {
    let Some(stored) = state.get(DEFINITIONS, name) else { return };
    if !has_condition(&stored.object, "NamesAccepted") || has_condition(&stored.object, "Established") {
        return;
    }
    let mut definition = (*stored.object).clone();
    let time = state.timestamp(now);
    let message = "the initial names have been accepted";
    set_condition(&mut definition, ["Established", "True", "InitialNamesAccepted", message], &time);
    store_changed(state, DEFINITIONS, name, definition, now);
}

/// Deletes the objects of a CRD that is being deleted, and the CRD when there are none.
fn clean_up(state: &mut State, name: &str, now: Instant) {
    let Some(stored) = state.get(DEFINITIONS, name) else { return };
    let mut definition = (*stored.object).clone();
    if !is_being_deleted(&definition) || !finalizers(&definition).any(|it| it == CLEAN_UP) {
        return;
    }
    let time = state.timestamp(now);
    let message = "CustomResource deletion is in progress";
    set_condition(&mut definition, ["Terminating", "True", "InstanceDeletionInProgress", message], &time);
    store_changed(state, DEFINITIONS, name, definition.clone(), now);
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let collection = format!("{}/{}", text("/spec/group"), text("/spec/names/plural"));
    if has_condition(&definition, "Established") {
        if !delete_all(state, &collection, "", now) {
            return;
        }
        let condition = ["Terminating", "False", "InstanceDeletionCompleted", "removed all instances"];
        set_condition(&mut definition, condition, &time);
    } else {
        let condition = ["Terminating", "False", "NeverEstablished", "resource was never established"];
        set_condition(&mut definition, condition, &time);
    }
    remove_finalizer(&mut definition, CLEAN_UP);
    let is_gone = finalizers(&definition).next().is_none();
    state.store(DEFINITIONS, name, (!is_gone).then_some(definition), now);
}

/// Deletes the objects of a collection under a prefix. Returns true if there are none left: one with a finalizer stays.
fn delete_all(state: &mut State, collection: &str, prefix: &str, now: Instant) -> bool {
    let of_prefix = state.storage.objects(collection).filter(|(key, _)| key.starts_with(prefix));
    let keys: Vec<String> = of_prefix.map(|(key, _)| key.to_owned()).collect();
    let mut is_empty = true;
    for key in keys {
        is_empty &= delete(state, collection, &key, now);
    }
    is_empty
}

/// Deletes an object. Returns false if it waits for its finalizers.
pub(crate) fn delete(state: &mut State, collection: &str, key: &str, now: Instant) -> bool {
    let Some(stored) = state.get(collection, key) else { return true };
    let object = (*stored.object).clone();
    if finalizers(&object).next().is_none() {
        state.store(collection, key, None, now);
        return true;
    }
    if !is_being_deleted(&object) {
        let marked = marked_for_deletion(state, object, now);
        state.store(collection, key, Some(marked), now);
    }
    false
}

/// Returns an object with a time of deletion.
pub(crate) fn marked_for_deletion(state: &State, mut object: Value, now: Instant) -> Value {
    let time = state.timestamp(now);
    let is_new = !is_being_deleted(&object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
        metadata.entry("deletionTimestamp").or_insert(time);
        let generation = metadata.get("generation").and_then(Value::as_i64).filter(|it| is_new && *it > 0);
        if let Some(generation) = generation {
            metadata.insert("generation".to_owned(), (generation + 1).into());
        }
    }
    object
}

/// Registers the groups and versions that CRDs serve.
fn sync_services(state: &mut State, now: Instant) {
    let mut served = BTreeSet::new();
    for (_, stored) in state.storage.objects(DEFINITIONS) {
        let spec = stored.object.get("spec");
        let group = spec.and_then(|spec| spec.get("group")).and_then(Value::as_str).unwrap_or_default();
        let versions = spec.and_then(|spec| spec.get("versions")).and_then(Value::as_array);
        for version in versions.into_iter().flatten() {
            if version.get("served") == Some(&Value::Bool(true)) && !resource::is_builtin_group(group) {
                let version = version.get("name").and_then(Value::as_str).unwrap_or_default();
                served.insert((group.to_owned(), version.to_owned()));
            }
        }
    }
    let names: BTreeSet<String> = served.iter().map(|(group, version)| format!("{version}.{group}")).collect();
    let unserved: Vec<String> = state
        .storage
        .objects(SERVICES)
        .filter(|(key, stored)| {
            let label = stored.object.pointer("/metadata/labels").and_then(|labels| labels.get(AUTOMANAGED));
            label.and_then(Value::as_str) == Some("true") && !names.contains(*key)
        })
        .map(|(key, _)| key.to_owned())
        .collect();
    for key in unserved {
        delete(state, SERVICES, &key, now);
    }
    for (group, version) in served {
        if state.get(SERVICES, &format!("{version}.{group}")).is_none() {
            store_service(state, &group, &version, [1000, 100], "true", now);
        }
    }
}

/// Deletes the contents of a namespace that is being deleted, and the namespace when there are none.
fn end_namespace(state: &mut State, name: &str, now: Instant) {
    let Some(stored) = state.namespace(name) else { return };
    let mut namespace = (*stored.object).clone();
    if !is_being_deleted(&namespace) {
        return;
    }
    let mut collections: BTreeSet<String> = namespaced_collections().collect();
    for (_, stored) in state.storage.objects(DEFINITIONS) {
        let text = |pointer: &str| stored.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        collections.insert(format!("{}/{}", text("/spec/group"), text("/spec/names/plural")));
    }
    let prefix = format!("{name}/");
    let mut is_empty = true;
    for collection in collections {
        is_empty &= delete_all(state, &collection, &prefix, now);
    }
    if !is_empty {
        return;
    }
    if let Some(all) = namespace.pointer_mut("/spec/finalizers").and_then(Value::as_array_mut) {
        all.retain(|it| it != "kubernetes");
    }
    let has_more = namespace.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    let is_gone = !has_more && finalizers(&namespace).next().is_none();
    if is_gone {
        state.store(NAMESPACES, name, None, now);
    } else {
        store_changed(state, NAMESPACES, name, namespace, now);
    }
}

/// Deletes the objects whose owners are all gone, and ends the deletions that wait for that.
fn collect_garbage(state: &mut State, now: Instant) {
    let all: Vec<String> = state.storage.collections().map(str::to_owned).collect();
    let mut uids = BTreeSet::new();
    for collection in &all {
        for (_, stored) in state.storage.objects(collection) {
            uids.extend(text_at(&stored.object, "/metadata/uid"));
        }
    }
    let mut garbage = Vec::new();
    for collection in &all {
        for (key, stored) in state.storage.objects(collection) {
            let mut owners = owners(&stored.object).peekable();
            let is_owned = owners.peek().is_some();
            if is_owned && !owners.any(|owner| owner.is_some_and(|uid| uids.contains(uid))) {
                garbage.push((collection.clone(), key.to_owned()));
            }
        }
    }
    for (collection, key) in garbage {
        delete(state, &collection, &key, now);
    }
    end_waiting(state, &all, now);
}

/// Ends the deletions in the foreground, and those that leave orphans.
fn end_waiting(state: &mut State, collections: &[String], now: Instant) {
    let mut waiting = Vec::new();
    for collection in collections {
        for (key, stored) in state.storage.objects(collection) {
            let all: Vec<&str> = finalizers(&stored.object).collect();
            if is_being_deleted(&stored.object) && (all.contains(&FOREGROUND) || all.contains(&ORPHAN)) {
                let uid = text_at(&stored.object, "/metadata/uid").unwrap_or_default();
                waiting.push((collection.clone(), key.to_owned(), uid, all.contains(&ORPHAN)));
            }
        }
    }
    for (collection, key, uid, is_orphaning) in waiting {
        let mut is_blocked = false;
        for of in collections {
            let dependents = state.storage.objects(of);
            let dependents = dependents.filter(|(_, it)| owners(&it.object).any(|owner| owner == Some(&*uid)));
            let dependents: Vec<(String, Value)> =
                dependents.map(|(key, it)| (key.to_owned(), (*it.object).clone())).collect();
            for (dependent, mut object) in dependents {
                if is_orphaning {
                    remove_owner(&mut object, &uid);
                    state.store(of, &dependent, Some(object), now);
                } else {
                    let blocks = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
                    let blocks = blocks.into_iter().flatten().any(|it| {
                        it.get("uid").and_then(Value::as_str) == Some(&uid)
                            && it.get("blockOwnerDeletion") == Some(&Value::Bool(true))
                    });
                    is_blocked |= !delete(state, of, &dependent, now) && blocks;
                }
            }
        }
        let Some(stored) = state.get(&collection, &key).filter(|_| !is_blocked) else { continue };
        let mut object = (*stored.object).clone();
        remove_finalizer(&mut object, if is_orphaning { ORPHAN } else { FOREGROUND });
        let is_gone = finalizers(&object).next().is_none();
        state.store(&collection, &key, (!is_gone).then_some(object), now);
    }
}

fn store_changed(state: &mut State, collection: &str, key: &str, object: Value, now: Instant) {
    if state.get(collection, key).is_none_or(|stored| *stored.object != object) {
        state.store(collection, key, Some(object), now);
    }
}

pub(crate) fn is_being_deleted(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string)
}

/// Returns `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let all = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str)
}

fn owners(object: &Value) -> impl Iterator<Item = Option<&str>> {
    let all = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    all.into_iter().flatten().map(|owner| owner.get("uid").and_then(Value::as_str))
}

fn remove_owner(object: &mut Value, uid: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(all) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) else { return };
    all.retain(|owner| owner.get("uid").and_then(Value::as_str) != Some(uid));
    if all.is_empty() {
        metadata.remove("ownerReferences");
    }
}

pub(crate) fn remove_finalizer(object: &mut Value, finalizer: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(all) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) else { return };
    all.retain(|it| it != finalizer);
    if all.is_empty() {
        metadata.remove("finalizers");
    }
}

fn text_at(object: &Value, pointer: &str) -> Option<String> {
    object.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}
