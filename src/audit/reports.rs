//! Writes what an audit finds into the cluster: a report for each namespace, and one for objects without a namespace.
//!
//! [`api`] chooses the API of reports, [`findings`] collects what is found within bounds, [`object`] makes a report and compares it
//! with the stored one, and `writer` has the requests.

pub mod api;
pub mod findings;
pub mod object;
mod writer;

use super::judge::JudgedObject;
use super::kinds::AuditedKind;
use super::tally::Tally;
use api::ReportApi;
use findings::{CollectedFindings, Unaudited};
use kube::Client;
use kube_unions_api::{LiveError, Pages};
use kube_unions_command::output;
use kube_unions_manifests::counts::count;
use std::collections::BTreeMap;
use std::fmt::Display;
use writer::ReportWrites;

/// An audit whose findings become reports.
pub struct ReportRun<'c> {
    client: &'c Client,
    findings: CollectedFindings,
    unaudited: Unaudited,
    tally: Tally,
    problems: u64,
}

/// The end of a [`ReportRun`].
#[derive(Debug)]
pub struct ReportOutcome {
    tally: Tally,
    writes: ReportWrites,
    /// Problems that kept something from being audited or reported. Each was printed when it occurred.
    pub problems: u64,
}

impl<'c> ReportRun<'c> {
    /// `lacking`: objects that could not be read and may declare unions, with the reason.
    pub fn new(client: &'c Client, lacking: &BTreeMap<String, String>) -> Self {
        let findings = CollectedFindings::default();
        let unaudited = Unaudited::new(!lacking.is_empty());
        let mut run = Self { client, findings, unaudited, tally: Tally::default(), problems: 0 };
        for (subject, reason) in lacking {
            run.unaudited_problem(format!("{subject}: {reason}"));
        }
        run
    }

    /// Audits every object of every kind, and then writes the reports.
    pub async fn write(mut self, kinds: &[AuditedKind<'_>], api: &ReportApi<'_>) -> ReportOutcome {
        for kind in kinds {
            self.audit(kind).await;
        }
        let Self { client, findings, unaudited, tally, mut problems } = self;
        let mut writes = ReportWrites::default();
        let (cluster, namespaces) = findings.take();
        for (target, findings) in [(&api.of_namespaces, namespaces), (&api.of_cluster, cluster)] {
            match target {
                Some(target) => {
                    writes.settle(client, target, findings, &unaudited, |line| problem(&mut problems, line)).await;
                }
                None if findings.is_empty() => {}
                None => problem(&mut problems, api.not_served(findings.len())),
            }
        }
        ReportOutcome { tally, writes, problems }
    }

    async fn audit(&mut self, kind: &AuditedKind<'_>) {
        let mut objects = 0;
        match self.audit_pages(kind, &mut objects).await {
            Ok(()) => {
                self.tally.kinds += 1;
                self.unaudited.was_audited(kind.entry.gvk());
            }
            // Kinds that only answer requests, for example SubjectAccessReview, have no stored objects.
            Err(error) if error.code() == Some(405) => {}
            Err(error) => {
                self.tally.kinds += u64::from(objects > 0);
                self.unaudited.was_not_audited(kind.entry.gvk());
                self.unaudited_problem(kind.listing_problem(objects, &error));
            }
        }
    }

    async fn audit_pages(&mut self, kind: &AuditedKind<'_>, objects: &mut u64) -> Result<(), LiveError> {
        let mut pages = Pages::of(self.client, kind.resource, None)?;
        while let Some(page) = pages.next().await? {
            for object in page.objects() {
                *objects += 1;
                self.tally.objects += 1;
                let namespace = object.namespace;
                match JudgedObject::judge(kind.entry, object) {
                    Ok(judged) => {
                        judged.count(&mut self.tally);
                        judged.findings().iter().for_each(|finding| self.findings.add(finding));
                    }
                    Err(line) => {
                        self.findings.add_problem(namespace, &line);
                        problem(&mut self.problems, line);
                    }
                }
            }
        }
        Ok(())
    }

    /// Prints a problem that keeps a kind from being audited, and adds it to the report of the cluster.
    fn unaudited_problem(&mut self, line: String) {
        self.findings.add_problem("", &line);
        problem(&mut self.problems, line);
    }
}

impl ReportOutcome {
    /// Returns the summary of the audit and of its reports.
    pub fn sentence(&self) -> String {
        let ReportWrites { written, deleted, unchanged } = self.writes;
        let is_nothing = self.tally.objects == 0 && self.problems == 0;
        let audited = if is_nothing { self.tally.nothing() } else { self.tally.sentence() };
        let reports = count(written, "report");
        format!("{audited}; {reports} written, {deleted} deleted, {unchanged} unchanged")
    }
}

/// Prints and counts a problem.
fn problem(problems: &mut u64, line: impl Display) {
    *problems += 1;
    output::error(line);
}

#[cfg(test)]
fn kind_of_reports(group: &str, version: &str, kind: &str) -> kube_unions_api::DiscoveredResource {
    kube_unions_api::DiscoveredResource {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()).into(),
        singular: kind.to_lowercase().into(),
        short_names: Vec::new(),
        namespaced: !kind.starts_with("Cluster"),
    }
}
