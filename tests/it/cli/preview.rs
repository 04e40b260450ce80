//! `preview`: the incidents of `tests/e2e/preview`, what helps, the formats, and input that cannot be compared.

use super::{Folder, crd_of, yaml};
use serde_json::{Value, json};

const INCIDENTS: &str = include_str!("../../e2e/preview/incidents.yaml");

/// Returns a Deployment. `spec` is added to it, in flow style.
fn deployment(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{a: b}}}}\n  \
         template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: c, image: i}}]}}}}\n{spec}---\n"
    )
}

const WIDGET: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {git: {}}\n";

const RECREATE: &str = "  strategy: {type: Recreate}\n";

fn folder(old: &str, new: &str) -> Folder {
    Folder::new(&[("old.yaml", old), ("new.yaml", new)])
}

/// The command with the files of [`folder`], and more arguments.
fn preview<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["preview", "--old", "old.yaml", "--new", "new.yaml"], more].concat()
}

#[test]
fn every_incident_is_predicted_for_every_way() {
    let incidents = yaml(INCIDENTS);
    let mut predicted = 0;
    for incident in incidents.as_array().unwrap() {
        let folder = folder(&incident["old"].to_string(), &incident["new"].to_string());
        folder.write("crd.yaml", incident["crd"].to_string());
        for (way, answer) in incident["by"].as_object().unwrap() {
            let title = format!("{}, {way}", incident["incident"]);
            let run = folder.run(&preview(&["--from", "crd.yaml", "--as", way, "-o", "json"]));
            let findings = run.json()["findings"].clone();
            let rule = match answer.as_str().unwrap() {
                "refused" => "union-refused",
                "stored" => "union-stored-invalid",
                _ => {
                    assert_eq!(
                        (run.code, &findings, run.json()["summary"]["compared"].as_u64()),
                        (0, &json!([]), Some(1)),
                        "{title}"
                    );
                    continue;
                }
            };
            predicted += 1;
            assert_eq!((run.code, &findings[0]["rule"]), (1, &json!(rule)), "{title}: {findings:#}");
            assert_eq!(findings[0]["field"], incident["field"], "{title}");
            let is_refused =
                incident["refusedWithKubeUnions"].as_array().is_some_and(|ways| ways.iter().any(|it| it == way));
            assert_eq!(findings[0]["withKubeUnions"], if is_refused { "refused" } else { "mended" }, "{title}");
            let helps: Vec<&str> =
                findings[0]["helps"].as_array().unwrap().iter().map(|it| it["how"].as_str().unwrap()).collect();
            assert!(helps.contains(&"recreate"), "{title}: {helps:?}");
            assert_eq!(helps.contains(&"kubeUnions"), !is_refused, "{title}: {helps:?}");
            let null_helps = way != "ssa" || incident["nullHelpsServerSide"] == true;
            assert_eq!(helps.contains(&"null"), null_helps, "{title}: {helps:?}");
        }
    }
    assert_eq!(predicted, PREDICTED);
}

/// The number of predictions that are not `valid`.
const PREDICTED: usize = 14;

#[test]
fn the_report_tells_the_reason_and_what_helps() {
    let folder = folder(&deployment("web", ""), &deployment("web", RECREATE));
    let run = folder.run(&preview(&["--as", "merge"])).code(1).prints(
        "new.yaml:7:3: Deployment web: spec.strategy.rollingUpdate: error: refused: Forbidden: may only be specified when \
         `type` is \"RollingUpdate\"\n  `rollingUpdate` is left behind: it is a default of the API server; a merge patch does not \
         remove it\n  helps: `rollingUpdate: null` in the new rendering\n  helps: once, before the apply: kubectl patch deployment \
         web --type=merge -p '{\"spec\":{\"strategy\":{\"type\":\"Recreate\",\"rollingUpdate\":null}}}'\n  helps: kube-unions on the \
         cluster, with the preset `deployment-strategy`\n  helps: delete the object and apply again\n",
    );
    assert_eq!(run.stderr, "1 object in both renderings: 1 union refused\n");

    let log = folder.run(&preview(&["--as", "merge", "-o", "sarif"])).code(1).json();
    let result = &log["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&json!("union-refused"), &json!("error")));
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 7);
    assert_eq!(log["runs"][0]["invocations"][0]["exitCode"], 1);
}

