//! Unions of built-in kinds for commands that work offline. What is embedded is decoded only if an object, a declaration or a user names a
//! built-in kind.

use super::kinds::{self, Assembly, SourceArgs};
use super::manifest::{self, Document, Problem};
use crate::report::output;
use anyhow::bail;
use clap::Args;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_manifests::counts::count;
use kube_unions_manifests::is_built_in_group;
use kube_unions_offline::{AddedUnions, BuiltInKinds, target_of};
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

/// Compiles the declarations of an input, and the presets of the kinds among `named` that the input does not declare.
///
/// The API server itself refuses what violates a preset. So a preset denies here, also one of the input, although it only warns on a
/// cluster.
pub(crate) fn assemble(
    given: Vec<Document>,
    named: &BTreeSet<GroupVersionKind>,
    added: AddedUnions,
) -> anyhow::Result<Assembly> {
    let number = given.len();
    let declares = |document: &Document| document.is_declaration() && is_built_in_group(&target_of(document).group);
    let declares = given.iter().any(declares) && !given.iter().any(Document::is_openapi);
    let documents = if declares || named.iter().any(|kind| is_built_in_group(&kind.group)) {
        let built_in = BuiltInKinds::read()?;
        if declares || built_in.knows_any(named) { built_in.enforced(given, Some(named), added) } else { given }
    } else {
        given
    };
    let mut assembly = kube_unions_manifests::assemble(documents, added.published);
    assembly.documents = number;
    Ok(assembly)
}

/// The files of `--from`, read before the objects that they are about.
pub(crate) struct SourceFiles<'s> {
    sources: &'s SourceArgs,
    kinds: Vec<Document>,
    objects: usize,
    /// The reasons why documents cannot be read. The others count.
    pub(crate) unread: Vec<Problem>,
}

impl<'s> SourceFiles<'s> {
    /// Reads what describes kinds. Skips documents of other kinds.
    pub(crate) fn read(sources: &'s SourceArgs) -> anyhow::Result<Self> {
        let mut files = manifest::index(&sources.from);
        let kinds = files.kinds();
        manifest::fail_on(&files.problems)?;
        files.duplicates().for_each(output::warn);
        let unread = files.unread().cloned().collect();
        Ok(Self { sources, kinds, objects: files.objects(), unread })
    }

    /// Compiles them, see [`assemble`]. Fails without files if no object is of a built-in kind.
    pub(crate) fn assemble(self, presets: PresetsArg, named: &BTreeSet<GroupVersionKind>) -> anyhow::Result<Assembly> {
        let Self { sources, kinds, objects, unread } = self;
        if sources.from.is_empty() && !named.is_empty() && !named.iter().any(|kind| is_built_in_group(&kind.group)) {
            bail!("nothing declares unions of {}: give --from with the CRD", kinds::asked::list(named.iter()));
        }
        let mut assembly = assemble(
            kinds,
            named,
            AddedUnions { published: sources.builtin_unions.into(), presets: presets.are_used() },
        )?;
        assembly.documents += objects;
        manifest::fail_on(&assembly.problems)?;
        assembly.without_effect().iter().for_each(output::hint);
        match assembly.missing(&sources.from).filter(|_| !sources.from.is_empty()) {
            Some(missing) => {
                // It may be in a document that cannot be read.
                manifest::fail_on(&unread)?;
                bail!(missing)
            }
            None => Ok(assembly),
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
