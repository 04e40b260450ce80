//! Audits the objects of a cluster by the unions that the webhook would know there.

use super::AuditArgs;
use super::auditor::{Auditor, ServerAnswer};
use super::report::AuditReport;
use crate::input::connection::block_on;
use crate::input::kinds;
use crate::input::learn::learn;
use crate::report::Verdict;
use crate::report::progress;
use anyhow::bail;
use indicatif::ProgressBar;
use kube_unions_api::{self as api, DiscoveredResource, LiveError, Page, Pages, find, no_resource};
use kube_unions_command::signals::{StopFlag, StopSignals};
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_manifests::counts::grouped;
use kube_unions_webhook::audit::finding::title;
use kube_unions_webhook::audit::kinds::{AuditedKind, is_same_resource, warn_of_faults};

/// Audits every stored object of the kinds that the user asks for.
pub(super) fn run(arguments: &AuditArgs) -> anyhow::Result<Verdict> {
    let stop = StopFlag::new()?;
    block_on(audit(arguments, &stop))
}

async fn audit(arguments: &AuditArgs, stop: &StopFlag) -> anyhow::Result<Verdict> {
    let mut signals = StopSignals::new()?;
    let prepare = async {
        let client = arguments.cluster.client().await?;
        let learnt = learn(&client, arguments.sources.builtin_unions).await?;
        let resources = api::resources(&client).await?;
        anyhow::Ok((client, learnt, resources))
    };
    let (client, learnt, resources) = tokio::select! {
        prepared = prepare => prepared?,
        _ = signals.next() => bail!("interrupted before any object was looked at"),
    };
    let kinds = chosen(&learnt.catalog, &resources, &arguments.kinds)?;
    warn_of_faults(
        &learnt.catalog,
        "`kube-unions lint` names them, and so do the conditions of `kubectl get uniondeclarations`",
    );

    let report = AuditReport::open(arguments.output, kinds.iter().map(|kind| kind.entry.gvk()), false);
    let mut auditor = Auditor::new(report, arguments.require);
    for (subject, reason) in &learnt.lacking {
        auditor.problem(format_args!("{subject}: {reason}"), None);
    }
    let namespace = match (&arguments.namespace, arguments.all_namespaces) {
        (Some(namespace), _) => Some(namespace.as_str()),
        (None, true) => None,
        (None, false) => Some(client.default_namespace()),
    };
    for (position, kind) in kinds.iter().enumerate() {
        let mut listing = KindListing { kind, done: 0, total: None, progress: None };
        let listed = match Pages::of(&client, kind.resource, namespace) {
            Ok(pages) => listing.audit(pages, &mut auditor, stop, &mut signals).await?,
            Err(error) => ListingEnd::Failed(error),
        };
        match listed {
            ListingEnd::All => auditor.tally.kinds += 1,
            ListingEnd::Interrupted => {
                auditor.tally.kinds += 1;
                let rest = kinds.get(position + 1..).unwrap_or_default();
                return auditor.finish(Some(listing.position(rest)));
            }
            // Kinds that only answer requests, for example SubjectAccessReview, have no stored objects.
            ListingEnd::Failed(error) if error.code() == Some(405) => {}
            ListingEnd::Failed(error) => {
                auditor.tally.kinds += u64::from(listing.done > 0);
                auditor.problem(kind.listing_problem(listing.done, &error), listing.progress.as_ref());
            }
        }
    }
    auditor.finish(None)
}

/// The result of listing a kind.
enum ListingEnd {
    All,
    Interrupted,
    Failed(LiveError),
}

/// The audit of the objects of one kind.
struct KindListing<'k> {
    kind: &'k AuditedKind<'k>,
    /// The number of objects that were audited.
    done: u64,
    /// The number of objects that the server estimates.
    total: Option<u64>,
    progress: Option<ProgressBar>,
}

