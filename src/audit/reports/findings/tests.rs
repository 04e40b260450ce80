use super::*;
use crate::audit::finding::AuditRule;
use crate::audit::reports::kind_of_reports;
use crate::audit::reports::object::report;
use kube_unions_core::field_path::FieldPath;

fn kind(name: &str) -> GroupVersionKind {
    GroupVersionKind { group: "example.com".into(), version: "v1".into(), kind: name.into() }
}

fn finding<'f>(kind: &'f GroupVersionKind, namespace: &'f str, name: &'f str, rule: AuditRule) -> ObjectFinding<'f> {
    let path = FieldPath::root();
    ObjectFinding { rule, kind, namespace, name, path, message: "Forbidden: no".to_owned(), repaired: false }
}

fn written(namespace: &str, findings: &NamespaceFindings) -> Value {
    let resource = kind_of_reports("openreports.io", "v1alpha1", "Report");
    report(&resource, namespace, findings)
}

#[test]
fn ten_thousand_findings_are_counted_and_the_first_thousand_are_listed() {
    let (kind, mut all) = (kind("Widget"), CollectedFindings::default());
    for number in 0..10_000 {
        all.add(&finding(&kind, "shop", &format!("w{number:05}"), AuditRule::MORE_VIOLATIONS));
    }
    let (cluster, namespaces) = all.take();
    assert!(cluster.is_empty());
    let report = written("shop", &namespaces["shop"]);
    assert_eq!(report["summary"], json!({"pass": 0, "fail": 10_000, "warn": 0, "error": 0, "skip": 9000}));
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), MOST_RESULTS + 1);
    assert_eq!(
        (&results[0]["resources"][0]["name"], &results[999]["resources"][0]["name"]),
        (&json!("w00000"), &json!("w00999"))
    );
    let said = "and 9,000 more findings that the summary counts and nothing lists";
    assert_eq!((&results[1000]["result"], &results[1000]["message"]), (&json!("skip"), &json!(said)));
    assert!(report.to_string().len() < 3 << 19, "an etcd stores it");
}

#[test]
fn long_results_are_bounded_by_their_size_in_one_report_and_in_all() {
    let (kind, mut all) = (kind("Widget"), CollectedFindings::default());
    let name = "n".repeat(100_000);
    for number in 0..100 {
        for _ in 0..20 {
            all.add(&finding(&kind, &format!("team-{number:02}"), &name, AuditRule::MORE_VIOLATIONS));
        }
    }
    let (_, namespaces) = all.take();
    let kept: Vec<usize> = namespaces.values().map(|findings| findings.results.len()).collect();
    assert_eq!(kept[..60], [10; 60], "1 MiB of each");
    assert!(kept.iter().sum::<usize>() * name.len() <= HEAVIEST_OF_ALL, "{kept:?}");
    assert_eq!(kept[99], 0);
    let last = written("team-99", &namespaces["team-99"]);
    assert_eq!((&last["summary"]["fail"], &last["summary"]["skip"]), (&json!(20), &json!(20)));
    assert_eq!(last["results"].as_array().unwrap().len(), 1);
}

#[test]
fn invalid_objects_fail_tolerated_ones_warn_and_changes_are_no_findings() {
    let (kind, mut all) = (kind("Widget"), CollectedFindings::default());
    for rule in AuditRule::ALL {
        all.add(&finding(&kind, "", rule.id, rule));
    }
    all.add_problem("", "Gadget.example.com/v1: cannot be listed");
    let (cluster, namespaces) = all.take();
    assert!(namespaces.is_empty());
    let report = written("", &cluster[""]);
    assert_eq!(report["summary"], json!({"pass": 0, "fail": 8, "warn": 2, "error": 1, "skip": 0}));
    assert_eq!(report["metadata"]["namespace"], Value::Null);
    assert_eq!(
        report["results"][7],
        json!({
            "source": "kube-unions", "policy": "unions", "rule": "more-violations", "result": "fail", "severity": "medium",
            "message": "Forbidden: no",
            "resources": [{"apiVersion": "example.com/v1", "kind": "Widget", "name": "more-violations"}],
        })
    );
}

#[test]
fn what_older_reports_say_of_kinds_that_were_not_audited_stays() {
    let [widget, gadget, gone] = ["Widget", "Gadget", "Gone"].map(kind);
    let mut before = CollectedFindings::default();
    for (kind, name) in [(&widget, "w"), (&gadget, "a"), (&gadget, "b"), (&gone, "c")] {
        before.add(&finding(kind, "shop", name, AuditRule::MORE_VIOLATIONS));
    }
    let stored = written("shop", &before.take().1["shop"]);
    let names = |lacking: bool, failed: bool, found: &[&str]| {
        let mut now = CollectedFindings::default();
        for name in found {
            now.add(&finding(&gadget, "shop", name, AuditRule::WOULD_WARN));
        }
        let mut unaudited = Unaudited::new(lacking);
        unaudited.was_audited(&widget);
        if failed {
            unaudited.was_not_audited(&gadget);
        } else {
            unaudited.was_audited(&gadget);
        }
        let mut findings = now.take().1.remove("shop").unwrap_or_default();
        findings.keep_results_of(&stored, &unaudited);
        let results = findings.results();
        assert_eq!(findings.fail + findings.warn, results.len() as u64);
        results.iter().map(|it| it["resources"][0]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(names(false, false, &[]).is_empty(), "everything was audited");
    assert_eq!(names(false, true, &[]), ["a", "b"]);
    assert_eq!(names(false, true, &["b"]), ["b", "a"], "an object with new results has no old ones");
    assert_eq!(names(true, false, &[]), ["c"], "its declaration may be there, and not be known");
}
