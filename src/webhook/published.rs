//! The catalog in force, together with the review counters of its kinds, and their metrics.

use super::review_metrics::KindCounters;
use arc_swap::ArcSwapOption;
use kube_unions_core::catalog::Catalog;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A catalog with the counters of its kinds. It never changes: the next catalog replaces it as a whole.
#[derive(Debug)]
pub(super) struct PublishedCatalog {
    pub(super) catalog: Arc<Catalog>,
    /// By the ordinal of a catalog entry. The versions of a kind share their counters.
    by_ordinal: Box<[Arc<KindCounters>]>,
    /// The counters of each kind once, and true for a kind with a union whose declaration has the action `Audit`.
    kinds: Box<[(Arc<KindCounters>, bool)]>,
    unions_by_source: BTreeMap<String, usize>,
}

impl PublishedCatalog {
    /// Takes over the counters of kinds that `previous` has, too.
    pub(super) fn new(catalog: Arc<Catalog>, previous: Option<&Self>) -> Self {
        let previous: HashMap<(&str, &str), &Arc<KindCounters>> =
            previous.iter().flat_map(|it| &it.kinds).map(|(kind, _)| (kind.group_kind(), kind)).collect();
        let mut kinds: HashMap<(&str, &str), (Arc<KindCounters>, bool)> = HashMap::new();
        let mut by_ordinal = Vec::with_capacity(catalog.entries().len());
        let mut unions_by_source = BTreeMap::new();
        for entry in catalog.entries() {
            let gvk = entry.gvk();
            let kind = (&*gvk.group, &*gvk.kind);
            let (counters, is_audited) = kinds.entry(kind).or_insert_with(|| match previous.get(&kind) {
                Some(counters) => (Arc::clone(counters), false),
                None => (Arc::new(KindCounters::new(kind.0, kind.1)), false),
            });
            by_ordinal.push(Arc::clone(counters));
            for union in entry.plan().unions() {
                *is_audited |= union.actions().audits();
                *unions_by_source.entry(union.source().to_string()).or_default() += 1;
            }
        }
        let kinds = kinds.into_values().collect();
        Self { catalog, by_ordinal: by_ordinal.into(), kinds, unions_by_source }
    }

    /// Returns the counters of the catalog entry at `ordinal`.
    pub(super) fn counters(&self, ordinal: usize) -> Option<&Arc<KindCounters>> {
        self.by_ordinal.get(ordinal)
    }

    /// Returns the number of unions of all kinds.
    pub(super) fn unions(&self) -> usize {
        self.unions_by_source.values().sum()
    }
}

/// The metrics of the catalog in force and of the reviews of its kinds.
#[derive(Debug)]
pub(super) struct CatalogMetrics {
    pub(super) published: Arc<ArcSwapOption<PublishedCatalog>>,
    /// Reviews of kinds that the catalog does not know.
    pub(super) other: Arc<KindCounters>,
}

impl Collector for CatalogMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let published = self.published.load_full();

        let mut reviews = encoder.encode_descriptor(
            "admission_reviews",
            "Reviews answered. Kinds without unions and bodies that cannot be read count as kind `other`",
            None,
            MetricType::Counter,
        )?;
        let kinds = || published.iter().flat_map(|it| &it.kinds);
        for (labels, count) in kinds().map(|(kind, _)| kind).chain([&self.other]).flat_map(|kind| kind.series()) {
            reviews.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }

        let mut violations = encoder.encode_descriptor(
            "audited_violations",
            "Violations of unions whose declaration has the action Audit",
            None,
            MetricType::Counter,
        )?;
        for (kind, _) in kinds().filter(|(_, is_audited)| *is_audited) {
            let (group, name) = kind.group_kind();
            let labels = [("group", group), ("kind", name)];
            violations.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&kind.audited(), None)?;
        }

        let mut unions = encoder.encode_descriptor(
            "catalog_unions",
            "Unions in force, by the source of their declaration",
            None,
            MetricType::Gauge,
        )?;
        for (source, count) in published.iter().flat_map(|it| &it.unions_by_source) {
            unions.encode_family(&[("source", source.as_str())])?.encode_gauge(count)?;
        }

        if let Some(published) = &published {
            let digest = i64::try_from(published.catalog.digest()).unwrap_or_default();
            encoder
                .encode_descriptor(
                    "catalog_digest",
                    "Digest of the catalog. Replicas of one version with the same catalog have the same digest",
                    None,
                    MetricType::Gauge,
                )?
                .encode_gauge(&digest)?;
        }

        let errors = published.as_ref().map_or(0, |it| it.catalog.errors());
        encoder
            .encode_descriptor(
                "declaration_faults",
                "Faults that keep declarations out of force",
                None,
                MetricType::Gauge,
            )?
            .encode_gauge(&errors)
    }
}
