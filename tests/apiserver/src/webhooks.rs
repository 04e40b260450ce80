//! Chooses the webhooks for a write, calls them, and applies their answers.

use crate::admission::{CallError, Operation, WebhookAddress, WebhookCall, WebhookService};
use crate::conditions::Matched;
use crate::error::{ApiError, FieldError};
use crate::instance::Instance;
use crate::kinds::{self, set_or_remove};
use crate::read::presented;
use crate::resource::{ADMISSION, BuiltinKind, NAMESPACES, ResourceInfo, defined};
use crate::selector::label_selector_selects;
use crate::write::{Target, WriteOptions, text_at};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::timeout;

/// The longest time of a call.
const LONGEST: u64 = 30;

/// A write on its way through admission.
pub(crate) struct AdmittedWrite<'w> {
    pub(crate) target: &'w Target,
    pub(crate) operation: Operation,
    pub(crate) old: Option<&'w Value>,
    pub(crate) options: &'w WriteOptions,
}

/// An entry of a configuration.
#[derive(Debug, Clone)]
struct WebhookEntry {
    configuration: String,
    is_mutating: bool,
    /// The number of the entry in its configuration.
    index: usize,
    entry: Value,
}

/// A call that a write needs.
struct Invocation {
    webhook: WebhookEntry,
    /// The version in which the webhook gets the objects.
    resource: ResourceInfo,
}

/// Why a call has no answer that counts, or what the webhook answers.
enum CallFailure {
    /// The failure policy decides.
    Failed(String),
    /// The write is refused.
    Refused(ApiError),
}

/// The answer of a webhook that allows a write.
struct Admitted {
    warnings: Vec<String>,
    patch: Option<json_patch::Patch>,
}

impl WebhookEntry {
    fn text(&self, field: &str) -> &str {
        self.entry.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.text("name")
    }

    fn is_ignored(&self) -> bool {
        self.text("failurePolicy") == "Ignore"
    }

    fn id(&self) -> (String, usize) {
        (self.configuration.clone(), self.index)
    }

    fn timeout(&self) -> Duration {
        let seconds = self.entry.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10);
        Duration::from_secs(seconds.min(LONGEST))
    }

    fn address(&self) -> WebhookAddress {
        let config = self.entry.get("clientConfig").unwrap_or(&Value::Null);
        let service = config.get("service").filter(|service| service.is_object()).map(|service| {
            let text = |field: &str| service.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            let port = service.get("port").and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
            WebhookService {
                namespace: text("namespace"),
                name: text("name"),
                path: text("path"),
                port: port.unwrap_or(443),
            }
        });
        let bundle = config.get("caBundle").and_then(Value::as_str).unwrap_or_default();
        WebhookAddress {
            service,
            url: config.get("url").and_then(Value::as_str).map(str::to_owned),
            ca_bundle: BASE64_STANDARD.decode(bundle).unwrap_or_default(),
        }
    }
}

/// Returns the URL of a call, as messages have it.
fn url(address: &WebhookAddress, timeout: Duration) -> String {
    let seconds = timeout.as_secs();
    match (&address.service, &address.url) {
        (Some(service), _) => {
            let WebhookService { namespace, name, path, port } = service;
            format!("https://{name}.{namespace}.svc:{port}{path}?timeout={seconds}s")
        }
        (None, url) => format!("{}?timeout={seconds}s", url.as_deref().unwrap_or_default()),
    }
}

impl Instance {
    /// Calls the webhooks that may change an object, in the order of configurations and entries, and again where they ask for it.
    pub(crate) async fn mutate(&self, write: &AdmittedWrite<'_>, mut object: Value) -> Result<Value, ApiError> {
        let entries = self.entries(write, true);
        let (mut called, mut again) = (BTreeSet::new(), BTreeSet::new());
        for round in 0..2 {
            for webhook in &entries {
                if round > 0 && !again.contains(&webhook.id()) {
                    continue;
                }
                let Some(invocation) = self.invocation(write, webhook, &object)? else { continue };
                let changed = match self.call(write, &invocation, &object).await {
                    Ok(admitted) => {
                        write.options.warnings.extend(admitted.warnings);
                        patched(write, &invocation, &object, admitted.patch)?
                    }
                    Err(CallFailure::Failed(_)) if webhook.is_ignored() => None,
                    Err(CallFailure::Failed(reason)) => return Err(failed_call(webhook, &reason)),
                    Err(CallFailure::Refused(error)) => return Err(error),
                };
                if let Some(changed) = changed.filter(|changed| *changed != object) {
                    object = changed;
                    again.append(&mut called);
                }
                if webhook.text("reinvocationPolicy") == "IfNeeded" {
                    called.insert(webhook.id());
                }
            }
            if again.is_empty() {
                break;
            }
        }
        Ok(object)
    }

