//! The object that a configuration is to be: a pure function of the one that is stored and of what is wanted.
//!
//! The stored object is the basis, and everything in it that is not ours is written back as it was read: entries of others,
//! labels, annotations and owners of others, and fields that this version does not know. What is ours is set, whoever owns
//! the field by `managedFields`: the object is written whole, so that no other field manager can hold on to a part of it.

use super::bundle::Bundle;
use super::entries::{CaBundle, Entry, INJECT, INSTALLATION, NAME, Wanted, is_ours};
use crate::cluster::ServiceReference;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube_unions_core::admission::InspectionToken;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Returns the object to write, `None` if what is stored is as wanted.
pub(super) fn desired(stored: Option<&Value>, wanted: &Wanted) -> Option<Value> {
    let Some(stored) = stored else {
        return (!wanted.entries.is_empty()).then(|| complete(&Map::new(), wanted));
    };
    let desired = complete(stored.as_object().unwrap_or(&Map::new()), wanted);
    (desired != *stored).then_some(desired)
}

/// Returns the object with this bundle in the entries of our names, and nothing else changed; `None` if they hold it.
pub(super) fn with_bundle(stored: &Value, pem: &str) -> Option<Value> {
    let bundle = Value::from(BASE64_STANDARD.encode(pem));
    let mut desired = stored.clone();
    for entry in desired.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        if name_of(entry).is_some_and(is_ours)
            && let Some(client) = entry.get_mut("clientConfig").and_then(Value::as_object_mut)
        {
            client.insert("caBundle".to_owned(), bundle.clone());
        }
    }
    (desired != *stored).then_some(desired)
}

/// Returns the installation, by its Service, that keeps a stored configuration, if it is another than that of `service`.
///
/// A configuration is ours if its annotation says so or if an entry of our names calls our Service: one hand can change
/// either. Without the annotation, which earlier versions did not write, the entries alone decide.
pub(in crate::cluster) fn other_installation(stored: &Value, service: &ServiceReference) -> Option<String> {
    let own = format!("{}/{}", service.namespace, service.name);
    let named = stored.pointer("/metadata/annotations").and_then(|all| all.get(INSTALLATION)?.as_str());
    let called: BTreeSet<String> = ours(stored).filter_map(|(_, entry)| service_of(entry)).collect();
    if named == Some(&own) || called.contains(&own) {
        return None;
    }
    named.map(str::to_owned).or_else(|| called.into_iter().next())
}

/// Returns the entries that have one of our names.
pub(super) fn ours(stored: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let named = entries(stored).iter().filter_map(|entry| Some((name_of(entry)?, entry)));
    named.filter(|(name, _)| is_ours(name))
}

/// Returns the token in the path of the entries that ask for inspections, if one is well-formed.
pub(super) fn inspection_token(stored: &Value) -> Option<InspectionToken> {
    token_of(entries(stored))
}

/// Returns the bundle of an entry.
pub(super) fn bundle_of(entry: &Value) -> Bundle {
    let pem = || BASE64_STANDARD.decode(entry.pointer("/clientConfig/caBundle")?.as_str()?).ok();
    Bundle::read(pem().unwrap_or_default().as_slice())
}

/// Returns whether an object would be as desired but for the bundles of our entries.
pub(super) fn differs_only_in_bundles(stored: &Value, desired: &Value) -> bool {
    let mut desired = desired.clone();
    for entry in desired.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        let bundle = ours(stored)
            .find(|(name, _)| name_of(entry) == Some(name))
            .and_then(|(_, stored)| stored.pointer("/clientConfig/caBundle"));
        if let Some((bundle, client)) = bundle.zip(entry.get_mut("clientConfig").and_then(Value::as_object_mut)) {
            client.insert("caBundle".to_owned(), bundle.clone());
        }
    }
    desired == *stored
}

