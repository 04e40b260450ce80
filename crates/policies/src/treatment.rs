//! The treatment of faults: to which of them a binding reacts.

use crate::options::PolicyRatcheting;
use crate::version::KubernetesVersion;
use kube_unions_core::schema::Actions;

const UNCHANGED: &str = "; let through because the union did not change";
const WARN_ONLY: &str = "; let through because its declaration only warns";

/// The treatment of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Treatment {
    /// The treatment of faults that were there before.
    pub(crate) ratcheting: PolicyRatcheting,
    /// Overrides the actions of the declarations.
    pub(crate) actions: Option<Actions>,
    /// The API server that evaluates the policy.
    pub(crate) server: KubernetesVersion,
    /// A CRD defines the kind.
    pub(crate) custom: bool,
    /// A mutating policy deduces discriminators. It may be skipped, so the validating one refuses what it would have changed.
    pub(crate) deduces: bool,
}

/// The faults of a union that a binding reacts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WantedFaults {
    All,
    /// Those of a choice that the request made.
    New,
    /// Those of a choice that was there before.
    Old,
}

/// Returns the faults of a union that a binding reacts to, and the end of their text. `None` if the binding is not for this union.
pub(crate) fn wanted(
    declared: Actions,
    binding: Actions,
    treatment: Treatment,
) -> Option<(WantedFaults, &'static str)> {
    let ratcheting = treatment.ratcheting;
    let lets_through = ratcheting != PolicyRatcheting::Disabled;
    match (declared, binding) {
        (Actions::Deny { .. }, Actions::Deny { .. }) if declared == binding => {
            Some((if lets_through { WantedFaults::New } else { WantedFaults::All }, ""))
        }
        // A fault that was there before is a warning. The audit log has it in any case.
        (Actions::Deny { audit }, Actions::Warn { audit: audits })
            if audit == audits && (ratcheting == PolicyRatcheting::Warn || audit && lets_through) =>
        {
            Some((WantedFaults::Old, UNCHANGED))
        }
        (Actions::Warn { .. }, Actions::Warn { .. }) if declared == binding => Some((WantedFaults::All, WARN_ONLY)),
        (Actions::Audit, Actions::Audit) => Some((WantedFaults::All, "")),
        (Actions::Deny { .. } | Actions::Warn { .. } | Actions::Audit, _) => None,
    }
}
