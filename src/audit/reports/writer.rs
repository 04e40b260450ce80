//! Brings the reports of a cluster in line with findings. A write that is refused leaves the others to be done.

use super::findings::{ByNamespace, NamespaceFindings, Unaudited};
use super::object::{MANAGED_BY, NAME, is_ours, replacement, report};
use kube::Client;
use kube_unions_api::{DiscoveredResource, LiveError, MANAGER, ObjectPath, Page, Pages};
use kube_unions_core::causes::with_causes;
use serde_json::Value;

/// The numbers of reports that were written, deleted, and left as they were.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ReportWrites {
    pub(super) written: u64,
    pub(super) deleted: u64,
    pub(super) unchanged: u64,
}

/// The outcome of bringing a report in line.
enum Settled {
    Written,
    Deleted,
    Unchanged,
    /// The report is somebody else's, and there is nothing to report.
    Foreign,
}

/// Why a report is not as it should be.
#[derive(Debug, thiserror::Error)]
enum ReportWriteError {
    #[error("cannot be {0}: {1}")]
    Refused(&'static str, String),
    #[error("left alone, because its label {} is not `{}`: delete or rename it", MANAGED_BY.0, MANAGED_BY.1)]
    NotOurs,
    #[error("cannot be read: {0}")]
    Malformed(serde_json::Error),
}

impl ReportWrites {
    /// Brings all reports of a kind in line with findings. `problem` is called with each report that cannot be.
    pub(super) async fn settle(
        &mut self,
        client: &Client,
        kind: &DiscoveredResource,
        mut findings: ByNamespace,
        unaudited: &Unaudited,
        mut problem: impl FnMut(String),
    ) {
        let mut pages = match Pages::of(client, kind, None) {
            Ok(pages) => pages.named(NAME),
            Err(error) => return problem(unlisted(kind, &error)),
        };
        loop {
            let page: Page = match pages.next().await {
                Ok(Some(page)) => page,
                Ok(None) => break,
                // Which of the other reports exist is unknown.
                Err(error) => return problem(unlisted(kind, &error)),
            };
            for object in page.objects().filter(|object| object.name == NAME) {
                let found = findings.remove(object.namespace).unwrap_or_default();
                let settled = settled(client, kind, object.namespace, Some(object.text), found, unaudited).await;
                self.count(kind, object.namespace, settled, &mut problem);
            }
        }
        for (namespace, found) in findings {
            let settled = settled(client, kind, &namespace, None, found, unaudited).await;
            self.count(kind, &namespace, settled, &mut problem);
        }
    }

    fn count(
        &mut self,
        kind: &DiscoveredResource,
        namespace: &str,
        settled: Result<Settled, ReportWriteError>,
        problem: &mut impl FnMut(String),
    ) {
        match settled {
            Ok(Settled::Written) => self.written += 1,
            Ok(Settled::Deleted) => self.deleted += 1,
            Ok(Settled::Unchanged) => self.unchanged += 1,
            Ok(Settled::Foreign) => {}
            Err(error) => {
                let slash = if namespace.is_empty() { "" } else { "/" };
                problem(format!("{} `{namespace}{slash}{NAME}`: {error}", kind.kind));
            }
        }
    }
}

/// Brings one report in line with findings.
async fn settled(
    client: &Client,
    kind: &DiscoveredResource,
    namespace: &str,
    stored: Option<&str>,
    mut findings: NamespaceFindings,
    unaudited: &Unaudited,
) -> Result<Settled, ReportWriteError> {
    let path = ObjectPath::of(kind, namespace, NAME).map_err(refused("written"))?;
    let Some(stored) = stored else {
        // By name and without force: a report that somebody has just made there is left alone.
        let created = path.apply(client, &report(kind, namespace, &findings), MANAGER, false).await;
        created.map_err(refused("written"))?;
        return Ok(Settled::Written);
    };
    let stored: Value = serde_json::from_str(stored).map_err(ReportWriteError::Malformed)?;
    if !is_ours(&stored) {
        return if findings.is_empty() { Ok(Settled::Foreign) } else { Err(ReportWriteError::NotOurs) };
    }
    findings.keep_results_of(&stored, unaudited);
    if findings.is_empty() {
        let version = stored.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        path.delete(client, version).await.map_err(refused("deleted"))?;
        return Ok(Settled::Deleted);
    }
    match replacement(&stored, report(kind, namespace, &findings)) {
        None => Ok(Settled::Unchanged),
        Some(replacement) => {
            path.replace(client, &replacement).await.map_err(refused("written"))?;
            Ok(Settled::Written)
        }
    }
}

fn refused<E: Into<LiveError>>(done: &'static str) -> impl Fn(E) -> ReportWriteError {
    move |error| ReportWriteError::Refused(done, with_causes(&error.into()))
}

fn unlisted(kind: &DiscoveredResource, error: &LiveError) -> String {
    format!("{kind}: cannot be listed, so none is written: {}", with_causes(error))
}
