//! `verify`: checks that a cluster enforces unions. Installs a CRD with a union, sends an object that must be rejected and one that must
//! be normalised, and deletes the CRD again.
//!
//! The kind is cluster-scoped, because namespaces may be exempt.

use super::attempts::Attempts;
use super::serve;
use crate::controllers::{NAME, skips_untouched};
use anyhow::bail;
use clap::Args;
use hyper::Method;
use kube::Client;
use kube_unions_api::{self as api, JSON, MERGE, ObjectPath, RequestError};
use kube_unions_command::connection::{ClusterArgs, block_on};
use kube_unions_command::signals::StopSignals;
use kube_unions_command::{Verdict, output};
use kube_unions_core::declaration::ANNOTATION;
use serde_json::{Value, json};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, sleep};

/// Arguments of `verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Installs a CRD with a union, sends an object that must be rejected and one that must be normalised, and deletes the CRD \
again, even when a step fails or the command is interrupted. Prints a line for each step. `helm test` runs this command.

The kind is `Probe` of verify.kube-unions.dev. It is cluster-scoped, so exempt namespaces do not matter.

Exit codes:
  0  the cluster enforces unions
  1  the cluster does not enforce unions
  2  verification failed: no API server, missing rights, an interrupt, or the CRD was not deleted

Example:
  kube-unions verify --timeout 2m")]
pub struct VerifyArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Time that the webhook has to learn of the CRD and to be called
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = serve::duration)]
    timeout: Duration,
}

pub fn run(arguments: &VerifyArgs) -> anyhow::Result<Verdict> {
    block_on(async {
        let mut signals = StopSignals::new()?;
        let client = tokio::select! {
            client = arguments.cluster.client() => client?,
            _ = signals.next() => bail!("interrupted before anything was created"),
        };
        let trial = Trial::new(client, arguments.timeout);
        let outcome = tokio::select! {
            outcome = steps(&trial) => outcome,
            _ = signals.next() => Err(anyhow::anyhow!("interrupted")),
        };
        if trial.has_left_traces() {
            let cleaned = trial.clean_up().await;
            line(cleaned.as_ref().err(), "the CRD is deleted again")?;
            if cleaned.is_err() && outcome.is_ok() {
                bail!("cannot delete the CRD");
            }
        }
        outcome
    })
}

async fn steps(trial: &Trial) -> anyhow::Result<Verdict> {
    for (step, promise) in STEPS {
        let outcome = trial.step(step).await;
        line(outcome.as_ref().err(), promise)?;
        match outcome {
            Ok(()) => {}
            Err(VerifyError::NotEnforced(_)) => return Ok(Verdict::Rejected),
            Err(VerifyError::Untried(_) | VerifyError::Refused(_)) => bail!("cannot verify the cluster"),
        }
    }
    let promise = "an update that touches no union is not sent";
    match trial.skips_untouched().await {
        Ok(()) => line(None::<&String>, promise)?,
        Err(reason) => {
            output::print_text(output::line(&format!("note    not shown: {promise}: {reason}")).into_owned() + "\n")?;
        }
    }
    Ok(Verdict::Accepted)
}

fn line(failure: Option<&impl Display>, promise: &str) -> anyhow::Result<()> {
    output::print_text(match failure {
        None => format!("ok      {promise}\n"),
        Some(reason) => output::line(&format!("failed  {promise}: {reason}")).into_owned() + "\n",
    })
}

/// API group of the kind. Nothing else uses it.
const GROUP: &str = "verify.kube-unions.dev";
const PLURAL: &str = "probes";
const FIELD_MANAGER: &str = "kube-unions-verify";

const INTERVAL: Duration = Duration::from_millis(250);

/// Timeout of the cleanup.
const CLEANUP: Duration = Duration::from_secs(30);

/// Timeout of the cleanup when the API server does not respond.
const CLEANUP_UNANSWERED: Duration = Duration::from_secs(5);

