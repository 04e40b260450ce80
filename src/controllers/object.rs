//! The metadata of an object on the API server that this program shares with others: labels, annotations, owners.
//!
//! Any JSON may be stored, so nothing here assumes a shape.

use crate::telemetry::LogOnce;
use kube::Client;
use kube_unions_api::{ObjectPath, RequestError};
use serde_json::{Map, Value, json};

/// Annotation that names the installation of an object by its Service.
pub(super) const INSTALLATION: &str = "kube-unions.dev/installation";

/// The `ClusterRole` that owns objects. They are deleted with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) name: String,
    pub(super) uid: String,
}

/// Reads the owner of some objects, and logs once why there is none.
#[derive(Debug)]
pub(super) struct OwnerReader {
    owned: &'static str,
    failure: LogOnce,
}

impl Owner {
    /// Returns the owner reference. It does not block the deletion of the owner.
    pub(super) fn reference(&self) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "name": self.name,
            "uid": self.uid,
        })
    }

    /// Returns true for a reference to a role of this name, whatever its UID.
    fn is_at(&self, reference: &Value) -> bool {
        let is = |field: &str, value: &str| reference.get(field).and_then(Value::as_str) == Some(value);
        is("kind", "ClusterRole") && is("name", &self.name)
    }
}

impl OwnerReader {
    /// Returns a reader for the owner of some objects. `owned`: these objects, and what becomes of them without an owner.
    pub(super) fn new(owned: &'static str) -> Self {
        Self { owned, failure: LogOnce::default() }
    }

    /// Returns the `ClusterRole` of this name with its current UID; `None` if there is no owner to set.
    pub(super) async fn read(&mut self, client: &Client, name: &str) -> Result<Option<Owner>, RequestError> {
        let role = ObjectPath::new("/apis/rbac.authorization.k8s.io/v1/clusterroles", name).read(client).await;
        let uid = |role: &Value| role.pointer("/metadata/uid")?.as_str().map(str::to_owned);
        let reason = match role {
            Ok(role) => match role.as_ref().and_then(uid) {
                Some(uid) => {
                    self.failure.is_over();
                    return Ok(Some(Owner { name: name.to_owned(), uid }));
                }
                None => "it does not exist".to_owned(),
            },
            Err(error) if error.is_final() => error.to_string(),
            Err(error) => return Err(error),
        };
        if self.failure.is_new(&reason) {
            tracing::warn!(cluster_role = name, reason, "cannot read the ClusterRole that owns {}", self.owned);
        }
        Ok(None)
    }
}

/// Sets labels, annotations and the owner in the metadata of a stored object. Those of other writers stay.
pub(super) fn merge_metadata(metadata: &mut Map<String, Value>, wanted: &Value, owner: Option<&Owner>) {
    for part in ["labels", "annotations"] {
        let mut all = object_at(metadata, part);
        set(&mut all, wanted.get(part).cloned().unwrap_or_default());
        metadata.insert(part.to_owned(), all.into());
    }
    if let Some(owner) = owner {
        let stored = metadata.get("ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut owners: Vec<Value> = stored.into_iter().filter(|it| !owner.is_at(it)).collect();
        owners.push(owner.reference());
        set(metadata, json!({"ownerReferences": owners}));
    }
}

/// Returns the installation that the annotation of a stored object names. An empty or blank name is nobody's.
pub(crate) fn named_installation(stored: &Value) -> Option<&str> {
    let named = stored.pointer("/metadata/annotations")?.get(INSTALLATION)?.as_str()?;
    (!named.trim().is_empty()).then_some(named)
}

/// Returns the object in a field, an empty one if there is none.
pub(super) fn object_at(object: &Map<String, Value>, field: &str) -> Map<String, Value> {
    object.get(field).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Sets the fields of an object. Its other fields stay.
pub(super) fn set(object: &mut Map<String, Value>, fields: Value) {
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
}

/// Joins the first few of many texts for the log.
pub(super) fn shortened(texts: &[String]) -> String {
    const MOST: usize = 8;
    let mut text = texts.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    if texts.len() > MOST {
        text.push_str(", …");
    }
    text
}
