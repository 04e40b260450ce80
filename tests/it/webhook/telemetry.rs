//! The number of series at `/metrics`. `reference::metrics` holds the names, types and labels, on which dashboards and alerts depend.

use super::wire::{Request, Running, review};
use std::collections::{BTreeMap, BTreeSet};

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
    for series in ["count{", "bucket{le=\"+Inf\","] {
        let series = format!("kube_unions_admission_review_duration_seconds_{series}phase=\"mutate\"}}");
        assert_eq!(server.metric(&series).await, Some(1_000.0));
    }
    assert_eq!(server.metric("kube_unions_admission_in_flight").await, Some(0.0));
    let build = format!("kube_unions_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(server.metric(&build).await, Some(1.0));
}
