#![doc = include_str!("../README.md")]
// The rooms, in the order of a derivation:
//
// 1. `build` selects files, `syntax` parses one into a `types::GoFile`, `marker` parses its comments.
// 2. `packages` puts files together and resolves names; `kinds` finds the struct of a kind.
// 3. `walk` follows the fields of that struct beside the schema. At each struct, `rules` turns the markers into unions and
//    `values` collects the values of a discriminator.
// 4. `check` keeps the unions that the schema allows. `derivation` is the way through all of this; `unused` reports markers that
//    had no effect.
//
// The crate takes text and schemas. It never reads files, runs Go or talks to a cluster.

mod build;
mod check;
mod derivation;
mod finding;
mod finding_kind;
mod kinds;
mod marked_union;
mod marker;
mod packages;
mod position;
mod quoting;
mod rules;
mod syntax;
mod types;
mod unused;
mod values;
mod walk;

pub use build::BuildContext;
pub use derivation::Derivation;
pub use finding::GoFinding;
pub use finding_kind::FindingKind;
pub use kinds::KindVersion;
pub use marked_union::{FoundBy, MarkedUnion, Selection};
pub use packages::Packages;
pub use position::Position;
pub use syntax::{GoParser, GoSyntaxError};
pub use types::GoFile;
