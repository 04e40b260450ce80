//! Answers an AdmissionReview, with no other crate in its manifest.

use kube_unions_core::admission::{Phase, Ratcheting, review};
use kube_unions_core::{catalog::Builder, declaration::Definition};

const CRD: &str = r#"{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "rollouts.example.com"},
  "spec": {"group": "example.com", "names": {"kind": "Rollout"}, "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
    "type": "object", "properties": {
      "type": {"type": "string", "enum": ["Canary", "Recreate"],
               "x-kubernetes-unions": {"fieldMembers": {"Canary": {"name": "canary"}, "Recreate": null}}},
      "canary": {"type": "object"}}}}}]}}"#;

const REVIEW: &str = r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
  "uid": "1", "operation": "UPDATE", "kind": {"group": "example.com", "version": "v1", "kind": "Rollout"},
  "object": {"type": "Recreate", "canary": {}}, "oldObject": {"type": "Canary", "canary": {}}}}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Builder::new();
    builder.apply(Definition::from_json(CRD)?);
    let answer = review(&builder.build(), Phase::Mutate, Ratcheting::Enabled, REVIEW.as_bytes())?;
    for warning in answer.warnings() {
        println!("{warning}");
    }
    Ok(())
}
