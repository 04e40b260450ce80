//! One object, judged by the code that the webhook runs.

use crate::cli::request::Request;
use kube_unions_core::admission::{self, Phase, Ratcheting, Review, ReviewError, ReviewOutcome};
use kube_unions_core::catalog::{Catalog, CatalogEntry};
use kube_unions_core::union::{Change, Part, Violation};

/// An object as it is stored, or stands in a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'o> {
    /// Empty where it is in none.
    pub(super) namespace: &'o str,
    pub(super) name: &'o str,
    /// JSON text.
    pub(super) text: &'o str,
}

/// What there is to say of an object.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// Why it would be rejected if it were created as it is.
    pub(super) violations: Vec<Violation>,
    /// What its declarations would only warn of.
    pub(super) warned: Vec<Violation>,
    /// What the next write of it would change beside what is written.
    pub(super) changes: Vec<Change>,
    /// Whether it is invalid, and would not be after the next write.
    pub(super) mended: bool,
}

/// Judges an object of a kind, and its status where that is written by itself.
pub(super) fn judge(catalog: &Catalog, entry: &CatalogEntry, object: Subject<'_>) -> Result<Judged, ReviewError> {
    let mut judged = Judged { mended: true, ..Judged::default() };
    for (part, subresource) in [(Part::Main, None), (Part::Status, Some("status"))] {
        if entry.plan().has(part) {
            judged.add(catalog, &request(entry, object, subresource))?;
        }
    }
    judged.mended &= !judged.violations.is_empty();
    Ok(judged)
}

impl Judged {
    fn add(&mut self, catalog: &Catalog, create: &Request<'_>) -> Result<(), ReviewError> {
        let ask = |phase: Phase, ratcheting: Ratcheting, request: &Request<'_>| -> Result<Review, ReviewError> {
            admission::review(catalog, phase, ratcheting, request.to_json().as_bytes())
        };
        let created = ask(Phase::Validate, Ratcheting::Disabled, create)?;
        // A write that leaves the unions as they are: what it changes, any write changes.
        let update = Request { old: Some(create.new), ..*create };
        let updated = ask(Phase::Mutate, Ratcheting::Enabled, &update)?;
        if created.outcome() == ReviewOutcome::Denied {
            let changes = updated.changes().len() > 0;
            self.mended &=
                changes && ask(Phase::Both, Ratcheting::Disabled, &update)?.outcome() != ReviewOutcome::Denied;
        }
        self.violations.extend_from_slice(created.violations().kept());
        self.warned.extend(created.let_through().kept().iter().map(|(violation, _)| violation.clone()));
        self.changes.extend(updated.changes());
        Ok(())
    }
}

fn request<'o>(entry: &'o CatalogEntry, object: Subject<'o>, subresource: Option<&'o str>) -> Request<'o> {
    let (gvk, Subject { namespace, name, text }) = (entry.gvk(), object);
    let (group, version, kind) = (&*gvk.group, &*gvk.version, &*gvk.kind);
    Request { group, version, kind, namespace, name, subresource, new: text, old: None }
}
