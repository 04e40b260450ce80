//! The documents that a patch is about: one a file, which may be absent, and what is said of them when they are at fault.

use crate::causes::with_causes;
use crate::cli::manifest::{self, Document, Problem};
use anyhow::bail;
use kube_unions_core::field_path::FieldPath;
use std::path::{Path, PathBuf};
use strategic_merge_patch::{BrokenRule, DocumentRole, PatchError, PatchSide};

/// What there is of an absent document.
const ABSENT: &str = "null";

/// A document that was read, or found to be absent.
#[derive(Debug)]
pub(super) struct Object {
    file: PathBuf,
    document: Option<Document>,
}

impl Object {
    /// Reads what a file holds, standard input for `-`. Null and nothing at all are an absent object.
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        Self::of(file, manifest::bytes(file)?)
    }

    /// From text that stands in for a file.
    pub(super) fn of(file: &Path, bytes: Vec<u8>) -> anyhow::Result<Self> {
        let mut documents = manifest::parse(file, bytes)?.into_iter();
        let document = documents.next();
        if let Some(second) = documents.next() {
            bail!(Problem::of_document(&second, "", "more than one document; give one object a file".to_owned()));
        }
        Ok(Self { file: file.to_owned(), document })
    }

    pub(super) fn document(&self) -> Option<&Document> {
        self.document.as_ref()
    }

    /// JSON text.
    pub(super) fn text(&self) -> &str {
        self.document.as_ref().map_or(ABSENT, |document| &document.text)
    }

    /// The same, of an object that has to be there.
    pub(super) fn present(&self, what: &str) -> anyhow::Result<&Document> {
        match &self.document {
            Some(document) => Ok(document),
            None => bail!("no {what} in `{}`: it is empty or null", self.file.display()),
        }
    }
}

/// Fails where two inputs are to be read from standard input, which can be read once.
pub(super) fn only_one_is_piped<'p>(files: impl IntoIterator<Item = &'p PathBuf>) -> anyhow::Result<()> {
    if files.into_iter().filter(|file| file.as_os_str() == "-").count() > 1 {
        bail!("only one of the files can be `-`: standard input can be read once");
    }
    Ok(())
}

/// A document and what it was given as.
pub(super) type Given<'d> = (DocumentRole, &'d Object);

/// What the engine objects to, with the file and the place in it.
pub(super) fn faulty(error: &PatchError, given: &[Given<'_>]) -> anyhow::Error {
    let (role, path) = match error {
        PatchError::Unreadable { document, .. } | PatchError::NotAnObject { document, .. } => (Some(*document), None),
        PatchError::Refused { path, rule } => (at_fault(rule), Some(path)),
        PatchError::Conflict { .. } | PatchError::Precondition { .. } => (None, None),
    };
    let of_role = |object: &Given<'_>| role.is_none_or(|role| role == object.0);
    // Where it does not tell, the last one given is the change.
    let found = given.iter().rev().filter(|it| of_role(it)).chain(given.iter().rev()).find_map(|it| it.1.document());
    match found {
        Some(document) => {
            let pointer = path.map(FieldPath::to_pointer).unwrap_or_default();
            Problem::of_document(document, &pointer, with_causes(error)).into()
        }
        None => anyhow::anyhow!("{}", with_causes(error)),
    }
}

/// The document in which a rule is broken, if it is not the change itself.
fn at_fault(rule: &BrokenRule) -> Option<DocumentRole> {
    let in_the_object = matches!(
        rule,
        BrokenRule::NoMergeKey { side: PatchSide::Live, .. }
            | BrokenRule::KeyType { side: PatchSide::Live, .. }
            | BrokenRule::DirectiveTarget { side: PatchSide::Live, .. }
            | BrokenRule::NullItem(PatchSide::Live)
    );
    in_the_object.then_some(DocumentRole::Original)
}
