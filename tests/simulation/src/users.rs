//! The CRDs and objects of authors and users.

use fixtures::crds::{annotated, version};
use serde_json::{Value, json};

/// The group of the kinds.
pub const GROUP: &str = "simulation.example.com";

const MEMBERS: [&str; 4] = ["git", "oci", "s3", "http"];

const CHOICES: [&str; 4] = ["Git", "OCI", "S3", "HTTP"];

/// Returns the name of a kind.
pub fn kind_name(kind: usize) -> String {
    format!("Kind{kind}")
}

/// Returns the collection of CRDs.
pub fn definitions() -> &'static str {
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
}

/// Returns the path of the CRD of a kind.
pub fn definition_path(kind: usize) -> String {
    format!("{}/kind{kind}s.{GROUP}", definitions())
}

/// Returns the path of the objects of a kind.
pub fn collection(kind: usize) -> String {
    format!("/apis/{GROUP}/v1/namespaces/default/kind{kind}s")
}

/// Returns the CRD of a kind with a union of this many members.
pub fn definition(kind: usize, members: usize) -> Value {
    let members = &MEMBERS[..members.clamp(2, MEMBERS.len())];
    let member = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let mut properties = json!({"type": {"type": "string"}});
    let mut fields = json!({});
    for (name, choice) in members.iter().zip(CHOICES) {
        properties[name] = member.clone();
        fields[name] = choice.into();
    }
    let spec = json!({"type": "object", "properties": properties});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let union = json!([{"discriminator": "type", "fields-to-discriminateBy": fields}]);
    annotated(
        GROUP,
        &kind_name(kind),
        &[version("v1", &schema)],
        &json!({"v1": {"/properties/spec": union}}).to_string(),
    )
}

/// Returns an object with one member.
pub fn valid(kind: usize, object: usize, member: usize) -> Value {
    let (name, choice) = (MEMBERS[member % 2], CHOICES[member % 2]);
    named(kind, object, &json!({"type": choice, name: {"name": "x"}}))
}

/// Returns an object with two members.
pub fn invalid(kind: usize, object: usize) -> Value {
    named(kind, object, &json!({"type": CHOICES[0], MEMBERS[0]: {"name": "x"}, MEMBERS[1]: {"name": "y"}}))
}

/// Returns a merge patch that switches to a member, as a client does that does not know the others.
pub fn switch(member: usize) -> Value {
    let (name, choice) = (MEMBERS[member % 2], CHOICES[member % 2]);
    json!({"spec": {"type": choice, name: {"name": "x"}}})
}

/// Returns a merge patch that sets two members.
pub fn contradiction() -> Value {
    json!({"spec": {"type": null, MEMBERS[0]: {"name": "new"}, MEMBERS[1]: {"name": "new"}}})
}

/// Returns the name of an object.
pub fn object_name(object: usize) -> String {
    format!("object{object}")
}

/// Returns true if a stored object has two members.
pub fn has_two_members(object: &Value) -> bool {
    MEMBERS.iter().filter(|member| object["spec"].get(member).is_some()).count() > 1
}

fn named(kind: usize, object: usize, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind_name(kind),
        "metadata": {"name": object_name(object), "namespace": "default"}, "spec": spec,
    })
}
