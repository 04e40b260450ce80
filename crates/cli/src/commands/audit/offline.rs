//! Audits the objects of files by the kinds that the same files describe.
//!
//! Objects are judged as admission sees them, with the defaults of their schema. All files are read before the first object is
//! judged: a CRD may be in the last of them. Objects are read once more then, one after the other.

use super::AuditArgs;
use super::auditor::{Auditor, ServerAnswer};
use super::report::AuditReport;
use crate::commands::{explain, preview};
use crate::input::builtin::{self, OfflineKinds, UnknownUnions};
use crate::input::kinds::{self, entry_of};
use crate::input::manifest::{self, Document, ManifestRole, Problem};
use crate::report::progress;
use crate::report::sarif::FilePlace;
use crate::report::{Verdict, output};
use anyhow::bail;
use indicatif::ProgressBar;
use kube_unions_api::ListedObject;
use kube_unions_command::signals::StopFlag;
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::FieldPath;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_manifests::counts::grouped;
use kube_unions_manifests::is_built_in_group;
use kube_unions_manifests::misspelt::KnownKinds;
use kube_unions_offline::{AddedUnions, UndecidedUnions};
use kube_unions_webhook::audit::kinds::warn_of_faults;
use serde_json::Value;
use std::collections::BTreeSet;

/// Audits every object of the files.
pub(super) fn run(arguments: &AuditArgs) -> anyhow::Result<Verdict> {
    let paths = [&*arguments.sources.from, &arguments.filename].concat();
    let mut files = manifest::index(&paths);
    let added =
        AddedUnions { published: arguments.sources.builtin_unions.into(), presets: arguments.presets.are_used() };
    let (kinds, named) = (files.kinds(), files.object_kinds());
    let mut offline = builtin::assemble(kinds, &named, added)?;
    let total = files.objects();
    offline.assembly.documents += total;
    let assembly = &offline.assembly;
    let problems: Vec<_> = files.problems.iter().chain(files.unread()).chain(&assembly.problems).cloned().collect();
    let duplicates: Vec<_> = files.duplicates().cloned().collect();
    if assembly.catalog.entries().is_empty() {
        // Objects of built-in kinds alone are no mistake.
        let is_mistake = named.iter().any(|kind| !is_built_in_group(&kind.group)) || named.is_empty();
        if is_mistake {
            manifest::fail_on(&problems)?;
        }
        match assembly.missing(&paths) {
            Some(missing) if is_mistake => bail!(missing),
            None if is_mistake => bail!(explain::NO_UNIONS),
            _ => {}
        }
    }
    let place = format!("with unions in {}", manifest::list(&paths));
    let kinds = kinds::asked::entries(assembly.catalog.entries(), &arguments.kinds, &place)?;
    if total == 0 && problems.is_empty() {
        bail!("no objects in {}: only what describes kinds", manifest::list(&paths));
    }
    assembly.without_effect().iter().for_each(output::hint);
    warn_of_faults(&assembly.catalog, "`kube-unions lint` names them");

    let report = AuditReport::open(arguments.output, kinds.iter().map(|entry| entry.gvk()), true);
    let mut auditor = Auditor::new(report, arguments.require);
    for problem in problems {
        auditor.problem(problem, None);
    }
    // From here on an interrupt must close the report. Before, it ends the process as usual.
    let stop = StopFlag::new()?;
    let total = total as u64;
    let progress = progress::bar(Some(total), "objects");
    let mut seen = BTreeSet::new();
    let (mut done, mut passed_over) = (0, 0);
    let mut interrupted = None;
    let (mut known, mut near_misses) = (KnownKinds::new(assembly.kinds()), Vec::new());
    let mut unknown = UnknownUnions::new(assembly);
    for document in files.documents(ManifestRole::Objects) {
        let document = match document {
            Ok(document) if !document.is_object() => continue,
            Ok(document) => document,
            Err(problem) => {
                auditor.problem(problem, Some(&progress));
                continue;
            }
        };
        if stop.is_asked() {
            interrupted = Some(format!("after {} of {} documents", grouped(done), grouped(total)));
            break;
        }
        done += 1;
        progress.inc(1);
        progress.set_message(document.file.display().to_string());
        // Without a name, it is a file of another sort: values, or the description of a chart.
        if let Some(problem) = Problem::of_untyped(&document).filter(|_| document.name.is_some()) {
            auditor.problem(problem, Some(&progress));
            continue;
        }
        let Some(entry) = entry_of(&assembly.catalog, &document) else {
            let is_asked = |meant: &GroupVersionKind| {
                let mut asked = kinds.iter().map(|kind| kind.gvk().group_kind());
                arguments.kinds.is_empty() || asked.any(|asked| asked == meant.group_kind())
            };
            if let Some(problem) = known.problem(&document, is_asked) {
                auditor.problem(problem, Some(&progress));
                continue;
            }
            passed_over += 1;
            near_misses.extend(known.warning(&document));
            unknown.add(&document);
            continue;
        };
        if kinds.iter().any(|kind| kind.gvk() == entry.gvk()) && is_within(arguments, entry, &document) {
            seen.insert(entry.gvk().group_kind());
            near_misses.extend(assembly.misspelt_fields(&document));
            match assembly.completed(&document) {
                Ok(text) => audit(&mut auditor, (&offline, entry), &document, &text, &progress)?,
                Err(error) => {
                    auditor.problem(format_args!("{}: {}: {error}", document.file.display(), document.title()), None);
                }
            }
        }
    }
    drop(progress);
    duplicates.iter().for_each(output::warn);
    near_misses.iter().for_each(output::warn);
    unknown.print();
    auditor.tally.kinds = seen.len() as u64;
    auditor.tally.passed_over = Some(passed_over);
    auditor.finish(interrupted)
}

