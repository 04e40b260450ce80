//! The objects of files, judged by the kinds that the same files describe.

use super::AuditArgs;
use super::auditor::{Auditor, tell_of_faults};
use super::finding::{Place, title};
use super::judge::Subject;
use super::report::Report;
use super::stop::Stop;
use super::tally::grouped;
use crate::cli::kinds;
use crate::cli::manifest::{self, Document};
use crate::cli::progress::Progress;
use crate::cli::{Verdict, explain};
use anyhow::bail;
use kube_unions_core::catalog::{Catalog, CatalogEntry, KindNames};
use kube_unions_core::names::GroupVersionKind;
use std::collections::BTreeSet;

/// Judges every object of the files.
pub(super) fn run(arguments: &AuditArgs) -> anyhow::Result<Verdict> {
    let manifests = manifest::files(&arguments.from);
    let documents = manifests.files.iter().flat_map(manifest::ManifestFile::documents);
    let (kinds, objects): (Vec<Document>, Vec<Document>) =
        documents.partition(|it| it.is_definition() || it.is_declaration() || it.is_openapi());
    let assembly = kinds::assemble(kinds, arguments.builtin_unions);
    let problems = || manifests.problems.iter().chain(&assembly.problems);
    if assembly.catalog.entries().is_empty() {
        manifest::fail_on(&problems().cloned().collect::<Vec<_>>())?;
        match assembly.lack(&arguments.from) {
            Some(lack) => bail!(lack),
            None => bail!("{}", explain::nothing_to_explain(&assembly.catalog, None)),
        }
    }
    let kinds = chosen(&assembly.catalog, arguments)?;
    if objects.is_empty() && problems().next().is_none() {
        bail!("no objects in {}: only what describes kinds", manifest::list(&arguments.from));
    }
    tell_of_faults(&assembly.catalog, "`kube-unions lint` names them");

    let report = Report::open(arguments.output, kinds.iter().map(|entry| entry.gvk()), true)?;
    let mut auditor = Auditor::new(&assembly.catalog, report);
    for problem in problems() {
        auditor.trouble(problem, None);
    }
    // Not before: while files are read nothing is printed, and a signal may end that as it ends any process.
    let stop = Stop::new()?;
    let total = objects.len() as u64;
    let progress = Progress::new(Some(total), "objects");
    let mut seen = BTreeSet::new();
    let (mut done, mut passed_over) = (0, 0);
    let mut interrupted = None;
    for document in &objects {
        if stop.is_asked() {
            interrupted = Some(format!("after {} of {} documents", grouped(done), grouped(total)));
            break;
        }
        done += 1;
        progress.add(1);
        progress.at(document.file.display().to_string());
        match entry_of(&assembly.catalog, document) {
            None => passed_over += 1,
            Some(entry) if kinds.iter().any(|kind| kind.gvk() == entry.gvk()) => {
                if is_within(arguments, entry, document) {
                    seen.insert((&entry.gvk().group, &entry.gvk().kind));
                    auditor.object(entry, subject(document), |field| {
                        Some(Place { file: &document.file, position: document.position(&field.to_pointer()) })
                    })?;
                    auditor.drain(&progress)?;
                }
            }
            Some(_) => {}
        }
    }
    drop(progress);
    auditor.tally.kinds = seen.len() as u64;
    auditor.tally.passed_over = Some(passed_over);
    auditor.finish(interrupted)
}

/// The kinds that are asked for, each in all of its versions unless one is named.
fn chosen<'c>(catalog: &'c Catalog, arguments: &AuditArgs) -> anyhow::Result<Vec<&'c CatalogEntry>> {
    let entries = catalog.entries();
    if arguments.kinds.is_empty() {
        return Ok(entries.iter().collect());
    }
    let names: Vec<KindNames<'_>> = entries.iter().map(KindNames::of).collect();
    let mut wanted: Vec<&GroupVersionKind> = Vec::new();
    for asked in &arguments.kinds {
        let Some(found) = KindNames::find(&names, asked).and_then(|position| entries.get(position)) else {
            let known: Vec<String> = entries.iter().map(|entry| title(entry.gvk())).collect();
            bail!(
                "no kind `{asked}` with unions in {}; there are: {}",
                manifest::list(&arguments.from),
                known.join(", ")
            );
        };
        let versioned = KindNames::of(found).is_versioned_in(asked);
        let same = |entry: &&CatalogEntry| {
            let (gvk, found) = (entry.gvk(), found.gvk());
            (&gvk.group, &gvk.kind) == (&found.group, &found.kind) && (!versioned || gvk.version == found.version)
        };
        wanted.extend(entries.iter().filter(same).map(CatalogEntry::gvk));
    }
    Ok(entries.iter().filter(|entry| wanted.contains(&entry.gvk())).collect())
}

fn entry_of<'c>(catalog: &'c Catalog, document: &Document) -> Option<&'c CatalogEntry> {
    let (group, version) = document.group_version();
    catalog.lookup(group, version, document.kind.as_deref()?)
}

/// Whether an object is in the namespace that is asked for. Where it names none it would be put there.
fn is_within(arguments: &AuditArgs, entry: &CatalogEntry, document: &Document) -> bool {
    let namespaced = entry.resource().is_none_or(|resource| resource.namespaced);
    match (&arguments.namespace, &document.namespace) {
        (Some(asked), Some(own)) if namespaced => asked == own,
        _ => true,
    }
}

fn subject(document: &Document) -> Subject<'_> {
    Subject {
        namespace: document.namespace.as_deref().unwrap_or_default(),
        name: document.name.as_deref().unwrap_or_default(),
        text: &document.text,
    }
}
