//! Tries on a cluster whether unions are enforced there: a definition with a union, an object that must be rejected, and one
//! that must be normalised. All of it is taken away again.
//!
//! The kind has no namespace, since a webhook may be told to leave namespaces alone, its own among them.

use super::call::{self, APPLY, MERGE, Refused};
use hyper::Method;
use kube::Client;
use kube_unions_core::declaration::ANNOTATION;
use serde_json::{Value, json};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, sleep};

/// The API group of the kind, which nothing else uses.
const GROUP: &str = "verify.kube-unions.dev";
const PLURAL: &str = "probes";
const FIELD_MANAGER: &str = "kube-unions-verify";

const INTERVAL: Duration = Duration::from_millis(250);

/// Rights that were granted a moment ago reach an API server within so long.
const RIGHTS_SETTLE: Duration = Duration::from_secs(5);

/// For taking things away, whatever became of the rest; and where the API server no longer answers at all.
const CLEANING: Duration = Duration::from_secs(30);
const CLEANING_UNANSWERED: Duration = Duration::from_secs(5);

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// It was tried, and unions are not enforced.
    #[error("{0}")]
    NotEnforced(String),
    /// It could not be tried.
    #[error("{0}")]
    Untried(String),
}

/// A trial on one cluster.
pub struct Trial {
    client: Client,
    started: Instant,
    within: Duration,
    /// What its objects' names begin with.
    prefix: String,
    /// Whether there may be something to take away.
    touched: AtomicBool,
}

/// A step of a trial, in the order of [`Step::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A definition with a union is installed.
    Define,
    /// An invalid object is sent, and not stored whatever comes of it.
    Reject,
    /// An object is created, and its union switched.
    Normalize,
}

impl Step {
    /// Each once.
    pub const ALL: [Self; 3] = [Self::Define, Self::Reject, Self::Normalize];

    /// What holds where the step succeeds.
    pub fn promise(self) -> &'static str {
        match self {
            Self::Define => "a definition with a union is served",
            Self::Reject => "an object with two members is rejected",
            Self::Normalize => "switching the union clears the member that was left over",
        }
    }
}

/// What an attempt showed.
enum Seen {
    /// What was promised.
    Kept,
    /// Something else; it may change.
    NotYet(VerifyError),
}

impl Trial {
    /// Steps wait for what they promise until `within` has passed since now.
    pub fn new(client: Client, within: Duration) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let prefix = format!("verify-{:x}-{:x}", std::process::id(), now.as_millis());
        Self { client, started: Instant::now(), within, prefix, touched: AtomicBool::new(false) }
    }

    /// Takes one step.
    pub async fn step(&self, step: Step) -> Result<(), VerifyError> {
        let mut attempt = 0_u32;
        loop {
            let seen = match step {
                Step::Define => self.define().await,
                Step::Reject => self.reject().await,
                Step::Normalize => self.normalize(&format!("{}-{attempt}", self.prefix)).await,
            };
            match seen {
                Ok(Seen::Kept) => return Ok(()),
                Ok(Seen::NotYet(error)) if self.started.elapsed() >= self.within => return Err(error),
                Ok(Seen::NotYet(_)) => {}
                Err(refused) => {
                    let forbidden = refused.is_forbidden() && self.started.elapsed() >= RIGHTS_SETTLE;
                    if forbidden || self.started.elapsed() >= self.within {
                        return Err(untried(&refused));
                    }
                }
            }
            attempt += 1;
            sleep(INTERVAL).await;
        }
    }

    /// Whether something may have been made that is to be taken away.
    pub fn has_left_traces(&self) -> bool {
        self.touched.load(Ordering::Relaxed)
    }

    /// Deletes the definition, and with it every object, and waits until it is gone.
    pub async fn clean_up(&self) -> Result<(), VerifyError> {
        let started = Instant::now();
        loop {
            let (reason, patience) = match call::send(&self.client, Method::DELETE, &definition_path()).await {
                Err(refused) if refused.is_not_found() => return Ok(()),
                // Its objects are being deleted.
                Ok(_) => ("it is still there".to_owned(), CLEANING),
                Err(refused) if refused.code().is_none() => (refused.to_string(), CLEANING_UNANSWERED),
                Err(refused) => (refused.to_string(), CLEANING),
            };
            if started.elapsed() >= patience {
                return Err(VerifyError::Untried(format!(
                    "{reason}; delete it yourself: `kubectl delete customresourcedefinition {PLURAL}.{GROUP}`"
                )));
            }
            sleep(INTERVAL).await;
        }
    }

    async fn define(&self) -> Result<Seen, Refused> {
        let path = format!("{}?fieldManager={FIELD_MANAGER}&force=true", definition_path());
        // Whoever stops waiting for the answer is to know that it may have been done.
        let before = self.touched.swap(true, Ordering::Relaxed);
        let found = call::write(&self.client, Method::PATCH, &path, APPLY, &definition()).await;
        if found.as_ref().is_err_and(|refused| refused.code().is_some()) {
            self.touched.store(before, Ordering::Relaxed);
        }
        let found = found?;
        if found.pointer("/metadata/deletionTimestamp").is_some() {
            return Ok(not_yet("the definition of an earlier trial is still being deleted"));
        }
        let conditions = found.pointer("/status/conditions").and_then(Value::as_array);
        let is = |it: &Value, field: &str, value: &str| it.get(field).is_some_and(|it| it == value);
        let established = |it: &Value| is(it, "type", "Established") && is(it, "status", "True");
        if !conditions.is_some_and(|conditions| conditions.iter().any(established)) {
            return Ok(not_yet("the API server has taken the definition and does not serve it"));
        }
        // It may be established and not yet served.
        call::send(&self.client, Method::GET, &objects_path("")).await.map(|_| Seen::Kept).or_else(unserved)
    }

    async fn reject(&self) -> Result<Seen, Refused> {
        let object = object(&self.prefix, "Plain");
        let path = format!("{}?dryRun=All", objects_path(""));
        match call::write(&self.client, Method::POST, &path, "application/json", &object).await {
            Ok(_) => Ok(Seen::NotYet(VerifyError::NotEnforced(format!(
                "it was accepted; look whether `kubectl get validatingwebhookconfiguration kube-unions -o yaml` has a rule for \
                 {GROUP}, whether pods of kube-unions are ready, and what their log says"
            )))),
            Err(Refused::Status(status)) if status.code == 422 && status.message.contains("spec.custom: Forbidden") => {
                Ok(Seen::Kept)
            }
            Err(refused) => unserved(refused),
        }
    }

    async fn normalize(&self, name: &str) -> Result<Seen, Refused> {
        let object = object(name, "Custom");
        let created = call::write(&self.client, Method::POST, &objects_path(""), "application/json", &object).await;
        if let Err(refused) = created {
            return unserved(refused);
        }
        let switch = json!({"spec": {"type": "Plain"}});
        match call::write(&self.client, Method::PATCH, &objects_path(name), MERGE, &switch).await {
            Ok(stored) if stored.get("spec") == switch.get("spec") => Ok(Seen::Kept),
            Ok(_) => Ok(Seen::NotYet(VerifyError::NotEnforced(
                "it was stored with both; look whether the mutatingwebhookconfiguration kube-unions is there"
                    .to_owned(),
            ))),
            Err(Refused::Status(status)) if status.code == 422 => Ok(Seen::NotYet(VerifyError::NotEnforced(format!(
                "it was rejected and not normalised: {}; look whether the mutatingwebhookconfiguration kube-unions is there",
                status.message
            )))),
            Err(refused) => unserved(refused),
        }
    }
}

