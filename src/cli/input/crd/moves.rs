//! Moves declarations between the schema of a CRD and its annotation.

use super::EditableCrd;
use crate::cli::input::manifest::Edit;
use kube_unions_core::declaration::AnnotationContent;
use std::collections::BTreeMap;

/// The edits of a CRD, and the reason if they leave it without a valid annotation.
pub(in crate::cli) type Moves = (Vec<Edit>, Option<String>);

impl EditableCrd {
    /// Moves every extension of the schemas into the annotation and adds `marked`. An extension replaces what the annotation
    /// has at its place, and `marked` replaces both.
    pub(in crate::cli) fn move_to_annotation(&self, marked: &AnnotationContent) -> anyhow::Result<Moves> {
        let before = match &self.annotation {
            Ok(before) => before,
            Err(unreadable) => return Ok((Vec::new(), Some(unreadable.clone()))),
        };
        let (mut after, mut edits, mut problem) = (before.clone(), Vec::new(), None);
        for extension in &self.extensions {
            let places = after.entry(extension.version.clone()).or_default();
            places.insert(extension.pointer.clone(), extension.value.clone());
            edits.extend(self.remove_extension(&extension.version, &extension.pointer));
        }
        for (version, places) in marked.iter().filter(|(_, places)| !places.is_empty()) {
            after.entry(version.clone()).or_default().extend(places.clone());
        }
        if after != *before {
            problem = self.annotation_overflow(&after)?;
            edits.push(self.set_annotation(&after)?);
        }
        Ok((edits, problem))
    }

    /// Puts `marked` into the schemas and removes it from the annotation.
    pub(in crate::cli) fn move_to_schema(&self, marked: &AnnotationContent) -> anyhow::Result<Moves> {
        let before = match &self.annotation {
            Ok(before) => before,
            Err(unreadable) => return Ok((Vec::new(), Some(unreadable.clone()))),
        };
        let (mut after, mut edits) = (before.clone(), Vec::new());
        for (version, places) in marked {
            for (pointer, value) in places {
                let known = self.extensions.iter().find(|it| it.version == *version && it.pointer == *pointer);
                if known.is_none_or(|known| known.value != *value) {
                    edits.extend(self.set_extension(version, pointer, value.clone()));
                }
                if let Some(places) = after.get_mut(version) {
                    places.remove(pointer);
                }
            }
        }
        after.retain(|version, places| !places.is_empty() || before.get(version).is_some_and(BTreeMap::is_empty));
        if after != *before {
            edits.push(self.set_annotation(&after)?);
        }
        Ok((edits, None))
    }
}
