//! A configuration as it is stored: how it differs from what is wanted, and what puts it right.
//!
//! Applying says what we want and takes over what others have changed of it. What others have *added* it leaves alone:
//! that is removed by a patch of its own, bound to the version that was looked at.

use super::bundle::Bundle;
use super::entries::{INJECT, Phase, Wanted, envelope, is_ours};
use crate::admission::InspectionToken;
use crate::cluster::ServiceReference;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// One configuration, read.
#[derive(Debug, Clone)]
pub(super) struct Stored(Value);

/// The next write that brings a configuration closer to what is wanted.
#[derive(Debug, PartialEq)]
pub(super) enum Write {
    /// Server-side apply of this object.
    Apply(Value),
    /// This JSON Patch.
    Patch(Value),
}

/// Fields of an entry that must not be there: they narrow what it is asked, or lead somewhere else.
const FOREIGN: [&str; 2] = ["/matchConditions", "/clientConfig/url"];

impl Stored {
    pub(super) fn new(object: Value) -> Self {
        Self(object)
    }

    /// Its `resourceVersion`.
    fn version(&self) -> Option<&str> {
        self.0.pointer("/metadata/resourceVersion")?.as_str()
    }

    fn webhooks(&self) -> &[Value] {
        self.0.get("webhooks").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The entries that have one of our names.
    pub(super) fn ours(&self) -> impl Iterator<Item = (&str, &Value)> {
        let named = self.webhooks().iter().filter_map(|webhook| Some((name_of(webhook)?, webhook)));
        named.filter(|(name, _)| is_ours(name))
    }

    /// The token in the path of the entries that ask for inspections, if one is well-formed.
    pub(super) fn inspection_token(&self) -> Option<InspectionToken> {
        let path = |(_, webhook): (&str, &Value)| {
            InspectionToken::of_path(webhook.pointer("/clientConfig/service/path")?.as_str()?)
        };
        self.ours().find_map(path)
    }

    /// What differs from what is wanted, for the log; nothing if it is as it should be.
    pub(super) fn differences(&self, wanted: &Wanted, service: &ServiceReference) -> Vec<String> {
        let mut found = Vec::new();
        for (place, stated) in [("labels", &wanted.labels), ("annotations", &wanted.annotations)] {
            for (key, value) in stated {
                if self.0.pointer("/metadata").and_then(|metadata| metadata.get(place)?.get(key)) != Some(value) {
                    found.push(format!("{place} `{key}`"));
                }
            }
        }
        if self.is_injected_unasked(wanted) {
            found.push(format!("annotations `{INJECT}`"));
        }
        for webhook in &wanted.webhooks {
            let Some(name) = name_of(webhook) else { continue };
            let Some((_, stored)) = self.ours().find(|(stored, _)| *stored == name) else {
                found.push(format!("{name} is missing"));
                continue;
            };
            for (field, value) in webhook.as_object().into_iter().flatten() {
                if !stored.get(field).is_some_and(|stored| holds(stored, value)) {
                    found.push(format!("{name} {field}"));
                }
            }
            for pointer in FOREIGN.iter().filter(|pointer| is_there(stored, pointer)) {
                found.push(format!("{name} {}", pointer.trim_start_matches('/')));
            }
        }
        for index in self.surplus(wanted, service) {
            let name = self.webhooks().get(index).and_then(name_of).unwrap_or_default();
            found.push(format!("{name} is not wanted"));
        }
        found
    }

    /// What to write next. `applied`: it is what came of applying, so that what is still there is somebody else's.
    pub(super) fn next(&self, phase: Phase, wanted: &Wanted, service: &ServiceReference, applied: bool) -> Write {
        // An entry that has both is refused, and so is one that has neither: the one takes the other's place in one go.
        let mut operations = self.redirected(wanted);
        if applied {
            operations.extend(self.removals(wanted, service));
        }
        if operations.is_empty() {
            return Write::Apply(wanted.object(phase, self.version()));
        }
        // To the API server this is a condition: it refuses the patch of a newer object as a conflict.
        let mut patch = vec![json!({"op": "replace", "path": "/metadata/resourceVersion", "value": self.version()})];
        patch.extend(operations);
        Write::Patch(Value::Array(patch))
    }

    /// What gives the entries of our names this bundle and changes nothing else, `None` if they hold it.
    pub(super) fn with_bundle(&self, phase: Phase, pem: &str) -> Option<Write> {
        let bundle = BASE64_STANDARD.encode(pem);
        let stored =
            |webhook: &Value| webhook.pointer("/clientConfig/caBundle").and_then(Value::as_str) == Some(&bundle);
        if self.ours().all(|(_, webhook)| stored(webhook)) {
            return None;
        }
        let webhooks = self.ours().map(|(name, _)| json!({"name": name, "clientConfig": {"caBundle": bundle}}));
        Some(Write::Apply(envelope(phase, self.version(), &webhooks.collect::<Vec<_>>())))
    }

    fn redirected(&self, wanted: &Wanted) -> Vec<Value> {
        let redirected =
            self.webhooks().iter().enumerate().filter(|(_, webhook)| is_there(webhook, "/clientConfig/url"));
        let replace = redirected.filter_map(|(index, stored)| {
            let wanted = wanted.webhooks.iter().find(|wanted| name_of(wanted) == name_of(stored))?;
            let client = wanted.get("clientConfig")?;
            Some(json!({"op": "replace", "path": format!("/webhooks/{index}/clientConfig"), "value": client}))
        });
        replace.collect()
    }

    /// The last first, so that none moves another.
    fn removals(&self, wanted: &Wanted, service: &ServiceReference) -> Vec<Value> {
        let remove = |path: String| json!({"op": "remove", "path": path});
        let surplus = self.surplus(wanted, service);
        let mut operations = Vec::new();
        for (index, webhook) in self.webhooks().iter().enumerate().rev() {
            if surplus.contains(&index) {
                operations.push(remove(format!("/webhooks/{index}")));
            } else if name_of(webhook).is_some_and(is_ours) && is_there(webhook, "/matchConditions") {
                operations.push(remove(format!("/webhooks/{index}/matchConditions")));
            }
        }
        if self.is_injected_unasked(wanted) {
            operations.push(remove(format!("/metadata/annotations/{}", INJECT.replace('/', "~1"))));
        }
        operations
    }

    /// The positions of entries that are not wanted: ours by name, or calling our Service under another. What is
    /// somebody else's stays.
    fn surplus(&self, wanted: &Wanted, service: &ServiceReference) -> Vec<usize> {
        let is_wanted = |name| wanted.webhooks.iter().any(|webhook| name_of(webhook) == Some(name));
        let surplus = self.webhooks().iter().enumerate().filter(|(_, webhook)| {
            let name = name_of(webhook).unwrap_or_default();
            !is_wanted(name) && (is_ours(name) || calls(webhook, service))
        });
        surplus.map(|(index, _)| index).collect()
    }

    fn is_injected_unasked(&self, wanted: &Wanted) -> bool {
        !wanted.annotations.contains_key(INJECT)
            && self.0.pointer("/metadata/annotations").is_some_and(|annotations| annotations.get(INJECT).is_some())
    }
}

/// The bundle of an entry.
pub(super) fn bundle_of(webhook: &Value) -> Bundle {
    Bundle::read(pem_of(webhook).unwrap_or_default().as_slice())
}

fn pem_of(webhook: &Value) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(webhook.pointer("/clientConfig/caBundle")?.as_str()?).ok()
}

