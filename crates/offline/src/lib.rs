#![doc = include_str!("../README.md")]
#![allow(missing_docs, reason = "the crate is not published")]

mod built_in;
mod help;
mod invalid_union;
mod left_over;
mod preset_names;
mod sentences;
mod steps;

pub use built_in::{AddedUnions, BuiltInKinds, FILE, target_of};
pub use help::HelpPage;
pub use invalid_union::{InvalidUnion, UnionAddress, sets};
pub use left_over::{LeftOver, UndecidedUnions};
pub use preset_names::PresetNames;
pub use sentences::ServerSentence;
pub use steps::each_at;
