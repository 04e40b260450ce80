use super::*;
use crate::controllers::registration::EntryOptions;
use kube_unions_core::names::GroupVersionKind;
use kube_unions_policies::{KubernetesVersion, Refusal, RefusalReason};
use std::time::Duration;

fn enforcement(duty: PolicyDuty) -> PolicyEnforcement {
    PolicyEnforcement {
        duty,
        name_prefix: "unions-".to_owned(),
        ratchet: true,
        excluded_namespaces: Vec::new(),
        installation: Some("ns/name".to_owned()),
        owner: None,
        entries: EntryOptions::default(),
        handover: Duration::from_secs(10),
    }
}

fn served() -> ServedPolicies {
    ServedPolicies { version: KubernetesVersion::DEFAULT, mutating: None, validating: Some("v1") }
}

fn compiler(enforcement: PolicyEnforcement, served: ServedPolicies) -> CatalogCompiler {
    let frame = PolicyFrame { installation: enforcement.installation.clone(), owner: None };
    CatalogCompiler::new(enforcement, served, frame)
}

/// A policy and its binding, the binding first.
fn compiled() -> CompiledPolicies {
    let object = |kind: &str| {
        let metadata = json!({"name": "unions-a", "labels": labels()});
        PolicyObject::from(
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": {}}),
        )
    };
    let objects = ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"].map(object).to_vec();
    CompiledPolicies { objects, refusals: Vec::new() }
}

#[test]
fn a_policy_comes_before_its_binding_and_names_its_kind_and_installation() {
    let compiler = compiler(enforcement(PolicyDuty::BesideWebhook), served());
    let desired = compiler.assembled(&GroupKind::new("g", "Thing"), &compiled());
    let kinds: Vec<_> = desired.objects.keys().map(|key| key.resource.kind()).collect();
    assert_eq!(kinds, ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]);
    assert!(desired.is_expressible());
    assert_eq!(
        desired.objects.values().next().unwrap()["metadata"]["annotations"],
        json!({"kube-unions.dev/kind": "g/Thing", "kube-unions.dev/installation": "ns/name"})
    );
}

#[test]
fn a_resource_that_is_not_served_is_a_refusal() {
    let served = ServedPolicies { validating: None, ..served() };
    for duty in [PolicyDuty::BesideWebhook, PolicyDuty::Alone] {
        let desired = compiler(enforcement(duty), served).assembled(&GroupKind::new("g", "Thing"), &compiled());
        assert!(desired.objects.is_empty() && !desired.is_expressible());
        assert_eq!(desired.refusals.len(), 2, "{:?}", desired.refusals);
    }
}

#[test]
fn a_kind_with_a_refusal_is_left_to_the_webhook_as_a_whole_if_there_is_one() {
    let partial = || {
        let gvk = GroupVersionKind { group: "g".into(), version: "v1".into(), kind: "Thing".into() };
        let reason = RefusalReason::NoMutation(KubernetesVersion::new(1, 34));
        CompiledPolicies { refusals: vec![Refusal { gvk, place: None, reason }], ..compiled() }
    };
    let kind = GroupKind::new("g", "Thing");
    let beside = compiler(enforcement(PolicyDuty::BesideWebhook), served()).assembled(&kind, &partial());
    assert!(beside.objects.is_empty() && beside.refusals.len() == 1);
    let alone = compiler(enforcement(PolicyDuty::Alone), served()).assembled(&kind, &partial());
    assert!(alone.objects.len() == 2 && alone.refusals.len() == 1);
}

#[test]
fn the_users_conditions_and_selectors_restrict_policies_and_bindings() {
    let mut enforcement = enforcement(PolicyDuty::Alone);
    enforcement.entries.object_selector = r#"{"matchLabels": {"a": "b"}}"#.parse().unwrap();
    enforcement.entries.match_conditions = r#"[{"name": "mine", "expression": "true"}]"#.parse().unwrap();
    let desired = compiler(enforcement, served()).assembled(&GroupKind::new("g", "Thing"), &compiled());
    let [policy, binding] = [0, 1].map(|index| &desired.objects.values().nth(index).unwrap()["spec"]);
    assert_eq!(policy["matchConditions"], json!([{"name": "mine", "expression": "true"}]));
    assert_eq!(binding["matchResources"], json!({"objectSelector": {"matchLabels": {"a": "b"}}}));
}
