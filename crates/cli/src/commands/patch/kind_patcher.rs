//! Patches the objects of one kind. The webhook's code clears and judges their unions. Reads the objects and patches, also from
//! `--patch` and `--patch-file`, and locates errors in their files.

use crate::input::builtin::ServerWords;
use crate::input::manifest::{self, Document, Problem};
use crate::report::{Verdict, output};
use anyhow::bail;
use clap::Args;
use kube_unions_core::admission::{ApplyMethod, Phase, Ratcheting, Review};
use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::causes::with_causes;
use kube_unions_core::declaration::Definition;
use kube_unions_core::field_path::FieldPath;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_core::schema::Schema;
use kube_unions_manifests::BuiltInDefaults;
use kube_unions_manifests::is_built_in_group;
use kube_unions_manifests::request::{AppliedManifest, ReviewedObject, own_edits};
use kube_unions_offline::{RefusedField, refused_fields};
use std::borrow::Cow;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use strategic_merge_patch::{BrokenRule, DocumentRole, PatchError, PatchSide, Patcher};

/// Patches the objects of one kind at one version.
pub(super) struct KindPatcher {
    kind: GroupVersionKind,
    /// Applies patches, and creates them.
    pub(super) engine: Patcher,
    unions: Catalog,
    /// Completes objects that no API server has completed.
    schema: Option<Schema>,
}

pub(super) struct PatchedObject {
    /// The object as JSON text, without the members that its unions exclude.
    pub(super) text: String,
    /// The object before its unions were normalised.
    pub(super) document: Option<Document>,
    /// The answer of the webhook's code. `None`: the kind has no unions.
    pub(super) review: Option<Review>,
    /// The words of the API server about what no union refuses.
    pub(super) words: ServerWords,
    /// Effects of the patch that its author may not expect, a line each.
    pub(super) warnings: Vec<String>,
}

impl KindPatcher {
    /// Returns a patcher with the unions of a definition. With a schema, it judges objects as the API server completes them: without
    /// nulls, and with the defaults of the schema.
    pub(super) fn new(
        kind: GroupVersionKind,
        engine: Patcher,
        definition: Option<Definition>,
        schema: Option<Schema>,
    ) -> Self {
        let mut builder = Builder::new();
        if let Some(definition) = definition {
            builder.apply(definition);
        }
        Self { kind, engine, unions: builder.build(), schema }
    }

    /// Applies a patch, and clears the members that the unions exclude. [`Phase::Both`] also validates: the caller looks at the
    /// outcome of the review.
    ///
    /// # Errors
    /// [`RejectedPatch`] if the patch names another kind, version or object.
    pub(super) fn patched(
        &self,
        original: &PatchInput,
        patch: &PatchInput,
        phase: Phase,
        subresource: Option<&str>,
    ) -> anyhow::Result<PatchedObject> {
        if let (Some(object), Some(patch)) = (original.document(), patch.document()) {
            check_identity(object, patch)?;
        }
        let given = [(DocumentRole::Original, original), (DocumentRole::Patch, patch)];
        let fail = |error: PatchError| faulty(&error, &given);
        let text = self.engine.apply(original.text(), patch.text()).map_err(fail)?;
        let warnings =
            self.engine.emptied(original.text(), patch.text()).map_err(fail)?.iter().filter_map(emptied).collect();
        if self.unions.union_count() == 0 {
            return Ok(PatchedObject { text, document: None, review: None, words: ServerWords::new(), warnings });
        }
        let new = PatchInput::of(Path::new("the patched object"), text.clone().into_bytes())?;
        let Some(new) = new.into_document() else {
            return Ok(PatchedObject { text, document: None, review: None, words: ServerWords::new(), warnings });
        };
        let old = original.document().map(|old| self.completed(old)).transpose()?;
        let completed = self.completed(&new)?;
        // A patch that is applied again must change nothing.
        let manifest = Some(AppliedManifest::Given(patch.text(), ApplyMethod::ClientSide));
        let object = ReviewedObject { kind: &self.kind, new: &completed, old: old.as_deref(), subresource, manifest };
        // An API server refuses an invalid object of a built-in kind even if its union stays as it was.
        let ratcheting = if self.is_built_in() { Ratcheting::Disabled } else { Ratcheting::Enabled };
        let mut words = ServerWords::new();
        let mut review = object.review(&self.unions, phase, ratcheting)?;
        if phase != Phase::Mutate && subresource.is_none() {
            let name = new.name.as_deref().unwrap_or_default();
            let refused = self.refused_fields(old.as_deref(), &completed)?;
            words.extend(refused.iter().map(|field| (field.path.to_string(), field.words().to_owned())));
            review = review.refused(&self.kind, name, refused.iter().map(RefusedField::cause).collect());
        }
        let edits = own_edits(&new, &review);
        let text = if edits.is_empty() { text } else { manifest::edit(&new.section, &edits)?.text };
        Ok(PatchedObject { text, document: Some(new), review: Some(review), words, warnings })
    }

    /// Returns what the API server refuses of an object beside its unions.
    fn refused_fields(&self, old: Option<&Document>, new: &Document) -> anyhow::Result<Vec<RefusedField>> {
        let GroupVersionKind { group, version, kind } = &self.kind;
        let Some((entry, schema)) = self.unions.lookup(group, version, kind).zip(self.schema.as_ref()) else {
            return Ok(Vec::new());
        };
        let old = old.map(|old| serde_json::from_str(&old.text)).transpose()?;
        Ok(refused_fields(entry, schema, old.as_ref(), &serde_json::from_str(&new.text)?))
    }

