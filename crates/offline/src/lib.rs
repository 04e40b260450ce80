#![doc = include_str!("../README.md")]
#![allow(missing_docs, reason = "the crate is not published")]

mod built_in;
mod field_rules;
mod field_types;
mod help;
mod invalid_union;
mod left_over;
mod preset_names;
mod refused_field;
mod refused_fields;
mod sentences;
mod steps;

pub use built_in::{AddedUnions, BuiltInKinds, FILE, target_of};
pub use field_rules::add_to_json_schema;
pub use field_types::wrong_types;
pub use help::HelpPage;
pub use invalid_union::{InvalidUnion, UnionAddress, sets};
pub use left_over::{LeftOver, UndecidedUnions};
pub use preset_names::PresetNames;
pub use refused_field::RefusedField;
pub use refused_fields::refused_fields;
pub use sentences::ServerSentence;
pub use steps::each_at;
