//! Field managers of one object, and the ownership of fields afterwards.

use serde_json::{Value, json};

use super::rows::{Enforcement, group};
use super::server::Server;

/// An object of our own kind that two managers apply.
struct Shared {
    server: &'static Server,
    api_version: String,
    path: String,
    name: &'static str,
}

impl Shared {
    fn new(server: &'static Server, enforcement: Enforcement, name: &'static str) -> Self {
        let api_version = format!("{}/v1", group(enforcement));
        let path = format!("/apis/{api_version}/namespaces/default/things/{name}");
        Self { server, api_version, path, name }
    }

    /// Applies a manifest with this content of the union and takes fields over.
    fn apply(&self, manager: &str, plain: &Value) -> Result<Value, String> {
        let manifest = json!({"apiVersion": self.api_version, "kind": "Thing",
            "metadata": {"name": self.name, "namespace": "default"}, "spec": {"plain": plain}});
        let answer = self.server.apply_as(manager, &self.path, &manifest);
        if answer.is_success() { Ok(answer.body) } else { Err(answer.body["message"].as_str().unwrap().to_owned()) }
    }

    fn stored(&self) -> Value {
        self.server.stored(&self.path).expect("the object is stored")
    }

    /// Returns the managers of the stored object that apply, with the members that they own, and the managers that update.
    fn owners(&self) -> Vec<String> {
        let object = self.stored();
        let entry = |entry: &Value| {
            let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
            let members = entry["fieldsV1"]["f:spec"]["f:plain"].as_object();
            let members: Vec<_> = members.into_iter().flatten().map(|(name, _)| name.replace("f:", "")).collect();
            format!("{} {} {}", text("manager"), text("operation"), members.join(","))
        };
        object["metadata"]["managedFields"].as_array().expect("managed fields").iter().map(entry).collect()
    }
}

/// Manager 1 applies `a`, manager 2 applies `b` alone, and then each applies its own manifest again.
fn two_managers(server: &'static Server, enforcement: Enforcement) {
    let object = Shared::new(server, enforcement, "two-managers");
    object.apply("one", &json!({"a": "x"})).unwrap();
    let stored = object.apply("two", &json!({"b": "x"})).unwrap();
    assert_eq!(stored["spec"]["plain"], json!({"b": "x"}));
    // Admission does not change who owns what.
    assert_eq!(object.owners(), ["one Apply a", "two Apply b"]);

    let refused = object.apply("one", &json!({"a": "x"})).unwrap_err();
    let words = "the applied manifest sets `a`, and the manifest of another field manager sets `b`; keep one";
    assert!(refused.contains(words), "{refused}");
    assert_eq!(object.apply("one", &json!({"a": "x"})), Err(refused));
    let again = object.apply("two", &json!({"b": "x"})).unwrap();
    assert_eq!(again["metadata"]["generation"], stored["metadata"]["generation"]);

    // Manager 1 takes the other member, too.
    let agreed = object.apply("one", &json!({"b": "x"})).unwrap();
    assert_eq!(agreed["metadata"]["generation"], stored["metadata"]["generation"]);
    assert_eq!(object.owners(), ["one Apply b", "two Apply b"]);
}

#[test]
fn a_manager_is_told_that_another_manifest_has_the_other_member() {
    let servers = [(Server::with_webhook(), Enforcement::Webhook), (Server::with_policies(), Enforcement::Policies)];
    for (server, enforcement) in servers {
        let Some(server) = server else { return };
        two_managers(server, enforcement);
    }
}

/// An object whose `managedFields` tell nothing of the next update.
#[derive(Clone, Copy, Debug)]
enum Untold {
    /// An apply of nothing but an empty list created it.
    Untracked,
    /// A client removed the entries.
    Reset,
    /// The API server merges the oldest of many updates: that of the next field manager.
    Merged,
}

/// The most updates with entries of their own in `managedFields`.
const MOST_UPDATES: usize = 10;

impl Untold {
    /// Stores the object with a member of the union `lists`.
    fn store(self, server: &Server, path: &str, part: &str, bare: &Value) {
        let merge = |at: &str, change: &Value| {
            let answer = server.send("PATCH", at, "application/merge-patch+json", change);
            assert!(answer.is_success(), "{answer:?}");
            answer.body
        };
        let of_union = if part == "status" { format!("{path}/status") } else { path.to_owned() };
        let with = |lists: Value| {
            let mut manifest = bare.clone();
            manifest[part] = json!({"lists": lists});
            manifest
        };
        assert!(server.apply_as("one", path, bare).is_success());
        let lists = if matches!(self, Self::Untracked) { json!({"b": []}) } else { json!({"a": {"x": "x"}}) };
        let applied = server.apply_as("one", &of_union, &with(lists));
        assert!(applied.is_success(), "{applied:?}");
        match self {
            Self::Untracked => {
                assert_eq!(applied.body["metadata"]["managedFields"], Value::Null);
            }
            Self::Reset => drop(merge(path, &json!({"metadata": {"managedFields": [{}]}}))),
            Self::Merged => {
                for number in 0..MOST_UPDATES {
                    let annotations = json!({"metadata": {"annotations": {format!("a{number}"): "x"}}});
                    merge(&format!("{path}?fieldManager=other{number}"), &annotations);
                }
                let mut object = server.stored(path).unwrap();
                let entries = object["metadata"]["managedFields"].as_array_mut().unwrap();
                for entry in &mut *entries {
                    entry["time"] = json!("2099-01-01T00:00:00Z");
                }
                // The API server drops a change of nothing but these times.
                let change = json!({"metadata": {"managedFields": entries, "annotations": {"a0": "y"}}});
                let changed = merge(&format!("{path}?fieldManager=other0"), &change);
                let times = changed["metadata"]["managedFields"].to_string();
                assert_eq!(times.matches("2099-").count(), MOST_UPDATES, "all entries but that of other0: {times}");
            }
        }
    }
}

#[test]
fn an_update_of_which_nothing_is_told_switches_to_a_list_with_items() {
    let servers = [(Server::with_webhook(), Enforcement::Webhook), (Server::with_policies(), Enforcement::Policies)];
    for (server, enforcement) in servers {
        let Some(server) = server else { return };
        let api_version = format!("{}/v1", group(enforcement));
        for part in ["spec", "status"] {
            for untold in [Untold::Untracked, Untold::Reset, Untold::Merged] {
                let name = format!("{untold:?}-{part}").to_lowercase();
                let path = format!("/apis/{api_version}/namespaces/default/things/{name}");
                let bare = json!({"apiVersion": api_version, "kind": "Thing",
                    "metadata": {"name": name, "namespace": "default"}});
                untold.store(server, &path, part, &bare);
                let at = if part == "status" { format!("{path}/status") } else { path.clone() };
                let list = json!({"c": [{"k": "x"}]});
                let change = json!({part: {"lists": list}});
                let path = format!("{at}?fieldManager=controller");
                let answer = server.send("PATCH", &path, "application/merge-patch+json", &change);
                assert_eq!(answer.body[part]["lists"], list, "{enforcement:?} {untold:?} {part}: {answer:?}");
                let entries = answer.body["metadata"]["managedFields"].to_string();
                assert!(!entries.contains("controller"), "{untold:?} {part}: {entries}");
            }
        }
    }
}
