//! The catalog in force, and the answering of one review by it.
//!
//! A review takes no lock and looks up no label: the catalog and the counters of its kinds are one immutable value,
//! swapped whole when a catalog is published.

use super::review_metrics::{self, Counters, Durations, KindCounters};
use super::declarations::{Inspected, InspectionError};
use crate::telemetry::{Begin, Metrics, Span, Spans};
use arc_swap::ArcSwapOption;
use hyper::HeaderMap;
use kube_unions_core::admission::{self, Meter, Operation, Phase, Ratcheting, Review, ReviewError, ReviewOutcome};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::{Fault, Severity};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Answers a review: [`admission::review_within`], or a stand-in for it in a test.
pub type Reviewer =
    Arc<dyn Fn(&Catalog, Phase, Ratcheting, &[u8], &dyn Meter) -> Result<Review, ReviewError> + Send + Sync>;

/// Longest uid that is logged or traced; the API server's have 36 characters.
const LONGEST_UID: usize = 64;

/// Longest list of paths that is written to the log, in bytes.
const LOGGED_PATHS: usize = 4096;

/// Reviews under the catalog in force.
pub(super) struct Reviews {
    published: Arc<ArcSwapOption<Published>>,
    reviewer: Reviewer,
    /// Set where somebody wants to know.
    spans: OnceLock<Arc<dyn Spans>>,
    ratcheting: Ratcheting,
    /// Kinds that the catalog does not know, and bodies that are no review.
    other: Arc<KindCounters>,
    durations: Arc<Durations>,
    in_flight: Gauge,
    cleared: Counter,
}

impl Reviews {
    /// None in force yet. What is counted joins `metrics`.
    pub(super) fn new(reviewer: Reviewer, ratcheting: Ratcheting, metrics: &mut Metrics) -> Self {
        let published = Arc::<ArcSwapOption<Published>>::default();
        let other = Arc::new(KindCounters::new("other", "other"));
        let durations = Arc::<Durations>::default();
        metrics.register(Box::new(Counters::new(Arc::clone(&published), Arc::clone(&other), Arc::clone(&durations))));
        Self {
            published,
            reviewer,
            spans: OnceLock::new(),
            ratcheting,
            other,
            durations,
            in_flight: metrics.in_flight().clone(),
            cleared: metrics.fields_cleared().clone(),
        }
    }

    /// The default [`Reviewer`].
    pub(super) fn reviewer() -> Reviewer {
        Arc::new(admission::review_within)
    }

    /// Has reviews traced; the first counts.
    pub(super) fn trace_to(&self, spans: Arc<dyn Spans>) {
        self.spans.get_or_init(|| spans);
    }

    /// A request begins; `None` where nobody wants to know.
    pub(super) fn begin(&self, headers: &HeaderMap) -> Option<Begin> {
        self.spans.get().map(|_| Begin::now(headers))
    }

    pub(super) fn has_catalog(&self) -> bool {
        self.published.load().is_some()
    }

    /// Puts `catalog` in force, and logs which faults are new and which are gone.
    pub(super) fn publish(&self, catalog: Arc<Catalog>) {
        let previous = self.published.load_full();
        log_faults(previous.as_ref().map_or(&[], |it| it.catalog.faults()), catalog.faults());
        let next = Published::new(catalog, previous.as_deref());
        tracing::info!(kinds = next.catalog.entries().len(), unions = next.unions(), "catalog in force");
        self.published.store(Some(Arc::new(next)));
    }

