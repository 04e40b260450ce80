//! Where unions are declared, and how declarations come onto the schema they are for.
//!
//! The API server drops `x-kubernetes-unions` from the CRDs it stores, so a declaration is looked for where it can survive.
//! For one place the first [`Source`] that has it wins; two that contradict each other are reported. What wins is grafted
//! onto the schema, so that from there on a declaration has one form and one home.
//!
//! May not know plans: whether a declaration makes sense is asked when the schema is compiled.

mod annotation;
mod last_applied;
mod wire;

pub use crate::schema::{Declared, Place, Severity, Source};
pub use annotation::ANNOTATION;
pub use last_applied::LAST_APPLIED;

use crate::field_path::push_token;
use crate::schema::{EXTENSION, Schema};
use std::collections::BTreeMap;
use std::fmt;

/// A CRD as far as unions need it: its schemas, with every declaration grafted on.
#[derive(Debug)]
pub struct Definition {
    name: String,
    group: Box<str>,
    kind: Box<str>,
    versions: Vec<Version>,
    broken: Vec<Source>,
    faults: Vec<Fault>,
}

/// One version of a CRD.
#[derive(Debug)]
pub struct Version {
    /// `v1`, `v1beta1`, …
    pub name: Box<str>,
    /// Its position in `spec.versions`.
    pub position: usize,
    /// Whether `status` is changed through a subresource of its own.
    pub status_subresource: bool,
    /// The schema, declarations included.
    pub schema: Schema,
}

/// One thing wrong with one declaration. Displays as one line that stands alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The name of the CRD.
    pub definition: String,
    /// The version of the CRD, where the fault belongs to one.
    pub version: Option<String>,
    /// The place in the schema as people write it, `spec.filters[*].type`; empty for the whole.
    pub path: String,
    /// How bad it is.
    pub severity: Severity,
    /// Where the declaration was found, if it was found at all.
    pub source: Option<Source>,
    /// What is at fault in the CRD's document, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// Why a document is not a CRD whose unions could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// Not JSON, or not shaped like a CRD.
    #[error("not a readable CustomResourceDefinition: `{path}`: {message}")]
    Malformed {
        /// Where in the document.
        path: String,
        /// What is wrong there.
        message: String,
    },
    /// Another kind, or a version of the API that is no longer served.
    #[error(
        "not a CustomResourceDefinition of apiextensions.k8s.io/v1: it says apiVersion `{api_version}`, kind `{kind}`"
    )]
    NotADefinition {
        /// What it says.
        api_version: String,
        /// What it says.
        kind: String,
    },
    /// No version has a schema.
    #[error("`{0}` has no schema: give `spec.versions[].schema.openAPIV3Schema`")]
    NoSchema(String),
}

impl Definition {
    /// Reads a whole CRD from its JSON text.
    pub fn from_json(text: &str) -> Result<Self, DefinitionError> {
        let document: wire::Document<'_> = wire::read(text, "")?;
        if (&*document.api_version, &*document.kind) != ("apiextensions.k8s.io/v1", "CustomResourceDefinition") {
            let (api_version, kind) = (document.api_version, document.kind);
            return Err(DefinitionError::NotADefinition { api_version, kind });
        }
        Self::from_parts(&document.metadata.name, &document.metadata.annotations, document.spec.get())
    }

    /// Reads a CRD from its name, its annotations and the JSON text of its `spec`.
    pub fn from_parts(name: &str, annotations: &BTreeMap<String, String>, spec: &str) -> Result<Self, DefinitionError> {
        let spec: wire::Spec = wire::read(spec, "spec.")?;
        let mut definition = Self {
            name: name.to_owned(),
            group: spec.group,
            kind: spec.names.kind,
            versions: spec.versions.into_iter().enumerate().filter_map(wire::Version::into_version).collect(),
            broken: Vec::new(),
            faults: Vec::new(),
        };
        if definition.versions.is_empty() {
            return Err(DefinitionError::NoSchema(definition.name));
        }
        if let Some(text) = annotations.get(ANNOTATION) {
            annotation::graft(&mut definition, text);
        }
        if let Some(text) = annotations.get(LAST_APPLIED) {
            last_applied::graft(&mut definition, text);
        }
        Ok(definition)
    }

