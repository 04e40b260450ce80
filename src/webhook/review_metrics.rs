//! Reviews by kind, operation, phase and outcome, and how long they took: tables of atomics, read when somebody asks.
//!
//! Labels come from the catalog alone. A request cannot make a new series: what the catalog does not know counts as
//! `other`.

use super::reviews::Published;
use arc_swap::ArcSwapOption;
use kube_unions_core::admission::{Operation, Phase, ReviewOutcome};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const OPERATIONS: [&str; 5] = ["CREATE", "UPDATE", "DELETE", "CONNECT", OTHER];
const PHASES: [&str; 2] = ["mutate", "validate"];
const OUTCOMES: [&str; 5] = ["allowed", "patched", "warned", "denied", "unreadable"];
/// The operation of a body in which none could be read.
const OTHER: &str = "other";

/// Upper bounds in seconds; the smallest review takes about ten microseconds.
const BOUNDS: [f64; 16] =
    [1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0];

/// The reviews of one kind, all its versions together.
#[derive(Debug)]
pub(super) struct KindCounters {
    group: Box<str>,
    kind: Box<str>,
    cells: [[[AtomicU64; OUTCOMES.len()]; PHASES.len()]; OPERATIONS.len()],
}

impl KindCounters {
    pub(super) fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into(), cells: Default::default() }
    }

    pub(super) fn group(&self) -> &str {
        &self.group
    }

    pub(super) fn kind(&self) -> &str {
        &self.kind
    }

    /// Group and kind.
    pub(super) fn labels(&self) -> (&str, &str) {
        (&self.group, &self.kind)
    }

    pub(super) fn count(&self, operation: Operation, phase: Phase, outcome: ReviewOutcome) {
        self.add(operation_index(operation), phase, outcome_index(outcome));
    }

    pub(super) fn count_unreadable(&self, phase: Phase) {
        self.add(OPERATIONS.len() - 1, phase, OUTCOMES.len() - 1);
    }

    fn add(&self, operation: usize, phase: Phase, outcome: usize) {
        let cell = self.cells.get(operation).and_then(|it| it.get(phase_index(phase))).and_then(|it| it.get(outcome));
        if let Some(cell) = cell {
            cell.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What has been counted at all: labels and number.
    fn series(&self) -> impl Iterator<Item = ([(&'static str, &str); 5], u64)> {
        OPERATIONS.iter().zip(&self.cells).flat_map(move |(operation, phases)| {
            PHASES.iter().zip(phases).flat_map(move |(phase, outcomes)| {
                OUTCOMES.iter().zip(outcomes).filter_map(move |(outcome, cell)| {
                    let labels = [
                        ("group", self.group()),
                        ("kind", self.kind()),
                        ("operation", operation),
                        ("phase", phase),
                        ("outcome", outcome),
                    ];
                    match cell.load(Ordering::Relaxed) {
                        0 => None,
                        count => Some((labels, count)),
                    }
                })
            })
        })
    }
}

/// How long reviews took, by phase.
#[derive(Debug, Default)]
pub(super) struct Durations([Histogram; PHASES.len()]);

impl Durations {
    pub(super) fn observe(&self, phase: Phase, took: Duration) {
        if let Some(histogram) = self.0.get(phase_index(phase)) {
            histogram.observe(took);
        }
    }
}

#[derive(Debug, Default)]
struct Histogram {
    /// One more than [`BOUNDS`]: the last takes what is above all of them.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Histogram {
    fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.nanoseconds.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Shows all of it, under the catalog in force at the moment.
#[derive(Debug)]
pub(super) struct Counters {
    published: Arc<ArcSwapOption<Published>>,
    other: Arc<KindCounters>,
    durations: Arc<Durations>,
}

impl Counters {
    pub(super) fn new(
        published: Arc<ArcSwapOption<Published>>,
        other: Arc<KindCounters>,
        durations: Arc<Durations>,
    ) -> Self {
        Self { published, other, durations }
    }
}

impl Collector for Counters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let published = self.published.load_full();

        let mut reviews = encoder.encode_descriptor(
            "admission_reviews",
            "Reviews answered; kinds without unions and unreadable bodies are `other`",
            None,
            MetricType::Counter,
        )?;
        let kinds = published.iter().flat_map(|it| it.kinds()).chain([self.other.as_ref()]);
        for (labels, count) in kinds.flat_map(KindCounters::series) {
            reviews.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }

        let mut durations = encoder.encode_descriptor(
            "admission_review_duration_seconds",
            "Time from a whole body to a whole answer",
            None,
            MetricType::Histogram,
        )?;
        for (phase, histogram) in PHASES.iter().zip(&self.durations.0) {
            let bounds = BOUNDS.iter().copied().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> =
                bounds.zip(&histogram.buckets).map(|(bound, cell)| (bound, cell.load(Ordering::Relaxed))).collect();
            let count = buckets.iter().map(|(_, count)| count).sum();
            let sum = Duration::from_nanos(histogram.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
            durations
                .encode_family(&[("phase", *phase)])?
                .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }

        let mut unions = encoder.encode_descriptor(
            "catalog_unions",
            "Unions in force, by where they were declared",
            None,
            MetricType::Gauge,
        )?;
        for (source, count) in published.iter().flat_map(|it| it.unions_by_source()) {
            unions.encode_family(&[("source", source.as_str())])?.encode_gauge(count)?;
        }

        if let Some(published) = &published {
            let digest = i64::try_from(published.digest()).unwrap_or_default();
            encoder
                .encode_descriptor(
                    "catalog_digest",
                    "A number that is the same in all replicas of one version that have the same catalog",
                    None,
                    MetricType::Gauge,
                )?
                .encode_gauge(&digest)?;
        }

        let errors = published.as_ref().map_or(0, |it| it.errors());
        encoder
            .encode_descriptor("declaration_faults", "What is wrong with declarations", None, MetricType::Gauge)?
            .encode_gauge(&errors)
    }
}

/// The labels of a review: its operation, phase and outcome. `None`: it could not be read.
pub(super) fn labels(phase: Phase, read: Option<(Operation, ReviewOutcome)>) -> [(&'static str, &'static str); 3] {
    let (operation, outcome) = read.map_or((OPERATIONS.len() - 1, OUTCOMES.len() - 1), |(operation, outcome)| {
        (operation_index(operation), outcome_index(outcome))
    });
    let label = |of: &[&'static str], index: usize| of.get(index).copied().unwrap_or(OTHER);
    [
        ("operation", label(&OPERATIONS, operation)),
        ("phase", label(&PHASES, phase_index(phase))),
        ("outcome", label(&OUTCOMES, outcome)),
    ]
}

fn outcome_index(outcome: ReviewOutcome) -> usize {
    match outcome {
        ReviewOutcome::Allowed => 0,
        ReviewOutcome::Patched => 1,
        ReviewOutcome::Warned => 2,
        ReviewOutcome::Denied => 3,
    }
}

fn operation_index(operation: Operation) -> usize {
    match operation {
        Operation::Create => 0,
        Operation::Update => 1,
        Operation::Delete => 2,
        Operation::Connect => 3,
    }
}

fn phase_index(phase: Phase) -> usize {
    match phase {
        Phase::Mutate | Phase::Both => 0,
        Phase::Validate => 1,
    }
}
