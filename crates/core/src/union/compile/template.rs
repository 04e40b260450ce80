//! Gathers what a schema lacks for several unions of one pod template, so that each template is told of it once.

use super::{PlaceFault, PlaceFaultKind};
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
    /// The note of the first union. Its place has the places of the others in it.
    fault: PlaceFault,
    count: usize,
}

impl TemplateNotes {
    /// Keeps a note if it is about a union of a pod template. Returns every other fault.
    pub(super) fn keep(
        &mut self,
        place: impl FnOnce() -> Place,
        declared: &Declared,
        kind: PlaceFaultKind,
    ) -> Option<PlaceFaultKind> {
        let Some(origin) = &declared.origin else { return Some(kind) };
        let Origin { declaration, entry: OriginEntry::PodTemplate(position, _) } = origin else { return Some(kind) };
        let list = if let PlaceFaultKind::InsideKeylessList(list) = &kind {
            Some(list.clone())
        } else if matches!(kind, PlaceFaultKind::DiscriminatorWithoutEnum(_)) {
            None
        } else {
            return Some(kind);
        };
        let place = place();
        let known = self.0.entry((Arc::clone(declaration), *position, list)).or_insert_with(|| {
            let (place, source, origin) = (place.clone(), declared.source, Some(origin.clone()));
            TemplateNote { fault: PlaceFault { place, source, origin, kind }, count: 0 }
        });
        known.fault.place = known.fault.place.shared_with(&place);
        known.count = known.count.saturating_add(1);
        None
    }

    /// Returns the kept notes, one for each pod template and reason.
    pub(super) fn into_faults(self) -> impl Iterator<Item = PlaceFault> {
        self.0.into_iter().map(|((_, _, list), TemplateNote { fault, count })| match list {
            _ if count < 2 => fault,
            Some(list) => PlaceFault { kind: PlaceFaultKind::SeveralInsideKeylessList { list, count }, ..fault },
            None => PlaceFault { kind: PlaceFaultKind::DiscriminatorsWithoutEnum(count), ..fault },
        })
    }
}
