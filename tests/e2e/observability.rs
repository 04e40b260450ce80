//! Traces for later analysis: the audit log of the API server, and the log of the webhook.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::cluster::Cluster;
use crate::support::kind::Kind;

/// A text in every value of an object here, and in nothing else.
const SECRET: &str = "s3cret";

/// The part of an API server's audit log that begins at some time.
pub(crate) struct AuditLog {
    path: PathBuf,
    start: usize,
}

impl AuditLog {
    pub(crate) fn from_now(path: PathBuf) -> Self {
        let start = fs::metadata(&path).map_or(0, |file| file.len());
        Self { path, start: usize::try_from(start).expect("a length of memory") }
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap()[self.start..].to_owned()
    }

    /// Returns the events about an object, in the order in which they happened.
    pub(crate) fn events(&self, resource: &str, name: &str) -> Vec<Value> {
        // The last line may be incomplete.
        let text = self.text();
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n') && line.contains(resource));
        let events = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        events
            .filter(|event| event["objectRef"]["resource"] == resource && event["objectRef"]["name"] == name)
            .collect()
    }

    /// Returns the annotations of the events about an object of a kind.
    pub(crate) fn annotations(&self, kind: &Kind<'_>, name: &str) -> Vec<BTreeMap<String, String>> {
        let definition = kind.definition_name();
        let (plural, group) = definition.split_once('.').expect("a CRD is named plural.group");
        let events = self.events(plural, name).into_iter();
        events.filter(|event| event["objectRef"]["apiGroup"] == group).map(|event| annotations(&event, group)).collect()
    }
}

/// Returns the annotations of the two webhooks of a group.
fn annotations(event: &Value, group: &str) -> BTreeMap<String, String> {
    let all: BTreeMap<String, String> = serde_json::from_value(event["annotations"].clone()).unwrap_or_default();
    let suffix = format!(".{group}");
    let ours = all.into_iter().filter_map(|(key, value)| {
        let (webhook, key) = key.split_once('/')?;
        Some((format!("{}/{key}", webhook.strip_suffix(&suffix)?), value))
    });
    ours.filter(|(key, _)| ["mutate/", "validate/"].iter().any(|phase| key.starts_with(phase))).collect()
}

pub(crate) fn said<const N: usize>(annotations: [(&str, &str); N]) -> BTreeMap<String, String> {
    annotations.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn the_audit_log_says_what_was_cleared_denied_and_let_through_and_no_values() {
    let Some(cluster) = Cluster::shared() else { return };
    let log = cluster.control_plane.audit_log();
    let kind = Kind::new(cluster, "rollout");
    kind.apply_definition();
    // An object that is stored invalid before there is a webhook.
    let old = json!({"strategy": {"type": "Recreate", "blueGreen": {"previewService": SECRET}}});
    let stored = kind.client().post(&kind.path(""), &kind.object("old", &old)).unwrap();
    assert!(stored.is_success(), "{stored:?}");
    kind.register(&cluster.webhook);

    let spec = json!({"strategy": {"type": "BlueGreen", "blueGreen": {"previewService": SECRET}}});
    let write = |name: &str, spec: &Value| {
        let mut object = kind.object(name, spec);
        object["metadata"]["annotations"] = json!({"example.com/note": SECRET});
        kind.client().post(&kind.path(""), &object).unwrap()
    };
    let plain = write("plain", &spec);
    assert!(plain.is_success(), "{plain:?}");
    let patch = json!({"spec": {"strategy": {"type": "Recreate"}}});
    kind.merge("plain", &patch).accepted();
    let both =
        json!({"strategy": {"type": "Recreate", "blueGreen": {"previewService": SECRET}, "canary": {"weight": 10}}});
    assert_eq!(write("bad", &both).status, 422);
    kind.label("old", "touched=yes").accepted();

    let denied = "spec.strategy.blueGreen: FieldValueForbidden, spec.strategy.canary: FieldValueForbidden";
    let let_through = "spec.strategy.blueGreen: FieldValueForbidden (the union did not change)";
    assert_eq!(log.annotations(&kind, "plain"), [said([]), said([("mutate/cleared", "spec.strategy.blueGreen")])]);
    assert_eq!(log.annotations(&kind, "bad"), [said([("validate/denied", denied)])]);
    assert_eq!(log.annotations(&kind, "old"), [said([]), said([("validate/warned", let_through)])]);

    let text = log.text();
    assert!(!text.contains(SECRET), "{:?}", text.lines().find(|line| line.contains(SECRET)));
    let log = cluster.webhook.log();
    assert!(log.contains("\"denied\"") && !log.contains(SECRET), "{log}");
}