    /// The admission review that answers `body`, which came with a request that began so; `None` while there is no
    /// catalog. Everything that is built for it is charged to `meter`.
    pub(super) fn answer(
        &self,
        phase: Phase,
        body: &[u8],
        meter: &dyn Meter,
        begin: Option<Begin>,
    ) -> Option<Result<Vec<u8>, ReviewError>> {
        let published = self.published.load();
        let published = published.as_ref()?;
        let _in_flight = InFlight::enter(&self.in_flight);
        let start = Instant::now();
        let review = (self.reviewer)(&published.catalog, phase, self.ratcheting, body, meter);
        let answer = review.and_then(|review| Ok((review.write(meter)?, review)));
        let answer = match answer {
            Ok((json, review)) => {
                let kind = review.ordinal().and_then(|ordinal| published.kinds.get(ordinal)).unwrap_or(&self.other);
                self.count(kind, phase, &review);
                self.trace(begin, kind.labels(), phase, Some((&review).into()));
                Ok(json)
            }
            // Nothing was found out about it.
            Err(error @ ReviewError::Exhausted(_)) => {
                self.trace(begin, self.other.labels(), phase, None);
                Err(error)
            }
            Err(error) => {
                self.other.count_unreadable(phase);
                self.trace(begin, self.other.labels(), phase, None);
                Err(error)
            }
        };
        self.durations.observe(phase, start.elapsed());
        Some(answer)
    }

    /// Runs an inspection as a review in flight, and counts, logs and traces its outcome.
    pub(super) async fn inspect<B>(
        &self,
        begin: Option<Begin>,
        inspection: impl Future<Output = (Result<Inspected, InspectionError>, B)>,
    ) -> (Result<Inspected, InspectionError>, B) {
        let phase = Phase::Validate;
        let _in_flight = InFlight::enter(&self.in_flight);
        let start = Instant::now();
        let (answer, body) = inspection.await;
        match &answer {
            Ok(Inspected { uid, operation, outcome, kind, denied, .. }) => {
                let (operation, outcome) = (*operation, *outcome);
                if outcome == ReviewOutcome::Denied {
                    log_denial(uid, *kind, operation, denied);
                }
                self.other.count(operation, phase, outcome);
                self.trace(begin, *kind, phase, Some(Traced { uid, operation, outcome }));
            }
            Err(InspectionError::Request(_)) => {
                self.other.count_unreadable(phase);
                self.trace(begin, self.other.labels(), phase, None);
            }
            // Nothing was reviewed.
            Err(InspectionError::Busy) => return (answer, body),
        }
        self.durations.observe(phase, start.elapsed());
        (answer, body)
    }

    fn count(&self, kind: &KindCounters, phase: Phase, review: &Review) {
        let outcome = review.outcome();
        kind.count(review.operation(), phase, outcome);
        match outcome {
            ReviewOutcome::Allowed | ReviewOutcome::Warned => {}
            ReviewOutcome::Patched => {
                self.cleared.inc_by(u64::try_from(review.cleared()).unwrap_or(u64::MAX));
            }
            ReviewOutcome::Denied => {
                log_denial(review.uid(), kind.labels(), review.operation(), &review.denied_paths());
            }
        }
    }

    /// `None` where nobody wants to know; `review`: `None` where it could not be read.
    fn trace(&self, begin: Option<Begin>, (group, kind): (&str, &str), phase: Phase, review: Option<Traced<'_>>) {
        let Some((spans, begin)) = self.spans.get().zip(begin) else { return };
        let [operation, phase, outcome] =
            counters::labels(phase, review.as_ref().map(|review| (review.operation, review.outcome)));
        let failed = review.is_none();
        let uid = review.map_or("", |review| head(review.uid, LONGEST_UID));
        let attributes = [
            ("admission.uid", uid),
            ("admission.group", group),
            ("admission.kind", kind),
            ("admission.operation", operation.1),
            ("admission.phase", phase.1),
            ("admission.outcome", outcome.1),
        ];
        spans.record(&Span { name: "admission review", begin: &begin, attributes: &attributes, failed });
    }
}

impl fmt::Debug for Reviews {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Reviews").field("ratcheting", &self.ratcheting).finish_non_exhaustive()
    }
}

/// What a trace says of a review, beside its labels.
struct Traced<'a> {
    uid: &'a str,
    operation: Operation,
    outcome: ReviewOutcome,
}

impl<'a> From<&'a Review> for Traced<'a> {
    fn from(review: &'a Review) -> Self {
        Self { uid: review.uid(), operation: review.operation(), outcome: review.outcome() }
    }
}

