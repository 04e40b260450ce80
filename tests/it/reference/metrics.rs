//! `docs/reference/metrics.md`: every metric with its type and labels.

use super::{assert_page, code, table};
use crate::webhook::telemetry::described;
use crate::webhook::wire::{Request, Running, review, until};
use std::collections::BTreeMap;

const INTRODUCTION: &str = "\
# Metrics

Every metric at `/metrics` on the ops port. This page is generated from the program: change the program and run `make reference`.
Labels take their values from the catalog, never from a request: a kind without unions counts as `other`.

";

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_metrics_is_up_to_date() {
    let server = Running::start().await;
    server.catalogs.send_replace(Some(crate::webhook::observed(&["Audit"])));
    until(async || server.metric("kube_unions_catalog_unions{source=\"schema\"}").await == Some(1.0)).await;
    server.send(&Request::post("/mutate", review("u"))).await;
    let text = server.ops("/metrics").await.body;
    let helps: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' ')).collect();
    let rows = described(&text).into_iter().map(|(name, (kind, labels))| {
        let suffix = match kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let labels = labels.iter().map(|label| code(label)).collect::<Vec<_>>().join(", ");
        let help = helps[name.as_str()].trim_end_matches('.').to_owned();
        [code(&format!("{name}{suffix}")), kind, labels, help]
    });
    let page = table(["metric", "type", "labels", "meaning"], rows);
    assert_page("metrics.md", &format!("{INTRODUCTION}{page}"));
}
