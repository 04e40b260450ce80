use super::*;
use crate::audit::reports::kind_of_reports;

fn wanted() -> Value {
    let resource = kind_of_reports("openreports.io", "v1alpha1", "Report");
    report(&resource, "shop", &NamespaceFindings::default())
}

/// The report as an API server stores it.
fn stored() -> Value {
    let mut stored = wanted();
    stored["metadata"]["resourceVersion"] = "7".into();
    stored["metadata"]["annotations"] = json!({"of": "somebody"});
    stored
}

#[test]
fn a_report_is_replaced_if_anything_but_its_metadata_differs() {
    assert_eq!(replacement(&stored(), wanted()), None);
    for (pointer, value) in [("/summary/fail", json!(1)), ("/results", json!([{"policy": "other"}]))] {
        let mut edited = stored();
        *edited.pointer_mut(pointer).unwrap() = value;
        assert_eq!(replacement(&edited, wanted()), Some(stored()), "{pointer}");
    }
    let mut more = stored();
    more["configuration"] = json!({"limits": {}});
    assert_eq!(replacement(&more, wanted()), Some(stored()));
}

#[test]
fn only_a_report_with_the_label_is_ours() {
    assert!(is_ours(&stored()));
    for labels in [json!(null), json!({}), json!({"app.kubernetes.io/managed-by": "kyverno"}), json!("kube-unions")] {
        let mut other = stored();
        other["metadata"]["labels"] = labels;
        assert!(!is_ours(&other));
    }
}
