//! The forms of `compile` that no API server evaluates as policies or CEL: keywords, JSON schemas, the document for kustomize, and static
//! manifests.

use super::{CRD, Folder, crd_of, yaml};
use jsonschema::draft7;
use serde_json::{Value, json};

/// The last lines of the CRD with its unions in keywords.
const LIST_KEYWORDS: &str = "            allOf:
            - not:
                required: [\"oci\",\"git\"]
              externalDocs:
                description: kube-unions
";

#[test]
fn keywords_are_added_and_every_other_byte_stays() {
    let folder = Folder::with_crd(&[]);
    let printed = folder.run(&["compile", "--to", "openapi", "--from", "crd.yaml"]).code(0).stdout;
    assert!(printed.starts_with(CRD) && printed.ends_with(LIST_KEYWORDS), "{printed}");
    folder.run(&["compile", "--to", "openapi", "--from", "crd.yaml", "--check"]).code(1).says(&["would change"]);
    folder.run(&["compile", "--to", "openapi", "--from", "crd.yaml", "--write"]).code(0);
    folder.run(&["compile", "--to", "openapi", "--from", "crd.yaml", "--check"]).code(0);
    folder.run(&["compile", "--to", "openapi", "--from", "crd.yaml"]).code(0).prints(&printed);
    folder.run(&["lint", "--strict", "crd.yaml"]).code(0);

    let in_cel = folder.run(&["compile", "--to", "cel", "--from", "crd.yaml"]).code(0).stdout;
    folder.write("crd.yaml", CRD);
    folder.run(&["compile", "--to", "cel", "--from", "crd.yaml"]).code(0).prints(&in_cel);
}

#[test]
fn json_schemas_have_the_names_of_catalogues() {
    let folder = Folder::with_crd(&[("other.yaml", &crd_of("Other", "        type: object\n"))]);
    folder
        .run(&["compile", "--to", "json-schema", "--from", ".", "--output-dir", "schemas"])
        .code(0)
        .prints("")
        .says(&["wrote 2 schemas to schemas"]);
    let schema: Value = serde_json::from_str(&folder.read("schemas/example.com/widget_v1.json")).unwrap();
    let printed = folder.run(&["compile", "--to", "json-schema", "--from", "crd.yaml"]).code(0);
    assert_eq!(printed.json(), schema);
    let validator = draft7::new(&schema).unwrap();
    let widget = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    assert!(validator.is_valid(&widget(json!({"git": {"url": "u"}}))));
    assert!(!validator.is_valid(&widget(json!({"git": {"url": "u"}, "oci": {}}))));
    let other: Value = serde_json::from_str(&folder.read("schemas/example.com/other_v1.json")).unwrap();
    assert_eq!(other["properties"]["kind"]["const"], "Other");

    folder.run(&["compile", "--to", "json-schema", "--from", "."]).code(2).prints("").says(&["--output-dir"]);
    let outside = CRD.replace("group: example.com", "group: ../../outside");
    folder.write("crd.yaml", &outside);
    let escaped = folder.run(&["compile", "--to", "json-schema", "--from", "crd.yaml", "--output-dir", "schemas"]);
    assert_eq!(escaped.code, 2, "{escaped:#?}");
}

#[test]
fn the_command_openapi_prints_the_document_for_kustomize() {
    let folder = Folder::with_crd(&[]);
    let printed = folder.run(&["openapi", "--from", "crd.yaml"]).code(0);
    let run = folder.run(&["compile", "--to", "kustomize", "--from", "crd.yaml"]).code(0);
    assert_eq!((run.stdout, run.stderr), (printed.stdout, printed.stderr));
}

#[test]
fn static_manifests_have_their_names_and_check_compares_a_directory() {
    let folder = Folder::with_crd(&[]);
    let compile = ["compile", "--to", "vap", "--static", "--from", "crd.yaml"];
    let printed = folder.run(&compile).code(0).stdout;
    let names: Vec<&str> =
        printed.lines().filter(|line| line.starts_with("  name: ") || line.contains("policyName: ")).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.iter().all(|line| line.ends_with("-deny.static.k8s.io")), "{names:?}");
    folder.write("static/unions.yaml", &printed);
    folder.run(&[&compile[..], &["--check", "static"]].concat()).code(0);
    let mut documents = printed.split("---\n").map(yaml);
    let policy = documents.next().unwrap();
    assert_eq!(policy["spec"].get("paramKind"), None);
    assert_eq!(documents.next().unwrap()["spec"]["policyName"], policy["metadata"]["name"]);
}
