//! `install-crd`: installs the CRD of `UnionDeclaration`, or upgrades it.
//!
//! Helm creates the CRDs of a chart and never changes them, so the chart runs this before an installation and an upgrade. An
//! annotation names the version of the program that wrote the CRD last. The CRD of a newer version stays as it is, because an
//! older schema prunes the newer fields of stored declarations.

use super::attempts::Attempts;
use super::serve;
use anyhow::{Context, bail};
use clap::Args;
use hyper::Method;
use kube::{Client, CustomResourceExt};
use kube_unions_api::{self as api, ObjectPath, RequestError, found};
use kube_unions_command::connection::ClusterArgs;
use kube_unions_command::{Verdict, output};
use kube_unions_core::declaration::UnionDeclaration;
use semver::Version;
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;

/// Annotation with the version of the program that wrote the CRD.
const WRITTEN_BY: &str = "kube-unions.dev/version";

const FIELD_MANAGER: &str = "kube-unions-install-crd";

const INTERVAL: Duration = Duration::from_millis(500);

/// Arguments of `install-crd`.
#[derive(Debug, Args)]
#[command(after_help = "\
Applies the CRD, and waits until the API server serves it. UnionDeclarations stay. The annotation kube-unions.dev/version names \
the version that wrote the CRD; the CRD of a newer version is left as it is. Helm never changes a CRD, so the chart runs this \
command before an installation and an upgrade.

Exit codes:
  0  the CRD is of this version or newer
  2  the installation failed; standard error has the reason

Example:
  kube-unions install-crd")]
pub struct InstallCrdArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Time to repeat failed attempts
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = serve::duration)]
    timeout: Duration,
}

/// Applies the CRD, and waits until the API server serves it. Repeats failed attempts until the timeout.
pub fn run(arguments: &InstallCrdArgs) -> anyhow::Result<Verdict> {
    arguments.cluster.run(async |client| {
        let (name, attempts) = (UnionDeclaration::crd_name(), Attempts::begin(arguments.timeout));
        let crd = definition().with_context(|| format!("cannot install the CRD {name}"))?;
        // A later attempt finds the CRD that an earlier one wrote.
        let mut written = None;
        loop {
            let reason = match attempt(&client, &crd, &mut written).await {
                Ok(InstallStep::Done(sentence)) => {
                    output::note(sentence);
                    return Ok(Verdict::Accepted);
                }
                Ok(InstallStep::Wait(reason)) => reason.to_owned(),
                Err(refused) if refused.is_forbidden() && attempts.know_all_rights() => bail!(
                    "cannot install the CRD {name}: {refused}; grant `get`, `patch` and `create` on the \
                     customresourcedefinition with this name"
                ),
                Err(refused) if matches!(refused.code(), Some(400 | 422)) => {
                    bail!("cannot install the CRD {name}: {refused}")
                }
                Err(refused) => refused.to_string(),
            };
            if attempts.are_over() {
                bail!("cannot install the CRD {name} within {:?}: {reason}", attempts.within);
            }
            sleep(INTERVAL).await;
        }
    })
}

/// The result of an attempt to install the CRD.
enum InstallStep {
    /// It is installed: a sentence for the user.
    Done(String),
    /// The reason why a later attempt may succeed.
    Wait(&'static str),
}

/// Applies the CRD once. `written` says how the first attempt that wrote it changed it.
async fn attempt(client: &Client, crd: &Value, written: &mut Option<String>) -> Result<InstallStep, RequestError> {
    let name = UnionDeclaration::crd_name();
    let path = ObjectPath::new("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", name);
    let before = path.read(client).await?;
    if let Some(version) = before.as_ref().and_then(newer_version) {
        return Ok(InstallStep::Done(format!("the CRD {name} is of the newer version {version} and stays as it is")));
    }
    if before.as_ref().is_some_and(|stored| stored.pointer("/metadata/deletionTimestamp").is_some()) {
        return Ok(InstallStep::Wait("it is being deleted"));
    }
    let after = path.apply(client, crd, FIELD_MANAGER, true).await?;
    let installed = written.get_or_insert_with(|| match &before {
        None => format!("created the CRD {name}"),
        Some(before) if content(before) == content(&after) => format!("the CRD {name} is up to date"),
        Some(_) => format!("updated the CRD {name}"),
    });
    let served = found(api::send(client, Method::GET, &served_path()).await)?.is_some_and(|list| serves(&list));
    Ok(if served {
        InstallStep::Done(installed.clone())
    } else {
        InstallStep::Wait("the API server does not serve it yet")
    })
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
