//! Which schemas are to be fetched, and when: a kind whose declarations changed at once, one that could not be had again
//! after a while, one that comes from a document when that may have changed.
//!
//! One round is under way at a time. What becomes due meanwhile waits for the next, so that ten thousand declarations of
//! one kind cost one fetch and not ten thousand.

use super::known::Known;
use super::raw::RawDefinition;
use super::schemas::{Edition, SchemaError, Schemas};
use kube_unions_core::names::GroupKind;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// CRDs a round; each can pass a megabyte.
const DEFINITIONS: usize = 20;

/// How often the index of documents is looked at: it changes with the server's version.
const POLL: Duration = Duration::from_mins(1);

/// The same while a target is missing, which may be an API that comes up.
const POLL_MISSING: Duration = Duration::from_secs(10);

/// Wait after a failed fetch, doubled with each one up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// What to fetch.
pub(super) struct Order {
    kind: GroupKind,
    from: From,
}

enum From {
    Definition(Box<str>),
    Documents {
        versions: Option<BTreeSet<String>>,
        /// Not if they are still these.
        unless: Option<Vec<String>>,
    },
}

/// What came of an order.
pub(super) enum Fetched {
    Definition(Box<RawDefinition>),
    Documents(Edition),
    Unchanged,
    /// The CRD is gone, which the watch is about to say.
    Gone,
}

/// What came of a round.
pub(super) struct Answers {
    pub(super) kinds: Vec<(GroupKind, Result<Fetched, SchemaError>)>,
    /// The kinds that publish unions, if that was asked.
    pub(super) publishing: Option<Result<BTreeSet<GroupKind>, SchemaError>>,
}

/// Fetches what is ordered.
pub(super) async fn fetch(schemas: Arc<Schemas>, orders: Vec<Order>, publishing: bool) -> Answers {
    let needs_index = publishing || orders.iter().any(|order| matches!(order.from, From::Documents { .. }));
    let index = if needs_index { schemas.index().await } else { Ok(super::schemas::Index::default()) };
    let publishing = match (publishing, &index) {
        (false, _) => None,
        (true, Ok(index)) => Some(schemas.publishing(index).await),
        (true, Err(error)) => Some(Err(error.clone())),
    };
    let mut kinds = Vec::with_capacity(orders.len());
    for Order { kind, from } in orders {
        let fetched = match (from, &index) {
            (From::Definition(name), _) => schemas
                .definition(&name)
                .await
                .map(|found| found.map_or(Fetched::Gone, |raw| Fetched::Definition(Box::new(raw)))),
            (From::Documents { .. }, Err(error)) => Err(error.clone()),
            (From::Documents { versions, unless }, Ok(index)) => {
                if unless.is_some_and(|urls| urls == index.urls(&kind, versions.as_ref())) {
                    Ok(Fetched::Unchanged)
                } else {
                    schemas.edition(index, &kind, versions.as_ref()).await.map(Fetched::Documents)
                }
            }
        };
        kinds.push((kind, fetched));
    }
    Answers { kinds, publishing }
}

/// What is due when.
#[derive(Debug)]
pub(super) struct Schedule {
    /// `true`: whatever the documents are now.
    due: BTreeMap<GroupKind, bool>,
    in_flight: BTreeSet<GroupKind>,
    failed: BTreeMap<GroupKind, Failed>,
    /// When to look at the index.
    poll: Instant,
    /// The kinds that publish unions are to be found out: where anybody wants to know, at each look at the index.
    publishing: bool,
    wants_publishing: bool,
}

#[derive(Debug)]
struct Failed {
    until: Instant,
    failures: u32,
    /// What was logged.
    reason: String,
}

impl Schedule {
    pub(super) fn new(wants_publishing: bool) -> Self {
        Self {
            due: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            failed: BTreeMap::new(),
            poll: Instant::now() + POLL,
            publishing: wants_publishing,
            wants_publishing,
        }
    }

    /// A kind is to be fetched anew.
    pub(super) fn want(&mut self, kind: &GroupKind) {
        self.due.insert(kind.clone(), true);
    }

