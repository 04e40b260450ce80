//! Declarations that a CRD has already are kept, unless the markers contradict them.

use super::broken::{CRD, GO, kilns};
use crate::cli::{Folder, yaml};
use serde_json::{Value, json};

/// The unions of the markers.
fn marked() -> Value {
    json!({"fieldMembers": {"Bisque": {"name": "bisque"}, "Cold": null, "Glaze": {"name": "glaze"}}})
}

const PLACE: &str = "/properties/spec/properties/firing";

/// The CRD with two more fields beside the union, this annotation, and these lines at the end of the spec's schema.
fn crd(annotation: Option<&Value>, more: &str) -> String {
    let fields = "              glaze:";
    let with = CRD.replace(
        fields,
        &format!("              left: {{type: string}}\n              right: {{type: string}}\n{fields}"),
    );
    let with = match annotation {
        Some(annotation) => with.replace(
            "metadata:\n",
            &format!("metadata:\n  annotations:\n    kube-unions.dev/unions: '{annotation}'\n"),
        ),
        None => with,
    };
    with + more
}

fn generated(crd: &str, more: &[&str]) -> (Folder, String) {
    let folder = kilns(GO);
    folder.write("crd.yaml", crd);
    let arguments = ["generate", "--go", ".", "crd.yaml"];
    let text = folder.run(&[&arguments[..], more].concat()).code(0).stdout;
    (folder, text)
}

fn annotation(text: &str) -> Value {
    let crd = yaml(text);
    match crd["metadata"]["annotations"]["kube-unions.dev/unions"].as_str() {
        Some(text) => serde_json::from_str(text).unwrap(),
        None => Value::Null,
    }
}

/// A union that no marker is about.
fn by_hand() -> Value {
    json!([{"fields-to-discriminateBy": {"left": "Left", "right": "Right"}}])
}

#[test]
fn what_is_declared_elsewhere_stays_and_what_the_markers_said_before_gives_way() {
    let before = json!({"fieldMembers": {"Bisque": null, "Cold": null, "Glaze": {"name": "glaze", "optional": true}}});
    for (before, after) in [
        (
            json!({"v1": {"/properties/spec": by_hand()}}),
            json!({"v1": {"/properties/spec": by_hand(), PLACE: marked()}}),
        ),
        (
            json!({"v0": {"/properties/spec": by_hand()}}),
            json!({"v0": {"/properties/spec": by_hand()}, "v1": {PLACE: marked()}}),
        ),
        (json!({"v1": {PLACE: before}}), json!({"v1": {PLACE: marked()}})),
    ] {
        assert_eq!(annotation(&generated(&crd(Some(&before), ""), &[]).1), after);
    }

    // A CRD with both declarations has one in the end.
    let stale = CRD
        .replace("firing: {type: string,", "firing: {x-kubernetes-unions: {fieldMembers: {Cold: null}}, type: string,");
    let (_, text) = generated(&stale, &[]);
    assert_eq!(annotation(&text), json!({"v1": {PLACE: marked()}}));
    assert!(!text.contains("x-kubernetes-unions"), "{text}");
}

#[test]
fn what_is_declared_in_the_schema_stays_there_with_in_schema_and_moves_without() {
    let more = "              \n            x-kubernetes-unions:\n            - fields-to-discriminateBy: {left: Left, right: Right}\n";
    let (folder, text) = generated(&crd(None, more), &["--in-schema"]);
    let spec = &yaml(&text)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["x-kubernetes-unions"], by_hand());
    assert_eq!(spec["properties"]["firing"]["x-kubernetes-unions"], marked());
    assert_eq!(annotation(&text), Value::Null);
    folder.write("crd.yaml", &text);
    let moved = folder.run(&["generate", "--go", ".", "crd.yaml"]).code(0).stdout;
    assert_eq!(annotation(&moved), json!({"v1": {"/properties/spec": by_hand(), PLACE: marked()}}));
    assert!(!moved.contains("x-kubernetes-unions"), "{moved}");
    // And back.
    folder.write("crd.yaml", &moved);
    let back = yaml(&folder.run(&["generate", "--go", ".", "--in-schema", "crd.yaml"]).code(0).stdout);
    let spec = &back["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["properties"]["firing"]["x-kubernetes-unions"], marked());
}

#[test]
fn an_annotation_that_nobody_can_read_is_not_overwritten() {
    let broken = CRD.replace("metadata:\n", "metadata:\n  annotations:\n    kube-unions.dev/unions: '{\"v1\": ['\n");
    let folder = kilns(GO);
    folder.write("crd.yaml", &broken);
    let run = folder.run(&["generate", "--go", ".", "-w", "crd.yaml"]);
    assert_ne!(run.code, 0, "{run:#?}");
    assert_eq!(folder.read("crd.yaml"), broken);
}

#[test]
fn other_documents_pass_and_comments_stay() {
    let around =
        "# Source: chart\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}   # why\ndata: {a: \"1\"}\n---\n";
    let commented = CRD.replace("  group:", "  # What it is a part of.\n  group:");
    let after = "---\nkind: List\nitems: []\n...\n";
    let folder = kilns(GO);
    folder.write("crd.yaml", format!("{around}{commented}{after}"));
    let text = folder.run(&["generate", "--go", ".", "crd.yaml"]).code(0).stdout;
    assert!(text.starts_with(around) && text.ends_with(after), "{text}");
    assert!(text.contains("  # What it is a part of.\n  group:"), "{text}");
    assert_eq!(text.matches("kube-unions.dev/unions").count(), 1);
}

#[test]
fn json_stays_json() {
    let folder = kilns(GO);
    folder.write("crd.json", serde_json::to_string_pretty(&yaml(CRD)).unwrap());
    let run = folder.run(&["generate", "--go", ".", "crd.json"]).code(0);
    let mut crd = run.json();
    let annotation: Value =
        serde_json::from_str(crd["metadata"]["annotations"]["kube-unions.dev/unions"].as_str().unwrap()).unwrap();
    assert_eq!(annotation, json!({"v1": {PLACE: marked()}}));
    crd["metadata"].as_object_mut().unwrap().remove("annotations");
    assert_eq!(crd, yaml(CRD));
}

#[test]
fn what_the_markers_leave_open_may_be_declared_by_hand() {
    // Two discriminators, and members that do not say whose they are.
    let go = GO.replace(
        "type KilnSpec struct {",
        "type KilnSpec struct {\n\t// +unionDiscriminator\n\tMood FiringType `json:\"mood\"`\n",
    );
    let crd = CRD.replace(
        "              glaze:",
        "              mood: {type: string, enum: [Cold, Glaze, Bisque]}\n              glaze:",
    );
    let folder = kilns(go);
    folder.write("crd.yaml", &crd);
    folder.run(&["generate", "--go", ".", "crd.yaml"]).code(1);
    let by_hand = json!({"v1": {PLACE: marked()}});
    let declared =
        crd.replace("metadata:\n", &format!("metadata:\n  annotations:\n    kube-unions.dev/unions: '{by_hand}'\n"));
    folder.write("crd.yaml", &declared);
    folder.run(&["generate", "--go", ".", "crd.yaml"]).code(0).prints(&declared);
}
