//! The ways to apply a rendering, and what each makes of the live object.

use super::json_merge::{merge, three_way, two_way};
use clap::ValueEnum;
use serde_json::Value;
use strategic_merge_patch::{Conflicts, PatchError, Patcher, ThreeWay};

/// A way to apply the new rendering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ApplyWay {
    /// Client-side apply: `kubectl apply`, and Argo CD by default
    #[default]
    Csa,
    /// The three-way merge of Helm 3, and of Helm 4 for releases that Helm 3 installed
    Helm,
    /// `kubectl patch --type=merge` with the new rendering
    Merge,
    /// `kubectl replace`
    Replace,
}

/// The objects of an apply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Apply<'v> {
    /// The object of the old rendering.
    pub(super) old: &'v Value,
    /// The object of the new rendering.
    pub(super) new: &'v Value,
    /// The object as the API server holds it.
    pub(super) live: &'v Value,
}

impl ApplyWay {
    /// Returns the name in the option and in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Csa => "csa",
            Self::Helm => "helm",
            Self::Merge => "merge",
            Self::Replace => "replace",
        }
    }

    /// Returns the words of reports.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Csa => "client-side apply",
            Self::Helm => "Helm 3",
            Self::Merge => "a merge patch",
            Self::Replace => "a replace",
        }
    }

    /// Returns true if the API server tells admission which fields the author sets.
    pub(super) fn tells_manifest(self) -> bool {
        match self {
            Self::Csa => true,
            Self::Helm | Self::Merge | Self::Replace => false,
        }
    }

    /// Returns the object before the API server adds defaults. `strategic` patches kinds that have a Go type.
    pub(super) fn apply(self, strategic: Option<&Patcher>, apply: Apply<'_>) -> Result<Value, PatchError> {
        let Apply { old, new, live } = apply;
        let merged = |patch: &Value| {
            let mut after = live.clone();
            merge(&mut after, patch);
            after
        };
        Ok(match (self, strategic) {
            (Self::Csa | Self::Helm, Some(patcher)) => {
                let sides = ThreeWay { original: old, modified: new, current: live, conflicts: Conflicts::Overwrite };
                patcher.apply(live, &patcher.create_three_way(&sides)?)?
            }
            (Self::Csa, None) => merged(&three_way(old, new, live)),
            // Helm does not read the live object of a custom resource.
            (Self::Helm, None) => merged(&two_way(old, new)),
            (Self::Merge, _) => merged(new),
            (Self::Replace, _) => new.clone(),
        })
    }
}
