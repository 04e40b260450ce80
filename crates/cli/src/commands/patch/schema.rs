//! `--from`: finds the schema of the objects in CRDs, OpenAPI documents and JSON schemas.

use super::kind_patcher::KindPatcher;
use crate::input::builtin::PresetsArg;
use crate::input::kinds::asked::{self, UnknownKind};
use crate::input::kinds::{self, Assembly};
use crate::input::manifest::{self, Document, Problem};
use crate::report::output;
use anyhow::bail;
use clap::Args;
use kube_unions_core::catalog::KindNames;
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::{Definition, DefinitionVersion, OpenApi, Severity};
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::schema::Place;
use kube_unions_manifests::BuiltinUnions;
use kube_unions_manifests::is_built_in_group;
use kube_unions_offline::{AddedUnions, BuiltInKinds};
use std::collections::BTreeSet;
use std::path::PathBuf;
use strategic_merge_patch::{Patcher, PatcherError};

/// Arguments that select the schema of the objects.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Files and folders with the schema of the objects; `-` reads standard input [default: the built-in kinds]
    ///
    /// Give a `CustomResourceDefinition` and its `UnionDeclarations`, an OpenAPI document as saved by `kubectl get --raw
    /// /openapi/v3/apis/apps/v1`, or a JSON schema with `x-kubernetes-patch-*` or `x-kubernetes-list-*`.
    #[arg(long, alias = "schema", num_args = 1.., value_name = "PATH")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    presets: PresetsArg,
    /// The kind, as kind, plural, singular or short name, alone or followed by .GROUP or .VERSION.GROUP [default: the kind of
    /// the objects]
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// The version of the kind [default: the version of the objects, or the only one]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
}

/// The schema of one kind at one version, and its document.
enum SchemaCandidate<'s> {
    OfDefinition(&'s Document, &'s Definition, &'s DefinitionVersion),
    OfOpenApi(&'s Document, &'s OpenApi, &'s GroupVersionKind),
}

impl SchemaArgs {
    /// Returns the patcher of the objects. Without `--kind` it uses the kind of the first object that has one.
    pub(super) fn patcher<'d>(&self, objects: impl IntoIterator<Item = &'d Document>) -> anyhow::Result<KindPatcher> {
        let object = objects.into_iter().find(|object| object.kind.is_some());
        let (plain, others): (Vec<_>, Vec<_>) = manifest::read(&self.from)?.into_iter().partition(is_plain);
        let described = kinds::schemas(self.beside_built_in(others, plain.is_empty(), object)?);
        manifest::fail_on(&described.problems)?;
        let definitions = described.declared_definitions();
        let candidates = candidates(&definitions, &described);
        if candidates.is_empty() {
            return self.of_plain(&plain, object);
        }
        let (named, kind) = match &self.kind {
            Some(asked) => (self.named(&candidates, asked)?, None),
            None => (candidates.iter().collect(), object.and_then(|object| object.kind.as_deref())),
        };
        let is_wanted = |it: &GroupVersionKind| {
            kind.is_none_or(|kind| *it.kind == *kind)
                && self.version.as_ref().is_none_or(|version| *it.version == **version)
        };
        let is_own = |it: &GroupVersionKind, object: &Document| {
            object.kind.as_deref() == Some(&*it.kind)
                && (object.api_version.is_none() || object.group_version() == (&*it.group, &*it.version))
        };
        let fit: Vec<_> = named.iter().copied().filter(|it| is_wanted(&it.kind())).collect();
        // The group and version of the object decide between several kinds with the same name.
        let closer = fit.iter().copied().filter(|it| object.is_none_or(|object| is_own(&it.kind(), object)));
        let closer: Vec<_> = closer.collect();
        match (fit.as_slice(), closer.as_slice()) {
            // The first of two documents with one kind counts.
            ([only], _) | (_, [only, ..]) if closer.iter().all(|it| it.kind() == only.kind()) => {
                only.patcher(&described)
            }
            ([], _) => {
                let kind = kind.map_or_else(|| "a kind".to_owned(), |kind| format!("the kind `{kind}`"));
                let version =
                    self.version.as_ref().map(|version| format!(" at version `{version}`")).unwrap_or_default();
                bail!("nothing in {} describes {kind}{version}; it describes {}", self.place(), titles(&named))
            }
            (several, _) => bail!(
                "{} describes more than one matching kind: select one with --kind or --version: {}",
                self.place(),
                titles(several)
            ),
        }
    }

    /// Adds the built-in kinds if the object is of one, or if nothing else is given.
    fn beside_built_in(
        &self,
        given: Vec<Document>,
        no_schema: bool,
        object: Option<&Document>,
    ) -> anyhow::Result<Vec<Document>> {
        let kind = object.filter(|it| it.api_version.is_some()).map(Document::group_version_kind);
        let wants =
            kind.as_ref().is_some_and(|kind| is_built_in_group(&kind.group)) && no_schema && self.kind.is_none();
        if !wants && !self.from.is_empty() {
            return Ok(given);
        }
        let added = AddedUnions { published: BuiltinUnions::Ignored, presets: self.presets.are_used() };
        Ok(BuiltInKinds::read()?.enforced(given, kind.map(|kind| BTreeSet::from([kind])).as_ref(), added))
    }

    /// Names what has the schemas.
    fn place(&self) -> String {
        if self.from.is_empty() { "the built-in kinds".to_owned() } else { manifest::list(&self.from) }
    }

    /// Returns the candidates that `--kind` names.
    fn named<'c, 's>(
        &self,
        candidates: &'c [SchemaCandidate<'s>],
        asked: &str,
    ) -> Result<Vec<&'c SchemaCandidate<'s>>, UnknownKind> {
        let names: Vec<_> = candidates.iter().map(SchemaCandidate::names).collect();
        let place = format!("in {}", self.place());
        let positions = asked::positions(&names, asked, &place)?;
        Ok(positions.into_iter().filter_map(|position| candidates.get(position)).collect())
    }

    /// Returns the patcher of a JSON schema, which has no unions.
    fn of_plain(&self, plain: &[Document], object: Option<&Document>) -> anyhow::Result<KindPatcher> {
        let [document] = plain else {
            let found = if plain.is_empty() { "no" } else { "more than one" };
            bail!(
                "{found} schema in {}: give a CustomResourceDefinition, an OpenAPI document or one JSON schema",
                manifest::list(&self.from)
            );
        };
        let kind = self.kind.as_deref().or(object.and_then(|object| object.kind.as_deref())).unwrap_or("object");
        let patcher = Patcher::from_json_schema(kind, &document.text).map_err(|error| unfit(document, "", &error))?;
        let kind = GroupVersionKind { group: "".into(), version: "".into(), kind: kind.into() };
        Ok(KindPatcher::new(kind, patcher, None, None))
    }
}

