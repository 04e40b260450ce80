//! The objects of a cluster, judged by the unions that the webhook would know there.

use super::AuditArgs;
use super::auditor::{Auditor, tell_of_faults};
use super::finding::title;
use super::judge::Subject;
use super::report::Report;
use super::stop::Stop;
use super::tally::{count, grouped};
use crate::causes::with_causes;
use crate::cli::Verdict;
use crate::cli::output::{self, Paint};
use crate::cli::progress::Progress;
use crate::cluster::live::{LiveError, Page, Resource, find};
use anyhow::{Context, anyhow, bail};
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::declaration::is_exempt;
use std::pin::pin;
use tokio::signal::unix::{SignalKind, signal};

/// A kind to audit, at one version.
struct Kind<'c> {
    entry: &'c CatalogEntry,
    resource: &'c Resource,
}

/// Judges every stored object of the kinds that are asked for.
pub(super) fn run(arguments: &AuditArgs) -> anyhow::Result<Verdict> {
    let stop = Stop::new()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(audit(arguments, &stop))
}

async fn audit(arguments: &AuditArgs, stop: &Stop) -> anyhow::Result<Verdict> {
    let mut signalled = pin!(signalled()?);
    let live = arguments.cluster.connect().await?;
    let early = || anyhow!("interrupted before any object was looked at");
    let learnt = {
        let progress = Progress::new(None, "definitions read");
        tokio::select! {
            learnt = live.learn(arguments.builtin_unions.into(), || progress.add(1)) => {
                learnt.context("the cluster's unions cannot be learnt")?
            }
            () = &mut signalled => return Err(early()),
        }
    };
    let resources = tokio::select! {
        resources = live.resources() => resources?,
        () = &mut signalled => return Err(early()),
    };
    let kinds = chosen(&learnt.catalog, &resources, &arguments.kinds)?;
    tell_of_faults(
        &learnt.catalog,
        "`kube-unions lint` names them, and so do the conditions of `kubectl get uniondeclarations`",
    );

    let report = Report::open(arguments.output, kinds.iter().map(|kind| kind.entry.gvk()), false)?;
    let mut auditor = Auditor::new(&learnt.catalog, report);
    for (what, why) in &learnt.lacking {
        auditor.trouble(format_args!("{what}: {why}"), None);
    }
    let namespace = match (&arguments.namespace, arguments.all_namespaces) {
        (Some(namespace), _) => Some(namespace.as_str()),
        (None, true) => None,
        (None, false) => Some(live.default_namespace()),
    };
    let mut interrupted = None;
    for (position, kind) in kinds.iter().enumerate() {
        let pages = live.list(kind.resource, namespace);
        auditor.tally.kinds += 1;
        let mut listing = Listing { kind, done: 0, of: None, progress: None };
        let result = match pages {
            Ok(mut pages) => loop {
                let page = tokio::select! {
                    biased;
                    () = &mut signalled => break Ok(Seen::Interrupted),
                    page = pages.next() => page,
                };
                match page {
                    Ok(Some(page)) if !listing.audit(&page, &mut auditor, stop)? => break Ok(Seen::Interrupted),
                    Ok(Some(_)) => {}
                    Ok(None) => break Ok(Seen::All),
                    Err(error) => break Err(error),
                }
            },
            Err(error) => Err(error),
        };
        match result {
            Ok(Seen::All) => {}
            Ok(Seen::Interrupted) => {
                interrupted = Some(listing.how_far(kinds.get(position + 1..).unwrap_or_default()));
                break;
            }
            // Such as reviews of rights, which are answered and not kept.
            Err(LiveError::Refused(refusal)) if refusal.code() == 405 => auditor.tally.kinds -= 1,
            Err(error) => {
                let after =
                    if listing.done > 0 { format!(" after {}", count(listing.done, "object")) } else { String::new() };
                let what = format!("{}: cannot be listed{after}: {}", title(kind.entry.gvk()), with_causes(&error));
                auditor.trouble(what, listing.progress.as_ref());
            }
        }
    }
    auditor.finish(interrupted)
}

/// Ends with the first signal.
fn signalled() -> anyhow::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Whether a list was seen to its end.
enum Seen {
    All,
    Interrupted,
}

/// The objects of a kind, while they are audited.
struct Listing<'k> {
    kind: &'k Kind<'k>,
    done: u64,
    /// As far as the server tells.
    of: Option<u64>,
    progress: Option<Progress>,
}

