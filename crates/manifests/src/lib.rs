#![doc = include_str!("../README.md")]

mod alone;
mod assembly;
mod builtin_defaults;
pub mod counts;
pub mod crd;
mod crd_maker;
pub mod diagnostic;
mod document;
mod edit;
mod file;
mod foreign;
mod index;
pub mod input;
mod layout;
mod made;
pub mod misspelt;
mod parts;
mod rendering;
pub mod request;
mod simple_schema;
mod stream;
mod syntax;
pub mod union_details;
mod yaml;

pub use alone::StandaloneKinds;
pub use assembly::{Assembly, BuiltinUnions, assemble, schemas, without_effect};
pub use builtin_defaults::BuiltInDefaults;
pub use crd_maker::{CrdMaker, MadeCrd};
pub use document::{Document, IdentityField};
pub use edit::{Edit, EditError, EditedDocument, EditedFile, applied, edit, edit_crds, edited_value};
pub use file::{Format, ManifestFile, Problem, Section};
pub use index::{IndexedDocuments, ManifestRole, ObjectIndex};
pub use layout::pretty;
pub use rendering::RenderedDocuments;
pub use stream::Stream;
pub use yaml::{WriteError, to_yaml};