    /// Calls the webhooks that may refuse an object, all at once. The first refusal counts.
    pub(crate) async fn call_validating(&self, write: &AdmittedWrite<'_>, object: &Value) -> Result<(), ApiError> {
        let mut invocations = Vec::new();
        for webhook in self.entries(write, false) {
            invocations.extend(self.invocation(write, &webhook, object)?);
        }
        let calls = invocations.iter().map(|it| async move { (it, self.call(write, it, object).await) });
        let mut calls: FuturesUnordered<_> = calls.collect();
        let mut refusal = None;
        while let Some((invocation, outcome)) = calls.next().await {
            let webhook = &invocation.webhook;
            match outcome {
                Ok(admitted) => write.options.warnings.extend(admitted.warnings),
                Err(CallFailure::Failed(_)) if webhook.is_ignored() => {}
                Err(CallFailure::Failed(reason)) => {
                    refusal.get_or_insert_with(|| failed_call(webhook, &reason));
                }
                Err(CallFailure::Refused(error)) => {
                    refusal.get_or_insert(error);
                }
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// Returns the conditions of a configuration that cannot be compiled. A real API server also checks their types.
    pub(crate) fn condition_errors(&self, resource: &ResourceInfo, object: &Value) -> Vec<FieldError> {
        let is_configuration = matches!(
            resource.builtin,
            Some(BuiltinKind::MutatingWebhookConfiguration | BuiltinKind::ValidatingWebhookConfiguration)
        );
        let entries = object.get("webhooks").and_then(Value::as_array).filter(|_| is_configuration);
        let mut errors = Vec::new();
        for (index, entry) in entries.into_iter().flatten().enumerate() {
            let conditions = entry.get("matchConditions").and_then(Value::as_array);
            for (number, condition) in conditions.into_iter().flatten().enumerate() {
                let expression = text_at(condition, "/expression");
                if let Err(error) = self.shared.state().conditions.compile(expression) {
                    let field = format!("webhooks[{index}].matchConditions[{number}].expression");
                    let message = format!("compilation failed: {error}");
                    errors.push(FieldError::invalid(&field, &expression.into(), message));
                }
            }
        }
        errors
    }

    /// Returns the entries of all configurations of a kind, as the cache of this process has them.
    fn entries(&self, write: &AdmittedWrite<'_>, is_mutating: bool) -> Vec<WebhookEntry> {
        let resource = &write.target.resource;
        // Otherwise nobody could repair a configuration.
        let is_exempt = resource.group == ADMISSION;
        if is_exempt {
            return Vec::new();
        }
        let plural = if is_mutating { "mutatingwebhookconfigurations" } else { "validatingwebhookconfigurations" };
        let (_, seen, _) = self.cache();
        let state = self.shared.state();
        let page = state.storage.page(&format!("{ADMISSION}/{plural}"), seen, ("", ""), usize::MAX, |_| true);
        drop(state);
        let mut entries = Vec::new();
        for (configuration, stored) in page.objects {
            let webhooks = stored.object.get("webhooks").and_then(Value::as_array);
            for (index, entry) in webhooks.into_iter().flatten().enumerate() {
                let entry = entry.clone();
                entries.push(WebhookEntry { configuration: configuration.clone(), is_mutating, index, entry });
            }
        }
        entries
    }

    /// Returns the call that an entry needs for a write, if any.
    fn invocation(
        &self,
        write: &AdmittedWrite<'_>,
        webhook: &WebhookEntry,
        object: &Value,
    ) -> Result<Option<Invocation>, ApiError> {
        let selected = self.is_namespace_selected(write, webhook, object);
        if selected == Ok(false) || !is_object_selected(webhook, object, write.old) {
            return Ok(None);
        }
        let Some(resource) = matching_version(write, webhook) else { return Ok(None) };
        selected?;
        let conditions = webhook.entry.get("matchConditions").and_then(Value::as_array);
        if let Some(conditions) = conditions.filter(|conditions| !conditions.is_empty()) {
            let request = request(write, &resource, "");
            let object = in_version(&resource, object);
            let old = in_version(&resource, write.old.unwrap_or(&Value::Null));
            let variables = [("request", &request), ("object", &object), ("oldObject", &old)];
            let judged = self.shared.state().conditions.judge(conditions, &variables);
            match judged {
                Matched::Yes => {}
                Matched::Failed(reason) if !webhook.is_ignored() => {
                    return Err(ApiError::forbidden(&write.target.resource, &write.target.name, &reason));
                }
                Matched::No | Matched::Failed(_) => return Ok(None),
            }
        }
        Ok(Some(Invocation { webhook: webhook.clone(), resource }))
    }

    fn is_namespace_selected(
        &self,
        write: &AdmittedWrite<'_>,
        webhook: &WebhookEntry,
        object: &Value,
    ) -> Result<bool, ApiError> {
        let Target { resource, namespace, name, subresource } = write.target;
        let is_namespace = resource.builtin == Some(BuiltinKind::Namespace);
        let selector = webhook.entry.get("namespaceSelector").unwrap_or(&Value::Null);
        let is_empty = selector.as_object().is_none_or(Map::is_empty);
        if is_empty || (namespace.is_empty() && !is_namespace) {
            return Ok(true);
        }
        if is_namespace && subresource.is_empty() && write.operation != Operation::Delete {
            return Ok(label_selector_selects(selector, object));
        }
        let name = if is_namespace { name } else { namespace };
        let (_, seen, _) = self.cache();
        let state = self.shared.state();
        let stored = state.storage.get_at(NAMESPACES, name, seen);
        let stored = stored.or_else(|| state.namespace(name).map(|stored| stored.object.clone()));
        drop(state);
        let Some(stored) = stored else {
            let namespaces = crate::resource::builtin("", "v1", "namespaces").ok_or_else(ApiError::no_path)?;
            return Err(ApiError::not_found(&namespaces, name));
        };
        Ok(label_selector_selects(selector, &stored))
    }

    /// Calls a webhook.
    async fn call(
        &self,
        write: &AdmittedWrite<'_>,
        invocation: &Invocation,
        object: &Value,
    ) -> Result<Admitted, CallFailure> {
        let webhook = &invocation.webhook;
        let has_no_effects = matches!(webhook.text("sideEffects"), "None" | "NoneOnDryRun");
        if write.options.dry_run && !has_no_effects {
            let message = format!("admission webhook \"{}\" does not support dry run", webhook.name());
            return Err(CallFailure::Refused(ApiError::bad_request(message)));
        }
        let (uid, webhooks) = {
            let mut state = self.shared.state();
            (state.new_uid(), state.webhooks.clone())
        };
        let mut request = request(write, &invocation.resource, &uid);
        let in_its_version = |object: &Value| in_version(&invocation.resource, object);
        if let Some(fields) = request.as_object_mut() {
            fields.insert("object".to_owned(), in_its_version(object));
            fields.insert("oldObject".to_owned(), write.old.map_or(Value::Null, in_its_version));
        }
        let (client_config, time) = (webhook.address(), webhook.timeout());
        let url = url(&client_config, time);
        let call = WebhookCall {
            configuration: webhook.configuration.clone(),
            is_mutating: webhook.is_mutating,
            entry: webhook.name().to_owned(),
            client_config,
            timeout: time,
            review: json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}),
        };
        let Some(webhooks) = webhooks else {
            return Err(CallFailure::Failed(format!("failed to call webhook: Post \"{url}\": no webhook is there")));
        };
        let answered = match timeout(time, webhooks.call(call)).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(CallError::Connection(reason))) => {
                return Err(CallFailure::Failed(format!("failed to call webhook: Post \"{url}\": {reason}")));
            }
            Ok(Err(CallError::Status(code, body))) => {
                let reason = status_words(code, &body);
                return Err(CallFailure::Failed(format!("failed to call webhook: {reason}")));
            }
            Err(_) => {
                let reason = "context deadline exceeded";
                return Err(CallFailure::Failed(format!("failed to call webhook: Post \"{url}\": {reason}")));
            }
        };
        let answered = read_answer(&answered, &uid, webhook.is_mutating);
        let response =
            answered.map_err(|reason| CallFailure::Failed(format!("received invalid webhook response: {reason}")))?;
        admitted(webhook, &response)
    }
}

