//! Unions on an API server on which no webhook is registered: compiled policies do the work.
//!
//! [`player`] plays the rows of `tests/cases`. It is given an [`installer`](player::Installer), so that every way to enforce unions
//! plays the same rows.

mod accepted;
mod agreement;
mod audit;
mod bench;
mod defaults;
mod differential;
mod evidence;
mod limits;
mod older;
pub(crate) mod player;
pub(crate) mod random;
mod random_rules;
mod refused_schemas;
mod rows;
mod rules;
mod static_manifests;
mod truth;

use std::ops::Deref;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;

use crate::support::cluster::is_left_out;
use crate::support::control_plane::ControlPlane;
use crate::support::http::{Answer, Client};
use crate::support::lending::Lent;
use crate::support::version::{Feature, lacks};
use fixtures::wait::eventually;
use kube_unions_core::catalog::Catalog;
use kube_unions_policies::{CompiledPolicies, PolicyObject, PolicyOptions, PolicyRatcheting, PolicyTarget, compile};

/// The deadline of work that the API server does in the background, far above the usual time. The converter of mutating
/// policies reads the schemas of new kinds every five seconds.
pub(crate) const IN_FORCE: Duration = Duration::from_mins(1);

/// An API server without a webhook.
pub(crate) struct Native {
    control_plane: Lent,
    api: Api,
}

/// Requests with all rights.
pub(crate) struct Api(Client);

impl Native {
    /// Returns the API server that tests share, which the first of them starts; each keeps to kinds of its own. `None`: these tests are
    /// skipped.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Native>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// Starts an API server with mutating policies for one test. `None`: these tests are skipped.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts an API server with more flags for one test. `None`: these tests are skipped.
    pub(crate) fn start_with(flags: &[String]) -> Option<Self> {
        if is_left_out() || lacks(Feature::MutatingPolicies) {
            return None;
        }
        Some(Self::of(ControlPlane::start_bare(flags).unwrap_or_else(|message| panic!("{message}"))))
    }

    /// Starts an older API server for one test, which has no mutating policies. `None`: it has not been built.
    pub(crate) fn start_older() -> Option<Self> {
        if is_left_out() {
            return None;
        }
        Some(Self::of(ControlPlane::start_older()?))
    }

    fn of(control_plane: Lent) -> Self {
        let api = Api::new(control_plane.client());
        Self { control_plane, api }
    }

    /// Returns the processes.
    pub(crate) fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }
}

impl Deref for Native {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl Api {
    pub(crate) fn new(client: &Client) -> Self {
        Self(client.clone())
    }

    pub(crate) fn client(&self) -> &Client {
        &self.0
    }

    /// Creates a CRD or a policy, or replaces it. Panics if the API server does not accept it.
    pub(crate) fn apply(&self, object: &Value) {
        let answer = self.try_apply(object);
        assert!(answer.is_success(), "not accepted: {}\n{object:#}", answer.body);
    }

    /// Creates a CRD or a policy, or replaces it.
    pub(crate) fn try_apply(&self, object: &Value) -> Answer {
        let collection = collection(object);
        let answer = self.send("POST", &collection, object);
        if answer.status != 409 {
            return answer;
        }
        let path = format!("{collection}/{}", name(object));
        let mut next = object.clone();
        next["metadata"]["resourceVersion"] = self.get(&path).body["metadata"]["resourceVersion"].clone();
        self.send("PUT", &path, &next)
    }

    /// Sends a request with a JSON body. Tries again while the API server does not answer yet.
    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.client().send(method, path, "application/json", body.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.client().get(path).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits until the objects of a kind can be listed.
    pub(crate) fn wait_until_served(&self, collection: &str) {
        let served = eventually(IN_FORCE, || self.get(collection).is_success());
        assert!(served, "the API server never served `{collection}`");
    }

    /// Compiles the policies of every kind of a catalog and installs them. Returns the results.
    pub(crate) fn install(&self, catalog: &Catalog, options: &PolicyOptions) -> Vec<CompiledPolicies> {
        let compiled = compile_all(catalog, options);
        for object in compiled.iter().flat_map(|it| &it.objects) {
            self.apply(&object.to_json());
        }
        compiled
    }
}

/// Returns the options of policies that warn of all that the webhook warns of.
pub(crate) fn warning() -> PolicyOptions {
    PolicyOptions { ratcheting: PolicyRatcheting::Warn, ..PolicyOptions::default() }
}

/// Compiles the policies of every kind of a catalog.
pub(crate) fn compile_all(catalog: &Catalog, options: &PolicyOptions) -> Vec<CompiledPolicies> {
    PolicyTarget::of_catalog(catalog).iter().map(|target| compile(target, options)).collect()
}

/// Returns the policies of every kind of a catalog, or the reason why one cannot be expressed.
pub(crate) fn policies_of(catalog: &Catalog, options: &PolicyOptions) -> Result<Vec<Value>, String> {
    let mut policies = Vec::new();
    for compiled in compile_all(catalog, options) {
        if let Some(refusal) = compiled.refusals.first() {
            return Err(refusal.to_string());
        }
        policies.extend(compiled.objects.iter().map(PolicyObject::to_json));
    }
    Ok(policies)
}

/// Returns the text of a denial by a validating policy.
pub(crate) fn policy_message(answer: &Answer) -> Option<&str> {
    let message = answer.body["message"].as_str()?;
    message
        .contains("ValidatingAdmissionPolicy")
        .then(|| message.split_once(" denied request: ").map(|(_, rest)| rest))?
}

/// Returns the parts of a message in alphabetical order. Policies tell the faults of several unions in the order of their texts, and the
/// webhook in the order of their paths.
pub(crate) fn sorted(message: &str) -> String {
    let mut parts: Vec<&str> = message.split("; ").collect();
    parts.sort_unstable();
    parts.join("; ")
}

/// Returns the texts of the warnings of validating policies.
pub(crate) fn policy_warnings(answer: &Answer) -> Vec<&str> {
    let texts = answer.warnings.iter().filter(|text| text.contains("ValidatingAdmissionPolicy '"));
    texts.map(|text| text.split_once("': ").map_or(&**text, |(_, rest)| rest)).collect()
}

/// Returns an object without nulls. An API server removes nulls where it prunes.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Returns the fields of an object that its kind defines.
pub(crate) fn fields_of_kind(object: &Value) -> Value {
    let mut fields = object.clone();
    if let Some(fields) = fields.as_object_mut() {
        fields.retain(|name, _| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    }
    fields
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("an object has a name")
}

/// Returns the path of the collection of a CRD, a policy, or another object without a namespace.
pub(crate) fn collection(object: &Value) -> String {
    let (version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
    let (version, kind) = (version.expect("an API version"), kind.expect("a kind"));
    let plural = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"));
    format!("/apis/{version}/{}", plural.to_lowercase())
}