#[test]
fn no_command_is_shown_with_a_name_that_a_shell_would_read() {
    let [old, new] = ["", RECREATE].map(|spec| deployment("\"a'; reboot; '\"", spec));
    let findings = folder(&old, &new).run(&preview(&["--as", "merge", "-o", "json"])).code(1).json();
    assert_eq!(findings["findings"][0]["helps"].as_array().unwrap().len(), 3, "{findings}");
    assert!(!findings.to_string().contains("kubectl patch"), "{findings}");
}

#[test]
fn a_new_rendering_that_is_invalid_by_itself_is_told_so() {
    let both = deployment("web", "  strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}\n");
    let folder = folder(&deployment("web", ""), &both);
    for way in ["ssa", "csa", "helm", "merge", "replace"] {
        let findings = folder.run(&preview(&["--as", way, "-o", "json"])).code(1).json();
        let helps =
            json!([{"how": "keepOne", "text": "the new rendering alone is invalid: keep one of the members in it"}]);
        assert_eq!(findings["findings"][0]["helps"], helps, "{way}");
        // An apply tells the webhook what the manifest sets. It clears nothing that a manifest sets.
        let with = if ["ssa", "csa"].contains(&way) { "refused" } else { "mended" };
        assert_eq!(findings["findings"][0]["withKubeUnions"], with, "{way}");
    }
}

#[test]
fn a_declaration_with_a_fault_is_no_kind_without_unions() {
    let folder = Folder::with_crd(&[("old.yaml", WIDGET), ("new.yaml", WIDGET)]);
    folder
        .write("crd.yaml", folder.read("crd.yaml").replace("Rolling: {name: rolling, optional: true}", "Rolling: {}"));
    let run = folder.run(&preview(&["--from", "crd.yaml"])).code(2).prints("");
    run.says(&["error: 1 fault in declarations of unions: `kube-unions lint` names it"]);
}

#[test]
fn each_of_two_unions_in_one_object_has_its_own_answer() {
    let object = |fields: &str| format!("apiVersion: example.com/v1\nkind: Pair\nmetadata: {{name: a}}\n{fields}\n");
    let folder = folder(&object("a: x\nc: x"), &object("b: x\nd: x"));
    let schema = "        type: object
        x-kubernetes-unions: [{fields-to-discriminateBy: {a: A, b: B}}, {fields-to-discriminateBy: {c: C, d: D}}]
        x-kubernetes-validations: [{rule: '!(has(self.a) && has(self.b))'}]
        properties: {a: {type: string}, b: {type: string}, c: {type: string}, d: {type: string}}
";
    folder.write("crd.yaml", crd_of("Pair", schema));
    let report = folder.run(&preview(&["--as", "merge", "--from", "crd.yaml", "-o", "json"])).code(1).json();
    let findings = report["findings"].as_array().unwrap();
    let rules: Vec<&Value> = findings.iter().map(|it| &it["rule"]).collect();
    assert_eq!(rules, ["union-refused", "union-stored-invalid"], "{report:#}");
    assert!(findings.iter().all(|it| it["helps"][0]["how"] == "null"), "{report:#}");
}

#[test]
fn a_live_object_replaces_the_prediction_from_the_old_rendering() {
    let folder = folder(&deployment("web", ""), &deployment("web", RECREATE));
    folder.write("live.yaml", deployment("web", RECREATE));
    folder.run(&preview(&["--as", "merge", "--live", "live.yaml"])).code(0).prints("");
    let old = deployment("web", RECREATE);
    folder.write("old.yaml", old);
    folder.write("live.yaml", deployment("web", "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}\n"));
    let findings = folder.run(&preview(&["--as", "merge", "--live", "live.yaml", "-o", "json"])).code(1).json();
    assert_eq!(findings["findings"][0]["leftBehind"], json!([{"member": "rollingUpdate", "origin": "liveObject"}]));
    folder.write("live.yaml", deployment("another", ""));
    let run = folder.run(&preview(&["--live", "live.yaml"])).code(0);
    run.says(&["Warning: 1 object not among the live ones: predicted from the old rendering\n"]);
}

