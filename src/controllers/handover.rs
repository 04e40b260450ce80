//! The kinds that policies enforce instead of the webhook: what the policies and the registration tell each other, so that
//! every kind is enforced by at least one of the two at any time.
//!
//! The registration drops a kind only when the [`Coverage`] says that policies enforce it. The policies of a kind are deleted
//! only when [`RegisteredKinds`] has had the kind for a while.

use kube_unions_core::names::GroupKind;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// The kinds that the webhook leaves to policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    /// Not known yet. The registered rules stay as they are.
    Unknown,
    /// Policies enforce these kinds. The webhook is registered for all other kinds.
    Kinds(Arc<BTreeSet<GroupKind>>),
    /// The webhook is registered for no kind.
    Everything,
}

/// The kinds that the webhook is registered for, each with the time since when.
pub type RegisteredKinds = Arc<BTreeMap<GroupKind, Instant>>;

impl Coverage {
    /// Returns the coverage without policies.
    pub fn none() -> Self {
        Self::Kinds(Arc::default())
    }
}