impl Listing<'_> {
    /// Audits the objects of a page; `false` if it was interrupted.
    fn audit(&mut self, page: &Page, auditor: &mut Auditor<'_>, stop: &Stop) -> anyhow::Result<bool> {
        let objects = page.objects();
        self.of = page.remaining().map(|remaining| self.done + objects.len() as u64 + remaining);
        let of = self.of;
        let progress = self.progress.get_or_insert_with(|| {
            let progress = Progress::new(of, "objects");
            progress.at(title(self.kind.entry.gvk()));
            progress
        });
        if let Some(of) = self.of {
            progress.expect(of);
        }
        for object in objects {
            if stop.is_asked() {
                auditor.flush(progress)?;
                return Ok(false);
            }
            let subject = Subject { namespace: object.namespace, name: object.name, text: object.text };
            auditor.object(self.kind.entry, subject, |_| None)?;
            auditor.drain(progress)?;
            self.done += 1;
            progress.add(1);
        }
        auditor.flush(progress)?;
        Ok(true)
    }

    /// What an interrupt left out.
    fn how_far(&self, rest: &[Kind<'_>]) -> String {
        let kind = title(self.kind.entry.gvk());
        let of = self.of.map_or_else(String::new, |of| format!(" of {}", grouped(of)));
        let rest: Vec<String> = rest.iter().map(|kind| title(kind.entry.gvk())).collect();
        let rest = if rest.is_empty() { String::new() } else { format!("; not looked at: {}", rest.join(", ")) };
        format!("at {kind}, after {}{of} objects{rest}", grouped(self.done))
    }
}

/// The kinds that are asked for, or all with unions, each at one version.
fn chosen<'c>(catalog: &'c Catalog, all: &'c [Resource], asked: &[String]) -> anyhow::Result<Vec<Kind<'c>>> {
    let mut kinds: Vec<Kind<'c>> = Vec::new();
    if asked.is_empty() {
        for resource in all.iter().filter(|it| !is_exempt(&it.group, Some(&it.plural), &it.kind)) {
            let known = kinds.iter().any(|kind| is_same(kind.resource, resource));
            kinds.extend(Kind::of(catalog, resource).filter(|_| !known));
        }
    }
    for asked in asked {
        let found = find(all, asked).ok_or_else(|| LiveError::NoResource(asked.as_str().into()))?;
        let versioned = found.is_versioned_in(asked);
        // In the server's order: the preferred version first.
        let mut versions = all.iter().filter(|it| is_same(it, found) && (!versioned || it.version == found.version));
        let Some(kind) = versions.find_map(|resource| Kind::of(catalog, resource)) else {
            bail!("{found} has no unions{}", others(catalog));
        };
        if !kinds.iter().any(|known| known.resource == kind.resource) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        bail!("no kind of the cluster has unions; `kube-unions lint` says what is wrong with declarations");
    }
    for Kind { entry, resource } in &kinds {
        let preferred = all.iter().find(|it| is_same(it, resource));
        let chosen = asked.iter().any(|asked| resource.is_versioned_in(asked));
        if let Some(preferred) = preferred.filter(|it| it.version != resource.version && !chosen) {
            let note = Paint::of(&std::io::stderr()).faint("Note:");
            let (title, version) = (title(entry.gvk()), &preferred.version);
            output::note(format_args!(
                "{note} {title} is audited, since {version}, which the server prefers, has no unions"
            ));
        }
    }
    Ok(kinds)
}

impl<'c> Kind<'c> {
    fn of(catalog: &'c Catalog, resource: &'c Resource) -> Option<Self> {
        let entry = catalog.lookup(&resource.group, &resource.version, &resource.kind)?;
        // A kind may be sent to more resources than the one that it is stored as.
        let stored = entry.resource().is_none_or(|stored| stored.plural == resource.plural);
        stored.then_some(Self { entry, resource })
    }
}

/// Whether they are versions of one resource.
fn is_same(one: &Resource, other: &Resource) -> bool {
    (&one.group, &one.plural) == (&other.group, &other.plural)
}

fn others(catalog: &Catalog) -> String {
    let titles: Vec<String> = catalog.entries().iter().map(|entry| title(entry.gvk())).collect();
    if titles.is_empty() { String::new() } else { format!("; those that have: {}", titles.join(", ")) }
}
