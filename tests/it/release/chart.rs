//! The published chart runs the image of its release.

use super::Checkout;
use fixtures::files::{files, parse, root};
use serde_json::{Value, json};
use std::fs;

const REPOSITORY: &str = "registry.example:5000/kube-unions/kube-unions";

fn digest() -> String {
    format!("sha256:{}", "0123456789abcdef".repeat(4))
}

#[test]
fn the_chart_is_stamped_with_the_image_and_is_otherwise_the_same() {
    let checkout = Checkout::uncommitted();
    checkout.succeeds("chart.sh", &["stamp", REPOSITORY, &digest(), "stamped"]);

    let source = |name: &str| fs::read_to_string(root().join("charts/kube-unions").join(name)).unwrap();
    let mut values: Value = parse("values.yaml", &source("values.yaml"));
    assert_eq!(values["image"]["digest"], "", "the sources have none");
    values["image"]["repository"] = json!(REPOSITORY);
    values["image"]["digest"] = json!(digest());
    assert_eq!(parse::<Value>("values.yaml", &checkout.read("stamped/kube-unions/values.yaml")), values);

    let mut chart: Value = parse("Chart.yaml", &source("Chart.yaml"));
    chart["annotations"]["artifacthub.io/images"] =
        json!(format!("- name: kube-unions\n  image: {REPOSITORY}@{}\n", digest()));
    assert_eq!(parse::<Value>("Chart.yaml", &checkout.read("stamped/kube-unions/Chart.yaml")), chart);

    let mut compared = 0;
    for (name, text) in ["yaml", "tpl", "txt", "json", "md"].into_iter().flat_map(|it| files("charts/kube-unions", it))
    {
        if !["values.yaml", "Chart.yaml"].contains(&name.as_str()) {
            assert_eq!(checkout.read(&format!("stamped/kube-unions/{name}")), text, "{name}");
            compared += 1;
        }
    }
    assert!(compared > 20, "only {compared} files were compared");
}

#[test]
fn a_digest_that_is_none_is_refused() {
    let checkout = Checkout::uncommitted();
    for digest in ["", "latest", "sha256:0123", &digest().to_uppercase()] {
        let said = checkout.fails("chart.sh", &["stamp", REPOSITORY, digest, "stamped"]);
        let problem = format!("release/chart.sh: `{digest}` is no digest: use sha256: and 64 hexadecimal digits\n");
        assert_eq!(said, problem);
        assert!(!checkout.path("stamped").exists());
    }
}

#[test]
fn a_chart_without_a_place_for_the_digest_is_refused() {
    let checkout = Checkout::uncommitted();
    checkout.replace("charts/kube-unions/values.yaml", "\n  digest: \"\"\n", "\n");
    let said = checkout.fails("chart.sh", &["stamp", REPOSITORY, &digest(), "stamped"]);
    let problem = format!("charts/kube-unions/values.yaml has no place for `digest: {}` in `image`", digest());
    assert!(said.contains(&problem), "{said}");
}
