#![doc = include_str!("../README.md")]

mod apply;
mod apply_engines;
mod context;
mod create;
mod directive;
mod document;
mod elements;
mod error;
pub mod json_merge;
mod keys;
mod mixed_items;
mod patcher;
mod read;
mod schema;
mod server_side_apply;
mod strip_directives;
mod value;
mod write;

pub use apply_engines::{ApplyEngines, ApplySides, KUBECTL, KUBECTL_CLIENT_SIDE, ServerSideError};
pub use document::JsonDocument;
pub use error::{BrokenRule, ConflictEffect, DocumentRole, PatchError, PatchMergeKeyFault, PatchSide, SchemaShape};
// Types of this crate's signatures, so that a user needs no other dependency.
pub use kube_unions_core::field_path::FieldPath;
pub use kube_unions_core::names::GroupVersionKind;
pub use kube_unions_core::schema::{OpenApi, Place, PlaceStep, Schema};
pub use mixed_items::MixedItem;
pub use patcher::{Conflicts, Patcher, PatcherError, ThreeWay};
pub use read::SyntaxError;
pub use schema::{MergeRule, MergeStrategy, SchemaError};
pub use server_side_apply::{
    AppliedObject, ApplyError, FieldConflict, FieldManager, ManagedFieldsError, Managers, ServerSideApply, TypeFault,
};
pub use value::ValueKind;