/// Returns the version of the resource that a rule names, first the one of the request.
fn matching_version(write: &AdmittedWrite<'_>, webhook: &WebhookEntry) -> Option<ResourceInfo> {
    let resource = &write.target.resource;
    let rules = webhook.entry.get("rules").and_then(Value::as_array);
    let rules: Vec<&Value> = rules.into_iter().flatten().collect();
    if rules.iter().any(|rule| matches_rule(rule, write, &resource.version)) {
        return Some(resource.clone());
    }
    let custom = resource.custom.as_ref().filter(|_| webhook.text("matchPolicy") == "Equivalent")?;
    let versions = custom.definition.pointer("/spec/versions").and_then(Value::as_array);
    let versions: Vec<&str> = versions.into_iter().flatten().filter_map(|it| it.get("name")?.as_str()).collect();
    rules.iter().find_map(|rule| {
        let mut equal = versions.iter().filter(|version| **version != resource.version);
        equal.find_map(|version| {
            matches_rule(rule, write, version).then(|| defined(&custom.definition, version)).flatten()
        })
    })
}

/// Returns the object with the patch of a webhook.
fn patched(
    write: &AdmittedWrite<'_>,
    invocation: &Invocation,
    object: &Value,
    patch: Option<json_patch::Patch>,
) -> Result<Option<Value>, ApiError> {
    let Some(patch) = patch.filter(|patch| !patch.is_empty()) else { return Ok(None) };
    let name = invocation.webhook.name();
    if object.is_null() {
        return Err(ApiError::internal(format!(
            "admission webhook \"{name}\" attempted to modify the object, which is not supported for this operation"
        )));
    }
    let mut patched = in_version(&invocation.resource, object);
    json_patch::patch(&mut patched, &patch).map_err(ApiError::internal)?;
    let resource = &write.target.resource;
    set_or_remove(&mut patched, "apiVersion", Some(resource.api_version().into()));
    // It is converted to the kind of the request, whatever it said before.
    set_or_remove(&mut patched, "kind", Some(resource.kind.clone().into()));
    let decoded = kinds::decode(resource, patched).map_err(ApiError::internal)?;
    Ok(Some(decoded.object))
}

