//! Gathers what a schema lacks for several unions of one pod template, so that each template is told of it once.

use super::fault::Flaw;
use crate::schema::{Declared, Origin, OriginEntry, Place};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Notes about pod templates.
#[derive(Debug, Default)]
pub(super) struct TemplateNotes(BTreeMap<TemplateNoteKey, TemplateNote>);

/// A declaration, the position of a pod template in it, and the list without keys if the note is about one.
type TemplateNoteKey = (Arc<str>, usize, Option<String>);

/// The same note of one or several unions of a pod template.
#[derive(Debug)]
struct TemplateNote {
    /// The place that has the places of all the unions in it.
    place: Place,
    /// The first union.
    origin: Origin,
    /// The note of the first union.
    flaw: Flaw,
    count: usize,
}

impl TemplateNotes {
    /// Keeps the note of a union of a pod template: about the list without keys around it, or about a discriminator without
    /// an enum. Returns the note of any other union.
    pub(super) fn keep(
        &mut self,
        place: impl FnOnce() -> Place,
        declared: &Declared,
        list: Option<String>,
        flaw: Flaw,
    ) -> Option<Flaw> {
        let Some(origin) = &declared.origin else { return Some(flaw) };
        let Origin { declaration, entry: OriginEntry::PodTemplate(position, _) } = origin else { return Some(flaw) };
        let place = place();
        let known = self.0.entry((Arc::clone(declaration), *position, list));
        let new = || TemplateNote { place: place.clone(), origin: origin.clone(), flaw, count: 0 };
        let known = known.or_insert_with(new);
        known.place = known.place.shared_with(&place);
        known.count = known.count.saturating_add(1);
        None
    }

    /// Returns the kept notes, one for each pod template and reason.
    pub(super) fn into_flaws(self) -> impl Iterator<Item = (Place, Origin, Flaw)> {
        self.0.into_iter().map(|((_, _, list), TemplateNote { place, origin, flaw, count })| {
            let message = match list {
                _ if count < 2 => flaw.message,
                Some(list) => format!(
                    "{count} unions stand inside the list `{list}`, whose items have no keys: their members can be \
                     rejected but not cleared"
                ),
                None => {
                    format!("{count} discriminators have no enum, so that the API server itself accepts every value")
                }
            };
            (place, origin, Flaw { message, ..flaw })
        })
    }
}
