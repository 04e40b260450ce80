//! Discovery: groups, versions, resources, the version of the server, and the index of OpenAPI documents.

use crate::error::ApiError;
use crate::resource::{BUILTIN_GROUPS, DEFINITIONS, LEASES, ResourceInfo, builtins_of, defined, is_builtin_group};
use crate::state::State;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The verbs of every resource.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// A group with its versions, best first.
struct Group {
    name: String,
    versions: Vec<String>,
}

/// Returns the answer to a path of discovery. `None`: it is none.
pub(crate) fn answer(state: &State, path: &str, is_aggregated: bool) -> Result<Option<Value>, ApiError> {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let answer = match segments.as_slice() {
        ["version"] => version(state),
        ["api"] if is_aggregated => aggregated(state, true),
        ["apis"] if is_aggregated => aggregated(state, false),
        ["api"] => json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
        }),
        ["apis"] => {
            let groups: Vec<Value> = groups(state).iter().map(group_object).collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        ["apis", name] => {
            let groups = groups(state);
            let group = groups.iter().find(|group| group.name == *name).ok_or_else(ApiError::no_page)?;
            let mut object = json!({"kind": "APIGroup", "apiVersion": "v1"});
            if let (Some(all), Value::Object(fields)) = (object.as_object_mut(), group_object(group)) {
                all.extend(fields);
            }
            object
        }
        ["api", version] => resource_list(state, "", version)?,
        ["apis", group, version] => resource_list(state, group, version)?,
        _ => return Ok(None),
    };
    Ok(Some(answer))
}

fn version(state: &State) -> Value {
    let (major, minor) = state.settings.version;
    json!({
        "major": major.to_string(), "minor": minor.to_string(),
        "emulationMajor": major.to_string(), "emulationMinor": minor.to_string(),
        "minCompatibilityMajor": major.to_string(), "minCompatibilityMinor": minor.saturating_sub(1).to_string(),
        "gitVersion": format!("v{major}.{minor}.0"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "gc", "platform": "linux/amd64",
    })
}

/// Returns the resources of a group and version. Those of CRDs come by name.
fn resources(state: &State, group: &str, version: &str) -> Vec<ResourceInfo> {
    if is_builtin_group(group) {
        return builtins_of(group, version);
    }
    let of_group = state
        .storage
        .objects(DEFINITIONS)
        .filter(|(_, stored)| stored.object.pointer("/spec/group").and_then(Value::as_str) == Some(group));
    of_group.filter_map(|(_, stored)| defined(&stored.object, version)).collect()
}

/// Returns all groups but the core group, in the order of their priority.
fn groups(state: &State) -> Vec<Group> {
    let mut groups: Vec<Group> = BUILTIN_GROUPS
        .into_iter()
        .chain([LEASES])
        .filter(|(group, ..)| !group.is_empty())
        .map(|(group, version, ..)| Group { name: group.to_owned(), versions: vec![version.to_owned()] })
        .collect();
    let mut custom: Vec<Group> = Vec::new();
    for (_, stored) in state.storage.objects(DEFINITIONS) {
        let group = stored.object.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
        let versions = stored.object.pointer("/spec/versions").and_then(Value::as_array);
        let names = versions.into_iter().flatten().filter_map(|it| it.get("name")?.as_str());
        let served: BTreeSet<String> =
            names.filter(|name| defined(&stored.object, name).is_some()).map(str::to_owned).collect();
        if served.is_empty() || is_builtin_group(group) {
            continue;
        }
        match custom.iter_mut().find(|it| it.name == group) {
            Some(known) => known.versions.extend(served),
            None => custom.push(Group { name: group.to_owned(), versions: served.into_iter().collect() }),
        }
    }
    for group in &mut custom {
        group.versions.sort_by_key(|version| Reverse(rank(version)));
        group.versions.dedup();
    }
    custom.sort_by(|left, right| left.name.cmp(&right.name));
    groups.extend(custom);
    groups
}

/// Orders versions as Kubernetes does: stable before beta before alpha before others, later before earlier.
fn rank(version: &str) -> (u8, u32, u32, String) {
    let other = || (0, 0, 0, version.to_owned());
    let Some(rest) = version.strip_prefix('v') else { return other() };
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let Ok(major) = major.parse() else { return other() };
    if rest.is_empty() {
        return (3, major, 0, String::new());
    }
    for (class, prefix) in [(2, "beta"), (1, "alpha")] {
        if let Some(minor) = rest.strip_prefix(prefix).and_then(|minor| minor.parse().ok()) {
            return (class, major, minor, String::new());
        }
    }
    other()
}

fn group_object(group: &Group) -> Value {
    let version = |version: &String| json!({"groupVersion": format!("{}/{version}", group.name), "version": version});
    let versions: Vec<Value> = group.versions.iter().map(version).collect();
    json!({"name": group.name, "versions": versions, "preferredVersion": versions.first()})
}

fn resource_list(state: &State, group: &str, version: &str) -> Result<Value, ApiError> {
    let resources = resources(state, group, version);
    if resources.is_empty() {
        return Err(ApiError::no_page());
    }
    let group_version = crate::resource::api_version(group, version);
    let mut all = Vec::new();
    for resource in &resources {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": VERBS,
        });
        for (field, texts) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
            if !texts.is_empty() {
                crate::kinds::set_or_remove(&mut entry, field, Some(json!(texts)));
            }
        }
        all.push(entry);
        for subresource in &resource.subresources {
            all.push(json!({
                "name": format!("{}/{subresource}", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": resource.kind, "verbs": ["get", "patch", "update"],
            }));
        }
    }
    Ok(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": all}))
}

/// Returns everything in one document.
fn aggregated(state: &State, is_core: bool) -> Value {
    let groups =
        if is_core { vec![Group { name: String::new(), versions: vec!["v1".to_owned()] }] } else { groups(state) };
    let items: Vec<Value> = groups
        .iter()
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> =
                        resources(state, &group.name, version).iter().map(aggregated_resource).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let mut metadata = Map::new();
            if !group.name.is_empty() {
                metadata.insert("name".to_owned(), group.name.clone().into());
            }
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

fn aggregated_resource(resource: &ResourceInfo) -> Value {
    let kind = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let scope = if resource.namespaced { "Namespaced" } else { "Cluster" };
    let subresources: Vec<Value> = resource
        .subresources
        .iter()
        .map(|name| json!({"subresource": name, "responseKind": kind, "verbs": ["get", "patch", "update"]}))
        .collect();
    let mut entry = json!({
        "resource": resource.plural, "responseKind": kind, "scope": scope, "singularResource": resource.singular,
        "verbs": VERBS,
    });
    for (field, texts) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !texts.is_empty() {
            crate::kinds::set_or_remove(&mut entry, field, Some(json!(texts)));
        }
    }
    if !subresources.is_empty() {
        crate::kinds::set_or_remove(&mut entry, "subresources", Some(subresources.into()));
    }
    entry
}

/// Returns the index of the OpenAPI documents. The URL of a document changes with its content.
pub(crate) fn documents(state: &State) -> Value {
    let paths: Map<String, Value> = state
        .documents
        .iter()
        .map(|(path, text)| {
            // FNV-1a: a hash that does not change with the version of Rust.
            let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
            let url = format!("/openapi/v3/{path}?hash={hash:016X}");
            (path.clone(), json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}
