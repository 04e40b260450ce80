//! `review` and `normalize`: objects, judged as the webhook judges them.

use super::{Folder, yaml};
use base64::Engine;
use fixtures::reviews;
use serde_json::{Value, json};

const OLD: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec:\n  strategy:\n    type: Rolling\n    rolling: {surge: 1}\n";
/// As a client sends it that changes the discriminator only.
const SWITCHED: &str = "# mine\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a} # a\nspec:\n  strategy:\n    type: Recreate # now\n    rolling: {surge: 1}\n  n: 18446744073709551617\n";
const TWO: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: two}\nspec: {git: {}, oci: {}, strategy: {type: Bogus}}\n";

fn review(operation: &str, old: &Value, new: &str) -> String {
    let old = Some(old).filter(|it| !it.is_null());
    reviews::review("1-2-3", operation, Some(&yaml(new)), old).to_string()
}

#[test]
fn a_review_is_answered_with_a_patch() {
    let folder = Folder::with_crd(&[]);
    let request = review("UPDATE", &yaml(OLD), SWITCHED);
    for phase in [&[][..], &["--phase", "mutate"]] {
        let run = folder.pipe(&[&["review", "--from", "crd.yaml"], phase].concat(), &request).code(0);
        let response = &run.json()["response"];
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("1-2-3"), &json!(true)));
        let patch = base64::engine::general_purpose::STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
        let patch: Value = serde_json::from_slice(&patch).unwrap();
        assert_eq!(patch, json!([{"op": "remove", "path": "/spec/strategy/rolling"}]));
    }
}

#[test]
fn a_denied_review_is_answered_and_exits_with_1() {
    let folder = Folder::with_crd(&[("review.json", &review("CREATE", &Value::Null, TWO))]);
    for phase in [&[][..], &["--phase", "validate"]] {
        let run = folder.run(&[&["review", "--from", "crd.yaml", "-f", "review.json"], phase].concat()).code(1);
        assert_eq!(run.json()["response"]["allowed"], json!(false));
        assert_eq!(run.json()["response"]["status"]["code"], json!(422));
    }
}

#[test]
fn a_review_in_yaml_is_a_review_too() {
    let folder = Folder::with_crd(&[]);
    let request = "kind: AdmissionReview\napiVersion: admission.k8s.io/v1\nrequest:\n  uid: abc\n  operation: CREATE\n  \
        kind: {group: example.com, version: v1, kind: Widget}\n  object: {apiVersion: example.com/v1, kind: Widget, spec: {git: {}}}\n";
    let run = folder.pipe(&["review", "--from", "crd.yaml", "-f", "-"], request).code(0);
    assert_eq!(run.json()["response"]["uid"], json!("abc"));
}

#[test]
fn ratcheting_lets_an_old_fault_through_and_can_be_switched_off() {
    let wrong = OLD.replace("Rolling\n", "Recreate\n");
    let relabeled = wrong.replace("{name: a}", "{name: a, labels: {x: y}}");
    let folder = Folder::with_crd(&[("review.json", &review("UPDATE", &yaml(&wrong), &relabeled))]);
    let run = |more: &[&str]| folder.run(&[&["review", "--from", "crd.yaml", "-f", "review.json"], more].concat());
    assert!(run(&[]).code(0).stdout.contains("let through"));
    run(&["--ratcheting", "disabled"]).code(1);
}

#[test]
fn an_update_is_normalised_in_its_own_text() {
    let folder = Folder::with_crd(&[("old.yaml", OLD), ("new.yaml", SWITCHED)]);
    let normalize = |more: &[&str]| {
        folder
            .run(&[&["normalize", "--from", "crd.yaml", "--old", "old.yaml", "-f", "new.yaml"], more].concat())
            .code(0)
    };
    let warning = "Warning: spec.strategy.rolling: cleared because `type` changed to \"Recreate\"";
    normalize(&[]).says(&[warning]).prints(&SWITCHED.replace("    rolling: {surge: 1}\n", ""));

    let run = normalize(&["-o", "json"]);
    assert_eq!(run.json()["spec"]["strategy"], json!({"type": "Recreate"}));
    assert!(run.stdout.starts_with("{\n  \"apiVersion\": \"example.com/v1\",\n"), "{run:#?}");
}

