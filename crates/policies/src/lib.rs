#![doc = include_str!("../README.md")]

mod cel;
mod claims;
mod compare;
mod condition;
mod kinds;
mod members;
mod mutation;
mod names;
mod object;
mod options;
mod places;
mod policy;
mod refusal;
mod rules;
mod target;
mod validation;
mod variables;
mod version;

pub use compare::policy_difference;
pub use kinds::CompiledKinds;
pub use object::PolicyObject;
pub use options::PolicyOptions;
pub use policy::{CompiledPolicies, EXEMPT_LABEL, compile};
pub use refusal::{Refusal, RefusalReason};
pub use rules::{CompiledRules, RulesTarget, SchemaEdit, compile_rules};
pub use target::{PolicyTarget, VersionScope};
pub use version::{KubernetesVersion, KubernetesVersionError};
