//! Every command on unions where the schema keeps unknown fields: `schemaless` and `podTemplates`.

use super::cases::{folder, object};
use super::{Folder, yaml};
use fixtures::cases::{Suite, suites};
use fixtures::files::{parse, root};
use serde_json::{Value, json};

/// Returns the folder of the suite with one union in each way that a schema can keep unknown fields.
fn schemaless() -> Folder {
    let suites = suites();
    let (_, suite) = suites.iter().find(|(path, _)| path == "places/schemaless.yaml").unwrap();
    folder([("Job", suite)])
}

/// Returns the folder of the case of a pod template that the schema does not describe.
fn pod_template() -> Folder {
    let path = "tests/cases/declarations/schemaless.yaml";
    let all: Value = parse(path, &std::fs::read_to_string(root().join(path)).unwrap());
    let of_template =
        |case: &&Value| case["description"].as_str().unwrap().starts_with("a pod template is a place of many");
    let case = all["cases"].as_array().unwrap().iter().find(of_template).unwrap();
    kind(&case["schema"], &case["declarations"])
}

/// Returns the folder of a kind.
fn kind(schema: &Value, declarations: &Value) -> Folder {
    let suite = json!({"description": "one kind", "schema": schema, "declarations": declarations, "rows": []});
    folder([("Job", &serde_json::from_value::<Suite>(suite).unwrap())])
}

fn job(name: &str, fields: &Value) -> Value {
    object("Job", name, fields)
}

/// A job with this spec of its pod.
fn with_pod(spec: &Value) -> Value {
    job("pod", &json!({"spec": {"template": {"metadata": {"labels": {"app": "a"}}, "spec": spec}}}))
}

fn write(folder: &Folder, name: &str, object: &Value) {
    folder.write(name, object.to_string());
}

/// A pod with two volumes and a profile, and a field that no declaration names.
fn pod() -> Value {
    json!({
        "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "secret": {"secretName": "s"}}],
        "containers": [{"name": "main", "image": "i:1", "env": [{"name": "A", "value": "a"}]}],
        "securityContext": {"runAsUser": 1, "seccompProfile": {"type": "Localhost", "localhostProfile": "p"}},
    })
}

