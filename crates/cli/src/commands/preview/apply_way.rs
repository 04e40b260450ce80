//! The ways in which clients apply a rendering.

use clap::ValueEnum;
use serde_json::Value;
use strategic_merge_patch::json_merge::{merge, two_way};
use strategic_merge_patch::{ApplyEngines, ApplySides};

/// A way to apply the new rendering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::commands) enum ApplyWay {
    /// Server-side apply: `kubectl apply --server-side --force-conflicts`, Flux, and Helm 4 for releases that it installed. Also
    /// `server-side`, `flux`, `argocd-ssa`, `helm4`
    #[value(aliases = ["server-side", "flux", "argocd-ssa", "helm4"])]
    Ssa,
    /// Client-side apply: `kubectl apply`, and Argo CD by default. Also `kubectl`, `argocd`
    #[default]
    #[value(aliases = ["kubectl", "argocd"])]
    Csa,
    /// The three-way merge of Helm 3, and of Helm 4 for releases that Helm 3 installed. Also `helm3`
    #[value(alias = "helm3")]
    Helm,
    /// `kubectl patch --type=merge` with the new rendering
    Merge,
    /// `kubectl replace`
    Replace,
}

impl ApplyWay {
    /// Returns the name in the option and in JSON.
    pub(in crate::commands) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the words of reports.
    pub(in crate::commands) fn words(self) -> &'static str {
        match self {
            Self::Ssa => "server-side apply",
            Self::Csa => "client-side apply",
            Self::Helm => "Helm 3",
            Self::Merge => "a merge patch",
            Self::Replace => "a replace",
        }
    }

    /// Returns the object before the API server adds defaults. `manager` is the field manager.
    pub(in crate::commands) fn apply(
        self,
        engines: &ApplyEngines,
        apply: ApplySides<'_>,
        manager: &str,
    ) -> anyhow::Result<Value> {
        let ApplySides { old, new, live } = apply;
        let merged = |patch: &Value| {
            let mut after = live.clone();
            merge(&mut after, patch);
            after
        };
        Ok(match self {
            Self::Ssa => engines.server_side(apply, manager)?,
            // Helm does not read the live object of a custom resource.
            Self::Helm if engines.strategic.is_none() => merged(&two_way(old, new)),
            Self::Csa | Self::Helm => engines.client_side(apply)?,
            Self::Merge => merged(new),
            Self::Replace => new.clone(),
        })
    }
}
