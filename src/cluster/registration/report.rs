//! Inputs and outputs of a look of the registrar, and the log of its writes.

use super::bundle::Bundle;
use super::desired::differences;
use super::entries::Phase;
use super::pace::Change;
use super::rules::Rules;
use serde_json::Value;
use std::time::Instant;
use tokio::sync::watch;

/// What is stored of each [`Phase`], `None` where it is not there.
pub(super) type Pair = [(Phase, Option<Value>); 2];

/// What is to be written of each [`Phase`], `None` where it is as wanted.
pub(super) type Writes = [Option<Value>; 2];

/// What came of a look.
pub(super) enum Look {
    /// Everything is as it is to be, or nothing is to be done: look again then.
    InStep(Instant),
    /// Something is still to be done.
    Pending(Instant),
}

/// Wakes receivers only where there is something new.
pub(super) fn publish<T: PartialEq>(sender: &watch::Sender<T>, value: T) {
    sender.send_if_modified(|known| {
        let is_new = *known != value;
        *known = value;
        is_new
    });
}

pub(super) fn pairwise<A, B, C>([a, b]: &[A; 2], [c, d]: &[B; 2], each: impl Fn(&A, &B) -> C) -> [C; 2] {
    [each(a, c), each(b, d)]
}

/// What the writes change, for the log.
pub(super) fn changes(stored: &Pair, writes: &Writes) -> Vec<String> {
    let mut all = Vec::new();
    for ((phase, stored), write) in stored.iter().zip(writes) {
        match (stored, write) {
            (_, None) => {}
            (None, Some(_)) => all.push(format!("{} is missing", phase.kind())),
            (Some(stored), Some(write)) => all.extend(differences(stored, write)),
        }
    }
    all
}

/// The first few, as one text.
pub(super) fn shortened(differences: &[String]) -> String {
    const MOST: usize = 8;
    let mut text = differences.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    if differences.len() > MOST {
        text.push_str(", …");
    }
    text
}

pub(super) fn log(change: Change, rules: &Rules, differences: &[String]) {
    let (custom, builtin) = (rules.custom.len(), rules.builtin.len());
    let differences = shortened(differences);
    match change {
        Change::Ours => tracing::info!(custom, builtin, differences, "the webhook configurations were written"),
        Change::Drift | Change::Harmless => {
            tracing::warn!(differences, "the webhook configurations were put right");
        }
    }
}

pub(super) fn all_of(bundles: impl Iterator<Item = Bundle>) -> Bundle {
    bundles.fold(Bundle::default(), Bundle::union)
}