fn name_of(webhook: &Value) -> Option<&str> {
    webhook.get("name")?.as_str()
}

fn calls(webhook: &Value, service: &ServiceReference) -> bool {
    let field = |name| webhook.pointer("/clientConfig/service").and_then(|service| service.get(name)?.as_str());
    field("namespace") == Some(&service.namespace) && field("name") == Some(&service.name)
}

/// Whether something stands there that says anything.
fn is_there(webhook: &Value, pointer: &str) -> bool {
    webhook
        .pointer(pointer)
        .is_some_and(|value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()))
}

/// Whether what is stored says what is wanted. Lists and selectors are one value each; in other objects there may be more.
fn holds(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(fields)) if !fields.is_empty() && !is_selector(wanted) => {
            fields.iter().all(|(name, value)| stored.get(name).is_some_and(|stored| holds(stored, value)))
        }
        _ => stored == wanted,
    }
}

fn is_selector(value: &Value) -> bool {
    value.get("matchExpressions").is_some() || value.get("matchLabels").is_some()
}

#[cfg(test)]
mod tests {
    use super::super::entries::{CaBundle, Frame};
    use super::super::rules::{Rule, Rules};
    use super::*;

    fn service() -> ServiceReference {
        "kube-unions/kube-unions:8443".parse().unwrap()
    }

