//! The conversion webhook of CRDs: it moves the fields of `spec` to `spec.deep` and back.

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use serde_json::{Map, Value, json};

use crate::support::router::RouterServer;

/// The kind whose fields are at `spec` in v1, and at `spec.deep` in the other versions.
pub(super) const MOVED: &str = "Moved";

/// A running conversion webhook.
pub(super) struct Conversion(RouterServer);

impl Conversion {
    pub(super) fn start() -> Self {
        let router = Router::new().route("/", post(async |review: Bytes| answer(&review).to_string()));
        Self(RouterServer::start("conversion", router))
    }

    /// Returns `spec.conversion` of a CRD.
    pub(super) fn of_definition(&self) -> Value {
        let client = self.0.client_config("/");
        json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}})
    }
}

/// Answers a `ConversionReview`.
fn answer(review: &[u8]) -> Value {
    let review: Value = serde_json::from_slice(review).expect("a review is JSON");
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().expect("a version is asked for");
    let objects = request["objects"].as_array().expect("objects are sent").iter();
    let converted: Vec<Value> = objects.map(|object| converted(object, desired)).collect();
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": {
        "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted}})
}

fn converted(object: &Value, desired: &str) -> Value {
    let mut object = object.clone();
    let is_flat = |version: &Value| version.as_str().is_some_and(|version| version.ends_with("/v1"));
    let (from, to) = (is_flat(&object["apiVersion"]), desired.ends_with("/v1"));
    object["apiVersion"] = desired.into();
    if object["kind"] == MOVED && from != to {
        let spec = object["spec"].take();
        object["spec"] = if from { Map::from_iter([("deep".to_owned(), spec)]).into() } else { spec["deep"].clone() };
    }
    object
}
