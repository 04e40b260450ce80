#![doc = include_str!("../README.md")]
#![allow(missing_docs, reason = "a part of the command line: no other program uses it")]
// The rooms, in the order of a derivation:
//
// 1. `build` selects files, `syntax` parses one into a `types::GoFile`, `marker` parses its comments.
// 2. `packages` puts files together and resolves names.
// 3. `walk` follows the fields of that struct beside the schema. At each struct, `rules` turns the markers into unions and
//    `values` collects the values of a discriminator.
// 4. `derivation` is the way through all of this, from the struct of a kind to the unions that the schema allows. It reports markers
//    that had no effect.
//
// The crate takes text and schemas. It never reads files, runs Go or talks to a cluster.

mod build;
mod derivation;
mod finding;
mod marked_union;
mod marker;
mod packages;
mod quoting;
mod rules;
mod syntax;
mod types;
mod values;
mod walk;

pub use build::BuildContext;
pub use derivation::{Derivation, KindVersion};
pub use finding::{FindingKind, GoFinding, Position};
pub use marked_union::{FoundBy, MarkedUnion, Selection};
pub use packages::Packages;
pub use syntax::{GoParser, GoSyntaxError};
pub use types::GoFile;