#[test]
fn what_is_not_compared_is_said_and_counted() {
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n";
    let custom = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n---\n\
                  apiVersion: apiextensions.crossplane.io/v1\nkind: CompositeResourceDefinition\nmetadata: {name: x}\n---\n";
    let beta = deployment("moved", "").replace("apps/v1", "apps/v1beta1");
    let there = deployment("elsewhere", "").replace("{name: elsewhere}", "{name: elsewhere, namespace: a}");
    let old =
        [&deployment("web", ""), &deployment("gone", ""), &beta, &there, other, custom].map(ToOwned::to_owned).concat();
    let new = [
        &deployment("web", ""),
        &deployment("added", ""),
        &deployment("moved", ""),
        &deployment("elsewhere", ""),
        other,
        custom,
    ];
    let folder = folder(&old, &new.map(ToOwned::to_owned).concat());
    let run = folder.run(&preview(&[])).code(0).prints("");
    assert_eq!(
        run.stderr,
        "Warning: new.yaml:22:1: elsewhere: only in the new rendering; the old one has it in another namespace\n\
         Warning: new.yaml:15:1: moved: not looked at: its apiVersion changes from `apps/v1beta1` to `apps/v1`\n\
         Warning: 1 object of the kind `CompositeResourceDefinition` of `apiextensions.crossplane.io/v1` not looked at: give its CRD by \
         --from\n\
         Warning: 1 object of the kind `Widget` of `example.com/v1` not looked at: give its CRD by --from\n\
         1 object in both renderings: every union is valid afterwards; 2 only in the new rendering; 2 only in the old rendering; \
         1 of kinds without unions; 3 not looked at\n"
    );
}

#[test]
fn what_cannot_be_compared_is_an_error_and_the_rest_is_compared() {
    let twice = deployment("web", "") + &deployment("web", RECREATE);
    let template = deployment("\"{{ .Release.Name }}\"", "");
    let folder = folder(&(deployment("app", "") + &twice), &(deployment("app", RECREATE) + &template + "spec: {}\n"));
    let run = folder.run(&preview(&["--as", "merge"])).code(2).says(&[
        "error: new.yaml:9:1: Deployment/{{ .Release.Name }}: a template is left in its name: render it first, for example with \
         `helm template`\n",
        "error: new.yaml:16:1: not an object: `apiVersion`, `kind` or `metadata.name` is missing\n",
        "error: old.yaml:15:1: Deployment/web is there twice, first at old.yaml:8:1\n",
        "error: 3 problems kept something from being compared\n",
    ]);
    assert!(run.stdout.contains("Deployment app: spec.strategy.rollingUpdate: error: refused"), "{}", run.stdout);
    folder.write("new.yaml", "metadata:\n  name: {{ .Release.Name }}\n");
    folder.run(&preview(&[])).code(2).prints("").says(&["this is a template: render it first"]);
}

#[test]
fn nothing_to_compare_is_a_warning_that_fails_if_something_is_required() {
    let folder = folder(&deployment("a", ""), &deployment("b", RECREATE));
    let warning = "Warning: nothing to preview: no object of a kind with unions in both renderings; 1 only in the new rendering; 1 \
                   only in the old rendering\n";
    for (more, code) in [(&[][..], 0), (&["--require"], 1)] {
        assert_eq!(folder.run(&preview(more)).code(code).prints("").stderr, warning);
    }
    folder.write("old.yaml", "");
    let run = folder.run(&preview(&[])).code(2).prints("");
    assert_eq!(run.stderr, "error: no objects in `old.yaml`: the input is empty\n");
}

#[test]
fn an_open_api_document_of_a_cluster_changes_nothing_for_kinds_that_are_known() {
    let folder = folder(&deployment("web", ""), &deployment("web", RECREATE));
    folder.write("apps.json", include_str!("apps-v1.openapi.json"));
    for way in ["csa", "merge"] {
        let alone = folder.run(&preview(&["--as", way]));
        let with = folder.run(&preview(&["--as", way, "--from", "apps.json"]));
        assert_eq!((alone.code, alone.stdout, alone.stderr), (with.code, with.stdout, with.stderr));
    }
}

#[test]
fn many_objects_are_compared() {
    let old: String = (0..1_000).map(|number| deployment(&format!("d{number}"), "")).collect();
    let new: String = (0..1_000).map(|number| deployment(&format!("d{number}"), RECREATE)).collect();
    let folder = folder(&old, &new);
    let run = folder.run(&preview(&["--as", "merge", "-o", "json"])).code(1);
    assert_eq!(run.json()["summary"]["refused"], Value::from(1_000));
    assert_eq!(run.stderr, "1,000 objects in both renderings: 1,000 unions refused\n");
}
