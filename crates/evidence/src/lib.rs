#![doc = include_str!("../README.md")]
#![allow(missing_docs, reason = "a part of the command line: no other program uses it")]

mod answer;
mod bounds;
mod candidates;
mod combination;
mod decision;
mod discriminated;
mod embedded;
mod env;
mod exclusions;
mod expression;
mod facts;
mod fixed;
mod limits;
mod node;
mod outcome;
mod place;
mod proposal;
mod refused;
mod rewrite;
mod rule;
mod sample;
mod scene;
mod sentences;
mod suggestion;
mod table;
mod transition;
mod validation;
mod value;

pub use answer::{Evidence, EvidenceKind, EvidenceState, ProposedChoice, ProposedMember, ProposedUnion, UnionFields};
pub use combination::{Combination, UnsetValue};
pub use decision::Decision;
pub use env::is_evaluating;
pub use exclusions::ExclusionGraph;
pub use limits::*;
pub use proposal::{DoubtfulGroup, Proposals};
pub use refused::RefusedExpression;
pub use sample::Sample;
pub use table::{RuleFailure, TableRow, TruthTable};
pub use transition::{ObjectUpdate, RefusedTransition};
