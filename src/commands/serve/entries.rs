//! The flags that set the entries of the webhook configurations for objects.

use crate::controllers::{EntryOptions, FailurePolicy, LabelSelector, MatchConditions};
use clap::{ArgAction, Args, ValueEnum};

/// The flags of the entries.
#[derive(Debug, Clone, Args)]
pub(super) struct EntryArgs {
    /// Fail or allow a write of a custom resource when the API server cannot call the webhook
    #[arg(long, value_enum, default_value_t = EntryOptions::default().failure_policy.into(), requires = "service")]
    failure_policy: FailurePolicyArg,

    /// Fail or allow a write of a built-in type when the API server cannot call the webhook
    #[arg(long, value_enum, default_value_t = EntryOptions::default().builtin_failure_policy.into(), requires = "service")]
    builtin_failure_policy: FailurePolicyArg,

    /// Let the API server wait this many seconds for an answer, from 1 to 30; at most 2 for a built-in type whose writes are
    /// allowed without one
    #[arg(
        long, value_name = "SECONDS", default_value_t = EntryOptions::default().timeout_seconds, requires = "service",
        value_parser = clap::value_parser!(u8).range(1..=30)
    )]
    timeout_seconds: u8,

    /// Review only requests that meet all these CEL conditions: [{"name": "...", "expression": "..."}]
    #[arg(long, value_name = "JSON", default_value = "[]", hide_default_value = true, requires = "service")]
    match_conditions: MatchConditions,

    /// Let the API server allow updates that touch no union without a call; with --ratcheting=disabled it always calls
    #[arg(long, value_name = "BOOL", default_value_t = EntryOptions::default().skips_untouched, action = ArgAction::Set, requires = "service")]
    skip_untouched: bool,

    /// Review only objects that this label selector matches: {"matchLabels": {...}, "matchExpressions": [...]}
    #[arg(long, value_name = "JSON", default_value = "{}", hide_default_value = true, requires = "service")]
    object_selector: LabelSelector,

    /// Review only objects of namespaces that this label selector matches; kube-system, the Service's namespace and
    /// --exclude-namespace stay excluded
    #[arg(long, value_name = "JSON", default_value = "{}", hide_default_value = true, requires = "service")]
    namespace_selector: LabelSelector,
}

/// Fate of a write when the webhook cannot be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum FailurePolicyArg {
    /// Fail the write.
    Fail,
    /// Allow the write.
    Ignore,
}

impl From<FailurePolicy> for FailurePolicyArg {
    fn from(policy: FailurePolicy) -> Self {
        match policy {
            FailurePolicy::Fail => Self::Fail,
            FailurePolicy::Ignore => Self::Ignore,
        }
    }
}

impl From<FailurePolicyArg> for FailurePolicy {
    fn from(policy: FailurePolicyArg) -> Self {
        match policy {
            FailurePolicyArg::Fail => Self::Fail,
            FailurePolicyArg::Ignore => Self::Ignore,
        }
    }
}

impl From<&EntryArgs> for EntryOptions {
    fn from(flags: &EntryArgs) -> Self {
        Self {
            failure_policy: flags.failure_policy.into(),
            builtin_failure_policy: flags.builtin_failure_policy.into(),
            timeout_seconds: flags.timeout_seconds,
            match_conditions: flags.match_conditions.clone(),
            skips_untouched: flags.skip_untouched,
            object_selector: flags.object_selector.clone(),
            namespace_selector: flags.namespace_selector.clone(),
        }
    }
}
