//! Sources of union declarations, and how declarations are grafted onto the schema that they apply to.
//!
//! The API server drops `x-kubernetes-unions` from the CRDs that it stores, so declarations are found in other sources as
//! well. For each place the first [`Source`] in their order wins, and a contradiction is reported as a [`Fault`]. The
//! winner is grafted onto the schema, and every later step reads it from there.
//!
//! This module must not know plans: [`compile`](crate::union::compile()) checks that a declaration makes sense. A
//! [`Definition`] is the way in.

mod acceptance;
mod annotation;
mod custom_resource;
mod declared_union;
mod definition;
mod exempt;
mod fault;
mod fault_kind;
mod graft;
#[cfg(feature = "kube")]
mod json_schema;
mod last_applied;
mod pod_template;
mod read;
mod untyped;
mod wire;

pub use crate::schema::{Actions, Declared, Normalization, OpenApi, Origin, OriginEntry, Place, Severity, Source};
pub use acceptance::{Acceptance, ClaimedKind};
pub use annotation::{ANNOTATION, ANNOTATIONS_LIMIT, AnnotationContent};
pub use custom_resource::{Declaration, Target, UnionDeclarationSpec, ValidationAction};
#[cfg(feature = "kube")]
pub use custom_resource::{UnionDeclaration, UnionDeclarationStatus};
pub use declared_union::{DeclaredMember, DeclaredUnion};
pub use definition::{Definition, DefinitionError, DefinitionVersion, Resource};
pub use exempt::{BuiltinGroups, is_exempt};
pub use fault::{Fault, FaultOfVersions};
pub use fault_kind::FaultKind;
pub(crate) use graft::{fault, pointer_of};
#[cfg(feature = "kube")]
pub use json_schema::{annotation_json_schema, union_declaration_json_schema};
pub use last_applied::LAST_APPLIED;
pub use pod_template::{PodTemplateFamily, pod_template_families};
