//! Grafts declarations onto the schemas of a kind, and reports those that do not fit.

use super::{
    ANNOTATION, Declaration, Declared, Definition, DefinitionVersion, Fault, LAST_APPLIED, Origin, Place, Severity,
    Source,
};
use crate::field_path::push_token;
use crate::schema::EXTENSION;

/// Most declarations that are kept at one place. An object has at most 255 unions.
const MOST_AT_ONE_PLACE: usize = 255;

impl Definition {
    /// Grafts a `UnionDeclaration` if the kind is its target. Returns true if it is.
    pub fn declare(&mut self, declaration: &Declaration) -> bool {
        if !declaration.targets(self.group(), self.kind()) {
            return false;
        }
        if self.is_exempt() {
            let message = "objects of this kind are never sent to the webhook, which must not block the repair of a cluster; \
                           only the command line applies the declaration";
            self.faults.push(Fault {
                declaration: Some(declaration.name().to_owned()),
                pointer: "/spec/target".to_owned(),
                ..self.fault(None, &Place::root(), Source::Declaration, Severity::Warning, message.to_owned())
            });
        }
        for name in declaration.versions() {
            if self.version_named(name).is_none() {
                let message = format!("the kind has no version `{name}`; correct the name or remove it");
                self.faults.push(Fault {
                    declaration: Some(declaration.name().to_owned()),
                    pointer: "/spec/target/versions".to_owned(),
                    ..self.fault(None, &Place::root(), Source::Declaration, Severity::Error, message)
                });
            }
        }
        for position in 0..self.versions.len() {
            let wanted = |version: &DefinitionVersion| {
                declaration.versions().is_empty() || declaration.versions().iter().any(|name| **name == *version.name)
            };
            if self.versions.get(position).is_some_and(wanted) {
                for (place, declared) in declaration.unions() {
                    self.graft(position, place, declared.clone());
                }
            }
        }
        true
    }

    /// Grafts a declaration onto the schema of a version, unless a better source has declared the place. If two sources
    /// contradict each other, the better one wins and the other one is reported.
    pub(super) fn graft(&mut self, version: usize, place: &Place, declared: Declared) {
        let Some(target) = self.versions.get_mut(version) else { return };
        let Some(node) = target.schema.at_mut(place) else {
            let message = "the schema has no such place; correct the path or remove the declaration";
            return self.report_declared(version, place, &declared, message.to_owned());
        };
        if let Some(better) = node.unions.iter().find(|known| known.source < declared.source) {
            if !better.agrees_with(&declared) {
                let message =
                    format!("contradicts the {}, which is in force; make them the same or remove one", better.source);
                self.report_declared(version, place, &declared, message);
            }
            return;
        }
        if node.unions.iter().any(|known| known.source == declared.source && known.agrees_with(&declared)) {
            return;
        }
        if node.unions.len() >= MOST_AT_ONE_PLACE {
            let message = format!("more than {MOST_AT_ONE_PLACE} declarations have this place; remove some");
            return self.report_declared(version, place, &declared, message);
        }
        let mut overruled: Vec<_> = node.unions.extract_if(.., |known| known.source > declared.source).collect();
        overruled.retain(|worse| !worse.agrees_with(&declared));
        let message =
            format!("contradicts the {}, which is in force; make them the same or remove one", declared.source);
        node.unions.push(declared);
        for worse in overruled {
            self.report_declared(version, place, &worse, message.clone());
        }
    }

    fn report_declared(&mut self, version: usize, place: &Place, declared: &Declared, message: String) {
        let fault = self.fault(self.versions.get(version), place, declared.source, Severity::Error, message);
        self.faults.push(fault.with_origin(declared.origin.as_ref()));
    }

    pub(super) fn report(
        &mut self,
        version: Option<usize>,
        place: &Place,
        source: Source,
        severity: Severity,
        message: String,
    ) {
        let version = version.and_then(|position| self.versions.get(position));
        self.faults.push(self.fault(version, place, source, severity, message));
    }

    fn fault(
        &self,
        version: Option<&DefinitionVersion>,
        place: &Place,
        source: Source,
        severity: Severity,
        message: String,
    ) -> Fault {
        fault(&self.name, version, place, source, severity, message)
    }
}

impl DefinitionVersion {
    /// Returns a fault of a declaration at a place of this version.
    pub fn fault(
        &self,
        definition: &str,
        place: &Place,
        source: Source,
        origin: Option<&Origin>,
        severity: Severity,
        message: String,
    ) -> Fault {
        fault(definition, Some(self), place, source, severity, message).with_origin(origin)
    }
}

fn fault(
    definition: &str,
    version: Option<&DefinitionVersion>,
    place: &Place,
    source: Source,
    severity: Severity,
    message: String,
) -> Fault {
    Fault {
        version: version.map(|version| version.name.to_string()),
        path: place.to_string(),
        severity,
        source: Some(source),
        pointer: pointer(version, place, source),
        ..Fault::unreadable(definition, message)
    }
}

/// Returns the JSON Pointer of a declaration in the document of its CRD or `UnionDeclaration`.
fn pointer(version: Option<&DefinitionVersion>, place: &Place, source: Source) -> String {
    let annotation = |name: &str| {
        let mut pointer = String::from("/metadata/annotations/");
        push_token(&mut pointer, name);
        pointer
    };
    match (source, version) {
        (Source::Schema | Source::Published, Some(version)) => {
            let schema = format!("/spec/versions/{}/schema/openAPIV3Schema", version.position);
            format!("{schema}{}/{EXTENSION}", place.to_pointer())
        }
        (Source::Schema | Source::Published, None) => "/spec/versions".to_owned(),
        (Source::Declaration, _) => "/spec".to_owned(),
        (Source::Annotation, _) => annotation(ANNOTATION),
        (Source::LastApplied, _) => annotation(LAST_APPLIED),
    }
}
