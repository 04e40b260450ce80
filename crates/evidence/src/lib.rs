#![doc = include_str!("../README.md")]

mod candidates;
mod expression;
mod facts;
mod guard;
mod limits;
mod names;
mod node;
mod outcome;
mod place;
mod proposal;
mod rewrite;
mod rule;
mod sample;
mod table;
mod validation;
mod value;

pub use guard::is_evaluating;
pub use limits::*;
pub use place::{Evidence, EvidenceKind, EvidenceState};
pub use proposal::{DoubtfulGroup, Proposals, ProposedChoice, ProposedUnion};
pub use sample::Sample;
pub use table::{Combination, Decision, MemberRequirement, TableRow, TruthTable, UnionFields};
