//! The names, types and labels at `/metrics`, on which dashboards and alerts depend, and the number of series.

use super::observed;
use super::wire::{Request, Running, review, until};
use std::collections::{BTreeMap, BTreeSet};

/// Every metric with its type and labels.
const METRICS: [(&str, &str, &[&str]); 34] = [
    ("kube_unions_admission_given_up", "counter", &["reason"]),
    ("kube_unions_admission_in_flight", "gauge", &[]),
    ("kube_unions_admission_in_flight_bytes", "gauge", &[]),
    ("kube_unions_admission_queued", "gauge", &[]),
    ("kube_unions_admission_refused", "counter", &["reason"]),
    ("kube_unions_admission_review_duration_seconds", "histogram", &["le", "phase"]),
    ("kube_unions_admission_reviews", "counter", &["group", "kind", "operation", "outcome", "phase"]),
    ("kube_unions_audited_violations", "counter", &["group", "kind"]),
    ("kube_unions_build", "info", &["version"]),
    ("kube_unions_catalog_digest", "gauge", &[]),
    ("kube_unions_catalog_unions", "gauge", &["source"]),
    ("kube_unions_certificate_authority_expiry_timestamp_seconds", "gauge", &[]),
    ("kube_unions_certificate_expiry_timestamp_seconds", "gauge", &[]),
    ("kube_unions_certificate_reload_failures", "counter", &[]),
    ("kube_unions_clock_difference_seconds", "gauge", &[]),
    ("kube_unions_connections_evicted", "counter", &["port", "reason"]),
    ("kube_unions_connections_refused", "counter", &[]),
    ("kube_unions_declaration_faults", "gauge", &[]),
    ("kube_unions_fields_cleared", "counter", &[]),
    ("kube_unions_inspections", "counter", &["kind", "outcome"]),
    ("kube_unions_other_installation", "gauge", &[]),
    ("kube_unions_own_groups_known", "gauge", &[]),
    ("kube_unions_panics", "counter", &[]),
    ("kube_unions_policies_desired", "gauge", &[]),
    ("kube_unions_policies_in_sync", "gauge", &[]),
    ("kube_unions_policy_kinds_covered", "gauge", &[]),
    ("kube_unions_policy_kinds_refused", "gauge", &[]),
    ("kube_unions_policy_writes", "counter", &["outcome"]),
    ("kube_unions_registered", "gauge", &[]),
    ("kube_unions_registering", "gauge", &[]),
    ("kube_unions_registration_corrections", "counter", &[]),
    ("kube_unions_registration_writes", "counter", &["outcome"]),
    ("kube_unions_watch_connected", "gauge", &[]),
    ("kube_unions_watch_proven_timestamp_seconds", "gauge", &[]),
];

/// Returns the type and the labels of each metric in a text.
pub(crate) fn described(text: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut found = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("# TYPE ") {
            let (name, kind) = words.split_once(' ').unwrap();
            name.clone_into(&mut current);
            found.insert(current.clone(), (kind.to_owned(), BTreeSet::new()));
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let (kind, seen) = found.get_mut(&current).unwrap();
            let suffixes: &[&str] = match kind.as_str() {
                "counter" => &["_total"],
                "histogram" => &["_bucket", "_sum", "_count"],
                "info" => &["_info"],
                _ => &[""],
            };
            let suffix = name.strip_prefix(&current).unwrap_or_else(|| panic!("{line} follows {current}"));
            assert!(suffixes.contains(&suffix), "{line}");
            let labels = labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty());
            seen.extend(labels.map(|label| label.split('=').next().unwrap().to_owned()));
        }
    }
    found
}

async fn metrics(server: &Running) -> String {
    server.ops("/metrics").await.body
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_keep_their_names_types_and_labels() {
    let server = Running::start().await;
    server.catalogs.send_replace(Some(observed(&["Audit"])));
    until(async || server.metric("kube_unions_catalog_unions{source=\"schema\"}").await == Some(1.0)).await;
    server.send(&Request::post("/mutate", review("u"))).await;
    let found = described(&metrics(&server).await);
    let promised: BTreeMap<_, _> = METRICS
        .into_iter()
        .map(|(name, kind, labels)| {
            (name.to_owned(), (kind.to_owned(), labels.iter().map(|&label| label.to_owned()).collect()))
        })
        .collect();
    assert_eq!(found, promised);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_kinds_creates_no_series_and_no_labels() {
    let server = Running::start().await;
    let series = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
    let mut wire = server.connect().await;
    let operations = ["CREATE", "UPDATE", "DELETE", "CONNECT", "INVENTED"];
    let mut ask = async |range: std::ops::Range<u32>| {
        for number in range {
            let body = review("u")
                .replace("nobody.example", &format!("flood{number}.example"))
                .replace("Stranger", &format!("Flood{number}"))
                .replace("CREATE", operations[number as usize % operations.len()]);
            for path in ["/mutate", "/validate"] {
                let answer = wire.exchange(&Request::post(path, body.clone())).await;
                assert!([200, 400].contains(&answer.code), "{answer:?}");
            }
        }
    };
    ask(0..20).await;
    let before = metrics(&server).await;
    ask(20..1_000).await;
    let after = metrics(&server).await;
    assert_eq!(series(&before), series(&after), "{after}");
    assert!(!after.to_lowercase().contains("flood") && !after.contains("INVENTED"), "{after}");
    let counted: f64 = after
        .lines()
        .filter(|line| line.starts_with("kube_unions_admission_reviews_total{"))
        .map(|line| {
            assert!(line.contains("group=\"other\",kind=\"other\""), "{line}");
            line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()
        })
        .sum();
    assert_eq!(counted.to_bits(), 2_000_f64.to_bits());
}
