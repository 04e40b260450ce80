//! The ways to apply a rendering, and what each makes of the live object.

use super::json_merge::{merge, three_way, two_way};
use anyhow::Context;
use clap::ValueEnum;
use serde_json::Value;
use std::collections::BTreeSet;
use strategic_merge_patch::{Conflicts, Managers, Patcher, ServerSideApply, ThreeWay};

/// The field manager of kubectl.
const DEFAULT_MANAGER: &str = "kubectl";

/// A way to apply the new rendering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ApplyWay {
    /// Server-side apply: `kubectl apply --server-side --force-conflicts`, Flux, and Helm 4 for releases that it installed
    Ssa,
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
pub(super) struct ApplySides<'v> {
    /// The object of the old rendering.
    pub(super) old: &'v Value,
    /// The object of the new rendering.
    pub(super) new: &'v Value,
    /// The object as the API server holds it.
    pub(super) live: &'v Value,
    /// True if a cluster has the live object, with the managers of its fields.
    pub(super) is_stored: bool,
}

/// The engines that apply the objects of a kind.
#[derive(Debug)]
pub(super) struct Engines {
    /// `None` for custom resources, which have no strategic merge patch.
    pub(super) strategic: Option<Patcher>,
    /// `None` unless it is asked for.
    pub(super) server_side: Option<ServerSideApply>,
}

impl ApplyWay {
    /// Returns the name in the option and in JSON.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the words of reports.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Ssa => "server-side apply",
            Self::Csa => "client-side apply",
            Self::Helm => "Helm 3",
            Self::Merge => "a merge patch",
            Self::Replace => "a replace",
        }
    }

    /// Returns true if the API server tells admission which fields the author sets.
    pub(super) fn tells_manifest(self) -> bool {
        match self {
            Self::Ssa | Self::Csa => true,
            Self::Helm | Self::Merge | Self::Replace => false,
        }
    }

    /// Returns the object before the API server adds defaults.
    pub(super) fn apply(self, engines: &Engines, apply: ApplySides<'_>) -> anyhow::Result<Value> {
        let ApplySides { old, new, live, .. } = apply;
        let merged = |patch: &Value| {
            let mut after = live.clone();
            merge(&mut after, patch);
            after
        };
        Ok(match (self, &engines.strategic) {
            (Self::Ssa, _) => {
                let engine = engines.server_side.as_ref().context("its schema is not known")?;
                server_side(engine, apply)?
            }
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

/// Applies the new rendering by server-side apply. Without a stored object, the same manager has applied the old one before; the API
/// server's defaults have no owner.
fn server_side(engine: &ServerSideApply, apply: ApplySides<'_>) -> anyhow::Result<Value> {
    let ApplySides { old, new, live, is_stored } = apply;
    let list = live.pointer("/metadata/managedFields").unwrap_or(&Value::Null);
    let manager = if is_stored { applier(list) } else { DEFAULT_MANAGER };
    let managers = if is_stored {
        Managers::from_managed_fields(list)?
    } else {
        engine.apply(&Value::Null, &Managers::default(), manager, old, Conflicts::Overwrite)?.managers
    };
    Ok(engine.apply(live, &managers, manager, new, Conflicts::Overwrite)?.object)
}

/// Returns the only manager that has applied an object before, else that of kubectl.
fn applier(managed_fields: &Value) -> &str {
    let entries = managed_fields.as_array().into_iter().flatten();
    let applies = entries.filter(|entry| entry.get("operation").is_some_and(|operation| operation == "Apply"));
    let managers: BTreeSet<&str> = applies.filter_map(|entry| entry.get("manager")?.as_str()).collect();
    match managers.into_iter().collect::<Vec<_>>().as_slice() {
        [only] => only,
        _ => DEFAULT_MANAGER,
    }
}
