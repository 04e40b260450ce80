//! The alerts and the dashboard query only metrics that exist.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::cluster::Cluster;
use crate::support::kind::parse;

const RULES: &str = include_str!("../../../charts/kube-unions/rules/kube-unions.yaml");
const DASHBOARD: &str = include_str!("../../../charts/kube-unions/dashboards/kube-unions.json");
/// The page with the configuration by which kube-state-metrics makes metrics of reports.
const OPERATING: &str = include_str!("../../../docs/guide/operating.md");

/// The metrics of API servers. `trial.rs` sees them on a real one.
const OF_THE_API_SERVER: [&str; 5] = [
    "apiserver_admission_match_condition_evaluation_errors",
    "apiserver_admission_match_condition_exclusions",
    "apiserver_admission_webhook_admission_duration_seconds",
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_rejection_count",
];
/// The metrics that Policy Reporter makes of reports.
const OF_POLICY_REPORTER: [&str; 2] = ["cluster_policy_report_result", "policy_report_result"];

#[test]
fn each_metric_that_is_asked_for_is_one_of_the_webhooks_of_an_api_servers_or_of_reports() {
    let Some(cluster) = Cluster::shared() else { return };
    let metrics = cluster.webhook.ops().get("/metrics").unwrap();
    let families = metrics.text().lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let of_kube_state_metrics = of_kube_state_metrics();
    let of_reports = of_kube_state_metrics.iter().map(String::as_str).chain(OF_POLICY_REPORTER);
    let known: BTreeSet<&str> = families.chain(OF_THE_API_SERVER).chain(of_reports).collect();
    for expression in alerts().iter().map(|alert| text(alert, "expr")).chain(queries()) {
        let metrics = metrics_in(&expression);
        assert!(!metrics.is_empty(), "no metric in {expression}");
        for metric in metrics {
            let suffixes = ["_total", "_bucket", "_count", "_info", "_sum"];
            let mut families = suffixes.iter().filter_map(|suffix| metric.strip_suffix(suffix)).chain([&*metric]);
            assert!(families.any(|family| known.contains(family)), "nobody has the metric {metric}: {expression}");
        }
    }
}

#[test]
fn each_alert_says_how_bad_it_is_what_it_is_and_what_to_do() {
    let alerts = alerts();
    let names: BTreeSet<_> = alerts.iter().map(|alert| text(alert, "alert")).collect();
    assert_eq!(names.len(), alerts.len());
    for alert in &alerts {
        let name = text(alert, "alert");
        assert!(name.starts_with("KubeUnions"), "{name}");
        let severity = alert["labels"]["severity"].as_str().unwrap_or_default();
        assert!(["critical", "warning", "info"].contains(&severity), "{name}: {severity}");
        let (summary, description) = (&alert["annotations"]["summary"], text(&alert["annotations"], "description"));
        assert!(
            summary.as_str().is_some_and(|summary| summary.ends_with('.') && summary.len() < 100),
            "{name}: {summary}"
        );
        assert!(description.len() > 150 && description.contains('`'), "{name} names no command: {description}");
        // The one way to switch enforcement off that a running webhook does not undo.
        if description.contains("delete mutatingwebhookconfiguration") {
            let binding = description.find("delete clusterrolebinding kube-unions-registration").expect(&name);
            assert!(binding < description.find("delete mutatingwebhookconfiguration").unwrap(), "{name}: the order");
        }
    }
}

#[test]
fn the_dashboard_has_panels_that_do_not_overlap_and_say_what_they_show() {
    let dashboard = parse(DASHBOARD);
    let mut taken = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = text(panel, "title");
        assert!(ids.insert(panel["id"].to_string()), "{title}: its id is another's");
        assert!(text(panel, "description").ends_with('.'), "{title}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        let at = |field: &str| panel["gridPos"][field].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{title}: the grid is 24 wide");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{title} overlaps another");
            }
        }
    }
}

/// The metrics of the configuration on the page.
fn of_kube_state_metrics() -> Vec<String> {
    let mut blocks = OPERATING.split("```yaml\n").filter_map(|block| block.split("```").next());
    let block = blocks.find(|block| block.starts_with("kind: CustomResourceStateMetrics\n")).unwrap();
    let config = parse(block);
    let of_resource = |resource: &Value| -> Vec<String> {
        let prefix = text(resource, "metricNamePrefix");
        let metrics = resource["metrics"].as_array().unwrap();
        metrics.iter().map(|metric| format!("{prefix}_{}", text(metric, "name"))).collect()
    };
    config["spec"]["resources"].as_array().unwrap().iter().flat_map(of_resource).collect()
}

fn alerts() -> Vec<Value> {
    let groups = parse(RULES)["groups"].clone();
    groups.as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

/// Every query of the dashboard.
fn queries() -> Vec<String> {
    let dashboard = parse(DASHBOARD);
    let panels = dashboard["panels"].as_array().unwrap();
    panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap()).map(|target| text(target, "expr")).collect()
}

fn text(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_else(|| panic!("no {field} in {object}")).to_owned()
}

/// Returns the names of metrics in a `PromQL` expression, without quoted text.
fn metrics_in(expression: &str) -> Vec<String> {
    let unquoted: String = expression.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let words = unquoted.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let of_metrics = ["apiserver_", "cluster_policy_report_", "kube_unions_", "policy_report_"];
    words.filter(|word| of_metrics.iter().any(|start| word.starts_with(start))).map(str::to_owned).collect()
}
