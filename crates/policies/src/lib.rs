#![doc = include_str!("../README.md")]

mod body;
mod cel;
mod claims;
mod comprehension;
mod condition;
mod group;
mod manifests;
mod members;
mod mutation;
mod names;
mod object;
mod old_row;
mod options;
mod place;
mod policy;
mod refusal;
mod root;
mod rows;
mod rules;
mod target;
mod touched;
mod validation;
mod value;
mod variables;
mod walk;
mod yaml;

pub use object::{PolicyObject, policy_difference};
pub use options::{
    KubernetesVersion, KubernetesVersionError, PolicyOptions, PolicyRatcheting, RuleForm, STATIC_SUFFIX,
};
pub use policy::{CompiledKinds, CompiledPolicies, EXEMPT_LABEL, compile};
pub use refusal::{Refusal, RefusalReason};
pub use rules::{CompiledRules, RulesTarget, SchemaEdit, compile_rules, json_schema};
pub use target::{PolicyTarget, VersionScope};
pub use touched::{EveryWrite, TouchCondition};
