//! Publishes the kinds, the CAs and the token that are registered to the rest of the program.

use super::super::StoredPair;
use super::super::intent::Intent;
use super::super::stored::{bundle_of, inspection_token};
use super::{Registrar, our_entries};
use crate::controllers::trust::RegisteredBundle;
use crate::controllers::watch_channel::publish;
use kube_unions_core::admission::InspectionToken;
use std::sync::Arc;
use std::time::Instant;

impl Registrar {
    /// Publishes the kinds that are registered now.
    pub(super) fn confirm(&self, intent: &Intent) {
        if intent.keeps_rules {
            return;
        }
        let (now, before) = (Instant::now(), self.signals.registered.borrow().clone());
        let since = |kind| before.get(kind).copied().unwrap_or(now);
        let kinds = intent.rules.kinds.iter().map(|kind| (kind.clone(), since(kind))).collect();
        publish(&self.signals.registered, Arc::new(kinds));
    }

    /// Publishes the CAs and the token that the configurations hold.
    pub(super) fn report(&self, stored: &StoredPair) {
        let held = match our_entries(stored).map(bundle_of).reduce(|all, one| all.intersection(&one)) {
            None => RegisteredBundle::Nothing,
            Some(bundle) => RegisteredBundle::Bundle(bundle),
        };
        self.publish(held, stored.iter().find_map(|(_, stored)| inspection_token(stored.as_ref()?)));
    }

    pub(super) fn publish(&self, held: RegisteredBundle, token: Option<InspectionToken>) {
        publish(&self.signals.held, held);
        publish(&self.signals.inspection, token);
    }
}
