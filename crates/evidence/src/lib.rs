#![doc = include_str!("../README.md")]

mod bounds;
mod candidates;
mod env;
mod exclusion_graph;
mod expression;
mod facts;
mod format;
mod guard;
mod limits;
mod metadata;
mod names;
mod node;
mod outcome;
mod parsed;
mod place;
mod pod_template;
mod proposal;
mod rewrite;
mod rule;
mod sample;
mod scene;
mod selection;
mod suggestion;
mod table;
mod transition;
mod union_fields;
mod validation;
mod value;

pub use guard::is_evaluating;
pub use limits::*;
pub use place::{Evidence, EvidenceKind, EvidenceState};
pub use proposal::{DoubtfulGroup, Proposals, ProposedChoice, ProposedUnion};
pub use sample::Sample;
pub use table::{Decision, MemberRequirement, TableRow, TruthTable};
pub use union_fields::{Combination, UnionFields};
