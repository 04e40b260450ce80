//! Unions of built-in kinds for commands that work offline. What is embedded is decoded only if an object, a declaration or a user names a
//! built-in kind.

use super::kinds::{self, Assembly, SourceArgs, entry_of};
use super::manifest::{self, Document, Problem};
use crate::report::output;
use anyhow::bail;
use clap::Args;
use kube_unions_core::admission::{Ratcheting, Review};
use kube_unions_core::catalog::CatalogEntry;
use kube_unions_core::field_path::FieldPath;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::union::Violation;
use kube_unions_manifests::counts::count;
use kube_unions_manifests::is_built_in_group;
use kube_unions_offline::{
    AddedUnions, BuiltInKinds, InvalidUnion, PresetNames, RefusedField, ServerSentence, UndecidedUnions,
    refused_fields, target_of,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The flag of commands that know built-in kinds.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct PresetsArg {
    /// Do not use the presets, which declare the unions of built-in kinds that no input declares
    #[arg(long)]
    no_presets: bool,
}

impl PresetsArg {
    /// Returns true if presets declare the unions of built-in kinds that no input declares.
    pub(crate) fn are_used(self) -> bool {
        !self.no_presets
    }
}

/// The kinds with unions, and what the API server itself says about objects of built-in ones.
#[derive(Debug, Default)]
pub(crate) struct OfflineKinds {
    pub(crate) assembly: Assembly,
    presets: PresetNames,
}

/// The words of the API server about fields of an object, by their paths.
pub(crate) type ServerWords = BTreeMap<String, String>;

/// Returns the words of the API server as a sentence.
pub(crate) fn said(words: &str) -> String {
    format!("the API server says: {words}")
}

impl OfflineKinds {
    /// Returns what the API server refuses of an object beside its unions. It has its defaults, as the object before an update has.
    pub(crate) fn refused_fields(
        &self,
        kind: &GroupVersionKind,
        old: Option<&Value>,
        new: &Value,
    ) -> Vec<RefusedField> {
        let entry = self.assembly.catalog.lookup(&kind.group, &kind.version, &kind.kind);
        let schema = self.assembly.built_in_schema(kind);
        entry.zip(schema).map_or_else(Vec::new, |(entry, schema)| refused_fields(entry, schema, old, new))
    }

    /// Returns the ratcheting of the writes of a kind. The API server refuses what violates a preset even if the union stays as it was.
    pub(crate) fn ratcheting(&self, kind: &GroupVersionKind, wanted: Ratcheting) -> Ratcheting {
        let entry = self.assembly.catalog.lookup(&kind.group, &kind.version, &kind.kind);
        let is_refused = |entry: &CatalogEntry| {
            is_built_in_group(&kind.group) && entry.plan().unions().iter().all(|union| self.presets.is_refusing(union))
        };
        if entry.is_some_and(is_refused) { Ratcheting::Disabled } else { wanted }
    }

    /// Returns a review that also denies what the API server refuses, and the words of the API server about its causes.
    pub(crate) fn with_refusals(
        &self,
        review: Review,
        old: Option<&Document>,
        new: &Document,
        undecided: Option<&UndecidedUnions<'_>>,
    ) -> (Review, ServerWords) {
        let parsed = |document: &Document| serde_json::from_str::<Value>(&document.text).ok();
        let kind = new.group_version_kind();
        let mut refused =
            parsed(new).map_or_else(Vec::new, |new| self.refused_fields(&kind, old.and_then(parsed).as_ref(), &new));
        refused.retain(|field| !undecided.is_some_and(|it| it.has_path(&field.path)));
        let sentences = self.sentences(new, review.violations().kept(), &refused);
        let mut words: ServerWords =
            sentences.map(|(path, sentence)| (path.to_string(), sentence.words().to_owned())).collect();
        words.extend(refused.iter().map(|field| (field.path.to_string(), field.words().to_owned())));
        let name = new.name.as_deref().unwrap_or_default();
        let causes = refused.iter().map(RefusedField::cause).collect();
        (review.refused(&kind, name, causes), words)
    }

    /// Returns the known sentences of the API server about violations in an object, which has its defaults, by their paths. It says none of an
    /// object that it does not decode.
    pub(crate) fn sentences<'v>(
        &self,
        object: &Document,
        violations: &'v [Violation],
        refused: &[RefusedField],
    ) -> impl Iterator<Item = (&'v FieldPath, ServerSentence)> {
        let is_decoded = !refused.iter().any(RefusedField::is_of_wrong_type);
        let entry = entry_of(&self.assembly.catalog, object).filter(|_| is_decoded && !violations.is_empty());
        let parsed = entry.and_then(|entry| Some((entry, serde_json::from_str::<Value>(&object.text).ok()?)));
        violations.iter().filter_map(move |violation| {
            let (entry, object) = parsed.as_ref()?;
            let invalid = InvalidUnion::of(entry, violation, object)?;
            let is_preset = is_built_in_group(&entry.gvk().group) && self.presets.is_refusing(invalid.union);
            Some((&violation.path, ServerSentence::of(&invalid).filter(|_| is_preset)?))
        })
    }
}