/// A failure of a step. A later attempt may succeed.
#[derive(Debug, thiserror::Error)]
enum VerifyError {
    /// The cluster does not enforce unions.
    #[error("{0}")]
    NotEnforced(String),
    /// The step could not be carried out.
    #[error("{0}")]
    Untried(String),
    /// The API server refused a request.
    #[error("{}", explained(.0))]
    Refused(#[from] RequestError),
}

/// A verification of one cluster.
struct Trial {
    client: Client,
    attempts: Attempts,
    /// Prefix of its objects' names.
    prefix: String,
    /// True if there may be something to delete.
    touched: AtomicBool,
}

/// A step of a [`Trial`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrialStep {
    /// Installs a CRD with a union.
    Define,
    /// Sends an invalid object as a dry run.
    Reject,
    /// Creates an object and switches its union.
    Normalize,
}

/// The steps in order, each with the fact that its success shows.
const STEPS: [(TrialStep, &str); 3] = [
    (TrialStep::Define, "a CRD with a union is served"),
    (TrialStep::Reject, "an object with two members is rejected"),
    (TrialStep::Normalize, "switching the union clears the old member"),
];

impl Trial {
    /// Starts a verification. Its steps repeat failed attempts until `within` has passed from now.
    fn new(client: Client, within: Duration) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let prefix = format!("verify-{:x}-{:x}", std::process::id(), now.as_millis());
        Self { client, attempts: Attempts::begin(within), prefix, touched: AtomicBool::new(false) }
    }

    /// Carries out one step.
    async fn step(&self, step: TrialStep) -> Result<(), VerifyError> {
        let mut attempt = 0_u32;
        loop {
            let result = match step {
                TrialStep::Define => self.define().await,
                TrialStep::Reject => self.reject().await,
                TrialStep::Normalize => self.normalize(&format!("{}-{attempt}", self.prefix)).await,
            };
            let failure = match result {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            let is_forbidden = matches!(&failure, VerifyError::Refused(refused) if refused.is_forbidden());
            if self.attempts.are_over() || is_forbidden && self.attempts.know_all_rights() {
                return Err(failure);
            }
            attempt += 1;
            sleep(INTERVAL).await;
        }
    }

    /// Checks that the API server evaluates the condition of the kind. An error says why it does not, or that this is unknown.
    async fn skips_untouched(&self) -> Result<(), String> {
        let path = ObjectPath::new("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", NAME);
        let found = path.read(&self.client).await.map_err(|refused| {
            let right = if refused.is_forbidden() { "; grant get on it" } else { "" };
            format!("cannot read the mutatingwebhookconfiguration {NAME}: {refused}{right}")
        })?;
        match found.and_then(|stored| skips_untouched(&stored, GROUP)) {
            Some(true) => Ok(()),
            Some(false) => Err(format!(
                "the entry for {GROUP} in the mutatingwebhookconfiguration {NAME} has no condition; `--skip-untouched=false`, \
                 `--ratcheting` and an API server that refuses it are reasons"
            )),
            None => Err(format!("the mutatingwebhookconfiguration {NAME} has no entry for {GROUP}")),
        }
    }

    /// Returns true if there may be something to clean up.
    fn has_left_traces(&self) -> bool {
        self.touched.load(Ordering::Relaxed)
    }

    /// Deletes the CRD with all its objects and waits until it is gone.
    async fn clean_up(&self) -> Result<(), VerifyError> {
        let started = Instant::now();
        loop {
            let (reason, patience) = match definition_path().delete(&self.client, None).await {
                Ok(false) => return Ok(()),
                // The API server deletes the objects first.
                Ok(true) => ("it still exists".to_owned(), CLEANUP),
                Err(refused) if refused.code().is_none() => (refused.to_string(), CLEANUP_UNANSWERED),
                Err(refused) => (refused.to_string(), CLEANUP),
            };
            if started.elapsed() >= patience {
                return Err(VerifyError::Untried(format!(
                    "{reason}; delete it with `kubectl delete customresourcedefinition {PLURAL}.{GROUP}`"
                )));
            }
            sleep(INTERVAL).await;
        }
    }

    async fn define(&self) -> Result<(), VerifyError> {
        // Set before the request: an interrupted request may have succeeded.
        let before = self.touched.swap(true, Ordering::Relaxed);
        let found = definition_path().apply(&self.client, &definition(), FIELD_MANAGER, true).await;
        if found.as_ref().is_err_and(|refused| refused.code().is_some()) {
            self.touched.store(before, Ordering::Relaxed);
        }
        let found = found?;
        if found.pointer("/metadata/deletionTimestamp").is_some() {
            return Err(not_yet("the CRD of an earlier verification is still being deleted"));
        }
        let conditions = found.pointer("/status/conditions").and_then(Value::as_array);
        let is = |it: &Value, field: &str, value: &str| it.get(field).is_some_and(|it| it == value);
        let established = |it: &Value| is(it, "type", "Established") && is(it, "status", "True");
        if !conditions.is_some_and(|conditions| conditions.iter().any(established)) {
            return Err(not_yet("the API server does not serve the CRD yet"));
        }
        // An established CRD may not be served yet.
        api::send(&self.client, Method::GET, &objects_path("")).await.map_err(unserved)?;
        Ok(())
    }

    async fn reject(&self) -> Result<(), VerifyError> {
        let object = object(&self.prefix, "Plain");
        let path = format!("{}?dryRun=All", objects_path(""));
        match api::write(&self.client, Method::POST, &path, JSON, &object).await {
            Ok(_) => Err(VerifyError::NotEnforced(format!(
                "it was accepted; check that `kubectl get validatingwebhookconfiguration kube-unions -o yaml` has a rule for \
                 {GROUP}, that pods of kube-unions are ready, and their logs"
            ))),
            Err(RequestError::Status(status))
                if status.code == 422 && status.message.contains("spec.custom: Forbidden") =>
            {
                Ok(())
            }
            Err(refused) => Err(unserved(refused)),
        }
    }

    async fn normalize(&self, name: &str) -> Result<(), VerifyError> {
        let object = object(name, "Custom");
        let created = api::write(&self.client, Method::POST, &objects_path(""), JSON, &object).await;
        created.map_err(unserved)?;
        let switch = json!({"spec": {"type": "Plain"}});
        match api::write(&self.client, Method::PATCH, &objects_path(name), MERGE, &switch).await {
            Ok(stored) if stored.get("spec") == switch.get("spec") => Ok(()),
            Ok(_) => Err(VerifyError::NotEnforced(
                "it was stored with both members; check that the mutatingwebhookconfiguration kube-unions exists"
                    .to_owned(),
            )),
            Err(RequestError::Status(status)) if status.code == 422 => Err(VerifyError::NotEnforced(format!(
                "it was rejected instead of normalised: {}; check that the mutatingwebhookconfiguration kube-unions exists",
                status.message
            ))),
            Err(refused) => Err(unserved(refused)),
        }
    }
}

