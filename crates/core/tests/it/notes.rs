//! Notes about CRDs: what no webhook and no policy judges.

use fixtures::reviews::{GROUP, catalog, declaration, declared_catalog, definition, version};
use kube_unions_core::declaration::{Fault, FaultKind, Severity};
use serde_json::{Map, Value, json};

#[test]
fn a_member_that_the_scale_subresource_sets_is_noted() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"replicas": {"type": "integer"}, "fixed": {"type": "object"}, "auto": {"type": "object"}},
        "x-kubernetes-unions": [{"fields-to-discriminateBy": {"replicas": "Replicas", "fixed": "Fixed", "auto": "Auto"}}]}}});
    for (path, member) in [
        (".spec.replicas", Some("`replicas`")),
        (".spec.fixed.count", Some("`fixed`")),
        (".spec.other", None),
        (".spec.replicasMax", None),
        (".specs.replicas", None),
        ("", None),
    ] {
        let mut version = version("v1", &schema, false);
        version["subresources"] =
            json!({"scale": {"specReplicasPath": path, "statusReplicasPath": ".status.replicas"}});
        let catalog = catalog(&[&definition(&Map::new(), &[version])]);
        let noted: Vec<&Fault> = catalog.faults().iter().filter(|it| it.kind == FaultKind::ScaledMember).collect();
        assert_eq!(noted.len(), usize::from(member.is_some()), "{path}: {noted:?}");
        if let (Some(member), [fault]) = (member, &*noted) {
            assert!(fault.message.contains(&format!("the member {member}")), "{fault:?}");
            assert_eq!((fault.path.as_str(), fault.severity()), ("spec", Severity::Note));
        }
    }
}

#[test]
fn a_version_without_the_unions_of_another_one_is_noted() {
    let spec = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let mut declared = spec.clone();
    declared["x-kubernetes-unions"] = json!([{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]);
    let schema = |spec: &Value| json!({"type": "object", "properties": {"spec": spec}});
    let (with, without) = (version("v1", &schema(&declared), false), version("v2", &schema(&spec), false));
    let mut unserved = without.clone();
    unserved["served"] = false.into();
    for (versions, notes) in [
        (vec![with.clone(), without.clone()], 1),
        (vec![with.clone(), unserved], 0),
        (vec![with], 0),
        (vec![without], 0),
    ] {
        let catalog = catalog(&[&definition(&Map::new(), &versions)]);
        let noted: Vec<&Fault> = catalog.faults().iter().filter(|it| it.kind == FaultKind::UnjudgedVersion).collect();
        assert_eq!(noted.len(), notes, "{versions:?}");
        assert!(noted.iter().all(|fault| fault.message.contains("version `v2` is served")), "{noted:?}");
    }
}

#[test]
fn a_declaration_without_versions_leaves_alone_one_that_is_not_served() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}}});
    let mut unserved = version("v1alpha1", &json!({"type": "object"}), false);
    unserved["served"] = false.into();
    let crd = definition(&Map::new(), &[version("v1", &schema, false), unserved]);
    let spec = json!({"unions": [{"path": "spec", "fieldsToDiscriminateBy": {"a": "A", "b": "B"}}]});
    let catalog = declared_catalog(&crd, &[declaration("one", GROUP, "Thing", &spec)]);
    let versions: Vec<&str> = catalog.entries().iter().map(|entry| &*entry.gvk().version).collect();
    assert_eq!(versions, ["v1"]);
}