impl SchemaCandidate<'_> {
    fn kind(&self) -> GroupVersionKind {
        match self {
            Self::OfDefinition(_, definition, version) => definition.group_kind().at(&version.name),
            Self::OfOpenApi(_, _, kind) => (*kind).clone(),
        }
    }

    fn names(&self) -> KindNames<'_> {
        match *self {
            Self::OfDefinition(_, definition, version) => KindNames::of_version(definition, &version.name),
            Self::OfOpenApi(_, openapi, kind) => KindNames {
                group: &kind.group,
                version: &kind.version,
                kind: &kind.kind,
                plural: openapi.resource(kind).map_or("", |(plural, _)| plural),
                singular: "",
                short_names: &[],
            },
        }
    }

    fn patcher(&self, described: &Assembly) -> anyhow::Result<KindPatcher> {
        match self {
            Self::OfDefinition(document, definition, version) => {
                // A note is about nothing that a patch needs.
                for fault in definition.faults().iter().filter(|fault| fault.severity() != Severity::Note) {
                    // The pointer of a fault in a declaration is about another document.
                    let pointer = if fault.declaration.is_none() { fault.pointer.as_str() } else { "" };
                    let problem = Problem::of_document(document, pointer, fault.message.clone());
                    output::warn(problem);
                }
                let root = format!("/spec/versions/{}/schema/openAPIV3Schema", version.position);
                let patcher = Patcher::for_resource(definition.kind(), &version.schema)
                    .map_err(|error| unfit(document, &root, &error.into()))?;
                let (definition, schema) = ((*definition).clone(), version.schema.clone());
                Ok(KindPatcher::new(self.kind(), patcher, Some(definition), Some(schema)))
            }
            Self::OfOpenApi(document, openapi, kind) => {
                let patcher = Patcher::from_openapi(openapi, kind).map_err(|error| unfit(document, "", &error))?;
                let definition = Definition::from_openapi([*openapi], &kind.group, &kind.kind, false)
                    .map_err(|error| Problem::of_file(&document.file, with_causes(&error)))?;
                let schema =
                    openapi.schema(kind).map_err(|error| Problem::of_file(&document.file, with_causes(&error)))?;
                Ok(KindPatcher::new((*kind).clone(), patcher, Some(described.declared(definition)), schema))
            }
        }
    }
}

/// Returns true for a JSON schema, which has neither `kind` nor `apiVersion`.
fn is_plain(document: &Document) -> bool {
    document.kind.is_none() && document.api_version.is_none() && !document.is_openapi()
}

fn candidates<'s>(definitions: &'s [(&'s Document, Definition)], described: &'s Assembly) -> Vec<SchemaCandidate<'s>> {
    let mut candidates = Vec::new();
    for (document, definition) in definitions {
        let versions = definition.versions().iter();
        candidates.extend(versions.map(|version| SchemaCandidate::OfDefinition(document, definition, version)));
    }
    for (document, openapi) in described.openapi() {
        candidates.extend(openapi.kinds().map(|kind| SchemaCandidate::OfOpenApi(document, openapi, kind)));
    }
    candidates
}

/// Lists kinds in a form that `--kind` accepts.
fn titles(candidates: &[&SchemaCandidate<'_>]) -> String {
    let all: BTreeSet<GroupVersionKind> = candidates.iter().map(|it| it.kind()).collect();
    asked::list(all.iter())
}

/// Returns an error about a schema with its position.
fn unfit(document: &Document, root: &str, error: &PatcherError) -> anyhow::Error {
    let place = if let PatcherError::Schema(error) = error { error.place().clone() } else { Place::root() };
    let message = with_causes(error);
    // The line is of the converted text. The problem has the line of the file.
    let message = message.split(" at line ").next().unwrap_or_default().to_owned();
    Problem::of_document(document, &format!("{root}{}", place.to_pointer()), message).into()
}
