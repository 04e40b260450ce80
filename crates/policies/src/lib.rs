#![doc = include_str!("../README.md")]

mod object;
mod options;
mod policy;
mod refusal;
mod target;
mod version;

pub use object::PolicyObject;
pub use options::PolicyOptions;
pub use policy::{CompiledPolicies, compile};
pub use refusal::{Refusal, RefusalReason};
pub use target::PolicyTarget;
pub use version::{KubernetesVersion, KubernetesVersionError};
