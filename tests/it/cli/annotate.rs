//! `annotate`: what moves, what stays, and what it is a pipe between.

use super::{CRD, Folder, yaml};
use serde_json::{Value, json};

const EXTENSION_LINES: [&str; 2] = [
    "            x-kubernetes-unions:\n            - fields-to-discriminateBy:\n                git: Git # one\n                oci: OCI\n",
    "                    x-kubernetes-unions: {fieldMembers: {Rolling: {name: rolling, optional: true}, Recreate: null}}\n",
];
const LABELS: &str = "  labels: {app: \"widgets\"}\n";
const ANNOTATIONS: &str = "  annotations:\n    kube-unions.dev/unions: '{\"v1\":{\"/properties/spec\":[{\"fields-to-discriminateBy\":{\"git\":\"Git\",\"oci\":\"OCI\"}}],\
    \"/properties/spec/properties/strategy/properties/type\":{\"fieldMembers\":{\"Rolling\":{\"name\":\"rolling\",\"optional\":true},\"Recreate\":null}}}}'\n";

/// The CRD as it has to come out: nothing else differs by a byte.
fn annotated() -> String {
    let stripped = EXTENSION_LINES.iter().fold(CRD.to_owned(), |text, lines| text.replace(lines, ""));
    assert_ne!(stripped.len(), CRD.len());
    stripped.replace(LABELS, &format!("{LABELS}{ANNOTATIONS}"))
}

fn declarations(crd: &Value) -> Value {
    serde_json::from_str(crd["metadata"]["annotations"]["kube-unions.dev/unions"].as_str().unwrap()).unwrap()
}

#[test]
fn extensions_move_and_every_other_byte_stays() {
    Folder::with_crd(&[]).run(&["annotate", "crd.yaml"]).code(0).prints(&annotated());
}

#[test]
fn annotating_twice_changes_nothing() {
    let folder = Folder::new(&[("crd.yaml", &annotated())]);
    folder.run(&["annotate", "crd.yaml"]).code(0).prints(&annotated());
    folder.run(&["annotate", "--check", "crd.yaml"]).code(0).prints("");
}

#[test]
fn what_is_annotated_means_the_same() {
    let folder = Folder::with_crd(&[("annotated.yaml", &annotated())]);
    let unions = |file: &str| folder.run(&["explain", "-o", "json", "--from", file]).code(0).stdout;
    assert_eq!(unions("annotated.yaml"), unions("crd.yaml").replace("\"schema\"", "\"annotation\""));
}

#[test]
fn check_prints_nothing_and_names_what_would_change() {
    Folder::with_crd(&[])
        .run(&["annotate", "--check", "crd.yaml"])
        .code(1)
        .prints("")
        .says(&["crd.yaml:2:1: widgets.example.com: would change"]);
}

#[test]
fn other_documents_pass_a_pipe_byte_for_byte() {
    let around = "# Source: chart/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\ndata: {a: 'x-kubernetes-unions',  b: \"\\u00e9\"}\n---\n# nothing\n---\n";
    let input = format!("{around}{CRD}---\nkind: Other\nn: 018446744073709551617\n# the end\n");
    let output = format!("{around}{}---\nkind: Other\nn: 018446744073709551617\n# the end\n", annotated());
    let folder = Folder::new(&[]);
    folder.pipe(&["annotate"], &input).code(0).prints(&output);
    folder.pipe(&["annotate", "-f", "-"], &input).code(0).prints(&output);
    folder.pipe(&["annotate", "-"], around).code(0).prints(around);
    folder.pipe(&["annotate"], "").code(0).prints("");
}

#[test]
fn windows_line_ends_stay() {
    let crd = CRD.replace('\n', "\r\n");
    Folder::new(&[]).pipe(&["annotate"], crd).code(0).prints(&annotated().replace('\n', "\r\n"));
}

#[test]
fn json_stays_json_and_keeps_its_layout() {
    let pretty = serde_json::to_string_pretty(&yaml(CRD)).unwrap();
    let folder = Folder::new(&[("crd.json", &pretty)]);
    let run = folder.run(&["annotate", "crd.json"]).code(0);
    assert_eq!(run.json(), yaml(&annotated()));
    assert_eq!(run.stdout.lines().next_back(), Some("}"));
    let annotations = "      \"app\": \"widgets\"\n    },\n    \"annotations\": {\"kube-unions.dev/unions\": \"{";
    assert!(run.stdout.contains(annotations), "{}", run.stdout);

    let compact = yaml(CRD).to_string();
    let run = folder.pipe(&["annotate"], &compact).code(0);
    assert_eq!(run.stdout, yaml(&annotated()).to_string());
}

#[test]
fn items_of_lists_are_annotated_where_they_stand() {
    let indented = |text: &str| text.replace('\n', "\n  ").trim_end().to_owned();
    let list = |crd: &str| {
        format!(
            "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- {}\n- kind: Other # kept\n",
            indented(crd)
        )
    };
    let crd = CRD.trim_start_matches("# Widgets, for the tests of the command line.\n");
    let out = annotated();
    let out = out.trim_start_matches("# Widgets, for the tests of the command line.\n");
    Folder::new(&[]).pipe(&["annotate"], list(crd)).code(0).prints(&list(out));
}

