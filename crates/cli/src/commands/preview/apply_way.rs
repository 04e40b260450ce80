//! The ways in which clients apply a rendering.

use super::hooks::{Hook, HookClient, NO_NAME, ObjectRefusal};
use clap::ValueEnum;
use serde_json::Value;
use strategic_merge_patch::json_merge::{merge, two_way};
use strategic_merge_patch::{ApplyEngines, ApplySides, FieldManager, KUBECTL, KUBECTL_CLIENT_SIDE};

/// A way to apply the new rendering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::commands) enum ApplyWay {
    /// `kubectl apply --server-side --force-conflicts`. Also `server-side`
    #[value(alias = "server-side")]
    Ssa,
    /// Server-side apply by Flux
    Flux,
    /// Server-side apply by Argo CD, with `ServerSideApply=true`
    ArgocdSsa,
    /// Server-side apply by Helm 4: releases that it installed, and others with `--server-side=true`
    Helm4,
    /// Client-side apply: `kubectl apply`. Also `kubectl`
    #[default]
    #[value(alias = "kubectl")]
    Csa,
    /// Client-side apply by Argo CD, its default
    Argocd,
    /// The three-way merge of Helm 3, and of Helm 4 for releases that Helm 3 installed. Also `helm3`
    #[value(alias = "helm3")]
    Helm,
    /// `kubectl patch --type=merge` with the new rendering
    Merge,
    /// `kubectl replace`
    Replace,
}

/// A client that applies server-side, and takes over the fields of managers that wrote the object in another way before.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct ServerSideClient {
    /// Its field manager.
    pub(in crate::commands) manager: &'static str,
    /// Returns true for another name that its field manager may have.
    pub(in crate::commands) may_be: fn(&str) -> bool,
    /// The managers whose fields it takes over before it applies.
    pub(in crate::commands) takes_first: fn(&FieldManager) -> bool,
    /// Those whose fields it takes over once an apply was accepted. It then applies again.
    pub(in crate::commands) takes_later: fn(&FieldManager) -> bool,
    /// True if the first apply is a dry run.
    pub(in crate::commands) is_tried: bool,
}

fn updates_last_applied(manager: &FieldManager) -> bool {
    !manager.applies && manager.has_last_applied
}

impl ApplyWay {
    /// Returns the name in the option and in JSON.
    pub(in crate::commands) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the words of reports.
    pub(in crate::commands) fn words(self) -> &'static str {
        match self {
            Self::Ssa | Self::Flux | Self::ArgocdSsa | Self::Helm4 => "server-side apply",
            Self::Csa | Self::Argocd => "client-side apply",
            Self::Helm => "Helm 3",
            Self::Merge => "a merge patch",
            Self::Replace => "a replace",
        }
    }

    /// Returns the client of a server-side apply.
    ///
    /// The sources: `migrateToSSAIfNecessary` of kubectl 1.36, `ApplyAll` of Flux's `ssa` 0.83 with the options of kustomize-controller 1.9,
    /// `applyObject` of Argo CD 3.6, which calls kubectl, and `upgradeClientSideFieldManager` of Helm 4.
    pub(in crate::commands) fn server_side(self) -> Option<ServerSideClient> {
        let client = match self {
            Self::Ssa => ServerSideClient {
                manager: KUBECTL,
                may_be: |_| true,
                takes_first: |_| false,
                takes_later: updates_last_applied,
                is_tried: false,
            },
            Self::ArgocdSsa => ServerSideClient {
                manager: "argocd-controller",
                may_be: |_| false,
                takes_first: |it| !it.applies && *it.name == *KUBECTL_CLIENT_SIDE,
                takes_later: updates_last_applied,
                is_tried: false,
            },
            Self::Flux => ServerSideClient {
                manager: "kustomize-controller",
                may_be: |name| name == "helm-controller",
                takes_first: |_| false,
                takes_later: |it| {
                    let is_own =
                        ["before-first-apply", "kustomize-controller"].iter().any(|own| it.name.starts_with(own));
                    it.name.starts_with(KUBECTL) || (!it.applies && is_own)
                },
                is_tried: true,
            },
            Self::Helm4 => ServerSideClient {
                manager: "helm",
                may_be: |_| false,
                takes_first: |it| !it.applies && *it.name == *"helm",
                takes_later: |_| false,
                is_tried: false,
            },
            Self::Csa | Self::Argocd | Self::Helm | Self::Merge | Self::Replace => return None,
        };
        Some(client)
    }

    /// Returns true for a client-side apply as kubectl does it.
    pub(in crate::commands) fn is_client_side_apply(self) -> bool {
        matches!(self, Self::Csa | Self::Argocd)
    }

    /// Returns the client that knows hooks. `upgrades` is false for the first install.
    pub(super) fn hook_client(self, upgrades: bool) -> Option<HookClient> {
        match self {
            Self::Helm | Self::Helm4 if upgrades => Some(HookClient::HelmUpgrade),
            Self::Helm | Self::Helm4 => Some(HookClient::HelmInstall),
            Self::Argocd | Self::ArgocdSsa => Some(HookClient::ArgoCd),
            Self::Ssa | Self::Flux | Self::Csa | Self::Merge | Self::Replace => None,
        }
    }

    /// Returns what the client does about an object whose name is to be generated. `None`: it creates the object.
    pub(super) fn refused_generated_name(self, hook: Option<Hook>) -> Option<ObjectRefusal> {
        let refused = match (self, hook) {
            (Self::Argocd | Self::ArgocdSsa, Some(_)) => return None,
            // Helm deletes by the name that the manifest has.
            (Self::Helm, Some(hook)) if !hook.deletes.before => {
                return hook.deletes.after.then_some(ObjectRefusal::NotDeleted);
            }
            (Self::Ssa | Self::Csa | Self::Argocd | Self::ArgocdSsa, _) => "cannot use generate name with apply",
            // kustomize, which builds every Kustomization.
            (Self::Flux, _) => "missing metadata.name in object",
            (Self::Helm4 | Self::Helm | Self::Merge | Self::Replace, _) => NO_NAME,
        };
        Some(ObjectRefusal::GeneratedName(refused))
    }

    /// Returns true if the field managers of a live object tell what stays, or who owns it.
    pub(in crate::commands) fn reads_managers(self) -> bool {
        self.server_side().is_some() || self.is_client_side_apply()
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
            Self::Ssa | Self::Flux | Self::ArgocdSsa | Self::Helm4 => engines.server_side(apply, manager)?,
            // Helm does not read the live object of a custom resource.
            Self::Helm if engines.strategic.is_none() => merged(&two_way(old, new)),
            Self::Csa | Self::Argocd | Self::Helm => engines.client_side(apply)?,
            Self::Merge => merged(new),
            Self::Replace => new.clone(),
        })
    }
}