impl KindListing<'_> {
    /// Audits all pages, or the pages before a signal.
    async fn audit(
        &mut self,
        mut pages: Pages,
        auditor: &mut Auditor,
        stop: &StopFlag,
        signals: &mut StopSignals,
    ) -> anyhow::Result<ListingEnd> {
        loop {
            let page = tokio::select! {
                biased;
                _ = signals.next() => return Ok(ListingEnd::Interrupted),
                page = pages.next() => page,
            };
            match page {
                Ok(Some(page)) if self.audit_page(&page, auditor, stop)? => {}
                Ok(Some(_)) => return Ok(ListingEnd::Interrupted),
                Ok(None) => return Ok(ListingEnd::All),
                Err(error) => return Ok(ListingEnd::Failed(error)),
            }
        }
    }

    /// Audits the objects of a page. Returns false after a signal.
    fn audit_page(&mut self, page: &Page, auditor: &mut Auditor, stop: &StopFlag) -> anyhow::Result<bool> {
        let objects = page.objects();
        self.total = page.remaining().map(|remaining| self.done + objects.len() as u64 + remaining);
        let total = self.total;
        let progress = self.progress.get_or_insert_with(|| {
            let progress = progress::bar(total, "objects");
            progress.set_message(title(self.kind.entry.gvk()));
            progress
        });
        if let Some(total) = total {
            progress.set_length(total);
        }
        for object in objects {
            if stop.is_asked() {
                auditor.report.flush(Some(progress))?;
                return Ok(false);
            }
            if let Some(judged) = auditor.judge(self.kind.entry, object) {
                auditor.add(&judged, |_| None, ServerAnswer::default())?;
            }
            auditor.report.flush_if_full(progress)?;
            self.done += 1;
            progress.inc(1);
        }
        auditor.report.flush(Some(progress))?;
        Ok(true)
    }

    /// Returns the position of an interrupt, and the kinds that it left out.
    fn position(&self, rest: &[AuditedKind<'_>]) -> String {
        let kind = title(self.kind.entry.gvk());
        let total = self.total.map_or_else(String::new, |total| format!(" of {}", grouped(total)));
        let rest: Vec<String> = rest.iter().map(|kind| title(kind.entry.gvk())).collect();
        let rest = if rest.is_empty() { String::new() } else { format!("; not looked at: {}", rest.join(", ")) };
        format!("at {kind}, after {}{total} objects{rest}", grouped(self.done))
    }
}

/// Returns the kinds that the user asks for, or all kinds with unions, each at one version.
fn chosen<'c>(
    catalog: &'c Catalog,
    all: &'c [DiscoveredResource],
    asked: &[String],
) -> anyhow::Result<Vec<AuditedKind<'c>>> {
    let mut kinds = if asked.is_empty() { AuditedKind::all(catalog, all) } else { Vec::new() };
    for asked in asked {
        let found = find(all, asked).ok_or_else(|| no_resource(all, asked))?;
        let versioned = found.is_versioned_in(asked);
        // The server lists the preferred version first.
        let mut versions =
            all.iter().filter(|it| is_same_resource(it, found) && (!versioned || it.version == found.version));
        let Some(kind) = versions.find_map(|resource| AuditedKind::of(catalog, resource)) else {
            bail!("{found} has no unions{}", others(catalog));
        };
        if !kinds.iter().any(|known| known.resource == kind.resource) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        bail!("no kind of the cluster has unions; `kube-unions lint` reports faults in declarations");
    }
    for kind in &kinds {
        if !asked.iter().any(|asked| kind.resource.is_versioned_in(asked)) {
            kind.note_version(all);
        }
    }
    Ok(kinds)
}

/// Lists the kinds with unions, for an error.
fn others(catalog: &Catalog) -> String {
    match catalog.entries() {
        [] => String::new(),
        entries => format!("; those that have: {}", kinds::asked::list(entries.iter().map(CatalogEntry::gvk))),
    }
}
