//! `UnionDeclaration`s as sources.

use crate::declaration::{Declaration, Fault, FaultKind, Source};
use crate::names::GroupKind;
use std::sync::Arc;

/// A `UnionDeclaration` of a workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownDeclaration {
    /// `None` if it cannot be read.
    pub(super) declaration: Option<Arc<Declaration>>,
    /// The faults of the declaration alone, whatever the schema of its target.
    pub(super) faults: Vec<Fault>,
}

impl KnownDeclaration {
    pub(super) fn new(name: &str, read: Result<(Declaration, Vec<Fault>), String>) -> Self {
        match read {
            Ok((declaration, faults)) => Self { declaration: Some(Arc::new(declaration)), faults },
            Err(message) => {
                let fault = Fault { declaration: Some(name.to_owned()), ..unreadable_declaration(message) };
                Self { declaration: None, faults: vec![fault] }
            }
        }
    }

    /// Returns the declaration, `None` if it cannot be read.
    pub fn declaration(&self) -> Option<&Declaration> {
        self.declaration.as_deref()
    }

    /// Returns the target, `None` if the declaration cannot be read.
    pub fn target(&self) -> Option<GroupKind> {
        Some(self.declaration()?.target().group_kind())
    }
}

/// Returns the fault of a `UnionDeclaration` that cannot be read.
pub fn unreadable_declaration(message: String) -> Fault {
    Fault {
        source: Some(Source::Declaration),
        pointer: "/spec".to_owned(),
        ..Fault::new(FaultKind::UnreadableDeclaration, "UnionDeclaration", message)
    }
}

/// Returns the note on a declaration whose target the cluster does not have. Nothing is wrong: a library of declarations can be
/// applied before the CRDs.
pub(super) fn missing_target(kind: &GroupKind, declaration: &str) -> Fault {
    let message = format!(
        "the cluster has no kind `{kind}`; install its CRD, and the declaration takes effect, or correct the target"
    );
    Fault::of_declaration(FaultKind::TargetNotInstalled, &kind.to_string(), declaration, "/spec/target", message)
}
