//! Installs the CRD of `UnionDeclaration`, or upgrades it.
//!
//! Helm creates the CRDs of a chart and never changes them, so the chart runs this before an installation and an upgrade. An
//! annotation names the version of the program that wrote the CRD last. The CRD of a newer version stays as it is, because an
//! older schema prunes the newer fields of stored declarations.

use crate::api::{self, APPLY, RequestError};
use hyper::Method;
use kube::{Client, CustomResourceExt};
use kube_unions_core::declaration::UnionDeclaration;
use semver::Version;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Annotation with the version of the program that wrote the CRD.
const WRITTEN_BY: &str = "kube-unions.dev/version";

const FIELD_MANAGER: &str = "kube-unions-install-crd";

const INTERVAL: Duration = Duration::from_millis(500);

/// Time in which an API server learns of rights that were just granted.
const RIGHTS_SETTLE: Duration = Duration::from_secs(5);

/// The end of an installation that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstalledCrd {
    /// There was none.
    Created,
    /// There was another one.
    Updated,
    /// It was the same.
    Unchanged,
    /// A newer version of the program wrote it, and it stays as it is.
    Newer(String),
}

/// An error of installing the CRD.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallCrdError {
    /// The user may not write the CRD.
    #[error(
        "cannot install the CRD {name}: {reason}; grant `get`, `patch` and `create` on the customresourcedefinition with this name"
    )]
    Forbidden { name: String, reason: String },
    /// The API server refuses the CRD.
    #[error("cannot install the CRD {name}: {reason}")]
    Invalid { name: String, reason: String },
    /// No attempt succeeded until the timeout.
    #[error("cannot install the CRD {name} within {within:?}: {reason}")]
    Refused { name: String, within: Duration, reason: String },
}

/// Result of an attempt.
enum InstallAttempt {
    Succeeded(InstalledCrd),
    /// A later attempt may succeed.
    Failed(&'static str),
}

/// Returns the name of the CRD.
pub fn crd_name() -> &'static str {
    UnionDeclaration::crd_name()
}

/// Applies the CRD, and waits until the API server serves it. Repeats failed attempts until `within` has passed.
pub async fn install_crd(client: &Client, within: Duration) -> Result<InstalledCrd, InstallCrdError> {
    let started = Instant::now();
    let name = crd_name().to_owned();
    let crd =
        definition().map_err(|error| InstallCrdError::Invalid { name: name.clone(), reason: error.to_string() })?;
    // A later attempt finds the CRD that an earlier one wrote.
    let mut written = None;
    loop {
        let waited = started.elapsed();
        let reason = match attempt(client, &crd, &mut written).await {
            Ok(InstallAttempt::Succeeded(installed)) => return Ok(installed),
            Ok(InstallAttempt::Failed(reason)) => reason.to_owned(),
            Err(refused) if refused.is_forbidden() && waited >= RIGHTS_SETTLE.min(within) => {
                return Err(InstallCrdError::Forbidden { name, reason: refused.to_string() });
            }
            Err(refused) if matches!(refused.code(), Some(400 | 422)) => {
                return Err(InstallCrdError::Invalid { name, reason: refused.to_string() });
            }
            Err(refused) => refused.to_string(),
        };
        if waited >= within {
            return Err(InstallCrdError::Refused { name, within, reason });
        }
        sleep(INTERVAL).await;
    }
}

async fn attempt(
    client: &Client,
    crd: &Value,
    written: &mut Option<InstalledCrd>,
) -> Result<InstallAttempt, RequestError> {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", crd_name());
    let before = match api::send(client, Method::GET, &path).await {
        Ok(stored) => Some(stored),
        Err(refused) if refused.is_not_found() => None,
        Err(refused) => return Err(refused),
    };
    if let Some(version) = before.as_ref().and_then(newer_version) {
        return Ok(InstallAttempt::Succeeded(InstalledCrd::Newer(version)));
    }
    if before.as_ref().is_some_and(|stored| stored.pointer("/metadata/deletionTimestamp").is_some()) {
        return Ok(InstallAttempt::Failed("it is being deleted"));
    }
    let path = format!("{path}?fieldManager={FIELD_MANAGER}&force=true");
    let after = api::write(client, Method::PATCH, &path, APPLY, crd).await?;
    let installed = written.get_or_insert(match &before {
        None => InstalledCrd::Created,
        Some(before) if content(before) == content(&after) => InstalledCrd::Unchanged,
        Some(_) => InstalledCrd::Updated,
    });
    match api::send(client, Method::GET, &served_path()).await {
        Ok(found) if serves(&found) => Ok(InstallAttempt::Succeeded(installed.clone())),
        Ok(_) => Ok(InstallAttempt::Failed("the API server does not serve it yet")),
        Err(refused) if refused.is_not_found() => Ok(InstallAttempt::Failed("the API server does not serve it yet")),
        Err(refused) => Err(refused),
    }
}

/// Returns the fields that this program writes. The API server may write the status at any time.
fn content(crd: &Value) -> [Option<&Value>; 2] {
    ["/spec", "/metadata/annotations"].map(|field| crd.pointer(field))
}

/// Returns the CRD of this program, with its version.
fn definition() -> serde_json::Result<Value> {
    let mut crd = UnionDeclaration::crd();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    crd.metadata.annotations.get_or_insert_default().insert(WRITTEN_BY.to_owned(), version);
    serde_json::to_value(crd)
}

/// Returns the version that wrote the CRD if it is newer than this program.
fn newer_version(crd: &Value) -> Option<String> {
    let text = crd.pointer("/metadata/annotations")?.get(WRITTEN_BY)?.as_str()?;
    let own = Version::parse(env!("CARGO_PKG_VERSION")).ok()?;
    Version::parse(text).is_ok_and(|version| version > own).then(|| text.to_owned())
}

/// The document in which the API server lists the resources that it serves. Every authenticated user may read it.
fn served_path() -> String {
    let resource = UnionDeclaration::api_resource();
    format!("/apis/{}", resource.api_version)
}

fn serves(list: &Value) -> bool {
    let plural = UnionDeclaration::api_resource().plural;
    let resources = list.get("resources").and_then(Value::as_array);
    resources.is_some_and(|resources| resources.iter().any(|it| it.get("name").is_some_and(|name| *name == *plural)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_crd_of_a_newer_version_is_newer() {
        let written_by = |version: &str| json!({"metadata": {"annotations": {WRITTEN_BY: version}}});
        assert_eq!(newer_version(&written_by("999.0.0")).as_deref(), Some("999.0.0"));
        for version in [env!("CARGO_PKG_VERSION"), "0.0.1", "0.0.1-rc.1", "soon", ""] {
            assert_eq!(newer_version(&written_by(version)), None, "{version}");
        }
        assert_eq!(newer_version(&json!({"metadata": {}})), None, "kubectl or Helm wrote it");
        assert_eq!(newer_version(&definition().unwrap()), None);
    }

    #[test]
    fn it_is_served_when_the_list_of_resources_has_it() {
        assert_eq!(served_path(), "/apis/kube-unions.dev/v1alpha1");
        assert!(serves(&json!({"resources": [{"name": "others"}, {"name": "uniondeclarations"}]})));
        assert!(!serves(&json!({"resources": [{"name": "others"}]})));
    }
}