/// Compiles the declarations of an input, and the presets of the kinds among `named` that the input does not declare.
///
/// The API server itself refuses what violates a preset. So a preset denies here, also one of the input, although it only warns on a
/// cluster.
pub(crate) fn assemble(
    given: Vec<Document>,
    named: &BTreeSet<GroupVersionKind>,
    added: AddedUnions,
) -> anyhow::Result<OfflineKinds> {
    let number = given.len();
    let mut presets = PresetNames::default();
    let declares = |document: &Document| document.is_declaration() && is_built_in_group(&target_of(document).group);
    let declares = given.iter().any(declares) && !given.iter().any(Document::is_openapi);
    let documents = if declares || named.iter().any(|kind| is_built_in_group(&kind.group)) {
        let built_in = BuiltInKinds::read()?;
        let knows = declares || built_in.knows_any(named);
        let documents = if knows { built_in.enforced(given, Some(named), added) } else { given };
        presets = PresetNames::of(&built_in, &documents);
        documents
    } else {
        given
    };
    let mut assembly = kube_unions_manifests::assemble(documents, added.published);
    assembly.documents = number;
    Ok(OfflineKinds { assembly, presets })
}

/// The files of `--from`, read before the objects that they are about.
pub(crate) struct SourceFiles<'s> {
    sources: &'s SourceArgs,
    kinds: Vec<Document>,
    objects: usize,
    /// The reasons why documents cannot be read, and keys that are there twice. The other documents count.
    pub(crate) unread: Vec<Problem>,
}

impl<'s> SourceFiles<'s> {
    /// Reads what describes kinds. Skips documents of other kinds.
    pub(crate) fn read(sources: &'s SourceArgs) -> anyhow::Result<Self> {
        let mut files = manifest::index(&sources.from);
        let kinds = files.kinds();
        manifest::fail_on(&files.problems)?;
        let unread = files.unread().chain(files.duplicates()).cloned().collect();
        Ok(Self { sources, kinds, objects: files.objects(), unread })
    }

    /// Compiles them, see [`assemble`]. Fails without files if no object is of a built-in kind.
    pub(crate) fn assemble(
        self,
        presets: PresetsArg,
        named: &BTreeSet<GroupVersionKind>,
    ) -> anyhow::Result<OfflineKinds> {
        let Self { sources, kinds, objects, unread } = self;
        if sources.from.is_empty() && !named.is_empty() && !named.iter().any(|kind| is_built_in_group(&kind.group)) {
            bail!("nothing declares unions of {}: give --from with the CRD", kinds::asked::list(named.iter()));
        }
        let mut offline = assemble(
            kinds,
            named,
            AddedUnions { published: sources.builtin_unions.into(), presets: presets.are_used() },
        )?;
        let assembly = &mut offline.assembly;
        assembly.documents += objects;
        manifest::fail_on(&assembly.problems)?;
        assembly.without_effect().iter().for_each(output::hint);
        match assembly.missing(&sources.from).filter(|_| !sources.from.is_empty()) {
            Some(missing) => {
                // It may be in a document that cannot be read.
                manifest::fail_on(&unread)?;
                bail!(missing)
            }
            None => Ok(offline),
        }
    }
}

/// Counts objects of kinds of which no union is known, because nothing describes them, so that nobody takes them for judged.
#[derive(Debug)]
pub(crate) struct UnknownUnions<'a> {
    described: BTreeSet<&'a GroupVersionKind>,
    counts: BTreeMap<GroupVersionKind, usize>,
}

impl<'a> UnknownUnions<'a> {
    pub(crate) fn new(assembly: &'a Assembly) -> Self {
        Self { described: assembly.kinds().collect(), counts: BTreeMap::new() }
    }

    /// Adds an object of a kind without unions. A CRD tells that a kind has none, the schema of a built-in kind does not.
    pub(crate) fn add(&mut self, object: &Document) {
        let kind = object.group_version_kind();
        if !kind.kind.is_empty() && (is_built_in_group(&kind.group) || !self.described.contains(&kind)) {
            *self.counts.entry(kind).or_default() += 1;
        }
    }

    /// Prints a note, if there are any.
    pub(crate) fn print(&self) {
        if !self.counts.is_empty() {
            let objects = count(self.counts.values().sum::<usize>(), "object");
            let kinds = kinds::asked::list(self.counts.keys());
            output::hint(format_args!("no union is known of {kinds}: {objects} not judged"));
        }
    }
}
