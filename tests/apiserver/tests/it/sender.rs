//! Sends requests to an instance.

use futures::StreamExt;
use http_body_util::{BodyExt, BodyStream};
use hyper::{Method, Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use simulated_apiserver::{ApiServer, Instance, ResponseBody};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;
use tower::ServiceExt;

/// The time since a moment, as tokio has it in a test that pauses it. It passes only while every task waits, so no other load moves it.
pub(crate) struct SimulatedTime(Instant);

impl SimulatedTime {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns whole seconds.
    pub(crate) fn seconds(&self) -> u64 {
        assert_eq!(self.0.elapsed().subsec_nanos(), 0, "time is paused, and everything takes whole seconds");
        self.0.elapsed().as_secs()
    }
}

/// Lets simulated time pass, with everything that is due meanwhile.
pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Returns a cluster whose clock stands still.
pub(crate) fn server() -> ApiServer {
    ApiServer::new(Arc::new(|| SystemTime::UNIX_EPOCH + Duration::from_hours(500_000)))
}

/// Sends a request with a body of this media type. Returns the response before its body is read.
pub(crate) async fn open(
    instance: &Instance,
    method: Method,
    path: &str,
    media_type: &str,
    body: Option<&Value>,
) -> Response<ResponseBody> {
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    instance.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap()
}

/// Sends a request, and returns the code and the body of the answer.
pub(crate) async fn send(instance: &Instance, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
    answered(open(instance, method, path, "application/json", body).await).await
}

pub(crate) async fn answered(response: Response<ResponseBody>) -> (u16, Value) {
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

pub(crate) async fn get(instance: &Instance, path: &str) -> (u16, Value) {
    send(instance, Method::GET, path, None).await
}

/// Creates an object that has to be accepted.
pub(crate) async fn create(instance: &Instance, path: &str, object: &Value) -> Value {
    let (code, created) = send(instance, Method::POST, path, Some(object)).await;
    assert_eq!(code, 201, "{created}");
    created
}

pub(crate) async fn replace(instance: &Instance, path: &str, object: &Value) -> (u16, Value) {
    send(instance, Method::PUT, path, Some(object)).await
}

pub(crate) async fn delete(instance: &Instance, path: &str) -> (u16, Value) {
    send(instance, Method::DELETE, path, None).await
}

pub(crate) async fn patch(instance: &Instance, path: &str, of: &str, body: &Value) -> (u16, Value) {
    let media_type = match of {
        "apply" => "application/apply-patch+yaml".to_owned(),
        of => format!("application/{of}+json"),
    };
    answered(open(instance, Method::PATCH, path, &media_type, Some(body)).await).await
}

/// The events of a watch: their types, and the names and versions of their objects.
pub(crate) struct Watch(BodyStream<ResponseBody>);

impl Watch {
    pub(crate) async fn open(instance: &Instance, path: &str) -> Self {
        let response = open(instance, Method::GET, path, "", None).await;
        assert_eq!(response.status(), 200);
        Self(BodyStream::new(response.into_body()))
    }

    /// Returns the next event, `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let frame = self.0.next().await?.unwrap();
        let line = frame.into_data().unwrap();
        assert!(line.ends_with(b"\n"));
        Some(serde_json::from_slice(&line).unwrap())
    }

    /// Returns the next event as a line.
    pub(crate) async fn line(&mut self) -> Option<String> {
        self.next().await.map(|event| {
            let object = &event["object"];
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let name = text("/metadata/name");
            format!("{} {name} {}", event["type"].as_str().unwrap(), text("/metadata/resourceVersion"))
        })
    }
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"key": value}})
}
