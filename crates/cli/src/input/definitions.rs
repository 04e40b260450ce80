//! The CRDs that a command works on: their paths, and the kinds of `--kind`.

use super::kinds::asked::{self, UnknownKind};
use super::manifest::{self, ManifestFile, PathArgs};
use clap::Args;
use kube_unions_core::declaration::Definition;
use kube_unions_core::names::GroupKind;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The arguments that name CRDs.
#[derive(Debug, Args)]
pub(crate) struct DefinitionArgs {
    /// Process only this kind, named as in kubectl: plural, singular, short name or kind, alone or with .GROUP; repeat for several
    /// [default: all kinds]
    #[arg(long, num_args = 1, value_name = "KIND")]
    pub(crate) kind: Vec<String>,
    #[command(flatten)]
    paths: PathArgs,
}

impl DefinitionArgs {
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.paths.all()
    }

    /// Returns the kinds of `--kind`, `None` for all.
    pub(crate) fn selected(&self, files: &[ManifestFile]) -> Result<Option<BTreeSet<GroupKind>>, UnknownKind> {
        if self.kind.is_empty() {
            return Ok(None);
        }
        let documents = files.iter().flat_map(ManifestFile::documents);
        let documents = documents.flat_map(|document| document.definitions().unwrap_or_default());
        let definitions: Vec<Definition> =
            documents.filter_map(|document| Definition::from_json(&document.text).ok()).collect();
        if definitions.is_empty() {
            return Ok(None);
        }
        let place = match &*self.paths() {
            [] => "on the cluster".to_owned(),
            paths => format!("in {}", manifest::list(paths)),
        };
        asked::definitions(&definitions, &self.kind, &place)
    }

    /// Names the reason that there is nothing to do with the files.
    pub(crate) fn nothing_to_do(&self, files: &[ManifestFile]) -> String {
        let paths = self.paths();
        if paths.is_empty() {
            return "no CustomResourceDefinition on the cluster".to_owned();
        }
        if files.iter().all(|file| file.documents().is_empty()) {
            return manifest::empty(&paths);
        }
        format!("no CustomResourceDefinition in {}", manifest::list(&paths))
    }
}
