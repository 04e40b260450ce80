//! Assembles the policies of a kind.

use crate::object::PolicyObject;
use crate::options::PolicyOptions;
use crate::refusal::Refusal;
use crate::target::PolicyTarget;

/// The policies of a kind, and the unions that they leave out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompiledPolicies {
    /// The policies, each followed by its binding.
    pub objects: Vec<PolicyObject>,
    /// Everything that is left out, with the reason.
    pub refusals: Vec<Refusal>,
}

/// Compiles the unions of a kind to policies and their bindings.
pub fn compile(target: &PolicyTarget<'_>, options: &PolicyOptions) -> CompiledPolicies {
    let _ = (target, options);
    CompiledPolicies::default()
}