/// A catalog with the counters of its kinds.
#[derive(Debug)]
pub(super) struct Published {
    catalog: Arc<Catalog>,
    /// By `Entry::ordinal`; the versions of a kind share theirs.
    kinds: Box<[Arc<KindCounters>]>,
    /// The same, each once.
    distinct: Box<[Arc<KindCounters>]>,
    unions: BTreeMap<String, usize>,
    errors: usize,
}

impl Published {
    /// The counters of a kind that `previous` has, too, are carried over.
    fn new(catalog: Arc<Catalog>, previous: Option<&Self>) -> Self {
        let carried: HashMap<(&str, &str), &Arc<KindCounters>> =
            previous.iter().flat_map(|it| &it.distinct).map(|it| ((it.group(), it.kind()), it)).collect();
        let mut distinct: HashMap<(&str, &str), Arc<KindCounters>> = HashMap::new();
        let mut kinds = Vec::with_capacity(catalog.entries().len());
        let mut unions = BTreeMap::new();
        for entry in catalog.entries() {
            let gvk = entry.gvk();
            let label = (&*gvk.group, &*gvk.kind);
            let counters = distinct.entry(label).or_insert_with(|| match carried.get(&label) {
                Some(counters) => Arc::clone(counters),
                None => Arc::new(KindCounters::new(&gvk.group, &gvk.kind)),
            });
            kinds.push(Arc::clone(counters));
            for union in entry.plan().unions() {
                *unions.entry(union.source().to_string()).or_default() += 1;
            }
        }
        let errors = catalog.faults().iter().filter(|it| it.severity == Severity::Error).count();
        let distinct = distinct.into_values().collect();
        Self { catalog, kinds: kinds.into(), distinct, unions, errors }
    }

    /// The counters of all kinds; the versions of a kind share theirs.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &KindCounters> {
        self.distinct.iter().map(AsRef::as_ref)
    }

    /// How many unions each source of declarations has given.
    pub(super) fn unions_by_source(&self) -> &BTreeMap<String, usize> {
        &self.unions
    }

    /// Declarations that are not in force because they are wrong.
    pub(super) fn errors(&self) -> usize {
        self.errors
    }

    /// The digest of the catalog.
    pub(super) fn digest(&self) -> u64 {
        self.catalog.digest()
    }

    fn unions(&self) -> usize {
        self.unions.values().sum()
    }
}

/// Counts a review as long as it lasts, a panic included.
struct InFlight<'a>(&'a Gauge);

impl<'a> InFlight<'a> {
    fn enter(gauge: &'a Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Each fault is said once when it appears and once when it is gone, not with every catalog that has it.
fn log_faults(before: &[Fault], now: &[Fault]) {
    // A catalog's faults are sorted.
    for fault in now.iter().filter(|fault| before.binary_search(fault).is_err()) {
        match fault.severity {
            Severity::Error => tracing::warn!(%fault, "a declaration is not in force"),
            Severity::Warning => tracing::warn!(%fault, "a declaration may surprise"),
        }
    }
    for fault in before.iter().filter(|fault| now.binary_search(fault).is_err()) {
        tracing::info!(%fault, "a fault is gone");
    }
}

/// One line a denial. Group and kind are those of the catalog; of the object nothing but paths.
fn log_denial(uid: &str, (group, kind): (&str, &str), operation: Operation, paths: &[String]) {
    let mut listed = String::new();
    for (position, path) in paths.iter().filter(|path| !path.is_empty()).enumerate() {
        if listed.len() + path.len() > LOGGED_PATHS {
            listed.push_str(", …");
            break;
        }
        listed.push_str(if position == 0 { "" } else { ", " });
        listed.push_str(path);
    }
    let (uid, operation) = (head(uid, LONGEST_UID), operation.name());
    tracing::info!(uid, group, kind, operation, paths = listed, "denied");
}

fn head(text: &str, longest: usize) -> &str {
    text.char_indices().nth(longest).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}