/// Tells if the kind is not served yet or the webhook cannot be called.
fn unserved(refused: RequestError) -> VerifyError {
    if refused.is_not_found() {
        return not_yet("the API server does not serve the CRD yet");
    }
    if let RequestError::Status(status) = &refused
        && status.code >= 500
        && status.message.contains("failed calling webhook")
    {
        return VerifyError::NotEnforced(format!(
            "the API server cannot call the webhook: {}; check that its pods are ready and that the API server can reach them",
            status.message
        ));
    }
    VerifyError::Refused(refused)
}

fn not_yet(reason: &str) -> VerifyError {
    VerifyError::Untried(reason.to_owned())
}

/// Returns a refusal, with the rights that are missing.
fn explained(refused: &RequestError) -> String {
    if !refused.is_forbidden() {
        return refused.to_string();
    }
    format!(
        "{refused}; grant patch, create and delete on the customresourcedefinition {PLURAL}.{GROUP}, and list, create and \
         patch on {PLURAL}.{GROUP}"
    )
}

fn definition_path() -> ObjectPath {
    ObjectPath::new("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &format!("{PLURAL}.{GROUP}"))
}

/// Returns the path of an object, or of the collection for an empty name.
fn objects_path(name: &str) -> String {
    let all = format!("/apis/{GROUP}/v1/{PLURAL}");
    if name.is_empty() { all } else { format!("{all}/{name}") }
}

/// Returns a CRD with a union: the `type` `Custom` selects `custom`, `Plain` selects no member.
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

/// Returns an object with the member `custom` and any `type`.
fn object(name: &str, discriminator: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Probe",
        "metadata": {"name": name},
        "spec": {"type": discriminator, "custom": {"value": "made by kube-unions verify"}},
    })
}
