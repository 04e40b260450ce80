//! One kube-apiserver process: requests in, answers out.

use crate::answer::{Answer, ResponseBody, Warnings, failure, text};
use crate::error::ApiError;
use crate::patch::Change;
use crate::query::{ObjectRoute, Query};
use crate::state::Shared;
use crate::write::{Target, WriteOptions, decoded};
use futures::future::BoxFuture;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use tower::{BoxError, Service};

/// The longest time of a request that is no watch.
const LONGEST: Duration = Duration::from_secs(34);

/// One kube-apiserver process of a cluster. Clones are the same process.
///
/// It has a cache of its own, from which it answers watches and reads with a `resourceVersion`. Other reads, and writes, go to the
/// storage that all instances share.
#[derive(Clone)]
pub struct Instance {
    pub(crate) shared: Arc<Shared>,
    cache: Arc<Mutex<WatchCache>>,
    user: Arc<str>,
}

/// The part of the storage that an instance knows by its own watches.
struct WatchCache {
    lag: Duration,
    epoch: u64,
    /// The last version that was seen.
    seen: u64,
    /// The version at the start. Watches from before have expired.
    oldest: u64,
}

/// A request, read.
struct ReadRequest {
    method: Method,
    path: String,
    query: Query,
    headers: HeaderMap,
    body: Bytes,
    warnings: Warnings,
}

