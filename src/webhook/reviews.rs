//! Answers reviews by the catalog in force, and counts, logs and traces the answers.
//!
//! A review takes no lock to find its kind: the catalog and the counters of its kinds are one immutable value, which the next
//! catalog replaces as a whole (`published`). HTTP stays in `routes`; `inspections` judges objects that declare unions.

use super::config::{Config, Reviewer};
use super::inspections::{Inspected, InspectionError};
use super::published::{CatalogMetrics, PublishedCatalog};
use super::review_metrics::{KindCounters, OTHER, ReviewLabels, phase_label};
use crate::telemetry::{Metrics, ReviewDurations, Span, SpanStart, Spans};
use arc_swap::ArcSwapOption;
use hyper::HeaderMap;
use kube_unions_core::admission::{Meter, Operation, Phase, Ratcheting, Review, ReviewError, ReviewOutcome};
use kube_unions_core::catalog::Catalog;
use kube_unions_core::declaration::{Fault, Severity};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use std::sync::Arc;
use std::time::Instant;

/// Longest uid in a log line or a span, in characters. The API server's uids have 36.
const LONGEST_UID: usize = 64;

/// Longest list of paths in a log line, in bytes.
const LOGGED_PATHS: usize = 4096;

/// Answers reviews by the catalog in force.
pub(super) struct Reviews {
    published: Arc<ArcSwapOption<PublishedCatalog>>,
    reviewer: Reviewer,
    /// `None` if reviews are not traced.
    spans: Option<Arc<dyn Spans>>,
    ratcheting: Ratcheting,
    /// Counts reviews of kinds that the catalog does not know, and bodies that are not reviews.
    other: Arc<KindCounters>,
    durations: ReviewDurations,
    in_flight: Gauge,
    cleared: Counter,
}

impl Reviews {
    /// Returns reviews without a catalog, and adds their metrics to `metrics`.
    pub(super) fn new(config: &Config, metrics: &mut Metrics) -> Self {
        let published = Arc::<ArcSwapOption<PublishedCatalog>>::default();
        let other = Arc::new(KindCounters::new(OTHER, OTHER));
        metrics.register(Box::new(CatalogMetrics { published: Arc::clone(&published), other: Arc::clone(&other) }));
        for phase in [Phase::Mutate, Phase::Validate] {
            // Before the first review, so that a rate starts from zero.
            drop(metrics.review_durations.get_or_create(&[("phase", phase_label(phase))]));
        }
        Self {
            published,
            reviewer: Arc::clone(&config.reviewer),
            spans: config.spans.clone(),
            ratcheting: config.ratcheting,
            other,
            durations: metrics.review_durations.clone(),
            in_flight: metrics.in_flight.clone(),
            cleared: metrics.fields_cleared.clone(),
        }
    }

    /// Returns the start of a request's span; `None` if reviews are not traced.
    pub(super) fn start_span(&self, headers: &HeaderMap) -> Option<SpanStart> {
        self.spans.as_ref().map(|_| SpanStart::now(headers))
    }

    /// Returns true after the first catalog.
    pub(super) fn has_catalog(&self) -> bool {
        self.published.load().is_some()
    }

    /// Puts `catalog` in force, and logs each fault that is new or gone.
    pub(super) fn publish(&self, catalog: Arc<Catalog>) {
        let previous = self.published.load_full();
        log_faults(previous.as_ref().map_or(&[], |it| it.catalog.faults()), catalog.faults());
        let next = PublishedCatalog::new(catalog, previous.as_deref());
        tracing::info!(kinds = next.catalog.entries().len(), unions = next.unions(), "catalog in force");
        self.published.store(Some(Arc::new(next)));
    }

    /// Answers the review in `body`. Returns `None` before the first catalog. Charges everything that it builds to `meter`.
    pub(super) fn answer(
        &self,
        phase: Phase,
        body: &[u8],
        meter: &dyn Meter,
        start: Option<SpanStart>,
    ) -> Option<Result<Vec<u8>, ReviewError>> {
        let published = self.published.load();
        let published = published.as_ref()?;
        let _in_flight = InFlight::enter(&self.in_flight);
        let began = Instant::now();
        let review = (self.reviewer)(&published.catalog, phase, self.ratcheting, body, meter);
        let answer = review.and_then(|review| Ok((review.write(meter)?, review)));
        let answer = match answer {
            Ok((json, review)) => {
                let kind = review.ordinal().and_then(|ordinal| published.counters(ordinal)).unwrap_or(&self.other);
                self.record(&review, kind, phase, start);
                Ok(json)
            }
            Err(error) => {
                let labels = ReviewLabels::unreadable(phase);
                // A review without enough memory may be readable.
                if !matches!(error, ReviewError::Exhausted(_)) {
                    self.other.count(labels);
                }
                self.trace(start, (OTHER, OTHER), labels, None);
                Err(error)
            }
        };
        self.observe_duration(phase, began);
        Some(answer)
    }