fn failed_call(webhook: &WebhookEntry, reason: &str) -> ApiError {
    ApiError::internal(format!("failed calling webhook \"{}\": {reason}", webhook.name()))
}

/// Returns an object in the version that a webhook gets.
fn in_version(resource: &ResourceInfo, object: &Value) -> Value {
    if object.is_null() || resource.custom.is_none() { object.clone() } else { presented(resource, object) }
}

fn is_object_selected(webhook: &WebhookEntry, object: &Value, old: Option<&Value>) -> bool {
    let selector = webhook.entry.get("objectSelector").unwrap_or(&Value::Null);
    let is_empty = selector.as_object().is_none_or(Map::is_empty);
    let selects = |object: &Value| !object.is_null() && label_selector_selects(selector, object);
    is_empty || selects(object) || old.is_some_and(selects)
}

fn matches_rule(rule: &Value, write: &AdmittedWrite<'_>, version: &str) -> bool {
    let Target { resource, namespace, subresource, .. } = write.target;
    let has = |field: &str, wanted: &str| {
        let all = rule.get(field).and_then(Value::as_array);
        all.into_iter().flatten().any(|it| it == "*" || it == wanted)
    };
    let is_in_scope = match rule.get("scope").and_then(Value::as_str) {
        Some("Namespaced") => !namespace.is_empty(),
        Some("Cluster") => namespace.is_empty(),
        Some(_) | None => true,
    };
    let resources = rule.get("resources").and_then(Value::as_array);
    let is_resource = resources.into_iter().flatten().filter_map(Value::as_str).any(|it| {
        let (main, sub) = it.split_once('/').unwrap_or((it, ""));
        (main == "*" || main == resource.plural) && (sub == "*" || sub == subresource)
    });
    is_in_scope
        && is_resource
        && has("operations", write.operation.name())
        && has("apiGroups", &resource.group)
        && has("apiVersions", version)
}

