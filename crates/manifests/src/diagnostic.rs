//! A fault of a declaration or a problem of a file, with its place.

use crate::assembly::Assembly;
use crate::crd;
use crate::document::Document;
use crate::file::Problem;
use crate::refused_schema::{SchemaFault, faults as schema_faults};
use kube_unions_core::declaration::{ANNOTATION, FaultKind, FaultOfVersions, Severity, Source};
use kube_unions_core::field_path::pointer;
use kube_unions_core::near::nearest;
use kube_unions_core::schema::{EXTENSION, Place, PlaceStep};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Most faults of the schemas of one CRD that are told. The rest is counted.
const MOST_REFUSALS: usize = 64;

/// A fault or problem, with its place in a file. Serializes as `lint` prints it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Diagnostic {
    /// The file.
    pub file: PathBuf,
    /// Counted from 1, as is the column. `None` for the whole file.
    pub line: Option<usize>,
    /// Counted from 1.
    pub column: Option<usize>,
    /// The name of the CRD, or kind and group of a built-in type.
    pub definition: Option<String>,
    /// The name of the faulty `UnionDeclaration`, or of a document whose kind is misspelt.
    pub declaration: Option<String>,
    /// The versions that have the fault. Empty if it belongs to no version.
    pub versions: Vec<String>,
    /// The path in the schema, empty for the whole schema.
    pub path: String,
    /// Its severity.
    pub severity: Severity,
    /// The origin of the faulty declaration: schema, annotation or `UnionDeclaration`.
    pub source: Option<String>,
    /// The problem, and its remedy.
    pub message: String,
    /// Its rule.
    #[serde(serialize_with = "name_of_rule")]
    pub rule: FaultKind,
}

impl Diagnostic {
    fn of_fault(group: &FaultOfVersions<'_>, file: &Path, position: Option<(usize, usize)>) -> Self {
        let FaultOfVersions { fault, versions } = group;
        let problem = Problem { file: file.to_owned(), position, message: fault.message.clone() };
        Self {
            definition: Some(fault.definition.clone()),
            declaration: fault.declaration.clone(),
            versions: versions.iter().map(|&version| version.to_owned()).collect(),
            path: fault.path.clone(),
            source: fault.source.map(|source| source.to_string()),
            ..Self::of_input(problem, fault.kind)
        }
    }

    /// Describes a file or document that could not be read.
    pub fn of_problem(problem: &Problem) -> Self {
        Self::of_input(problem.clone(), FaultKind::UnreadableInput)
    }

    /// Describes a document of a misspelt kind.
    pub fn of_misspelt_kind(document: &Document, message: String) -> Self {
        let problem = Problem::of_document(document, "", message);
        Self { declaration: document.name.clone(), ..Self::of_input(problem, FaultKind::MisspeltKind) }
    }

    /// Describes an annotation on a document that a CRD is made of, if there is one.
    pub fn of_misplaced(document: &Document) -> Option<Self> {
        let made = document.made.as_ref().filter(|made| made.misplaced.is_some() && !made.of_claim)?;
        let message = format!(
            "the annotation `{ANNOTATION}` does not reach the CRD from here; it belongs to `{}`, where `kube-unions annotate` moves it",
            made.maker.annotations()
        );
        let source = document.with_origin(None);
        let pointer = pointer(["metadata", "annotations", ANNOTATION]);
        let problem = Problem::of_document(&source, &pointer, message);
        Some(Self { definition: document.name.clone(), ..Self::of_input(problem, FaultKind::MisplacedAnnotation) })
    }

    /// Describes a problem of an input.
    pub fn of_input(problem: Problem, rule: FaultKind) -> Self {
        Self {
            file: problem.file,
            line: problem.position.map(|(line, _)| line),
            column: problem.position.map(|(_, column)| column),
            definition: None,
            declaration: None,
            versions: Vec::new(),
            path: String::new(),
            severity: rule.severity(),
            source: None,
            message: problem.message,
            rule,
        }
    }

    /// Describes the keywords and annotations of a CRD that resemble those that declare unions.
    pub fn of_misspellings(document: &Document) -> Vec<Self> {
        // Parsing a large CRD takes longer than this search.
        if !document.text.contains("x-") && !document.text.contains("annotations") {
            return Vec::new();
        }
        let Ok(crd) = serde_json::from_str::<Value>(&document.text) else { return Vec::new() };
        let of_name = |pointer: &str, source: Source, message| Self {
            definition: document.name.clone(),
            source: Some(source.to_string()),
            ..Self::of_input(Problem::of_document(document, pointer, message), FaultKind::MisspeltName)
        };
        let mut found = Vec::new();
        let annotations = crd.pointer("/metadata/annotations").and_then(Value::as_object);
        let names = annotations.into_iter().flat_map(Map::keys);
        for name in names.filter(|name| nearest(name, [ANNOTATION]).is_some()) {
            let message = format!("the annotation `{name}` has no effect; did you mean `{ANNOTATION}`?");
            found.push(of_name(&pointer(["metadata", "annotations", name]), Source::Annotation, message));
        }
        for (index, version, schema) in crd::schemas(&crd) {
            for (mut tokens, name, _) in crd::keywords(schema, |name| nearest(name, [EXTENSION]).is_some()) {
                let path = place(&tokens).to_string();
                tokens.push(name.to_owned());
                let at = format!("/spec/versions/{index}/schema/openAPIV3Schema{}", pointer(&tokens));
                let message = format!("the keyword `{name}` has no effect; did you mean `{EXTENSION}`?");
                let versions = vec![version.to_owned()];
                found.push(Self { versions, path, ..of_name(&at, Source::Schema, message) });
            }
        }
        found
    }