#[test]
fn several_files_become_one_stream() {
    let other = "kind: Other\nmetadata: {name: other}\n";
    let folder = Folder::new(&[("b/crd.yaml", CRD), ("a.yml", other), ("notes.txt", "kind: {")]);
    folder.run(&["annotate", "."]).code(0).prints(&format!("{other}---\n{}", annotated()));
}

#[test]
fn what_the_annotation_holds_already_is_merged_and_the_schema_wins() {
    let with = |declared: &Value| {
        let text = format!(
            "{LABELS}  annotations:\n    other: kept # too\n    kube-unions.dev/unions: |-\n      {declared}\n"
        );
        CRD.replace(LABELS, &text)
    };
    let wanted = declarations(&yaml(&annotated()));
    let folder = Folder::new(&[]);

    let mut same = json!({"v1": {}});
    same["v1"]["/properties/spec"] = wanted["v1"]["/properties/spec"].clone();
    let run = folder.pipe(&["annotate"], with(&same)).code(0);
    assert_eq!(declarations(&yaml(&run.stdout)), wanted);
    assert!(run.stdout.contains("    other: kept # too\n    kube-unions.dev/unions: '{"), "{}", run.stdout);

    let contradiction = json!({"v1": {"/properties/spec": [{"fields-to-discriminateBy": {"git": "X", "oci": "Y"}}]}});
    let run =
        folder.pipe(&["annotate"], with(&contradiction)).code(1).says(&["<stdin>:", "spec", "contradicts the schema"]);
    assert_eq!(declarations(&yaml(&run.stdout)), wanted);

    let broken = with(&json!("nonsense"));
    folder.pipe(&["annotate"], &broken).code(1).prints(&broken).says(&["is unreadable"]);
}

#[test]
fn faults_are_reported_and_the_output_is_complete() {
    let crd = CRD.replace("Rolling: {name: rolling,", "Rolling: {name: missing,");
    let run = Folder::new(&[]).pipe(&["annotate"], crd).code(1).says(&[
        "<stdin>:35:",
        "spec.strategy.type: error: ",
        "`missing`",
    ]);
    assert_eq!(run.stdout, annotated().replace(r#""name":"rolling""#, r#""name":"missing""#));
}

#[test]
fn a_crd_whose_annotations_would_not_fit_is_reported() {
    let members: Vec<String> = (0..120).map(|member| format!("member{member}")).collect();
    let long = "x".repeat(3000);
    let by: String = members.iter().flat_map(|name| ["                ", name, ": ", name, &long, "\n"]).collect();
    let properties: String = members.iter().flat_map(|name| ["              ", name, ": {type: object}\n"]).collect();
    let oci = "              oci: {type: object";
    let crd = CRD.replace("                oci: OCI\n", &format!("                oci: OCI\n{by}"));
    let crd = crd.replace(oci, &format!("{properties}{oci}"));
    let run = Folder::new(&[])
        .pipe(&["annotate"], crd)
        .code(1)
        .says(&["widgets.example.com: its annotations would take", "262144"]);
    assert!(run.stdout.contains("kube-unions.dev/unions"));
}

#[test]
fn aliases_and_merge_keys_of_what_changes_stay() {
    let shared = CRD.replace("              strategy:\n", "              strategy: &strategy\n");
    for own in ["other: *strategy", "other:\n                <<: *strategy"] {
        let run = Folder::new(&[]).pipe(&["annotate"], format!("{shared}              {own}\n")).code(0);
        assert_eq!(run.stderr, "1 CRD, 3 declarations, 3 moved\n");
        assert!(run.stdout.contains("quotes stay") && run.stdout.contains(own), "{}", run.stdout);
        assert_eq!(declarations(&yaml(&run.stdout))["v1"].as_object().unwrap().len(), 3);
    }
}

#[test]
fn an_anchor_elsewhere_that_holds_a_union_costs_the_comments_and_nothing_else() {
    let holder = format!("x-shared: &shared\n{}", EXTENSION_LINES[1].trim_start().replace("x-k", "  x-k"));
    let input = CRD
        .replace(EXTENSION_LINES[1], "                    <<: *shared\n")
        .replace("apiVersion", &format!("{holder}apiVersion"));
    let run = Folder::new(&[])
        .pipe(&["annotate"], &input)
        .code(0)
        .says(&["<stdin>: rewrote a document without its comments"]);
    let after = yaml(&run.stdout);
    assert_eq!(declarations(&after), declarations(&yaml(&annotated())));
    assert_eq!(after["spec"], yaml(&annotated())["spec"]);
}

#[test]
fn crds_without_unions_pass_even_where_others_are_strict() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {versions: []}\n";
    Folder::new(&[]).pipe(&["annotate"], crd).code(0).prints(crd);
}
