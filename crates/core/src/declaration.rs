//! Where unions are declared, and how declarations come onto the schema they are for.
//!
//! The API server drops `x-kubernetes-unions` from the CRDs it stores, so a declaration is looked for where it can survive.
//! For one place the first [`Source`] that has it wins; two that contradict each other are reported. What wins is grafted
//! onto the schema, so that from there on a declaration has one form and one home.
//!
//! May not know plans: whether a declaration makes sense is asked when the schema is compiled.

mod acceptance;
mod annotation;
mod custom_resource;
mod exempt;
mod fault;
mod last_applied;
mod wire;

pub use crate::schema::{Action, Declared, OpenApi, Origin, Place, Severity, Source};
pub use acceptance::{Acceptance, ClaimedKind, mentions_unions};
pub use annotation::{ANNOTATION, ANNOTATIONS_LIMIT, AnnotationContent};
pub use custom_resource::{
    Declaration, DeclarationError, DeclaredMember, DeclaredUnion, Target, UnionDeclarationSpec, ValidationAction,
};
#[cfg(feature = "kube")]
pub use custom_resource::{UnionDeclaration, UnionDeclarationStatus};
pub use exempt::{BuiltinGroups, is_exempt};
pub use fault::Fault;
pub use last_applied::LAST_APPLIED;

use crate::field_path::push_token;
use crate::names::{GroupKind, GroupVersionKind};
use crate::schema::{EXTENSION, OpenApiError, Schema};
use std::collections::{BTreeMap, HashMap};

/// Most declarations that are kept at one place. An object has at most 255 unions.
const MOST_AT_ONE_PLACE: usize = 255;

/// A kind as far as unions need it: the schemas of its versions, with every declaration grafted on. It comes from a CRD or,
/// for a built-in type, from OpenAPI documents.
#[derive(Debug)]
pub struct Definition {
    name: String,
    kind: GroupKind,
    resource: Option<Resource>,
    versions: Vec<DefinitionVersion>,
    /// The positions of versions, by name; of two of one name the first.
    positions: HashMap<Box<str>, usize>,
    faults: Vec<Fault>,
}

/// The resource through which objects of a kind are written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Resource {
    /// Its name in paths and rules: `deployments`.
    pub plural: Box<str>,
    /// For one object; empty where that is not known.
    pub singular: Box<str>,
    /// Other names, as far as they are known.
    pub short_names: Vec<String>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether a CRD defines it.
    pub custom: bool,
}