#[test]
fn a_create_clears_nothing_and_an_object_that_needs_nothing_is_printed_as_it_was_read() {
    let folder = Folder::with_crd(&[]);
    let other = "# not ours\nkind: Other\napiVersion: v1\nbig: 18446744073709551617\n";
    let input = format!("{OLD}---\n{other}");
    folder.pipe(&["normalize", "--from", "crd.yaml", "-f", "-"], &input).code(0).prints(&input);
    let json = "{\"kind\":\"Other\",  \"apiVersion\":\"v1\", \"big\":18446744073709551617}\n";
    folder.pipe(&["normalize", "--from", "crd.yaml", "-f", "-"], json).code(0).prints(json);
    folder.pipe(&["normalize", "--from", "crd.yaml", "-f", "-", "-o", "json"], json).code(0).prints(json);
    let item = format!("{{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{}]}}", json.trim_end());
    let pretty = "{\n  \"kind\": \"Other\",\n  \"apiVersion\": \"v1\",\n  \"big\": 18446744073709551617\n}\n";
    folder.pipe(&["normalize", "--from", "crd.yaml", "-f", "-"], item).code(0).prints(pretty);
    let run = folder.pipe(
        &["normalize", "--from", "crd.yaml", "-f", "-", "-o", "yaml"],
        "{\"kind\":\"Other\",\"apiVersion\":\"v1\"}",
    );
    assert_eq!(yaml(&run.code(0).stdout), json!({"kind": "Other", "apiVersion": "v1"}));
}

#[test]
fn what_is_rejected_is_left_out_and_said_as_kubectl_says_it() {
    let folder = Folder::with_crd(&[]);
    let run = folder.pipe(&["normalize", "--from", "crd.yaml", "-f", "-"], format!("{TWO}---\n{OLD}")).code(1);
    assert_eq!(yaml(&run.stdout), yaml(OLD));
    run.says(&[
        "The Widget \"two\" is invalid: \n",
        "* spec.oci: Forbidden: at most one of `git`, `oci` may be set",
        "* spec.strategy.type: Unsupported value: \"Bogus\": supported values: \"Recreate\", \"Rolling\"",
    ]);
}

#[test]
fn the_old_object_is_found_by_its_name_in_lists_too() {
    let list = |objects: &[&str]| json!({"apiVersion": "v1", "kind": "List", "items": objects.iter().map(|text| yaml(text)).collect::<Vec<_>>()});
    let other = OLD.replace("name: a", "name: b");
    let folder = Folder::with_crd(&[("old.json", &list(&[&other, OLD]).to_string())]);
    let run = folder
        .pipe(&["normalize", "--from", "crd.yaml", "--old", "old.json", "-f", "-"], list(&[SWITCHED]).to_string())
        .code(0);
    assert_eq!(run.json()["spec"]["strategy"], json!({"type": "Recreate"}));
}

/// A manifest that sets a value and a member that it does not select.
const CONTRADICTION: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec:\n  strategy:\n    type: Recreate\n    rolling: {surge: 1}\n";

#[test]
fn a_manifest_that_contradicts_itself_is_refused_if_it_is_applied_and_noted_if_not() {
    let folder = Folder::with_crd(&[("old.yaml", OLD), ("new.yaml", CONTRADICTION)]);
    let normalize = ["normalize", "--from", "crd.yaml", "--old", "old.yaml", "-f", "new.yaml"];
    let words = "spec.strategy: Invalid value: the applied manifest sets `type` to \"Recreate\" and `rolling`, which \"Recreate\" does not \
        select; remove `rolling`\n";
    let run = folder.run(&normalize).code(0);
    assert!(!run.stdout.contains("rolling"), "{run:?}");
    let note = format!("Note: new.yaml:5:3: an apply of this file is judged otherwise (--applied): {words}");
    assert!(run.stderr.starts_with(&note), "{run:?}");
    let run = folder.run(&[&normalize[..], &["--applied"]].concat()).code(1);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.starts_with(&format!("The Widget \"a\" is invalid: {words}")), "{run:?}");
    // A manifest that names one member clears that of the stored object.
    let folder =
        Folder::with_crd(&[("old.yaml", OLD), ("new.yaml", &CONTRADICTION.replace("    rolling: {surge: 1}\n", ""))]);
    assert!(!folder.run(&[&normalize[..], &["--applied"]].concat()).code(0).stderr.contains("Note"));
}

#[test]
fn a_review_of_an_apply_is_judged_by_its_manifest() {
    let new = yaml(CONTRADICTION);
    let folder = Folder::with_crd(&[]);
    let mut request: Value = serde_json::from_str(&review("UPDATE", &yaml(OLD), CONTRADICTION)).unwrap();
    let answer = |request: &Value, code| {
        folder.pipe(&["review", "--from", "crd.yaml"], request.to_string()).code(code).json()["response"].clone()
    };
    assert_eq!(answer(&request, 0)["allowed"], json!(true));
    request["request"]["options"]["fieldManager"] = json!("kubectl-client-side-apply");
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    request["request"]["object"]["metadata"]["annotations"] = json!({ annotation: new.to_string() });
    let denied = answer(&request, 1);
    assert_eq!(denied["status"]["details"]["causes"][0]["reason"], json!("FieldValueInvalid"), "{denied}");
}
