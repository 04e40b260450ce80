//! Hooks: objects that Helm and Argo CD create at an event, whatever the old rendering has.
//!
//! The sources: `SortManifests`, `execHook` and `existingResourceConflict` of Helm 3.21 and 4.3, and `hook.Types`, `hook.DeletePolicies`
//! and `syncPhases` of Argo CD's gitops-engine 3.6.

use crate::input::manifest::Document;

/// A client that knows hooks, and what it does with the new rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum HookClient {
    /// `helm install`.
    HelmInstall,
    /// `helm upgrade` of a release.
    HelmUpgrade,
    /// A sync of Argo CD.
    ArgoCd,
}

/// A hook, by the client that applies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hook {
    /// True if the client runs it now.
    pub(super) runs: bool,
    /// True if the client ran it when it first applied the rendering.
    pub(super) has_run: bool,
    /// True if an object of the old rendering that is no hook is still there when it runs.
    pub(super) meets_objects: bool,
    pub(super) deletes: HookDeletions,
}

/// When a client deletes the object of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HookDeletions {
    /// True if it does before it runs the hook.
    pub(super) before: bool,
    /// True if it does once the hook has succeeded.
    pub(super) after: bool,
}

/// The reason for which a client refuses an object, whatever its unions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectRefusal {
    /// Only a create generates a name. Has the words of the client.
    GeneratedName(&'static str),
    /// Helm creates a hook whose name is generated, and cannot delete it.
    NotDeleted,
    /// Helm creates a hook beside the object of its name.
    AlreadyExists,
    /// Helm takes no hook over as an object of the release.
    NotImported,
}

/// The words of client-go about a request that needs a name.
pub(super) const NO_NAME: &str = "resource name may not be empty";

/// The events of Helm. It ignores a manifest with another one.
const HELM_EVENTS: [&str; 10] = [
    "pre-install",
    "post-install",
    "pre-delete",
    "post-delete",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "test",
    "test-success",
];
const HELM_HOOK: &str = "helm.sh/hook";
const HELM_POLICY: &str = "helm.sh/hook-delete-policy";

const ARGO_HOOK: &str = "argocd.argoproj.io/hook";
const ARGO_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
const ARGO_SKIP: &str = "Skip";
/// The phases of a sync that succeeds.
const ARGO_PHASES: [&str; 3] = ["PreSync", "Sync", "PostSync"];
/// The other types of hooks.
const ARGO_OTHERS: [&str; 2] = ["SyncFail", ARGO_SKIP];
/// The events of Helm that are phases of a sync.
const ARGO_HELM_EVENTS: [&str; 4] = ["pre-install", "pre-upgrade", "post-install", "post-upgrade"];

impl HookClient {
    /// Returns the words of reports.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::HelmInstall => "`helm install`",
            Self::HelmUpgrade => "`helm upgrade`",
            Self::ArgoCd => "a sync of Argo CD",
        }
    }

    /// Returns the hook that a document is. `None`: the client applies it as any object.
    pub(super) fn hook(self, document: &Document) -> Option<Hook> {
        match self {
            Self::HelmInstall => helm_hook(document, &["pre-install"], &["post-install"]),
            Self::HelmUpgrade => helm_hook(document, &["pre-upgrade"], &["post-upgrade"]),
            Self::ArgoCd => argo_hook(document),
        }
    }
}

impl ObjectRefusal {
    /// Returns true if the API server first judges the create of the object.
    pub(super) fn is_after_a_create(self) -> bool {
        matches!(self, Self::AlreadyExists | Self::NotDeleted)
    }

    /// Returns the field, its JSON Pointer in the document, what the client says, and what to do.
    pub(super) fn words(self, document: &Document) -> [&'static str; 4] {
        match self {
            Self::GeneratedName(words) => [
                "metadata.generateName",
                "/metadata/generateName",
                words,
                "only a create generates a name: set `metadata.name`, or use `kubectl create`",
            ],
            Self::NotDeleted => [
                "metadata.generateName",
                "/metadata/generateName",
                NO_NAME,
                "Helm creates the hook and cannot delete it: set `metadata.name`, or no policy but `hook-failed`",
            ],
            Self::AlreadyExists => {
                let advice = if document.is_definition() {
                    "Helm deletes no CRD for a hook: put it into the folder `crds` of the chart"
                } else {
                    "the earlier hook is still there: add `before-hook-creation` to its `helm.sh/hook-delete-policy`"
                };
                ["metadata.name", "/metadata/name", "already exists", advice]
            }
            Self::NotImported => [
                "metadata.name",
                "/metadata/name",
                "exists and cannot be imported into the current release",
                "the hook of the old rendering is still there: delete it once, before the upgrade",
            ],
        }
    }
}

/// Returns true for a hook of Helm. A chart may have one of each name for each event.
pub(super) fn is_helm_hook(document: &Document) -> bool {
    annotation(document, HELM_HOOK).is_some()
}

fn helm_hook(document: &Document, before: &[&str], after: &[&str]) -> Option<Hook> {
    let lowercase = |name| Some(list(&annotation(document, name)?.to_lowercase()));
    let events = lowercase(HELM_HOOK)?;
    let policies = lowercase(HELM_POLICY);
    let is_known = events.iter().all(|event| HELM_EVENTS.contains(&&**event));
    let runs_at = |wanted: &[&str]| is_known && events.iter().any(|event| wanted.contains(&&**event));
    let has_policy = |policy: &str| policies.as_ref().is_some_and(|all| all.iter().any(|it| it == policy));
    let is_deleted = !document.is_definition();
    Some(Hook {
        runs: runs_at(before) || runs_at(after),
        has_run: runs_at(&["pre-install", "post-install"]),
        meets_objects: runs_at(before),
        deletes: HookDeletions {
            before: is_deleted && (policies.is_none() || has_policy("before-hook-creation")),
            after: is_deleted && has_policy("hook-succeeded"),
        },
    })
}

fn argo_hook(document: &Document) -> Option<Hook> {
    let given = |name| list(&annotation(document, name).unwrap_or_default());
    let mut types = given(ARGO_HOOK);
    types.retain(|it| ARGO_PHASES.contains(&&**it) || ARGO_OTHERS.contains(&&**it));
    let is_argo = annotation(document, ARGO_HOOK).is_some();
    if !is_argo && annotation(document, HELM_HOOK).is_none_or(|events| events == "crd-install") {
        return None;
    }
    let is_helm = types.is_empty() && given(HELM_HOOK).iter().any(|event| ARGO_HELM_EVENTS.contains(&&**event));
    let runs = is_helm || types.iter().any(|it| ARGO_PHASES.contains(&&**it));
    let [own, of_helm] = [given(ARGO_POLICY), given(HELM_POLICY)];
    let has_policy = |name: &str, helm_name: &str| {
        own.iter().any(|policy| policy == name) || of_helm.iter().any(|policy| policy == helm_name)
    };
    let deletes_after = has_policy("HookSucceeded", "hook-succeeded");
    let has_another = deletes_after || has_policy("HookFailed", "hook-failed");
    Some(Hook {
        runs,
        has_run: runs,
        meets_objects: true,
        deletes: HookDeletions {
            before: has_policy("BeforeHookCreation", "before-hook-creation") || !has_another,
            after: deletes_after,
        },
    })
}

fn annotation(document: &Document, name: &str) -> Option<String> {
    document.text_at(&["metadata", "annotations", name])
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(|it| it.trim().to_owned()).collect()
}
