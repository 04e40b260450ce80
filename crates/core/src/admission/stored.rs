//! Judges a stored object without an `AdmissionReview`, for programs that list objects.
//!
//! The rules are those of [`review`](super::review()): a create of the object as it is, and an update that leaves it as it is.

use crate::catalog::CatalogEntry;
use crate::field_path::Printable;
use crate::meter::{Exhausted, Unmetered};
use crate::union::{
    Capped, Change, Changes, Judgement, LONGEST_TEXT, Part, Projection, ProjectionSeed, Rules, Violation, judge,
};
use serde::de::DeserializeSeed;

/// Longest message of the JSON reader that an error repeats, in bytes; the message may quote the object.
const LONGEST_REASON: usize = 200;

/// The faults of a stored object, and the changes that its next write makes.
#[derive(Debug, Default)]
pub struct StoredObject {
    violations: Capped<Violation>,
    warnings: Capped<Violation>,
    changes: Vec<Changes>,
    repaired: bool,
}

/// The text of a stored object cannot be judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoredObjectError {
    /// Longer than an offset can be.
    #[error("the object is longer than {LONGEST_TEXT} bytes")]
    TooLong,
    /// Not JSON.
    #[error("the object is not JSON: {0}")]
    Malformed(String),
    /// JSON of another type.
    #[error("not a JSON object")]
    NotAnObject,
    /// The object has more unions than can be addressed.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

impl StoredObject {
    /// Judges an object of a kind, given as JSON text: the object, and its status where that is a subresource.
    ///
    /// # Errors
    /// The text is not a JSON object, or longer than an offset can be.
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

    /// Violations that deny a create of the object as it is: the first
    /// [`MOST_VIOLATIONS`](crate::union::MOST_VIOLATIONS), and the number of the rest.
    pub fn violations(&self) -> &Capped<Violation> {
        &self.violations
    }

    /// Violations whose declarations only warn, with the same cap.
    pub fn warnings(&self) -> &Capped<Violation> {
        &self.warnings
    }

    /// Changes that any update of the object makes, in the order of paths, those of the status last.
    pub fn changes(&self) -> impl Iterator<Item = Change> {
        self.changes.iter().flat_map(Changes::iter)
    }

    /// True if the object has violations and its next write normalises all of them away.
    pub fn is_repaired(&self) -> bool {
        self.repaired
    }

    fn add(&mut self, entry: &CatalogEntry, part: Part, object: &Projection<'_>) -> Result<(), StoredObjectError> {
        let judge = |old, rules| judge(entry.plan(), part, object, old, rules, &Unmetered);
        let create = judge(None, Rules { normalize: false, validate: true, ratchet: false })?;
        let update = judge(Some(object), Rules { normalize: true, validate: false, ratchet: true })?;
        // A contradiction denies the update, so that it changes nothing.
        let changes = if update.violations.is_empty() { update.changes } else { Changes::default() };
        if !create.violations.is_empty() {
            let repaired = || -> Result<bool, StoredObjectError> {
                let strict = judge(Some(object), Rules { normalize: true, validate: true, ratchet: false })?;
                Ok(strict.violations.is_empty())
            };
            self.repaired &= !changes.is_empty() && repaired()?;
        }
        let Judgement { violations, let_through, .. } = create;
        self.violations.append(violations, |violation| violation);
        self.warnings.append(let_through, |(violation, _)| violation);
        self.changes.push(changes);
        Ok(())
    }
}

/// Reads the unions of one part of an object.
fn project<'t>(entry: &CatalogEntry, part: Part, text: &'t str) -> Result<Projection<'t>, StoredObjectError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let seed = ProjectionSeed::new(entry.plan(), part, text, &Unmetered);
    let projection = seed.deserialize(&mut deserializer);
    let object = projection.and_then(|object| deserializer.end().map(|()| object)).map_err(|error| {
        StoredObjectError::Malformed(Printable::new(&error.to_string(), LONGEST_REASON).to_string())
    })?;
    if object.is_object() { Ok(object) } else { Err(StoredObjectError::NotAnObject) }
}