/// Audits an object of a kind, whose text with defaults is given. A union with something left over has no findings.
fn audit(
    auditor: &mut Auditor,
    (offline, entry): (&OfflineKinds, &CatalogEntry),
    document: &Document,
    text: &str,
    progress: &ProgressBar,
) -> anyhow::Result<()> {
    let [namespace, name] = [&document.namespace, &document.name].map(|it| it.as_deref().unwrap_or_default());
    let Some(mut judged) = auditor.judge(entry, ListedObject { text, namespace, name }) else { return Ok(()) };
    let undecided = UndecidedUnions::of(entry, text, judged.violations());
    for left_over in &undecided.left_over {
        auditor.problem(preview::undecided(document, left_over), Some(progress));
    }
    let locate =
        |field: &FieldPath| Some(FilePlace { file: &document.file, position: document.position(&field.to_pointer()) });
    let object: Value = serde_json::from_str(text).unwrap_or_default();
    let mut refused = offline.refused_fields(entry.gvk(), None, &object);
    refused.retain(|field| !undecided.has_path(&field.path));
    let is_told = |field: &FieldPath| refused.iter().any(|it| it.path == *field);
    judged
        .retain(|violation| !undecided.has(violation) && !is_told(&violation.path), |field| !undecided.has_path(field));
    let completed = document.with_text(text.to_owned());
    let sentences = offline.sentences(&completed, judged.denied(), &refused);
    let sentences = sentences.map(|(path, sentence)| (path.clone(), sentence)).collect();
    auditor.add(&judged, locate, ServerAnswer { refused, sentences })?;
    auditor.report.flush_if_full(progress)
}

/// Returns true if an object is in the namespace that the user asks for. An object that names no namespace would be created there.
fn is_within(arguments: &AuditArgs, entry: &CatalogEntry, document: &Document) -> bool {
    let namespaced = entry.resource().is_none_or(|resource| resource.namespaced);
    match (&arguments.namespace, &document.namespace) {
        (Some(asked), Some(own)) if namespaced => asked == own,
        _ => true,
    }
}
