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
mod definition;
mod exempt;
mod fault;
mod graft;
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
pub use definition::{Definition, DefinitionError, DefinitionVersion, Resource};
pub use exempt::{BuiltinGroups, is_exempt};
pub use fault::Fault;
pub use last_applied::LAST_APPLIED;
