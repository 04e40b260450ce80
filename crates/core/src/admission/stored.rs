//! Judges a stored object without an `AdmissionReview`, for programs that list objects.
//!
//! The result is that of two [`review`](super::review())s: a create of the object, and an update that changes nothing.

use crate::catalog::CatalogEntry;
use crate::json::{TextReader, Unreadable};
use crate::meter::{Exhausted, Unmetered};
use crate::union::{
    Capped, Change, Judgement, LONGEST_TEXT, Objects, Part, Projection, Projector, Rules, Violation, judge,
};

/// The violations of a stored object, and the changes that its next write makes.
#[derive(Debug, Default)]
pub struct StoredObject {
    violations: Capped<Violation>,
    warnings: Capped<Violation>,
    observed: Capped<Violation>,
    changes: Vec<Change>,
    repaired: bool,
}

/// The text of an object cannot be judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoredObjectError {
    /// The text is longer than an offset can address.
    #[error("the object is longer than {LONGEST_TEXT} bytes")]
    TooLong,
    /// The text is not JSON.
    #[error("the object is not JSON: {0}")]
    Malformed(String),
    /// The text is JSON of another type.
    #[error("not a JSON object")]
    NotAnObject,
    /// The object has more unions than can be addressed.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

impl StoredObject {
    /// Judges an object of a kind, given as JSON text. If the status is a subresource, judges it as well.
    ///
    /// # Errors
    /// Returns an error if the text is not a JSON object or is too long.
    pub fn judge(entry: &CatalogEntry, text: &str) -> Result<Self, StoredObjectError> {
        if text.len() > LONGEST_TEXT {
            return Err(StoredObjectError::TooLong);
        }
        let mut stored = Self { repaired: true, ..Self::default() };
        for part in [Part::Main, Part::Status] {
            if entry.plan().has(part) {
                stored.add(entry, part, &project(entry, part, text)?)?;
            }
        }
        stored.repaired &= !stored.violations.is_empty();
        Ok(stored)
    }

    /// Returns the violations that deny a create of the object: the first
    /// [`MOST_VIOLATIONS`](crate::union::MOST_VIOLATIONS), and the number of the rest.
    pub fn violations(&self) -> &Capped<Violation> {
        &self.violations
    }

    /// Returns the violations whose declarations only warn, up to the same limit.
    pub fn warnings(&self) -> &Capped<Violation> {
        &self.warnings
    }

    /// Returns the violations that only the audit log tells of, up to the same limit.
    pub fn observed(&self) -> &Capped<Violation> {
        &self.observed
    }

    /// Returns the changes that any update of the object makes, in the order of paths, those of the status last.
    pub fn changes(&self) -> impl Iterator<Item = Change> {
        self.changes.iter().cloned()
    }

    /// Returns true if the object has violations and its next write normalises all of them away.
    pub fn is_repaired(&self) -> bool {
        self.repaired
    }

    /// Forgets the violations and the changes that do not fit.
    pub fn retain(&mut self, violation: impl Fn(&Violation) -> bool, change: impl Fn(&Change) -> bool) {
        for violations in [&mut self.violations, &mut self.warnings, &mut self.observed] {
            violations.retain(&violation);
        }
        self.changes.retain(change);
        self.repaired &= !self.violations.is_empty();
    }

    fn add(&mut self, entry: &CatalogEntry, part: Part, object: &Projection<'_>) -> Result<(), StoredObjectError> {
        let judge = |old, rules| {
            let objects = Objects { new: object.root(), old, manifests: None };
            judge(entry.plan(), part, objects, rules, &Unmetered)
        };
        let create = judge(None, Rules { normalize: false, validate: true, ratchet: false })?;
        let update = judge(object.root(), Rules { normalize: true, validate: false, ratchet: true })?;
        // A contradiction denies the update, so the update changes nothing.
        let changes = if update.violations.is_empty() { update.changes } else { Vec::new() };
        if !create.violations.is_empty() {
            let repaired = || -> Result<bool, StoredObjectError> {
                let strict = judge(object.root(), Rules { normalize: true, validate: true, ratchet: false })?;
                Ok(strict.violations.is_empty())
            };
            self.repaired &= !changes.is_empty() && repaired()?;
        }
        let Judgement { violations, let_through, observed, .. } = create;
        self.violations.append(violations, |violation| violation);
        self.warnings.append(let_through, |(violation, _)| violation);
        self.observed.append(observed, |violation| violation);
        self.changes.extend(changes);
        Ok(())
    }
}

/// Reads the unions of one part of an object.
fn project<'t>(entry: &CatalogEntry, part: Part, text: &'t str) -> Result<Projection<'t>, StoredObjectError> {
    let mut reader = TextReader::new(text, &Unmetered);
    let object = Projector::new(entry.plan(), part, &reader).only(&mut reader);
    let object = object.and_then(|object| reader.end().map(|()| object)).map_err(|error| match error {
        Unreadable::Exhausted(exhausted) => StoredObjectError::Exhausted(exhausted),
        Unreadable::Malformed(reason) => StoredObjectError::Malformed(reason.into()),
    })?;
    if object.is_object() { Ok(object) } else { Err(StoredObjectError::NotAnObject) }
}