    /// Returns true for a kind with a Go type in the API server.
    pub(super) fn is_built_in(&self) -> bool {
        is_built_in_group(&self.kind.group)
    }

    fn completed<'d>(&self, document: &'d Document) -> anyhow::Result<Cow<'d, Document>> {
        let Some(schema) = &self.schema else { return Ok(Cow::Borrowed(document)) };
        let mut object = serde_json::from_str(&document.text)?;
        schema.complete(&mut object)?;
        if is_built_in_group(&self.kind.group) {
            let defaults = BuiltInDefaults::read().map_err(anyhow::Error::msg)?;
            defaults.add(&self.kind.group_kind(), schema, &mut object);
        }
        Ok(Cow::Owned(document.with_text(object.to_string())))
    }
}

/// Returns a warning of an object that a patch empties. An object without fields in place of the whole one is plain to see.
fn emptied(place: &FieldPath) -> Option<String> {
    let warning = || {
        format!(
            "{place}: `$patch: delete` removes the fields of the object and leaves `{{}}`, as on an API server; null removes the object"
        )
    };
    (!place.segments().is_empty()).then(warning)
}

/// Fails if the patch names another object.
fn check_identity(object: &Document, patch: &Document) -> Result<(), RejectedPatch> {
    for (field, patched) in object.identity().into_iter().zip(patch.identity()) {
        if let (Some(is), Some(wanted)) = (field.value, patched.value)
            && is != wanted
        {
            let (name, object) = (field.name, object.file.display());
            let message =
                format!("the patch has `{name}: {wanted}`, and {object} has `{is}`: give the patch of this object");
            return Err(RejectedPatch(Problem::of_document(patch, field.pointer, message).to_string()));
        }
    }
    Ok(())
}

/// The text of an absent document.
const ABSENT: &str = "null";

/// A file with one document, or none.
#[derive(Debug)]
pub(super) struct PatchInput {
    file: PathBuf,
    document: Option<Document>,
}

impl PatchInput {
    /// Reads a file, or standard input for `-`. A null document and an empty file are an absent object.
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        Self::of(file, manifest::bytes(file)?)
    }

    /// Reads text. `file` is the name for error messages.
    pub(super) fn of(file: &Path, bytes: Vec<u8>) -> anyhow::Result<Self> {
        let mut documents = manifest::parse(file, bytes)?.into_iter();
        let document = documents.next();
        if let Some(second) = documents.next() {
            bail!(Problem::of_document(
                &second,
                "",
                "more than one document: put each object into a file of its own".to_owned()
            ));
        }
        Ok(Self { file: file.to_owned(), document })
    }

    pub(super) fn document(&self) -> Option<&Document> {
        self.document.as_ref()
    }

    fn into_document(self) -> Option<Document> {
        self.document
    }

    /// Returns the document as JSON text.
    pub(super) fn text(&self) -> &str {
        self.document.as_ref().map_or(ABSENT, |document| &document.text)
    }

    /// Returns the document, which must not be absent.
    pub(super) fn present(&self, what: &str) -> anyhow::Result<&Document> {
        match &self.document {
            Some(document) => Ok(document),
            None => bail!("no {what} in `{}`: it is empty or null", self.file.display()),
        }
    }
}

/// The flags of the patch. Exactly one is given.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ChangeArgs {
    /// The patch, as JSON or YAML
    #[arg(short, long, value_name = "PATCH")]
    patch: Option<String>,
    /// A file with the patch; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    patch_file: Option<PathBuf>,
}

impl ChangeArgs {
    /// Reads the patch, which must not be absent.
    pub(super) fn read(&self) -> anyhow::Result<PatchInput> {
        let patch = match (&self.patch, &self.patch_file) {
            (Some(text), _) if Path::new(text).is_file() => {
                bail!("--patch takes the patch itself, and `{text}` is a file: give --patch-file {text}")
            }
            (Some(text), _) => PatchInput::of(Path::new("--patch"), text.clone().into_bytes())?,
            (None, Some(file)) => PatchInput::read(file)?,
            (None, None) => bail!("give --patch or --patch-file"),
        };
        patch.present("patch")?;
        Ok(patch)
    }
}

/// A patch that is refused for its content.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct RejectedPatch(pub(super) String);

/// Prints the reason why a patch is rejected, and returns the verdict.
pub(super) fn reject(reason: impl Display) -> Verdict {
    output::error(reason);
    Verdict::Rejected
}

/// An input and its part in the operation.
pub(super) type GivenInput<'d> = (DocumentRole, &'d PatchInput);

/// Returns an error of the engine with the file and the position that it is about.
pub(super) fn faulty(error: &PatchError, given: &[GivenInput<'_>]) -> anyhow::Error {
    let (role, path) = match error {
        PatchError::Unreadable { document, .. } | PatchError::NotAnObject { document, .. } => (Some(*document), None),
        PatchError::Refused { path, rule } => (at_fault(rule), Some(path)),
        PatchError::Conflict { .. } | PatchError::Precondition { .. } => (None, None),
    };
    let of_role = |object: &GivenInput<'_>| role.is_none_or(|role| role == object.0);
    // If the error does not name a document, it is about the last one, which contains the change.
    let found = given.iter().rev().filter(|it| of_role(it)).chain(given.iter().rev()).find_map(|it| it.1.document());
    match found {
        Some(document) => {
            let pointer = path.map(FieldPath::to_pointer).unwrap_or_default();
            Problem::of_document(document, &pointer, with_causes(error)).into()
        }
        None => anyhow::anyhow!("{}", with_causes(error)),
    }
}

/// Returns the document that breaks the rule, unless it is the change.
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