    /// A kind needs no fetch any more; the answer of one that is under way does not count.
    pub(super) fn drop(&mut self, kind: &GroupKind) {
        self.due.remove(kind);
        self.in_flight.remove(kind);
        self.failed.remove(kind);
    }

    /// Whether what is known of a kind may be behind what is declared.
    pub(super) fn is_behind(&self, kind: &GroupKind) -> bool {
        self.due.get(kind) == Some(&true) || self.in_flight.contains(kind) || self.failed.contains_key(kind)
    }

    /// Whether everything was tried at least once.
    pub(super) fn is_tried(&self) -> bool {
        self.due.is_empty() && self.in_flight.is_empty() && !self.publishing
    }

    /// The index may have changed: it is looked at soon.
    pub(super) fn hurry(&mut self) {
        self.poll = self.poll.min(Instant::now() + Duration::from_secs(1));
    }

    /// When there will be something to do, if nothing happens.
    pub(super) fn next(&self) -> Instant {
        self.failed.values().map(|failed| failed.until).fold(self.poll, Instant::min)
    }

    /// What is to be fetched now, and whether the kinds that publish are to be found out; `None` if there is nothing.
    pub(super) fn orders<'k>(
        &mut self,
        known: &Known,
        from_documents: impl Iterator<Item = (&'k GroupKind, &'k [String])>,
        missing: &'k BTreeMap<GroupKind, Vec<String>>,
        whole: bool,
    ) -> Option<(Vec<Order>, bool)> {
        if !self.in_flight.is_empty() {
            return None;
        }
        let now = Instant::now();
        let editions: BTreeMap<_, _> =
            from_documents.chain(missing.iter().map(|(kind, urls)| (kind, urls.as_slice()))).collect();
        if now >= self.poll {
            for kind in editions.keys() {
                self.due.entry((*kind).clone()).or_insert(false);
            }
            self.publishing = self.wants_publishing;
            self.poll = now + if missing.is_empty() { POLL } else { POLL_MISSING };
        }
        for (kind, _) in self.failed.iter().filter(|(_, failed)| now >= failed.until) {
            self.due.insert(kind.clone(), true);
        }
        let mut orders = Vec::new();
        let mut definitions = 0;
        let mut later = BTreeMap::new();
        for (kind, anew) in std::mem::take(&mut self.due) {
            let from = match known.definition(&kind) {
                Some(_) if definitions >= DEFINITIONS => {
                    later.insert(kind, anew);
                    continue;
                }
                Some(name) => {
                    definitions += 1;
                    From::Definition(name.into())
                }
                None => {
                    let unless = editions.get(&kind).filter(|_| !anew).map(|urls| urls.to_vec());
                    From::Documents { versions: if whole { None } else { known.versions(&kind) }, unless }
                }
            };
            self.in_flight.insert(kind.clone());
            orders.push(Order { kind, from });
        }
        self.due = later;
        let publishing = std::mem::take(&mut self.publishing);
        (publishing || !orders.is_empty()).then_some((orders, publishing))
    }

    /// Whether the answer to an order still counts.
    pub(super) fn take(&mut self, kind: &GroupKind) -> bool {
        self.in_flight.remove(kind)
    }

    /// A kind was fetched.
    pub(super) fn succeed(&mut self, kind: &GroupKind) {
        if self.failed.remove(kind).is_some() {
            tracing::debug!(%kind, "the schema can be had again");
        }
    }

    /// A kind was not fetched; it is tried again. Tells whether the reason is a new one.
    pub(super) fn fail(&mut self, kind: &GroupKind, reason: &str) -> bool {
        let before = self.failed.remove(kind);
        let failures = before.as_ref().map_or(0, |before| before.failures.saturating_add(1));
        let until = Instant::now() + wait(failures);
        self.failed.insert(kind.clone(), Failed { until, failures, reason: reason.to_owned() });
        before.is_none_or(|before| before.reason != reason)
    }
}

fn wait(failures: u32) -> Duration {
    FIRST_WAIT.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST_WAIT)
}