#[test]
fn audit_finds_stored_objects_that_violate_and_no_other() {
    let two = json!([{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]);
    for (folder, bad, field) in [
        (
            schemaless(),
            job("bad", &json!({"spec": {"open": {"volumes": [{"name": "x", "git": 1, "oci": 2}], "free": [1]}}})),
            "spec.open.volumes[0].oci",
        ),
        (
            pod_template(),
            job("bad", &json!({"spec": {"template": {"spec": {"volumes": two}}}})),
            "spec.template.spec.volumes[0].hostPath",
        ),
    ] {
        write(&folder, "live/bad.json", &bad);
        write(&folder, "live/good.json", &with_pod(&pod()));
        // Nulls are stored where the schema describes no field. They count as not set.
        let nulls = job(
            "nulls",
            &json!({"spec": {
            "open": {"volumes": [{"name": "x", "git": null, "oci": 2, "kind": "Oci"}]},
            "template": {"spec": {"volumes": [{"name": "v", "emptyDir": null, "hostPath": {}}], "containers": null}}}}),
        );
        write(&folder, "live/nulls.json", &nulls);
        let report = folder.run(&["audit", "--from", "kinds", "--from", "live", "-o", "json"]).code(1).json();
        let findings: Vec<_> =
            report["findings"].as_array().unwrap().iter().map(|it| (&it["name"], &it["field"])).collect();
        assert_eq!(findings, [(&json!("bad"), &json!(field))], "{report:#}");
        assert_eq!(report["summary"]["objects"], json!(3));
    }
}

#[test]
fn compile_makes_policies_and_says_why_it_makes_no_rules() {
    for folder in [schemaless(), pod_template()] {
        let run = folder.run(&["compile", "--to", "policies", "--from", "kinds"]).code(0);
        let documents: Vec<Value> = run.stdout.split("---\n").filter(|text| !text.is_empty()).map(yaml).collect();
        for kind in ["MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"] {
            assert!(documents.iter().any(|policy| policy["kind"] == kind), "no {kind}: {run:#?}");
        }
        assert!(!run.stderr.contains("error") && !run.stderr.contains("warning"), "{run:#?}");
        let run = folder.run(&["compile", "--to", "cel", "--from", "kinds"]).code(1);
        assert!(run.stderr.contains("use policies") || run.stderr.contains("that rules can read"), "{run:#?}");
        assert!(!run.stdout.contains("x-kubernetes-validations"), "{run:#?}");
    }
}

#[test]
fn explain_shows_unions_that_the_schema_does_not_describe() {
    let text = schemaless().run(&["explain", "--from", "kinds"]).code(0).stdout;
    assert!(text.starts_with("Job cases.example.com/v1\n"), "{text}");
    assert!(
        text.contains("── spec.open.strategy (2022 form, discriminator `type`, from declaration one-job)\n"),
        "{text}"
    );
    let report = pod_template().run(&["explain", "--from", "kinds", "-o", "json"]).code(0).json();
    let unions = report[0]["unions"].as_array().unwrap();
    assert_eq!(unions.len(), 21);
    assert!(
        unions.iter().all(|union| union["path"].as_str().unwrap().starts_with("spec.template.spec.")),
        "{report:#}"
    );
}

#[test]
fn lint_has_nothing_against_declared_fields() {
    pod_template().run(&["lint", "--strict", "kinds"]).code(0).prints("");
    // A list without keys is a note, as it is where the schema describes the list.
    let run = schemaless().run(&["lint", "--strict", "kinds"]).code(0);
    let line = ": spec.open.plain[*]: note: v1: stands inside the list `spec.open.plain`, whose items have no keys: its members can \
                be rejected but not cleared\n";
    assert!(run.stdout.ends_with(line) && run.stdout.lines().count() == 1, "{run:#?}");
}

/// Returns a schema that describes these fields of `spec`.
fn in_spec(spec: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

#[test]
fn lint_suggests_a_name_and_not_schemaless_for_a_misspelt_field() {
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"git": {}, "bucket": {}}});
    let declared = json!({"unions": [{"path": "spec", "fieldsToDiscriminateBy": {"git": "Git", "buckets": "Bucket"}}]});
    let run = kind(&in_spec(&spec), &json!({"one": declared})).run(&["lint", "kinds"]).code(0);
    assert!(run.stdout.contains("did you mean `bucket`?") && !run.stdout.contains("schemaless"), "{run:#?}");
}

#[test]
fn patch_is_silent_about_parts_of_a_pod_template_that_the_schema_lacks() {
    let pod = json!({"type": "object", "properties": {"volumes": {"x-kubernetes-preserve-unknown-fields": true}}});
    let template =
        json!({"type": "object", "properties": {"template": {"type": "object", "properties": {"spec": pod}}}});
    let folder = kind(&in_spec(&template), &json!({"one": {"podTemplates": ["spec.template"]}}));
    let with = |volumes: Value| json!({"spec": {"template": {"spec": {"volumes": volumes}}}});
    let volumes = with(json!([{"name": "a", "emptyDir": {}}, {"name": "b"}]));
    write(&folder, "job.json", &job("a", &volumes));
    write(&folder, "patch.json", &with(json!([{"name": "b", "secret": {}}])));
    let run = folder
        .run(&["patch", "apply", "--schema", "kinds", "--original", "job.json", "--patch-file", "patch.json"])
        .code(0);
    let want = with(json!([{"name": "a", "emptyDir": {}}, {"name": "b", "secret": {}}]));
    assert_eq!((run.json(), &*run.stderr), (job("a", &want), ""));
}