/// Returns the parts in which two objects differ, for the log. It holds names of entries and fields, and no value.
pub(super) fn differences(stored: &Value, desired: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for place in ["labels", "annotations"] {
        let of = |object: &Value| object.pointer("/metadata").and_then(|metadata| metadata.get(place)).cloned();
        for key in changed(&of(stored).unwrap_or_default(), &of(desired).unwrap_or_default()) {
            found.push(format!("{place} `{key}`"));
        }
    }
    if stored.pointer("/metadata/ownerReferences") != desired.pointer("/metadata/ownerReferences") {
        found.push("ownerReferences".to_owned());
    }
    let find = |object: &Value, name: &str| entries(object).iter().find(|entry| name_of(entry) == Some(name)).cloned();
    for entry in entries(desired) {
        let name = name_of(entry).unwrap_or_default();
        match find(stored, name) {
            None => found.push(format!("{name} is missing")),
            Some(before) => found.extend(changed(&before, entry).into_iter().map(|field| format!("{name} {field}"))),
        }
    }
    for entry in entries(stored) {
        let name = name_of(entry).unwrap_or_default();
        if find(desired, name).is_none() {
            found.push(format!("{name} is not wanted"));
        }
    }
    if found.is_empty() {
        found.push("an entry that is there twice, or fields that are not what they should be".to_owned());
    }
    found
}

/// The keys whose values differ.
fn changed(before: &Value, after: &Value) -> BTreeSet<String> {
    let empty = Map::new();
    let (before, after) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let keys = before.keys().chain(after.keys()).filter(|key| before.get(*key) != after.get(*key));
    keys.cloned().collect()
}

