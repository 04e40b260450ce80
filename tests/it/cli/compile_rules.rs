//! `compile --to cel`: rules in CRDs, and everything else in the files as it was.

use super::{CRD, Folder, crd_of, yaml};
use serde_json::{Value, json};

/// The rules of the CRD's unions, as they stand in its text.
const LIST_RULE: &str = "            x-kubernetes-validations:
            - rule: '!(has(self.oci) && has(self.git)) // kube-unions'
              reason: FieldValueForbidden
              fieldPath: '.oci'
              message: 'at most one of `git`, `oci` may be set'
";
const MAP_RULES: &str = "                x-kubernetes-validations:
                - rule: 'has(self.type) || !has(self.rolling) // kube-unions'
                  reason: FieldValueRequired
                  fieldPath: '.type'
                  message: 'must be specified when `rolling` is set'
                - rule: '!(has(self.rolling) && has(self.type) && self.type != \"Rolling\") // kube-unions'
                  reason: FieldValueForbidden
                  fieldPath: '.rolling'
                  message: 'may only be specified when `type` is \"Rolling\"'
";

const COMPILE: [&str; 4] = ["compile", "--to", "cel", "--from"];

fn compile(arguments: &[&'static str]) -> Vec<&'static str> {
    COMPILE.into_iter().chain(arguments.iter().copied()).collect()
}

/// The CRD as it has to come out: nothing else differs by a byte.
fn with_rules() -> String {
    format!("{CRD}{MAP_RULES}{LIST_RULE}")
}

fn spec(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
}

#[test]
fn rules_are_added_and_every_other_byte_stays() {
    let folder = Folder::with_crd(&[]);
    folder.run(&compile(&["crd.yaml"])).code(0).prints(&with_rules());
    let around = "# Source: a.yaml\napiVersion: v1\nkind: ConfigMap\ndata: {a:   'b'}\n---\n";
    let input = format!("{around}{CRD}---\nkind: Other\n# the end\n");
    folder.pipe(&compile(&["-"]), input).code(0).prints(&format!("---\n{}", with_rules()));
}

#[test]
fn write_edits_files_and_check_names_those_that_would_change() {
    let folder = Folder::with_crd(&[("other.yaml", "kind: Other\n")]);
    folder
        .run(&compile(&[".", "--check"]))
        .code(1)
        .prints("")
        .says(&["crd.yaml:2:1: widgets.example.com: would change"]);
    assert_eq!(folder.read("crd.yaml"), CRD);
    folder.run(&compile(&[".", "--write"])).code(0).prints("");
    assert_eq!(folder.read("crd.yaml"), with_rules());
    assert_eq!(folder.read("other.yaml"), "kind: Other\n");
    folder.run(&compile(&[".", "--check"])).code(0).prints("");
}

#[test]
fn rules_follow_the_union_and_those_of_the_author_stay() {
    let (keyword, rule) = LIST_RULE.split_once('\n').unwrap();
    let of_author = "            - rule: self.git == self.git # of the author\n              message: \"m\"\n";
    let both = with_rules().replace(LIST_RULE, &format!("{keyword}\n{of_author}{rule}"));
    let folder = Folder::new(&[("crd.yaml", &both)]);
    folder.run(&compile(&["crd.yaml"])).code(0).prints(&both);

    let without = both.replace(
        "            x-kubernetes-unions:\n            - fields-to-discriminateBy:\n                git: Git # one\n                oci: OCI\n",
        "",
    );
    folder.write("crd.yaml", &without);
    let run = folder.run(&compile(&["crd.yaml"])).code(0);
    assert_eq!(run.stdout, without.replace(rule, ""), "the rule of the author and its comment stay");
}

#[test]
fn json_and_lists_get_rules_too() {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Other"}, yaml(CRD)]});
    let run = Folder::new(&[]).pipe(&compile(&["-"]), serde_json::to_string_pretty(&list).unwrap()).code(0);
    assert_eq!(run.json()["items"][1], yaml(&with_rules()));
    assert_eq!(run.json()["items"][0], json!({"kind": "Other"}));
}

#[test]
fn what_cannot_be_expressed_is_named_and_the_rest_is_written() {
    let loose = CRD.replace(
        "              git: {type: object, properties: {url: {type: string}}}\n",
        "              git: {x-kubernetes-preserve-unknown-fields: true}\n",
    );
    let folder = Folder::new(&[("crd.yaml", &loose)]);
    let run = folder.run(&compile(&["crd.yaml"])).code(1).says(&[
        "example.com/v1",
        "Widget: the union at spec: the schema of the field \"git\" has no `type` that rules can read",
    ]);
    let after = yaml(&run.stdout);
    assert!(spec(&after).get("x-kubernetes-validations").is_none());
    assert_eq!(spec(&after)["properties"]["strategy"]["x-kubernetes-validations"].as_array().unwrap().len(), 2);
    let mut partial = compile(&["crd.yaml"]);
    partial.push("--allow-partial");
    folder.run(&partial).code(0).prints(&run.stdout);
}

#[test]
fn a_kind_that_no_crd_defines_is_named() {
    let document = include_str!("apps-v1.openapi.json");
    let declaration = include_str!("../../../manifests/presets/strategies.yaml");
    let folder = Folder::new(&[("openapi.json", document), ("declaration.yaml", declaration)]);
    let run = folder.run(&compile(&["openapi.json", "declaration.yaml"])).code(1);
    let run = run.says(&["Deployment: no CRD among the inputs defines it"]);
    assert_eq!(run.stdout, "", "only CRDs are printed");
}

#[test]
fn only_crds_are_printed_and_equal_notes_are_one_line() {
    let other = "# another object\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n";
    let stream = format!("{other}---\n{CRD}---\n{other}");
    let folder = Folder::new(&[("all.yaml", &stream)]);
    let printed = folder.run(&compile(&["all.yaml"])).code(0).stdout;
    assert!(!printed.contains("ConfigMap"), "{printed}");
    assert_eq!(yaml(&printed), yaml(&with_rules()));
    let mut write = compile(&["all.yaml"]);
    write.push("--write");
    folder.run(&write).code(0);
    assert_eq!(folder.read("all.yaml").matches(other).count(), 2);

    let union = |path: &str| json!({"path": path, "fieldsToDiscriminateBy": {"a": "A", "b": "B"}});
    let declaration = json!({"apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": "d"},
        "spec": {"target": {"group": "example.com", "kind": "Pair"}, "validationActions": ["Warn"],
            "unions": [union("spec.one"), union("spec.two")]}});
    let schema = "        type: object
        properties:
          spec:
            type: object
            properties:
              one: {type: object, properties: {a: {type: string}, b: {type: string}}}
              two: {type: object, properties: {a: {type: string}, b: {type: string}}}
";
    let folder = Folder::new(&[("crd.yaml", &crd_of("Pair", schema)), ("d.json", &declaration.to_string())]);
    let run = folder.run(&compile(&["crd.yaml", "d.json"])).code(1);
    let line = "Pair: the unions at spec.one, spec.two: its declaration does not deny, and rules in a CRD can only reject; \
                use policies, or --action deny";
    assert_eq!(run.stderr.matches("does not deny").count(), 1, "{run:#?}");
    assert!(run.stderr.contains(line), "{run:#?}");
    let mut deny = compile(&["crd.yaml", "d.json"]);
    deny.extend(["--action", "deny"]);
    folder.run(&deny).code(0);
}