    /// Runs an inspection as a review in flight, and counts, logs and traces its answer.
    pub(super) async fn inspect<B>(
        &self,
        start: Option<SpanStart>,
        inspection: impl Future<Output = (Result<Inspected, InspectionError>, B)>,
    ) -> (Result<Inspected, InspectionError>, B) {
        let phase = Phase::Validate;
        let _in_flight = InFlight::enter(&self.in_flight);
        let began = Instant::now();
        let (answer, body) = inspection.await;
        match &answer {
            Ok(Inspected { uid, operation, outcome, kind, denied, .. }) => {
                let (operation, outcome) = (*operation, *outcome);
                if outcome == ReviewOutcome::Denied {
                    log_denial(uid, *kind, operation, denied);
                }
                let labels = ReviewLabels::answered(operation, phase, outcome);
                self.other.count(labels);
                self.trace(start, *kind, labels, Some(uid));
            }
            Err(InspectionError::Request(_)) => {
                let labels = ReviewLabels::unreadable(phase);
                self.other.count(labels);
                self.trace(start, (OTHER, OTHER), labels, None);
            }
            // It was refused before its review began.
            Err(InspectionError::Busy) => return (answer, body),
        }
        self.observe_duration(phase, began);
        (answer, body)
    }

    /// Counts, logs and traces the answer to a review.
    fn record(&self, review: &Review, kind: &KindCounters, phase: Phase, start: Option<SpanStart>) {
        let labels = ReviewLabels::answered(review.operation(), phase, review.outcome());
        kind.count(labels);
        kind.count_audited(review.audited());
        match review.outcome() {
            ReviewOutcome::Allowed | ReviewOutcome::Warned => {}
            ReviewOutcome::Patched => drop(self.cleared.inc_by(u64::try_from(review.cleared()).unwrap_or(u64::MAX))),
            ReviewOutcome::Denied => {
                log_denial(review.uid(), kind.group_kind(), review.operation(), &review.denied_paths());
            }
        }
        self.trace(start, kind.group_kind(), labels, Some(review.uid()));
    }

    /// Sends a span. A body that cannot be read has no `uid`, and its span has failed.
    fn trace(&self, start: Option<SpanStart>, (group, kind): (&str, &str), labels: ReviewLabels, uid: Option<&str>) {
        let Some((spans, start)) = self.spans.as_ref().zip(start) else { return };
        let [operation, phase, outcome] = labels.names();
        let attributes = [
            ("admission.uid", head(uid.unwrap_or_default(), LONGEST_UID)),
            ("admission.group", group),
            ("admission.kind", kind),
            ("admission.operation", operation),
            ("admission.phase", phase),
            ("admission.outcome", outcome),
        ];
        spans.record(&Span { name: "admission review", start: &start, attributes: &attributes, failed: uid.is_none() });
    }

    fn observe_duration(&self, phase: Phase, began: Instant) {
        let seconds = began.elapsed().as_secs_f64();
        self.durations.get_or_create(&[("phase", phase_label(phase))]).observe(seconds);
    }
}

/// Counts a review as in flight until it is dropped, even by a panic.
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

/// Logs each fault once when it appears and once when it is gone.
fn log_faults(before: &[Fault], now: &[Fault]) {
    // The faults of a catalog are sorted.
    for fault in now.iter().filter(|fault| before.binary_search(fault).is_err()) {
        match fault.severity() {
            Severity::Error => tracing::warn!(%fault, "a declaration is not in force"),
            Severity::Warning => tracing::warn!(%fault, "a declaration may have a surprising effect"),
            Severity::Note => tracing::info!(%fault, "a note on a declaration"),
        }
    }
    for fault in before.iter().filter(|fault| now.binary_search(fault).is_err()) {
        tracing::info!(%fault, "a fault is gone");
    }
}

/// Logs a denial in one line: the uid, the kind and the paths, but no value of the object.
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
