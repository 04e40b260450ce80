#![doc = include_str!("../README.md")]

mod body;
mod cel;
mod claims;
mod comments;
mod condition;
mod group;
mod layout;
mod manifests;
mod members;
mod mutation;
mod names;
mod object;
mod options;
mod place;
mod pod_templates;
mod policy;
mod refusal;
mod root;
mod rows;
mod rules;
mod target;
mod validation;
mod variables;
mod version;
mod walk;
mod yaml;

pub use object::{PolicyObject, policy_difference};
pub use options::{PolicyOptions, PolicyRatcheting, RuleForm, STATIC_SUFFIX};
pub use policy::{CompiledKinds, CompiledPolicies, EXEMPT_LABEL, compile};
pub use refusal::{Refusal, RefusalReason};
pub use rules::{CompiledRules, RulesTarget, SchemaEdit, compile_rules, json_schema};
pub use target::{PolicyTarget, VersionScope};
pub use version::{KubernetesVersion, KubernetesVersionError};