    /// The name of the CRD, `widgets.example.com`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The group of its kind.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The kind it defines.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its versions that have a schema.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// Sources that could not be read at all, so that what they would declare is not known.
    pub fn broken_sources(&self) -> &[Source] {
        &self.broken
    }

    /// What was wrong with declarations before any schema was asked.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Takes the definition apart, for whoever changes the schemas further.
    pub fn into_versions(self) -> Vec<Version> {
        self.versions
    }

    /// Where a declaration stands in the CRD's document, as a JSON Pointer.
    pub fn pointer(version: Option<&Version>, place: &Place, source: Source) -> String {
        let annotation = |name: &str| {
            let mut pointer = String::from("/metadata/annotations/");
            push_token(&mut pointer, name);
            pointer
        };
        match (source, version) {
            (Source::Schema, Some(version)) => {
                let schema = format!("/spec/versions/{}/schema/openAPIV3Schema", version.position);
                format!("{schema}{}/{EXTENSION}", place.to_pointer())
            }
            (Source::Schema, None) => "/spec/versions".to_owned(),
            (Source::Annotation, _) => annotation(ANNOTATION),
            (Source::LastApplied, _) => annotation(LAST_APPLIED),
        }
    }

    /// Puts a declaration on a version's schema, unless a better source has the place already.
    fn graft(&mut self, version: usize, place: &Place, declared: Declared) {
        let Some(target) = self.versions.get_mut(version) else { return };
        let source = declared.source;
        let problem = match target.schema.at_mut(place) {
            None => Some((
                Severity::Error,
                "the schema has no such place; correct the path or remove the declaration".to_owned(),
            )),
            Some(node) => match &node.unions {
                None => {
                    node.unions = Some(declared);
                    None
                }
                Some(better) if better.value == declared.value => None,
                Some(better) => Some((
                    Severity::Error,
                    format!("contradicts the {}, which is in force; make them the same or remove one", better.source),
                )),
            },
        };
        if let Some((severity, message)) = problem {
            self.report(Some(version), place, source, severity, message);
        }
    }

    fn report(&mut self, version: Option<usize>, place: &Place, source: Source, severity: Severity, message: String) {
        let version = version.and_then(|position| self.versions.get(position));
        self.faults.push(Fault {
            definition: self.name.clone(),
            version: version.map(|version| version.name.to_string()),
            path: place.to_string(),
            severity,
            source: Some(source),
            pointer: Self::pointer(version, place, source),
            message,
        });
    }

    fn version_named(&self, name: &str) -> Option<usize> {
        self.versions.iter().position(|version| &*version.name == name)
    }
}

impl Version {
    /// What is declared at a place, whichever source it came from.
    pub fn declared_at(&self, place: &Place) -> Option<&Declared> {
        self.schema.at(place)?.unions.as_ref()
    }

    /// Everything that is declared, by place.
    pub fn declarations(&self) -> BTreeMap<Place, Declared> {
        let mut declarations = BTreeMap::new();
        self.schema.walk(&mut |place, node| {
            if let Some(declared) = &node.unions {
                declarations.insert(place.clone(), declared.clone());
            }
        });
        declarations
    }

    /// Has a place declare this instead of what it does, if the schema has the place.
    pub fn put(&mut self, place: &Place, declared: Option<Declared>) {
        if let Some(node) = self.schema.at_mut(place) {
            node.unions = declared;
        }
    }
}

impl Fault {
    /// A CRD that can't be read: `error` says why.
    pub fn unreadable(definition: &str, error: &DefinitionError) -> Self {
        Self {
            definition: definition.to_owned(),
            version: None,
            path: String::new(),
            severity: Severity::Error,
            source: None,
            pointer: String::new(),
            message: error.to_string(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.definition)?;
        if let Some(version) = &self.version {
            write!(f, " {version}")?;
        }
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        f.write_str(": ")?;
        if let Some(source) = self.source.filter(|source| *source != Source::Schema) {
            write!(f, "{source}: ")?;
        }
        f.write_str(&self.message)
    }
}