    /// What is wanted of the mutating configuration where only custom resources have unions.
    fn wanted() -> Wanted {
        let rules = Rules { custom: vec![Rule::of_declarations()], ..Rules::default() };
        let frame = Frame::new(service(), &["b".to_owned(), "a".to_owned(), "kube-system".to_owned()]);
        frame.wanted(Phase::Mutating, &rules, true, &CaBundle::Ours("pem".to_owned()))
    }

    /// The same as it is stored.
    fn stored() -> Value {
        let mut object = wanted().object(Phase::Mutating, None);
        object["metadata"]["resourceVersion"] = json!("7");
        object["metadata"]["managedFields"] = json!([]);
        object
    }

    fn patched(object: &mut Value, patch: Value) {
        let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
        json_patch::patch(object, &patch).unwrap();
    }

    fn differences(stored: Value) -> Vec<String> {
        Stored::new(stored).differences(&wanted(), &service())
    }

    #[test]
    fn what_is_stored_as_wanted_differs_in_nothing() {
        assert_eq!(differences(stored()), [""; 0]);
        // The API server knows fields that this version does not, and others may add what changes nothing.
        let mut more = stored();
        more["webhooks"][0]["someFieldOfLater"] = json!("Default");
        more["webhooks"][0]["matchConditions"] = json!([]);
        more["metadata"]["annotations"] = json!({"of": "others"});
        more["metadata"]["labels"]["of"] = json!("others");
        more["webhooks"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "of.others.example", "clientConfig": {"url": "https://a"}}));
        assert_eq!(differences(more), [""; 0]);
    }

    #[test]
    fn every_field_is_held_to_what_is_wanted() {
        let entry = wanted().webhooks.remove(0);
        for field in entry.as_object().unwrap().keys().filter(|field| *field != "name") {
            let mut missing = stored();
            missing["webhooks"][0].as_object_mut().unwrap().remove(field);
            assert_eq!(differences(missing), [format!("mutate.kube-unions.dev {field}")]);
            let mut other = stored();
            other["webhooks"][0][field] = json!(["other"]);
            assert_eq!(differences(other), [format!("mutate.kube-unions.dev {field}")]);
        }
        // All that there are in v1, but `matchConditions`, which must not be there.
        assert_eq!(entry.as_object().unwrap().len(), 11, "a field that is not written out could be anybody's: {entry}");
    }

    #[test]
    fn changes_of_parts_and_additions_are_seen() {
        let condition = json!([{"name": "a", "expression": "false"}]);
        let rows = [
            ("/webhooks/0/clientConfig/service/port", json!(443), "mutate.kube-unions.dev clientConfig"),
            ("/webhooks/0/clientConfig/caBundle", json!(""), "mutate.kube-unions.dev clientConfig"),
            ("/webhooks/0/clientConfig/url", json!("https://a"), "mutate.kube-unions.dev clientConfig/url"),
            ("/webhooks/0/matchConditions", condition, "mutate.kube-unions.dev matchConditions"),
            ("/webhooks/0/objectSelector/matchLabels", json!({"a": "b"}), "mutate.kube-unions.dev objectSelector"),
            ("/webhooks/0/namespaceSelector/matchLabels", json!({}), "mutate.kube-unions.dev namespaceSelector"),
            ("/webhooks/0/rules/1", json!({}), "mutate.kube-unions.dev rules"),
            (
                "/webhooks/1",
                json!({"name": "mutate.builtin.kube-unions.dev"}),
                "mutate.builtin.kube-unions.dev is not wanted",
            ),
            ("/metadata/labels/app.kubernetes.io~1name", json!("else"), "labels `app.kubernetes.io/name`"),
            (
                "/metadata/annotations",
                json!({"cert-manager.io/inject-ca-from": "a/b"}),
                "annotations `cert-manager.io/inject-ca-from`",
            ),
        ];
        for (pointer, value, want) in rows {
            let mut object = stored();
            let patch = json!([{"op": "add", "path": pointer, "value": value}]);
            patched(&mut object, patch);
            assert_eq!(differences(object), [want], "{pointer}");
        }
    }

    #[test]
    fn an_entry_under_another_name_is_ours_if_it_calls_us() {
        let mut object = stored();
        let calls = |namespace: &str| json!({"name": "a.example", "clientConfig": {"service": {"namespace": namespace, "name": "kube-unions"}}});
        object["webhooks"] = json!([calls("else"), calls("kube-unions"), object["webhooks"][0]]);
        assert_eq!(differences(object.clone()), ["a.example is not wanted"]);
        let write = Stored::new(object).next(Phase::Mutating, &wanted(), &service(), true);
        let patch = json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "remove", "path": "/webhooks/1"},
        ]);
        assert_eq!(write, Write::Patch(patch));
    }

    #[test]
    fn what_applying_leaves_behind_is_removed_the_last_first() {
        let mut object = stored();
        object["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "a/b"});
        object["webhooks"][0]["matchConditions"] = json!([{"name": "a", "expression": "false"}]);
        for name in ["mutate.builtin.kube-unions.dev", "declarations.kube-unions.dev"] {
            object["webhooks"].as_array_mut().unwrap().push(json!({"name": name}));
        }
        let stored = Stored::new(object.clone());
        assert!(matches!(stored.next(Phase::Mutating, &wanted(), &service(), false), Write::Apply(_)));
        let Write::Patch(patch) = stored.next(Phase::Mutating, &wanted(), &service(), true) else { panic!("no patch") };
        patched(&mut object, patch);
        assert_eq!(differences(object), [""; 0]);
    }

    #[test]
    fn an_entry_that_leads_elsewhere_is_led_back_in_one_go() {
        let mut object = stored();
        object["webhooks"][0]["clientConfig"] = json!({"url": "https://else"});
        let Write::Patch(patch) = Stored::new(object.clone()).next(Phase::Mutating, &wanted(), &service(), false)
        else {
            panic!("no patch");
        };
        patched(&mut object, patch);
        assert_eq!(differences(object), [""; 0]);
    }

    #[test]
    fn what_is_applied_is_meant_for_the_version_that_was_looked_at() {
        let Write::Apply(object) = Stored::new(stored()).next(Phase::Mutating, &wanted(), &service(), false) else {
            panic!("nothing applied");
        };
        assert_eq!(object["metadata"]["resourceVersion"], "7");
        assert_eq!(wanted().object(Phase::Mutating, None)["metadata"].get("resourceVersion"), None);
    }

    #[test]
    fn a_bundle_alone_is_given_to_entries_of_our_names() {
        let mut object = stored();
        object["webhooks"].as_array_mut().unwrap().push(json!({"name": "of.others.example", "clientConfig": {}}));
        let stored = Stored::new(object);
        assert_eq!(stored.with_bundle(Phase::Mutating, "pem"), None);
        let Some(Write::Apply(applied)) = stored.with_bundle(Phase::Mutating, "other") else {
            panic!("nothing applied")
        };
        let entry =
            json!({"name": "mutate.kube-unions.dev", "clientConfig": {"caBundle": BASE64_STANDARD.encode("other")}});
        assert_eq!(applied["webhooks"], json!([entry]));
        assert_eq!(applied["metadata"], json!({"name": "kube-unions", "resourceVersion": "7"}));
    }

    #[test]
    fn an_entry_without_a_bundle_that_somebody_else_injects_fails_nothing() {
        let rules = Rules { custom: vec![Rule::of_declarations()], ..Rules::default() };
        let wanted = |held: &[&str]| {
            let held_by = held.iter().map(|&name| name.to_owned()).collect();
            let ca = CaBundle::Injected { from: "a/b".to_owned(), held_by };
            Frame::new(service(), &[]).wanted(Phase::Validating, &rules, true, &ca)
        };
        let none = wanted(&[]);
        assert_eq!(none.annotations["cert-manager.io/inject-ca-from"], "a/b");
        assert_eq!(none.webhooks[0]["failurePolicy"], "Ignore");
        assert_eq!(none.webhooks[0]["clientConfig"].get("caBundle"), None);
        let held = wanted(&["validate.kube-unions.dev", "declarations.kube-unions.dev"]);
        assert_eq!(held.webhooks[0]["failurePolicy"], "Fail");
        assert_eq!(held.webhooks[1]["failurePolicy"], "Ignore", "declarations never fail");
    }
}
