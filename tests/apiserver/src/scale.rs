//! The subresource `scale`.

use crate::answer::Answer;
use crate::error::ApiError;
use crate::instance::Instance;
use crate::patch::Change;
use crate::query::Query;
use crate::read::presented;
use crate::write::{Target, WriteOptions, text_at};
use serde_json::{Value, json};

/// The paths of a kind's numbers of replicas.
fn paths(target: &Target) -> [String; 2] {
    let custom = target.resource.custom.as_ref();
    let path = |field: &str, default: &str| {
        let path = custom.and_then(|custom| custom.version.pointer("/subresources/scale")?.get(field)?.as_str());
        path.unwrap_or(default).replace('.', "/")
    };
    [path("specReplicasPath", ".spec.replicas"), path("statusReplicasPath", ".status.replicas")]
}

fn scale_of(target: &Target, object: &Value) -> Value {
    let [spec, status] = paths(target);
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    let field = |name: &str| metadata.get(name).cloned().unwrap_or_default();
    let number = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_else(|| 0.into());
    let replicas = number(&spec);
    let of_spec = if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) };
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": field("name"), "namespace": field("namespace"), "uid": field("uid"),
            "resourceVersion": field("resourceVersion"), "creationTimestamp": field("creationTimestamp"),
        },
        "spec": of_spec,
        "status": {"replicas": number(&status)},
    });
    let labels = object.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let labels: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if !labels.is_empty()
        && let Some(status) = scale.get_mut("status")
    {
        crate::kinds::set_or_remove(status, "selector", Some(labels.join(",").into()));
    }
    scale
}

impl Instance {
    pub(crate) async fn get_scale(&self, target: &Target) -> Result<Answer, ApiError> {
        let object = self.get(target, &Query::default()).await?.body;
        Ok(Answer::of(scale_of(target, &object)))
    }

    /// Sets the number of replicas.
    pub(crate) async fn put_scale(
        &self,
        target: &Target,
        body: &Value,
        options: &WriteOptions,
    ) -> Result<Answer, ApiError> {
        let replicas = body.pointer("/spec/replicas").cloned().unwrap_or_else(|| 0.into());
        let stored = self.shared.state().get(&target.resource.collection(), &target.key()).cloned();
        let stored = stored.ok_or_else(|| target.not_found())?;
        let mut object = presented(&target.resource, &stored.object);
        let version = text_at(body, "/metadata/resourceVersion");
        if !version.is_empty()
            && let Some(metadata) = object.get_mut("metadata")
        {
            crate::kinds::set_or_remove(metadata, "resourceVersion", Some(version.into()));
        }
        let [spec, _] = paths(target);
        if let Some((parent, field)) = spec.rsplit_once('/')
            && let Some(parent) = object.pointer_mut(parent)
        {
            crate::kinds::set_or_remove(parent, field, Some(replicas));
        }
        let main = Target { subresource: String::new(), ..target.clone() };
        let changed = self.change(&main, Change::Replace(object), options).await?;
        Ok(Answer { body: scale_of(target, &changed.body), ..changed })
    }
}
