#![doc = include_str!("../README.md")]

mod bounds;
mod candidates;
mod discriminated;
mod env;
mod exclusions;
mod expression;
mod facts;
mod limits;
mod node;
mod outcome;
mod place;
mod proposal;
mod proposed_union;
mod rewrite;
mod rule;
mod sample;
mod scene;
mod suggestion;
mod table;
mod union_fields;
mod validation;
mod value;

pub use env::is_evaluating;
pub use exclusions::ExclusionGraph;
pub use limits::*;
pub use place::{Evidence, EvidenceKind, EvidenceState};
pub use proposal::{DoubtfulGroup, Proposals};
pub use proposed_union::{ProposedChoice, ProposedMember, ProposedUnion};
pub use sample::Sample;
pub use table::{Decision, MemberRequirement, TableRow, TruthTable};
pub use union_fields::{Combination, UnionFields};
