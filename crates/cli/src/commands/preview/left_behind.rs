//! The members of an invalid union that the new rendering does not set, and why they are there.

use super::trial::PreviewTrial;
use kube_unions_core::field_path::pointer;
use kube_unions_offline::InvalidUnion;
use serde::Serialize;
use serde_json::Value;
use strategic_merge_patch::FieldManager;

/// The reason why a member is in the live object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum MemberOrigin {
    /// The old rendering sets it.
    OldRendering,
    /// The API server added it to the old rendering.
    Default,
    /// The live object has it, and the manifest that was applied last does not.
    LiveObject,
}

/// A member that is in the object after an apply and that the manifest does not set.
#[derive(Debug)]
pub(super) struct LeftBehind {
    pub(super) member: String,
    pub(super) origin: MemberOrigin,
    /// The field managers that own it in the live object.
    pub(super) owners: Vec<FieldManager>,
}

impl PreviewTrial<'_, '_> {
    /// Returns the members that the new rendering does not set, why they are in the live object, and who owns them after the apply.
    pub(super) fn left_behind(&self, invalid: &InvalidUnion<'_>, after: &Value) -> Vec<LeftBehind> {
        if self.merges_duplicates() {
            // An item of the new rendering may set it.
            return Vec::new();
        }
        let members = invalid.members.iter().filter(|name| invalid.blames(name) && !self.new.sets(invalid, name));
        let is_old = |name: &str| self.old.as_ref().is_some_and(|old| old.sets(invalid, name));
        let origin = |name: &str| match (is_old(name), self.documents.live) {
            (true, _) => MemberOrigin::OldRendering,
            (false, Some(_)) => MemberOrigin::LiveObject,
            (false, None) => MemberOrigin::Default,
        };
        let left_behind = |name: &&str| LeftBehind {
            member: (*name).to_owned(),
            origin: origin(name),
            owners: self.owners(invalid, name, after),
        };
        members.map(left_behind).collect()
    }

    fn owners(&self, invalid: &InvalidUnion<'_>, member: &str, after: &Value) -> Vec<FieldManager> {
        if self.creates() {
            return Vec::new();
        }
        let mut without = after.clone();
        let at = pointer(invalid.address.tokens(after));
        if let Some(fields) = without.pointer_mut(&at).and_then(Value::as_object_mut) {
            fields.remove(member);
        }
        // A server-side apply read the managers. The other clients do not, so that a live object may lack them.
        self.kind.engines().owners(after, &without).unwrap_or_default()
    }
}