fn complete(stored: &Map<String, Value>, wanted: &Wanted) -> Value {
    let mut object = stored.clone();
    object.insert("apiVersion".to_owned(), "admissionregistration.k8s.io/v1".into());
    object.insert("kind".to_owned(), wanted.phase.kind().into());
    let mut metadata = object_at(stored, "metadata");
    metadata.insert("name".to_owned(), NAME.into());
    let mut labels = object_at(&metadata, "labels");
    labels.extend(wanted.labels.clone());
    metadata.insert("labels".to_owned(), labels.into());
    let mut annotations = object_at(&metadata, "annotations");
    if !wanted.annotations.contains_key(INJECT) {
        annotations.shift_remove(INJECT);
    }
    annotations.extend(wanted.annotations.clone());
    metadata.insert("annotations".to_owned(), annotations.into());
    if let Some(owner) = &wanted.owner {
        let reference = owner.reference();
        let stored = metadata.get("ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_another = |it: &Value| ["kind", "name"].iter().any(|field| it.get(field) != reference.get(field));
        let mut owners: Vec<Value> = stored.into_iter().filter(is_another).collect();
        owners.push(reference);
        metadata.insert("ownerReferences".to_owned(), owners.into());
    }
    object.insert("metadata".to_owned(), metadata.into());
    let webhooks = webhooks(stored.get("webhooks").and_then(Value::as_array).map_or(&[], Vec::as_slice), wanted);
    // The API server leaves an empty list out.
    if webhooks.is_empty() && is_said(stored.get("webhooks")) {
        object.shift_remove("webhooks");
    } else if !webhooks.is_empty() {
        object.insert("webhooks".to_owned(), webhooks.into());
    }
    object.into()
}

/// All entries: the stored ones in their order, those that are missing after them.
fn webhooks(stored: &[Value], wanted: &Wanted) -> Vec<Value> {
    let token = token_of(stored);
    let inspections = token.as_ref().unwrap_or(&wanted.fresh).path();
    let mut missing: Vec<&Entry> = wanted.entries.iter().collect();
    let mut webhooks = Vec::new();
    for entry in stored {
        let name = name_of(entry).unwrap_or_default();
        if let Some(position) = missing.iter().position(|wanted| wanted.name == name) {
            webhooks.push(completed(entry, missing.remove(position), wanted, &inspections));
        // An entry that calls us under another name would have us answer what is not ours to judge.
        } else if !is_ours(name) && !calls(entry, &wanted.service) {
            webhooks.push(entry.clone());
        }
    }
    webhooks.extend(missing.into_iter().map(|entry| completed(&Value::Null, entry, wanted, &inspections)));
    webhooks
}

fn completed(stored: &Value, entry: &Entry, wanted: &Wanted, inspections: &str) -> Value {
    let mut fields = stored.as_object().cloned().unwrap_or_default();
    fields.insert("name".to_owned(), entry.name.into());
    fields.extend(entry.fields.clone());
    // The one field that is not always written out: it narrows what is sent.
    if !entry.fields.contains_key("matchConditions") && is_said(fields.get("matchConditions")) {
        fields.shift_remove("matchConditions");
    }
    let mut client = object_at(&fields, "clientConfig");
    if is_said(client.get("url")) {
        client.shift_remove("url");
    }
    let ServiceReference { namespace, name, port } = &wanted.service;
    let mut service = object_at(&client, "service");
    for (field, value) in [
        ("namespace", json!(namespace)),
        ("name", json!(name)),
        ("path", entry.path.unwrap_or(inspections).into()),
        ("port", json!(port)),
    ] {
        service.insert(field.to_owned(), value);
    }
    client.insert("service".to_owned(), service.into());
    let is_trusted = match &wanted.ca {
        CaBundle::Ours(pem) => {
            client.insert("caBundle".to_owned(), BASE64_STANDARD.encode(pem).into());
            true
        }
        // The stored bundle stays, whoever wrote it, until cert-manager writes another one.
        CaBundle::Injected(_) => !bundle_of(stored).is_empty(),
    };
    fields.insert("clientConfig".to_owned(), client.into());
    // An entry that nobody can be called by must not fail a write.
    let policy = if is_trusted { entry.failure_policy.as_str() } else { "Ignore" };
    fields.insert("failurePolicy".to_owned(), policy.into());
    fields.into()
}

/// The object in a field, empty if there is none.
fn object_at(object: &Map<String, Value>, field: &str) -> Map<String, Value> {
    object.get(field).and_then(Value::as_object).cloned().unwrap_or_default()
}

fn entries(object: &Value) -> &[Value] {
    object.get("webhooks").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn token_of(entries: &[Value]) -> Option<InspectionToken> {
    let mut ours = entries.iter().filter(|entry| name_of(entry).is_some_and(is_ours));
    ours.find_map(|entry| InspectionToken::of_path(entry.pointer("/clientConfig/service/path")?.as_str()?))
}

fn name_of(entry: &Value) -> Option<&str> {
    entry.get("name")?.as_str()
}

/// `namespace/name` of the Service that an entry calls.
fn service_of(entry: &Value) -> Option<String> {
    let service = entry.pointer("/clientConfig/service")?;
    Some(format!("{}/{}", service.get("namespace")?.as_str()?, service.get("name")?.as_str()?))
}

fn calls(entry: &Value, service: &ServiceReference) -> bool {
    service_of(entry).is_some_and(|called| called == format!("{}/{}", service.namespace, service.name))
}

/// Returns whether a field says anything: null and an empty list do not.
fn is_said(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::super::entries::{Frame, Inspections, Owner, Phase};
    use super::super::options::EntryOptions;
    use super::super::rules::{Rule, Rules};
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    const BOTH: Inspections = Inspections { declarations: true, definitions: true };

    fn service() -> ServiceReference {
        "kube-unions/kube-unions:8443".parse().unwrap()
    }

    fn token(digit: u8) -> InspectionToken {
        InspectionToken::from_random([digit; 16])
    }

    fn owner(uid: &str) -> Owner {
        Owner { name: "kube-unions".to_owned(), uid: uid.to_owned() }
    }

    fn certificate() -> String {
        CertificateParams::default().self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    /// A configuration where only custom resources have unions.
    fn wanted_of(phase: Phase, options: EntryOptions, ca: CaBundle) -> Wanted {
        let rules = Rules { custom: vec![Rule::of_declarations()], ..Rules::default() };
        let frame = Frame::new(service(), options, &["b".to_owned(), "a".to_owned(), "kube-system".to_owned()]);
        frame.wanted(phase, &rules, BOTH, ca, Some(owner("1")), token(1))
    }

    fn wanted() -> Wanted {
        wanted_of(Phase::Mutating, EntryOptions::default(), CaBundle::Ours("pem".to_owned()))
    }

    fn validating() -> Wanted {
        Wanted { phase: Phase::Validating, ..wanted_of(Phase::Validating, EntryOptions::default(), wanted().ca) }
    }

    /// The object as the API server has stored it.
    fn stored_of(wanted: &Wanted) -> Value {
        let mut object = desired(None, wanted).unwrap();
        object["metadata"]["resourceVersion"] = json!("7");
        object["metadata"]["uid"] = json!("of-the-configuration");
        object["metadata"]["managedFields"] = json!([{"manager": "kube-unions", "operation": "Apply"}]);
        object
    }

    fn patched(mut object: Value, patch: Value) -> Value {
        let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
        object
    }

    fn add(pointer: &str, value: &Value) -> Value {
        json!([{"op": "add", "path": pointer, "value": value}])
    }

    #[test]
    fn every_field_is_written_out() {
        let object = desired(None, &wanted()).unwrap();
        let entry = object["webhooks"][0].as_object().unwrap();
        // All that there are in v1, but `matchConditions`, which must not be there.
        assert_eq!(entry.len(), 11, "a field that is left out could be anybody's: {entry:?}");
        assert_eq!(
            object["metadata"],
            json!({
                "name": "kube-unions",
                "labels": {"app.kubernetes.io/name": "kube-unions", "app.kubernetes.io/managed-by": "kube-unions"},
                "annotations": {"kube-unions.dev/installation": "kube-unions/kube-unions"},
                "ownerReferences": [{
                    "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "kube-unions", "uid": "1",
                }],
            })
        );
        assert_eq!(
            object["webhooks"][0]["namespaceSelector"]["matchExpressions"][0]["values"],
            json!(["a", "b", "kube-system", "kube-unions"])
        );
    }

    #[test]
    fn nothing_is_created_where_nothing_is_wanted() {
        assert_eq!(desired(None, &Wanted { entries: Vec::new(), ..wanted() }), None);
    }

    /// Additions of others stay to the letter, and are no reason to write.
    #[test]
    fn additions_of_others_are_no_difference() {
        let stored = stored_of(&wanted());
        assert_eq!(desired(Some(&stored), &wanted()), None);
        let stranger =
            json!({"name": "of.others.example", "clientConfig": {"url": "https://a"}, "fieldOfLater": [1, null]});
        let other_owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "9"});
        for (pointer, value) in [
            ("/webhooks/0", stranger.clone()),
            ("/webhooks/1", stranger),
            ("/webhooks/0/fieldOfLater", json!("Default")),
            ("/webhooks/0/clientConfig/fieldOfLater", json!({})),
            ("/webhooks/0/matchConditions", json!([])),
            ("/webhooks/0/matchConditions", Value::Null),
            ("/metadata/annotations/of", json!("others")),
            ("/metadata/labels/of", json!("others")),
            ("/metadata/finalizers", json!(["of/others"])),
            ("/metadata/ownerReferences/0", other_owner),
            ("/fieldOfLater", json!({"a": [{}]})),
        ] {
            let more = patched(stored.clone(), add(pointer, &value));
            assert_eq!(desired(Some(&more), &wanted()), None, "{pointer}");
        }
    }

    /// Rows: a change, and what is said to differ. Whatever it is, one write puts it right.
    #[test]
    fn every_change_of_what_is_ours_is_put_right_by_one_write() {
        let stored = stored_of(&wanted());
        let entry = stored["webhooks"][0].as_object().unwrap();
        let mut rows = Vec::new();
        for field in entry.keys().filter(|field| *field != "name") {
            let (path, want) = (format!("/webhooks/0/{field}"), format!("mutate.kube-unions.dev {field}"));
            rows.push((json!([{"op": "remove", "path": path}]), want.clone()));
            rows.push((add(&path, &json!(["other"])), want));
        }
        let changed = [
            ("/webhooks/0/clientConfig/service/port", json!(443), "mutate.kube-unions.dev clientConfig"),
            ("/webhooks/0/clientConfig/caBundle", json!(""), "mutate.kube-unions.dev clientConfig"),
            ("/webhooks/0/clientConfig/url", json!("https://a"), "mutate.kube-unions.dev clientConfig"),
            ("/webhooks/0/clientConfig", json!({"url": "https://a"}), "mutate.kube-unions.dev clientConfig"),
            (
                "/webhooks/0/matchConditions",
                json!([{"name": "a", "expression": "false"}]),
                "mutate.kube-unions.dev matchConditions",
            ),
            ("/webhooks/0/objectSelector/matchLabels", json!({"a": "b"}), "mutate.kube-unions.dev objectSelector"),
            ("/webhooks/0/namespaceSelector/matchLabels", json!({}), "mutate.kube-unions.dev namespaceSelector"),
            ("/webhooks/0/rules/1", json!({}), "mutate.kube-unions.dev rules"),
            (
                "/webhooks/1",
                json!({"name": "mutate.builtin.kube-unions.dev"}),
                "mutate.builtin.kube-unions.dev is not wanted",
            ),
            ("/webhooks/1", stored["webhooks"][0].clone(), "an entry that is there twice"),
            ("/webhooks/0/name", json!("a.example"), "mutate.kube-unions.dev is missing"),
            ("/webhooks", json!({"not": "a list"}), "mutate.kube-unions.dev is missing"),
            ("/webhooks", Value::Null, "mutate.kube-unions.dev is missing"),
            ("/webhooks/0", json!({"name": 7}), "mutate.kube-unions.dev is missing"),
            ("/metadata/labels/app.kubernetes.io~1name", json!("else"), "labels `app.kubernetes.io/name`"),
            ("/metadata/labels", json!(["nonsense"]), "labels `app.kubernetes.io/managed-by`"),
            (
                "/metadata/annotations/cert-manager.io~1inject-ca-from",
                json!("a/b"),
                "annotations `cert-manager.io/inject-ca-from`",
            ),
            (
                "/metadata/annotations/kube-unions.dev~1installation",
                json!("a/b"),
                "annotations `kube-unions.dev/installation`",
            ),
            ("/metadata/annotations", json!("nonsense"), "annotations `kube-unions.dev/installation`"),
            ("/metadata/ownerReferences", json!("nonsense"), "ownerReferences"),
            ("/metadata/ownerReferences", json!([]), "ownerReferences"),
            ("/metadata/ownerReferences/0/uid", json!("stale"), "ownerReferences"),
            ("/metadata/ownerReferences/0/blockOwnerDeletion", json!(true), "ownerReferences"),
        ];
        rows.extend(changed.map(|(path, value, want)| (add(path, &value), want.to_owned())));
        for (patch, want) in rows {
            // The first row of a replaced entry leaves it in the place of ours.
            let patch = if patch[0]["path"] == "/webhooks/0" {
                json!([{"op": "replace", "path": "/webhooks/0", "value": patch[0]["value"]}])
            } else {
                patch
            };
            let changed = patched(stored.clone(), patch.clone());
            let written = desired(Some(&changed), &wanted()).unwrap_or_else(|| panic!("no write: {patch}"));
            let said = differences(&changed, &written);
            assert!(said.iter().any(|said| said.starts_with(&want)), "{patch}: {said:?}");
            assert_eq!(desired(Some(&written), &wanted()), None, "{patch}");
            assert_eq!(written["metadata"]["resourceVersion"], "7", "bound to the version that was read");
            let ours: Vec<_> = ours(&written).map(|(_, entry)| entry).collect();
            assert_eq!(ours, [&stored["webhooks"][0]], "{patch}");
        }
    }

    #[test]
    fn an_object_of_nonsense_is_no_reason_to_panic() {
        for stored in
            [json!(null), json!([]), json!("a"), json!({}), json!({"metadata": 1, "webhooks": [1, null, "a", []]})]
        {
            let written = desired(Some(&stored), &wanted()).unwrap();
            assert_eq!(ours(&written).count(), 1);
            assert_eq!(desired(Some(&written), &wanted()), None);
            assert_eq!(other_installation(&stored, &service()), None);
            assert!(!differences(&stored, &written).is_empty());
            assert_eq!(with_bundle(&stored, "pem"), None);
            assert!(inspection_token(&stored).is_none());
        }
    }

    /// The remains of two field managers of earlier versions: one of them still owns a name and a bundle.
    #[test]
    fn a_remnant_of_an_entry_goes_with_the_next_write() {
        let mut stored = stored_of(&wanted());
        let remnant = json!({"name": "mutate.builtin.kube-unions.dev", "clientConfig": {"caBundle": "cGVt"}});
        stored["webhooks"].as_array_mut().unwrap().push(remnant);
        let written = desired(Some(&stored), &wanted()).unwrap();
        assert_eq!(written["webhooks"], stored_of(&wanted())["webhooks"]);
    }

    #[test]
    fn an_entry_under_another_name_is_ours_if_it_calls_us() {
        let calls = |name: &str, namespace: &str| json!({"name": name, "clientConfig": {"service": {"namespace": namespace, "name": "kube-unions"}}});
        let mut stored = stored_of(&wanted());
        let own = stored["webhooks"][0].clone();
        stored["webhooks"] = json!([calls("a.example", "else"), calls("b.example", "kube-unions"), own]);
        let written = desired(Some(&stored), &wanted()).unwrap();
        assert_eq!(written["webhooks"], json!([calls("a.example", "else"), own]));
        assert_eq!(differences(&stored, &written), ["b.example is not wanted"]);
    }

    #[test]
    fn owners_of_others_stay_and_without_one_of_ours_nothing_is_changed() {
        let other = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "9"});
        let mut stored = stored_of(&wanted());
        stored["metadata"]["ownerReferences"] = json!([owner("stale").reference(), other]);
        let written = desired(Some(&stored), &wanted()).unwrap();
        assert_eq!(written["metadata"]["ownerReferences"], json!([other, owner("1").reference()]));
        assert_eq!(desired(Some(&stored), &Wanted { owner: None, ..wanted() }), None);
    }

    #[test]
    fn bundle_and_policy_change_in_one_write() {
        let injected = || wanted_of(Phase::Mutating, EntryOptions::default(), CaBundle::Injected("a/b".to_owned()));
        let bundle = BASE64_STANDARD.encode(certificate());
        let with = |bundle: &str| {
            let mut object = stored_of(&injected());
            object["webhooks"][0]["clientConfig"]["caBundle"] = json!(bundle);
            desired(Some(&object), &injected()).unwrap_or(object)
        };
        let fresh = desired(None, &injected()).unwrap();
        assert_eq!(fresh["metadata"]["annotations"]["cert-manager.io/inject-ca-from"], "a/b");
        // Without a bundle, or with one that is none, nothing fails; what somebody has written there stays.
        assert_eq!(fresh["webhooks"][0]["failurePolicy"], "Ignore");
        assert_eq!(fresh["webhooks"][0]["clientConfig"].get("caBundle"), None);
        for bundle in ["", "nonsense", "AAAA"] {
            assert_eq!(with(bundle)["webhooks"][0]["failurePolicy"], "Ignore", "{bundle}");
            assert_eq!(with(bundle)["webhooks"][0]["clientConfig"]["caBundle"], bundle);
        }
        assert_eq!(with(&bundle)["webhooks"][0]["failurePolicy"], "Fail");
        assert_eq!(with(&bundle)["webhooks"][0]["clientConfig"]["caBundle"], bundle.as_str());

        // There and back: no step in between has `Fail` and no bundle.
        let ours = wanted_of(Phase::Mutating, EntryOptions::default(), CaBundle::Ours(certificate()));
        let switched = desired(Some(&stored_of(&ours)), &injected()).unwrap();
        assert_eq!(
            switched["webhooks"],
            stored_of(&ours)["webhooks"],
            "the bundle stays until cert-manager writes its own"
        );
        let back = desired(Some(&with("")), &ours).unwrap();
        assert_eq!(back["webhooks"], stored_of(&ours)["webhooks"]);
        assert_eq!(back["metadata"]["annotations"].get(INJECT), None);
    }

    #[test]
    fn a_bundle_alone_is_given_to_entries_of_our_names() {
        let mut stored = stored_of(&wanted());
        stored["webhooks"].as_array_mut().unwrap().push(json!({"name": "of.others.example", "clientConfig": {}}));
        assert_eq!(with_bundle(&stored, "pem"), None);
        let written = with_bundle(&stored, "other").unwrap();
        let mut want = stored.clone();
        want["webhooks"][0]["clientConfig"]["caBundle"] = BASE64_STANDARD.encode("other").into();
        assert_eq!(written, want);
        assert!(differs_only_in_bundles(&stored, &written));
        let mut more = written;
        more["webhooks"][0]["failurePolicy"] = json!("Ignore");
        assert!(!differs_only_in_bundles(&stored, &more));
    }

    #[test]
    fn the_token_that_is_stored_is_kept_if_it_is_well_formed() {
        let path = |object: &Value, entry: usize| object["webhooks"][entry]["clientConfig"]["service"]["path"].clone();
        let fresh = stored_of(&validating());
        let names: Vec<_> = ours(&fresh).map(|(name, _)| name).collect();
        assert_eq!(names, ["validate.kube-unions.dev", "declarations.kube-unions.dev", "definitions.kube-unions.dev"]);
        assert_eq!(inspection_token(&fresh), Some(token(1)));
        assert_eq!(
            [path(&fresh, 0), path(&fresh, 1), path(&fresh, 2)],
            [json!("/validate"), json!(token(1).path()), json!(token(1).path())]
        );
        let other = Wanted { fresh: token(2), ..validating() };
        assert_eq!(desired(Some(&fresh), &other), None, "another replica's token counts");
        // Every entry of inspections gets the one that is there, and a fresh one where none is.
        for (entries, kept) in [(&[1][..], 1), (&[2], 1), (&[1, 2], 2)] {
            let mut stored = fresh.clone();
            for &entry in entries {
                stored["webhooks"][entry]["clientConfig"]["service"]["path"] = json!("/validate/inspect/short");
            }
            let written = desired(Some(&stored), &other).unwrap();
            assert_eq!(
                [path(&written, 1), path(&written, 2)],
                [token(kept).path(), token(kept).path()].map(Value::from)
            );
            assert!(differences(&stored, &written).iter().all(|said| !said.contains("inspect/")));
        }
    }

    #[test]
    fn definitions_are_inspected_where_they_declare_unions_and_nothing_fails_for_it() {
        let object = desired(None, &validating()).unwrap();
        let entry = &object["webhooks"][2];
        assert_eq!(entry["name"], "definitions.kube-unions.dev");
        assert_eq!(entry["failurePolicy"], "Ignore");
        assert_eq!(
            entry["matchConditions"],
            json!([{"name": "declares-unions", "expression":
                "has(object.metadata.annotations) && \"kube-unions.dev/unions\" in object.metadata.annotations"}])
        );
        assert_eq!(
            entry["rules"],
            json!([{"apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                    "resources": ["customresourcedefinitions"], "scope": "Cluster"}])
        );
    }

    #[test]
    fn options_are_of_the_entries_for_objects_and_are_kept() {
        let options = EntryOptions {
            custom: super::super::FailurePolicy::Ignore,
            timeout_seconds: 7,
            match_conditions: r#"[{"name": "a", "expression": "true"}]"#.parse::<super::super::MatchConditions>().unwrap().0,
            object_selector: r#"{"matchLabels": {"c": "d"}}"#.parse().unwrap(),
            namespace_selector: r#"{"matchLabels": {"e": "f"}, "matchExpressions": [{"key": "g", "operator": "Exists"}]}"#
                .parse()
                .unwrap(),
            ..EntryOptions::default()
        };
        let wanted = wanted_of(Phase::Validating, options, CaBundle::Ours("pem".to_owned()));
        let object = desired(None, &wanted).unwrap();
        let [entry, declarations] = [0, 1].map(|index: usize| &object["webhooks"][index]);
        assert_eq!(entry["failurePolicy"], "Ignore");
        assert_eq!(entry["timeoutSeconds"], 7);
        assert_eq!(entry["matchConditions"], json!([{"name": "a", "expression": "true"}]));
        assert_eq!(entry["objectSelector"], json!({"matchLabels": {"c": "d"}}));
        let always = declarations["namespaceSelector"]["matchExpressions"].as_array().unwrap();
        let mut all = always.clone();
        all.push(json!({"key": "g", "operator": "Exists"}));
        assert_eq!(entry["namespaceSelector"], json!({"matchLabels": {"e": "f"}, "matchExpressions": all}));
        assert_eq!(always.len(), 2);
        assert_eq!([&declarations["timeoutSeconds"], &declarations["objectSelector"]], [&json!(5), &json!({})]);
        let changed = patched(stored_of(&wanted), json!([{"op": "remove", "path": "/webhooks/0/matchConditions"}]));
        assert_eq!(
            differences(&changed, &desired(Some(&changed), &wanted).unwrap()),
            ["validate.kube-unions.dev matchConditions"]
        );
    }

    /// Rows: the annotation, the Services that our entries call, and whether it is another installation's.
    #[test]
    fn a_configuration_is_of_another_installation_if_nothing_in_it_is_ours() {
        let (own, other) = ("kube-unions/kube-unions", "else/kube-unions");
        for (annotation, called, want) in [
            (None, &[][..], None),
            (Some(own), &[], None),
            (Some(own), &[other], None),
            (Some(other), &[own], None),
            (Some(other), &[other, own], None),
            (None, &[own, other], None),
            (Some(other), &[], Some(other)),
            (Some(other), &[other], Some(other)),
            (None, &[other], Some(other)),
        ] {
            let entry = |called: &&str| {
                let (namespace, name) = called.split_once('/').unwrap();
                json!({"name": "mutate.kube-unions.dev", "clientConfig": {"service": {"namespace": namespace, "name": name}}})
            };
            let mut stored =
                json!({"metadata": {"name": "kube-unions"}, "webhooks": called.iter().map(entry).collect::<Vec<_>>()});
            if let Some(annotation) = annotation {
                stored["metadata"]["annotations"] = json!({"kube-unions.dev/installation": annotation});
            }
            let found = other_installation(&stored, &service());
            assert_eq!(found.as_deref(), want, "{annotation:?} {called:?}");
        }
        let stranger = json!({"webhooks": [{"name": "of.others.example", "clientConfig": {"service": {"namespace": "a", "name": "b"}}}]});
        assert_eq!(other_installation(&stranger, &service()), None);
    }
}