impl fmt::Debug for Trial {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Trial").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// What is refused while a definition is new, or while the webhook can't be called, is no verdict yet.
fn unserved(refused: Refused) -> Result<Seen, Refused> {
    if refused.is_not_found() {
        return Ok(not_yet("the API server does not serve the definition that it has taken"));
    }
    match &refused {
        Refused::Status(status) if status.code >= 500 && status.message.contains("failed calling webhook") => {
            Ok(Seen::NotYet(VerifyError::NotEnforced(format!(
                "the API server can't call the webhook: {}; look whether its pods are ready and whether the API server \
                 reaches them",
                status.message
            ))))
        }
        Refused::Status(_) | Refused::Unanswered(_) => Err(refused),
    }
}

fn not_yet(reason: &str) -> Seen {
    Seen::NotYet(VerifyError::Untried(reason.to_owned()))
}

fn untried(refused: &Refused) -> VerifyError {
    VerifyError::Untried(if refused.is_forbidden() {
        format!(
            "{refused}; it takes the rights to patch, create and delete the customresourcedefinition {PLURAL}.{GROUP}, and to \
             list, create and patch {PLURAL}.{GROUP}"
        )
    } else {
        refused.to_string()
    })
}

fn definition_path() -> String {
    format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{PLURAL}.{GROUP}")
}

/// The path of an object, or with an empty name of all of them.
fn objects_path(name: &str) -> String {
    let all = format!("/apis/{GROUP}/v1/{PLURAL}");
    if name.is_empty() { all } else { format!("{all}/{name}") }
}

/// A union by `type`: `Custom` selects `custom`, `Plain` nothing.
fn definition() -> Value {
    let unions = json!({"v1": {"/properties/spec/properties/type": {
        "fieldMembers": {"Plain": null, "Custom": {"name": "custom"}},
    }}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.{GROUP}"), "annotations": {ANNOTATION: unions.to_string()}},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"kind": "Probe", "listKind": "ProbeList", "plural": PLURAL, "singular": "probe"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {
                    "type": {"type": "string", "enum": ["Plain", "Custom"]},
                    "custom": {"type": "object", "properties": {"value": {"type": "string"}}},
                }}},
            }}}],
        },
    })
}

/// An object that has the member `custom`, whatever its `type` says.
fn object(name: &str, discriminator: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Probe",
        "metadata": {"name": name},
        "spec": {"type": discriminator, "custom": {"value": "of a trial of kube-unions"}},
    })
}
