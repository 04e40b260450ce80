//! Server-side applies.

use crate::sender::{create, get, patch, replace, server};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

fn map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

#[tokio::test(start_paused = true)]
async fn an_apply_creates_takes_part_and_removes_what_it_no_longer_has() {
    let instance = server().instance();
    let path = |manager: &str| format!("{MAPS}/a?fieldManager={manager}");
    let (code, _) = patch(&instance, &path("x"), "apply", &map(&json!({"one": "1", "two": "2"}))).await;
    assert_eq!(code, 201);
    let (code, both) = patch(&instance, &path("y"), "apply", &map(&json!({"two": "2", "three": "3"}))).await;
    assert_eq!((code, &both["data"]), (200, &json!({"one": "1", "two": "2", "three": "3"})));
    let (_, same) = patch(&instance, &path("y"), "apply", &map(&json!({"two": "2", "three": "3"}))).await;
    assert_eq!(same, both, "an apply that changes nothing is no write");
    let (code, status) = patch(&instance, &path("y"), "apply", &map(&json!({"one": "9"}))).await;
    assert_eq!((code, &status["details"]["causes"][0]["reason"]), (409, &json!("FieldManagerConflict")));
    assert_eq!(status["message"], "Apply failed with 1 conflict: conflict with \"x\": .data.one");
    let forced = format!("{}&force=true", path("y"));
    let (_, taken) = patch(&instance, &forced, "apply", &map(&json!({"one": "9"}))).await;
    assert_eq!(taken["data"], json!({"one": "9", "two": "2"}));
    let (_, left) = patch(&instance, &path("x"), "apply", &map(&json!({}))).await;
    assert_eq!(left["data"], json!({"one": "9"}));
}

#[tokio::test(start_paused = true)]
async fn an_update_takes_a_field_over() {
    let instance = server().instance();
    let path = format!("{MAPS}/a?fieldManager=x");
    let (_, mut object) = patch(&instance, &path, "apply", &map(&json!({"one": "1"}))).await;
    object["data"]["one"] = json!("2");
    replace(&instance, &format!("{MAPS}/a?fieldManager=z"), &object).await;
    let (code, status) = patch(&instance, &path, "apply", &map(&json!({"one": "1"}))).await;
    assert_eq!(code, 409, "{status}");
    assert!(status["message"].as_str().unwrap().contains("conflict with \"z\" using v1"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn entries_of_a_configuration_are_merged_by_name() {
    let instance = server().instance();
    let entry = |name: &str| {
        json!({
            "name": name, "clientConfig": {"url": "https://127.0.0.1/x"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        })
    };
    let other = json!({"metadata": {"name": "c"}, "webhooks": [entry("b.example.com")]});
    create(&instance, MUTATING, &other).await;
    let own = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "c"},
        "webhooks": [entry("a.example.com")],
    });
    let path = format!("{MUTATING}/c?fieldManager=x");
    let (code, both) = patch(&instance, &path, "apply", &own).await;
    let names: Vec<_> = both["webhooks"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!((code, names), (200, vec![&json!("b.example.com"), &json!("a.example.com")]));
    assert_eq!(both["webhooks"][1]["failurePolicy"], "Fail");
    assert_eq!(both["metadata"]["generation"], 2);
    let mut none = own.clone();
    none["webhooks"] = json!([]);
    let (_, left) = patch(&instance, &path, "apply", &none).await;
    assert_eq!(left["webhooks"].as_array().unwrap().len(), 1, "{left}");
    assert_eq!(get(&instance, &format!("{MUTATING}/c")).await.1, left);
}

#[tokio::test(start_paused = true)]
async fn nobody_manages_what_a_kind_always_has() {
    let instance = server().instance();
    let pod = json!({"metadata": {"labels": {"k": "v"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"selector": {"matchLabels": {"k": "v"}}, "template": pod});
    let rows = [
        (LEASES, json!({}), json!(null)),
        (LEASES, json!({"holderIdentity": "x"}), json!({"f:spec": {"f:holderIdentity": {}}})),
        (
            "/api/v1/namespaces/default/services",
            json!({"type": "ExternalName", "externalName": "x.example"}),
            json!({
                "f:spec": {"f:type": {}, "f:externalName": {}, "f:sessionAffinity": {}},
            }),
        ),
    ];
    for (number, (collection, spec, fields)) in rows.into_iter().enumerate() {
        let object = json!({"metadata": {"name": format!("row-{number}")}, "spec": spec});
        let created = create(&instance, collection, &object).await;
        assert_eq!(created.pointer("/metadata/managedFields/0/fieldsV1").unwrap_or(&Value::Null), &fields, "{created}");
    }
    let object = json!({"metadata": {"name": "a"}, "spec": deployment});
    let created = create(&instance, "/apis/apps/v1/namespaces/default/deployments", &object).await;
    let fields = &created["metadata"]["managedFields"][0]["fieldsV1"];
    for place in ["", "/f:strategy", "/f:template", "/f:template/f:metadata", "/f:template/f:spec"] {
        let inner = fields.pointer(&format!("/f:spec{place}")).unwrap();
        assert!(
            inner.as_object().is_some_and(|inner| !inner.is_empty() && !inner.contains_key(".")),
            "{place}: {fields}"
        );
    }
    assert!(fields.pointer("/f:spec/f:strategy/f:rollingUpdate/.").is_some(), "{fields}");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_managed_is_managed_from_the_first_apply_on() {
    let instance = server().instance();
    let path = format!("{LEASES}/a");
    let (code, mut lease) = replace(&instance, &path, &json!({"metadata": {"name": "a"}})).await;
    assert_eq!((code, lease.pointer("/metadata/managedFields")), (201, None));
    lease["spec"] = json!({"holderIdentity": "x"});
    let (code, lease) = replace(&instance, &path, &lease).await;
    assert_eq!((code, lease.pointer("/metadata/managedFields")), (200, None));
    let applied = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": {"holderIdentity": "y"},
    });
    let (_, status) = patch(&instance, &format!("{path}?fieldManager=one"), "apply", &applied).await;
    assert_eq!(
        status["message"],
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using coordination.k8s.io/v1: \
         .spec.holderIdentity"
    );
}

#[tokio::test(start_paused = true)]
async fn conflicts_have_the_order_of_managers() {
    let instance = server().instance();
    let services = "/api/v1/namespaces/default/services";
    let service = |port: u16, label: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "labels": {"l": label}},
            "spec": {"ports": [{"name": "p", "port": 80, "targetPort": port}]},
        })
    };
    create(&instance, &format!("{services}?fieldManager=m"), &service(1, "x")).await;
    let label = json!({"metadata": {"labels": {"l": "y"}}});
    let (code, _) = patch(&instance, &format!("{services}/a/status?fieldManager=m"), "merge-patch", &label).await;
    assert_eq!(code, 200);
    let (code, status) = patch(&instance, &format!("{services}/a?fieldManager=one"), "apply", &service(2, "z")).await;
    assert_eq!(code, 409);
    assert_eq!(
        status["message"],
        "Apply failed with 2 conflicts: conflicts with \"m\" with subresource \"status\" using v1:\n\
         - .metadata.labels.l\n\
         conflicts with \"m\" using v1:\n\
         - .spec.ports[port=80,protocol=\"TCP\"].targetPort"
    );
}