/// One version of a kind.
#[derive(Debug)]
pub struct DefinitionVersion {
    /// `v1`, `v1beta1`, …
    pub name: Box<str>,
    /// Its position in `spec.versions`.
    pub position: usize,
    /// True if the API server serves it. Nothing is in force of a version that it does not serve.
    pub served: bool,
    /// Whether `status` is changed through a subresource of its own.
    pub status_subresource: bool,
    /// The schema, declarations included.
    pub schema: Schema,
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
    /// An OpenAPI document with something wrong in it.
    #[error(transparent)]
    OpenApi(#[from] OpenApiError),
    /// No document describes the kind.
    #[error("no OpenAPI document describes the kind `{0}`")]
    NotDescribed(String),
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

    /// Reads a CRD from its name, its annotations and the JSON text of its `spec`, by the names that the `spec` asks for.
    pub fn from_parts(name: &str, annotations: &BTreeMap<String, String>, spec: &str) -> Result<Self, DefinitionError> {
        Self::read(name, annotations, spec, None)
    }

    /// The same, by the names of a claim: those that the API server has accepted.
    pub fn with_accepted_names(
        claim: ClaimedKind,
        name: &str,
        annotations: &BTreeMap<String, String>,
        spec: &str,
    ) -> Result<Self, DefinitionError> {
        Self::read(name, annotations, spec, Some(claim))
    }

    fn read(
        name: &str,
        annotations: &BTreeMap<String, String>,
        spec: &str,
        claim: Option<ClaimedKind>,
    ) -> Result<Self, DefinitionError> {
        let spec: wire::Spec = wire::read(spec, "spec.")?;
        let (kind, resource) = if let Some(ClaimedKind { kind, resource }) = claim {
            (kind, Some(resource))
        } else {
            let namespaced = spec.scope.as_deref() != Some("Cluster");
            let wire::Names { kind, plural, singular, short } = spec.names;
            let resource = plural.map(|plural| Resource {
                plural,
                singular: singular.unwrap_or_default(),
                short_names: short.unwrap_or_default(),
                namespaced,
                custom: true,
            });
            (GroupKind { group: spec.group, kind }, resource)
        };
        let versions = spec.versions.into_iter().enumerate().filter_map(wire::Version::into_version).collect();
        let mut definition = Self::of_versions(name.to_owned(), kind, resource, versions);
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

    fn of_versions(
        name: String,
        kind: GroupKind,
        resource: Option<Resource>,
        versions: Vec<DefinitionVersion>,
    ) -> Self {
        let mut positions = HashMap::new();
        for (position, version) in versions.iter().enumerate() {
            positions.entry(version.name.clone()).or_insert(position);
        }
        Self { name, kind, resource, versions, positions, faults: Vec::new() }
    }

    /// Reads a built-in type from every document that describes it, one version each. What the documents themselves declare
    /// is dropped unless `published` says to take it.
    pub fn from_openapi<'d>(
        documents: impl IntoIterator<Item = &'d OpenApi>,
        group: &str,
        kind: &str,
        published: bool,
    ) -> Result<Self, DefinitionError> {
        let name = GroupKind::new(group, kind);
        let mut versions: Vec<DefinitionVersion> = Vec::new();
        let mut resource = None;
        for document in documents {
            let described: Vec<&GroupVersionKind> =
                document.kinds().filter(|known| (&*known.group, &*known.kind) == (group, kind)).collect();
            for described in described {
                let known = versions.iter().any(|version| version.name == described.version);
                let Some(mut schema) = document.schema(described)?.filter(|_| !known) else { continue };
                if !published {
                    schema.forget_unions();
                }
                if resource.is_none() {
                    resource = document.resource(described).map(|(plural, namespaced)| Resource {
                        plural: plural.into(),
                        singular: Box::default(),
                        short_names: Vec::new(),
                        namespaced,
                        custom: false,
                    });
                }
                versions.push(DefinitionVersion {
                    name: described.version.clone(),
                    position: versions.len(),
                    served: true,
                    status_subresource: document.has_status_subresource(described),
                    schema,
                });
            }
        }
        if versions.is_empty() {
            return Err(DefinitionError::NotDescribed(name.to_string()));
        }
        Ok(Self::of_versions(name.to_string(), name, resource, versions))
    }

    /// Grafts a `UnionDeclaration` on, if the kind is its target. Tells whether it is.
    pub fn declare(&mut self, declaration: &Declaration) -> bool {
        if !declaration.targets(self.group(), self.kind()) {
            return false;
        }
        if self.is_exempt() {
            let message = "its objects are never sent to the webhook, or it could keep the cluster from being repaired; \
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

    /// The name of the CRD, `widgets.example.com`; of a built-in type kind and group, `Deployment.apps`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The group of its kind.
    pub fn group(&self) -> &str {
        &self.kind.group
    }

    /// The kind it defines.
    pub fn kind(&self) -> &str {
        &self.kind.kind
    }

    /// Returns the kind with its group.
    pub fn group_kind(&self) -> &GroupKind {
        &self.kind
    }

    /// Through which resource it is written, as far as its CRD or its documents tell.
    pub fn resource(&self) -> Option<&Resource> {
        self.resource.as_ref()
    }

    /// Its versions that have a schema.
    pub fn versions(&self) -> &[DefinitionVersion] {
        &self.versions
    }

    /// True if its objects are never sent to the webhook.
    pub fn is_exempt(&self) -> bool {
        is_exempt(self.group(), self.resource.as_ref().map(|resource| &*resource.plural), self.kind())
    }

    /// What was wrong with declarations before any schema was asked.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Takes the versions out, for whoever changes their schemas further.
    pub fn take_versions(&mut self) -> Vec<DefinitionVersion> {
        std::mem::take(&mut self.versions)
    }

    /// Where a declaration stands in the CRD's document, as a JSON Pointer.
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

    /// Puts a declaration on a version's schema, unless a better source has the place already. Of two sources that
    /// contradict each other the better one has it, and the other is reported.
    fn graft(&mut self, version: usize, place: &Place, declared: Declared) {
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
            let message = format!("more than {MOST_AT_ONE_PLACE} declarations are about this place; remove some");
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

    fn report(&mut self, version: Option<usize>, place: &Place, source: Source, severity: Severity, message: String) {
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
        Fault {
            definition: self.name.clone(),
            declaration: None,
            version: version.map(|version| version.name.to_string()),
            path: place.to_string(),
            severity,
            source: Some(source),
            pointer: Self::pointer(version, place, source),
            message,
        }
    }

    fn version_named(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }
}

impl DefinitionVersion {
    /// What is declared at a place, whichever sources it came from.
    pub fn declared_at(&self, place: &Place) -> &[Declared] {
        self.schema.at(place).map_or(&[], |node| &node.unions)
    }

    /// Everything that is declared, by place.
    pub fn declarations(&self) -> BTreeMap<Place, Vec<Declared>> {
        let mut declarations = BTreeMap::new();
        self.schema.walk(&mut |place, node| {
            if !node.unions.is_empty() {
                declarations.insert(place.clone(), node.unions.clone());
            }
        });
        declarations
    }

    /// Has a place declare this instead of what it does, if the schema has the place.
    pub fn put(&mut self, place: &Place, declared: Vec<Declared>) {
        if let Some(node) = self.schema.at_mut(place) {
            node.unions = declared;
        }
    }

    /// A fault of what is declared at a place.
    pub fn fault(
        &self,
        definition: &str,
        place: &Place,
        source: Source,
        origin: Option<&Origin>,
        severity: Severity,
        message: String,
    ) -> Fault {
        let fault = Fault {
            definition: definition.to_owned(),
            declaration: None,
            version: Some(self.name.to_string()),
            path: place.to_string(),
            severity,
            source: Some(source),
            pointer: Definition::pointer(Some(self), place, source),
            message,
        };
        fault.with_origin(origin)
    }
}