    /// Describes what an API server refuses in the schemas of a CRD, and what somebody else finds in a schema. Versions with the same fault
    /// have one diagnostic.
    pub fn of_refused_schemas(
        document: &Document,
        crd: &Value,
        others: impl Fn(&Value) -> Vec<SchemaFault>,
    ) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let mut more = 0_usize;
        for (index, version, schema) in crd::schemas(crd) {
            let has_status = crd.pointer(&format!("/spec/versions/{index}/subresources/status")).is_some();
            for fault in schema_faults(schema, has_status).into_iter().chain(others(schema)) {
                let path = place(fault.tokens.get(..fault.depth).unwrap_or_default()).to_string();
                let known = all.iter_mut().find(|it| (&it.path, &it.message) == (&path, &fault.message));
                if let Some(known) = known {
                    if known.versions.iter().all(|known| known != version) {
                        known.versions.push(version.to_owned());
                        continue;
                    }
                } else if all.len() >= MOST_REFUSALS {
                    more = more.saturating_add(1);
                    continue;
                }
                let at = format!("/spec/versions/{index}/schema/openAPIV3Schema{}", fault.pointer());
                let problem = Problem::of_document(document, &at, fault.message);
                all.push(Self {
                    definition: document.name.clone(),
                    versions: vec![version.to_owned()],
                    path,
                    source: Some(Source::Schema.to_string()),
                    ..Self::of_input(problem, FaultKind::RefusedSchema)
                });
            }
        }
        if more > 0 {
            let message = format!("and at least {more} more; repair those above to see the next");
            let problem = Problem::of_document(document, "", message);
            let definition = document.name.clone();
            all.push(Self { definition, ..Self::of_input(problem, FaultKind::MoreErrors) });
        }
        all
    }

    /// Returns line and column, counted from 1.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.line.zip(self.column)
    }

    /// Returns the name of the CRD or `UnionDeclaration`, or kind and group of a built-in type.
    pub fn subject(&self) -> Option<&str> {
        self.declaration.as_deref().or(self.definition.as_deref())
    }

    /// Returns the message, with the versions that have the fault.
    pub fn message_of_versions(&self) -> String {
        let versions = if self.versions.is_empty() { String::new() } else { format!("{}: ", self.versions.join(", ")) };
        format!("{versions}{}", self.message)
    }

    /// Returns true for an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Returns true for a note.
    pub fn is_note(&self) -> bool {
        self.severity == Severity::Note
    }
}

/// Returns the differences to an older revision of the documents, and the number of versions of kinds that both describe. What the
/// new documents do not have has its place in the old ones.
pub fn compare(old: &Assembly, new: &Assembly) -> (Vec<Diagnostic>, usize) {
    let (changes, compared) = new.changes_since(old);
    let placed = FaultOfVersions::group(&changes).into_iter().filter_map(|group| {
        let (file, position) = new.place_of(group.fault).or_else(|| old.place_of(group.fault))?;
        Some(Diagnostic::of_fault(&group, file, position))
    });
    (placed.collect(), compared)
}

/// Returns the faults and problems of documents, sorted by file.
pub fn diagnose(assembly: &Assembly) -> Vec<Diagnostic> {
    let groups = FaultOfVersions::group(assembly.catalog.faults());
    let faults = groups.iter().filter_map(|group| {
        let (file, position) = assembly.place_of(group.fault)?;
        Some(Diagnostic::of_fault(group, file, position))
    });
    let problems = assembly.problems.iter().map(Diagnostic::of_problem);
    let misspelt = assembly.definitions().flat_map(Diagnostic::of_misspellings);
    let misplaced = assembly.definitions().filter_map(Diagnostic::of_misplaced);
    let mut diagnostics: Vec<Diagnostic> = faults.chain(problems).chain(misspelt).chain(misplaced).collect();
    diagnostics.sort();
    diagnostics
}

/// Returns the place in an object that a path in its schema describes.
fn place(path: &[String]) -> Place {
    let mut steps = Vec::new();
    let mut tokens = path.iter();
    while let Some(token) = tokens.next() {
        match token.as_str() {
            "properties" => steps.extend(tokens.next().map(|name| PlaceStep::Property(name.as_str().into()))),
            "items" => steps.push(PlaceStep::Items),
            "additionalProperties" => steps.push(PlaceStep::Values),
            _ => {}
        }
    }
    steps.into_iter().collect()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn name_of_rule<S: Serializer>(rule: &FaultKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(rule.name())
}
