//! The answer of the webhook on the wire. `tests/it/webhook` has its answers to bad input, slow clients and signals.

use fixtures::reviews::review_text;
use serde_json::json;

use crate::kind::samples;
use crate::webhook::Webhook;

#[test]
fn a_denial_is_a_status_as_the_api_server_writes_it() {
    let webhook = Webhook::of_files(&samples(), &[]).unwrap_or_else(|message| panic!("{message}"));
    let invalid = r#"{"metadata": {"name": "x"}, "spec": {"strategy": {"type": "Canary", "rollingUpdate": {}}}}"#;
    let review = review_text(["samples.kube-unions.dev", "v1", "Rollout"], "CREATE", invalid, "null");
    let answer = webhook.client().send("POST", "/validate", "application/json", review.as_bytes()).unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(answer.body["kind"], "AdmissionReview");
    let response = &answer.body["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("the-uid"), &json!(false)));
    assert_eq!(response.get("patch"), None);
    let status = &response["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
    assert_eq!(
        status["details"],
        json!({
            "name": "x",
            "group": "samples.kube-unions.dev",
            "kind": "Rollout",
            "causes": [
                {
                    "reason": "FieldValueRequired",
                    "message": "Required value: must be specified when `type` is \"Canary\"",
                    "field": "spec.strategy.canary",
                },
                {
                    "reason": "FieldValueForbidden",
                    "message": "Forbidden: may only be specified when `type` is \"RollingUpdate\"",
                    "field": "spec.strategy.rollingUpdate",
                },
            ],
        })
    );
}