impl Instance {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let state = shared.state();
        let (epoch, revision) = (state.epoch, state.storage.revision());
        drop(state);
        let cache = WatchCache { lag: Duration::ZERO, epoch, seen: revision, oldest: revision };
        Self { shared, cache: Arc::new(Mutex::new(cache)), user: "system:admin".into() }
    }

    /// Delays what watches see, and reads from the cache. What was seen is not forgotten.
    pub fn set_lag(&self, lag: Duration) {
        self.cache();
        self.cache.lock().lag = lag;
        self.shared.notify();
    }

    /// Returns the same process with the requests of another user, as reviews name it.
    #[must_use]
    pub fn as_user(&self, user: &str) -> Self {
        Self { user: user.into(), ..self.clone() }
    }

    /// Returns a client of this process.
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    pub(crate) fn lag(&self) -> Duration {
        self.cache.lock().lag
    }

    /// Returns the number of restores, the version that the cache has, and the oldest one from which it can be watched.
    pub(crate) fn cache(&self) -> (u64, u64, u64) {
        let now = Instant::now();
        let state = self.shared.state();
        let mut cache = self.cache.lock();
        let revision = state.storage.revision();
        if cache.epoch != state.epoch {
            (cache.epoch, cache.seen, cache.oldest) = (state.epoch, revision, revision);
        }
        let visible = if cache.lag.is_zero() {
            revision
        } else {
            now.checked_sub(cache.lag).map_or(0, |time| state.storage.revision_at(time))
        };
        cache.seen = cache.seen.max(visible);
        (cache.epoch, cache.seen, cache.oldest.max(state.storage.compacted()))
    }

    /// Waits until the cache has a version, and returns the one that it has.
    pub(crate) async fn wait_for(&self, asked: u64) -> Result<u64, ApiError> {
        let end = Instant::now() + crate::read::FRESHNESS;
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            let (_, seen, _) = self.cache();
            if seen >= asked {
                return Ok(seen);
            }
            if Instant::now() >= end {
                return Err(ApiError::too_large_version(asked, seen, 1));
            }
            let next = self.next_change(seen).map_or(end, |next| next.min(end));
            tokio::select! {
                biased;
                () = sleep_until(next) => {}
                () = changed => {}
            }
        }
    }

    /// Returns the time at which the cache has something new, if nothing is written until then.
    fn next_change(&self, seen: u64) -> Option<Instant> {
        let lag = self.lag();
        let state = self.shared.state();
        let event = state.storage.events_after(seen).first().map(|event| event.at + lag);
        [event, state.next_job()].into_iter().flatten().min()
    }

    async fn respond(self, request: Request<Body>) -> Response<ResponseBody> {
        let clock = Arc::clone(&self.shared.clock);
        let (head, body) = request.into_parts();
        let body = match body.collect_bytes().await {
            Ok(body) => body,
            Err(error) => return failure(&ApiError::bad_request(error.to_string()), &clock),
        };
        let request = ReadRequest {
            method: head.method,
            path: head.uri.path().to_owned(),
            query: Query::parse(head.uri.query().unwrap_or_default()),
            headers: head.headers,
            body,
            warnings: Warnings::default(),
        };
        let mut response = self.answer(&request).await.unwrap_or_else(|error| failure(&error, &clock));
        request.warnings.add_to(&mut response);
        response
    }

    async fn answer(&self, request: &ReadRequest) -> Result<Response<ResponseBody>, ApiError> {
        let clock = &self.shared.clock;
        if let Some(route) = ObjectRoute::parse(&request.path) {
            return self.answer_objects(&route, request).await;
        }
        if request.method != Method::GET {
            return Err(ApiError::method_not_allowed());
        }
        let is_aggregated = accepts_aggregated(&request.headers);
        if let Some(discovered) = crate::discovery::answer(&self.shared.state(), &request.path, is_aggregated)? {
            return Ok(Answer::of(discovered).respond(clock));
        }
        let state = self.shared.state();
        match request.path.trim_end_matches('/') {
            "/readyz" | "/livez" | "/healthz" => Ok(text(StatusCode::OK, "text/plain", "ok".to_owned(), clock)),
            "/openapi/v3" => Ok(Answer::of(crate::discovery::documents(&state)).respond(clock)),
            path => {
                let document = path.strip_prefix("/openapi/v3/").and_then(|path| state.documents.get(path));
                let document = document.ok_or_else(ApiError::no_path)?;
                Ok(text(StatusCode::OK, "application/json", document.clone(), clock))
            }
        }
    }

    async fn answer_objects(
        &self,
        route: &ObjectRoute,
        request: &ReadRequest,
    ) -> Result<Response<ResponseBody>, ApiError> {
        let (query, clock) = (&request.query, &self.shared.clock);
        let target = self.target(route)?;
        if request.method == Method::GET && query.flag("watch") && target.subresource.is_empty() {
            return self.watch(&target, query);
        }
        let answered = timeout(LONGEST, self.answer_object(&target, request)).await;
        let out_of_time = |_| {
            let reason = "request did not complete within requested timeout - context deadline exceeded";
            ApiError::new(504, "Timeout", format!("Timeout: {reason}")).with_details(json!({}))
        };
        Ok(answered.map_err(out_of_time)??.respond(clock))
    }

    async fn answer_object(&self, target: &Target, request: &ReadRequest) -> Result<Answer, ApiError> {
        let query = &request.query;
        let (is_collection, is_custom) = (target.name.is_empty(), target.resource.custom.is_some());
        Ok(match (&request.method, is_collection) {
            (&Method::GET, true) => self.list(target, query).await?,
            (&Method::GET, false) if target.subresource == "scale" => self.get_scale(target).await?,
            (&Method::GET, false) => self.get(target, query).await?,
            // The name in the path of a custom resource is ignored.
            (&Method::POST, _) if is_collection || (is_custom && target.subresource.is_empty()) => {
                check_scope(target)?;
                let options = self.options(request, "CreateOptions")?;
                let collection = Target { name: String::new(), ..target.clone() };
                self.create(&collection, json_body(target, request)?, &options).await?
            }
            (&Method::PUT, false) => {
                let options = self.options(request, "UpdateOptions")?;
                let body = json_body(target, request)?;
                if target.subresource == "scale" {
                    self.put_scale(target, &body, &options).await?
                } else {
                    self.replace(target, body, &options).await?
                }
            }
            (&Method::PATCH, false) => self.patch(target, request).await?,
            (&Method::DELETE, false) if target.subresource.is_empty() => {
                let (sent, options) = self.delete_options(request)?;
                self.delete(target, target, &sent, &options).await?
            }
            (&Method::DELETE, true) => {
                let (sent, options) = self.delete_options(request)?;
                self.delete_collection(target, query, &sent, &options).await?
            }
            _ => return Err(ApiError::method_not_allowed()),
        })
    }

    /// Returns what a path names.
    fn target(&self, route: &ObjectRoute) -> Result<Target, ApiError> {
        let resource = self.shared.state().resource(&route.group, &route.version, &route.plural);
        let is_own = crate::resource::is_builtin_group(&route.group);
        let resource = resource.ok_or_else(|| if is_own { ApiError::no_path() } else { ApiError::no_page() })?;
        let is_misplaced = !resource.namespaced && !route.namespace.is_empty();
        let is_unplaced = resource.namespaced && route.namespace.is_empty() && !route.name.is_empty();
        let target = Target {
            resource,
            namespace: route.namespace.clone(),
            name: route.name.clone(),
            subresource: route.subresource.clone(),
        };
        if is_misplaced || is_unplaced {
            return Err(ApiError::no_path());
        }
        let subresource = &target.subresource;
        if !subresource.is_empty() && !target.resource.subresources.contains(&&**subresource) {
            let error = if target.resource.custom.is_some() { target.not_found() } else { ApiError::no_path() };
            return Err(error);
        }
        Ok(target)
    }

    fn options(&self, request: &ReadRequest, kind: &str) -> Result<WriteOptions, ApiError> {
        let agent = request.headers.get(USER_AGENT).and_then(|it| it.to_str().ok()).unwrap_or_default();
        let options = WriteOptions::parse(&request.query, agent, &self.user, kind)?;
        Ok(WriteOptions { warnings: request.warnings.clone(), ..options })
    }

    /// Reads the options of a deletion, from the body or from the query.
    fn delete_options(&self, request: &ReadRequest) -> Result<(Value, WriteOptions), ApiError> {
        let mut options = self.options(request, "DeleteOptions")?;
        let mut sent = json!({});
        if request.body.is_empty() {
            for name in ["propagationPolicy", "orphanDependents"] {
                let text = request.query.text(name);
                let value = match (name, text) {
                    (_, "") => continue,
                    ("orphanDependents", text) => json!(text == "true"),
                    (_, text) => json!(text),
                };
                crate::kinds::set_or_remove(&mut sent, name, Some(value));
            }
        } else {
            sent = serde_json::from_slice(&request.body).map_err(|error| ApiError::bad_request(error.to_string()))?;
            options.dry_run |= sent.get("dryRun").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
        }
        Ok((sent, options))
    }

    async fn replace(&self, target: &Target, body: Value, options: &WriteOptions) -> Result<Answer, ApiError> {
        // The sent object is checked before the stored one.
        let mut object = decoded(target, body.clone(), options)?;
        crate::write::check_place(target, &mut object)?;
        self.change(target, Change::Replace(body), options).await
    }

    async fn patch(&self, target: &Target, request: &ReadRequest) -> Result<Answer, ApiError> {
        let options = self.options(request, "PatchOptions")?;
        let media_type = request.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default();
        let force = request.query.flag("force");
        let is_custom = target.resource.custom.is_some();
        let change = Change::patch(media_type, &request.body, is_custom, force)?;
        if matches!(change, Change::Apply { .. }) && request.query.text("fieldManager").is_empty() {
            let error = crate::error::FieldError::required("fieldManager", "is required for apply patch");
            return Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", &[error]));
        }
        self.change(target, change, &options).await
    }

    /// Deletes the objects of a list, one after the other, and returns them as they were.
    async fn delete_collection(
        &self,
        target: &Target,
        query: &Query,
        sent: &Value,
        options: &WriteOptions,
    ) -> Result<Answer, ApiError> {
        check_scope(target)?;
        let listed = self.list(target, query).await?;
        let names = listed.body.get("items").and_then(Value::as_array).into_iter().flatten();
        let names: Vec<String> = names.map(|item| crate::write::text_at(item, "/metadata/name").to_owned()).collect();
        for name in names {
            let one = Target { name, ..target.clone() };
            match self.delete(&one, target, sent, options).await {
                Err(error) if error.code != 404 => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(listed)
    }
}

impl Service<Request<Body>> for Instance {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let instance = self.clone();
        Box::pin(async move { Ok(instance.respond(request).await) })
    }
}

/// A namespaced object is created in a namespace.
fn check_scope(target: &Target) -> Result<(), ApiError> {
    if target.resource.namespaced && target.namespace.is_empty() {
        return Err(if target.resource.custom.is_some() {
            ApiError::no_path()
        } else {
            ApiError::method_not_allowed()
        });
    }
    Ok(())
}

fn json_body(target: &Target, request: &ReadRequest) -> Result<Value, ApiError> {
    serde_json::from_slice(&request.body).map_err(|error| {
        let (kind, version) = (&target.resource.kind, &target.resource.version);
        ApiError::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {error}"))
    })
}

fn accepts_aggregated(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.contains("as=APIGroupDiscoveryList")
}
