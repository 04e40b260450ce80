#![doc = include_str!("../README.md")]
// `union` and `enum_union` have the transforms, `mark` carries a union through a schema, `found` collects the unions of a schema,
// `unions` checks them and annotates CRDs, and `crd` does it for the types of kube's derive.

mod annotation;
mod crd;
mod enum_union;
mod error;
mod found;
mod mark;
mod union;
mod unions;

pub use crd::{crd, merge, warnings};
pub use enum_union::EnumUnion;
pub use error::CrdError;
pub use kube_unions_core::declaration::{ANNOTATION, ANNOTATIONS_LIMIT, Fault, FaultKind, Severity};
pub use union::{AtMostOne, DiscriminatedUnion};
pub use unions::Unions;