/// Returns the request of a review, without the objects.
fn request(write: &AdmittedWrite<'_>, resource: &ResourceInfo, uid: &str) -> Value {
    let Target { resource: requested, namespace, name, subresource } = write.target;
    let kind = |of: &ResourceInfo| json!({"group": of.group, "version": of.version, "kind": of.kind});
    let place = |of: &ResourceInfo| json!({"group": of.group, "version": of.version, "resource": of.plural});
    let namespace = if requested.builtin == Some(BuiltinKind::Namespace) { name } else { namespace };
    let mut request = Map::new();
    request.insert("uid".to_owned(), uid.into());
    request.insert("kind".to_owned(), kind(resource));
    request.insert("resource".to_owned(), place(resource));
    if !subresource.is_empty() {
        request.insert("subResource".to_owned(), subresource.clone().into());
    }
    request.insert("requestKind".to_owned(), kind(requested));
    request.insert("requestResource".to_owned(), place(requested));
    if !subresource.is_empty() {
        request.insert("requestSubResource".to_owned(), subresource.clone().into());
    }
    for (field, text) in [("name", name), ("namespace", namespace)] {
        if !text.is_empty() {
            request.insert(field.to_owned(), text.clone().into());
        }
    }
    request.insert("operation".to_owned(), write.operation.name().into());
    let user = &write.options.user;
    let groups = if user == "system:admin" {
        json!(["system:masters", "system:authenticated"])
    } else {
        json!(["system:authenticated"])
    };
    request.insert("userInfo".to_owned(), json!({"username": user, "groups": groups}));
    request.insert("dryRun".to_owned(), write.options.dry_run.into());
    request.insert("options".to_owned(), options(write));
    request.into()
}

fn options(write: &AdmittedWrite<'_>) -> Value {
    let mut options = json!({"kind": write.operation.options_kind(), "apiVersion": "meta.k8s.io/v1"});
    if write.options.dry_run {
        set_or_remove(&mut options, "dryRun", Some(json!(["All"])));
    }
    if write.operation != Operation::Delete && write.options.is_manager_named {
        set_or_remove(&mut options, "fieldManager", Some(write.options.field_manager.clone().into()));
    }
    options
}

/// Returns the response of an answer, if it is well-formed.
fn read_answer(answer: &Value, uid: &str, is_mutating: bool) -> Result<Value, String> {
    let response = answer.get("response").filter(|response| response.is_object());
    let Some(response) = response else { return Err("webhook response was absent".to_owned()) };
    let found = text_at(response, "/uid");
    if found != uid {
        return Err(format!("expected response.uid=\"{uid}\", got \"{found}\""));
    }
    let (version, kind) = (text_at(answer, "/apiVersion"), text_at(answer, "/kind"));
    if version != "admission.k8s.io/v1" || kind != "AdmissionReview" {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
        ));
    }
    let has_patch = !text_at(response, "/patch").is_empty();
    let of_type = response.get("patchType").filter(|it| !it.is_null());
    let reason = match (is_mutating, has_patch, of_type) {
        (true, true, None) => "webhook returned response.patch but not response.patchType",
        (true, false, Some(_)) => "webhook returned response.patchType but not response.patch",
        (false, true, _) => "validating webhook may not return response.patch",
        (false, false, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(response.clone()),
    };
    Err(reason.to_owned())
}

fn admitted(webhook: &WebhookEntry, response: &Value) -> Result<Admitted, CallFailure> {
    let warnings = response.get("warnings").and_then(Value::as_array);
    let warnings = warnings.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect();
    if response.get("allowed") != Some(&Value::Bool(true)) {
        return Err(CallFailure::Refused(denial(webhook.name(), response.get("status").unwrap_or(&Value::Null))));
    }
    let patch = text_at(response, "/patch");
    if patch.is_empty() {
        return Ok(Admitted { warnings, patch: None });
    }
    let undecodable =
        |reason: String| CallFailure::Failed(format!("received undecodable patch in webhook response: {reason}"));
    let bytes = BASE64_STANDARD.decode(patch).map_err(|error| undecodable(error.to_string()))?;
    let patch = serde_json::from_slice(&bytes).map_err(|error| undecodable(error.to_string()))?;
    Ok(Admitted { warnings, patch: Some(patch) })
}

/// Returns the refusal of a webhook.
fn denial(name: &str, status: &Value) -> ApiError {
    let code = status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()).unwrap_or_default();
    let (message, reason) = (text_at(status, "/message"), text_at(status, "/reason"));
    let denied = format!("admission webhook \"{name}\" denied the request");
    let message = match (message, reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let error = ApiError::new(if code < 400 { 400 } else { code }, reason.to_owned(), message);
    match status.get("details").filter(|details| details.is_object()) {
        Some(details) => error.with_details(details.clone()),
        None => error,
    }
}

/// Returns the words of the client of an API server for an HTTP status.
fn status_words(code: u16, body: &str) -> String {
    match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 406 | 415 => body.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned()
        }
        500.. => format!("an error on the server ({body:?}) has prevented the request from succeeding"),
        _ => format!("the server responded with the status code {code} but did not return more information"),
    }
}
