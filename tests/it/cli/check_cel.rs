//! `check-cel` and `lint`: unions beside hand-written rules, one row each, and the reports.

use super::{Folder, crd_of, yaml};
use serde_json::{Value, json};

const ROWS: &str = include_str!("../../cases/check-cel/rows.yaml");

/// A CRD whose rules are too weak for one value, and too strong for another.
const SCHEMA: &str = "        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - rule: \"self.type == 'Disk' ? has(self.disk) : true\"
            - rule: self.type != 'Nowhere'
              message: Nowhere is not ready yet
            required: [type]
            properties:
              type:
                type: string
                enum: [Disk, Net, Nowhere]
                x-kubernetes-unions: {fieldMembers: {Disk: {name: disk}, Net: {name: net}, Nowhere: null}}
              disk: {type: object}
              net: {type: object}
";

fn crd() -> String {
    crd_of("Store", SCHEMA)
}

/// Returns the CRD of a row.
fn crd_of_row(number: usize, row: &Value) -> Value {
    let mut schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": row["spec"]}});
    schema["x-kubernetes-validations"] = row.get("above").cloned().unwrap_or(json!([]));
    fixtures::crds::crd("check-cel.example", &format!("Row{number}"), &[fixtures::crds::version("v1", &schema)])
}

#[test]
fn each_row_has_its_verdict() {
    let rows = yaml(ROWS);
    let folder = Folder::new(&[]);
    for (number, row) in rows.as_array().unwrap().iter().enumerate() {
        folder.write(&format!("{number}.json"), crd_of_row(number, row).to_string());
    }
    let found = folder.run(&["check-cel", ".", "-o", "json"]).code(1).json();
    for (number, row) in rows.as_array().unwrap().iter().enumerate() {
        let found = found.as_array().unwrap().iter().find(|it| it["kind"] == format!("Row{number}"));
        assert_eq!(found.map(|it| &it["verdicts"]), Some(&row["verdicts"]), "{}: {found:#?}", row["description"]);
    }
}

#[test]
fn a_disagreement_shows_a_smallest_object_and_the_rule() {
    let folder = Folder::new(&[("crd.yaml", &crd())]);
    let run = folder.run(&["check-cel", "crd.yaml"]).code(1).says(&["1 CRD, 1 union: 1 too weak, 1 too strong"]);
    let head = "Store.example.com/v1 spec:";
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(
        lines.contains(&&*format!(
            "crd.yaml:20:15: {head} too strong: rule 1 (Nowhere is not ready yet) rejects what the union allows"
        )),
        "{run:#?}"
    );
    assert!(lines.contains(&"    {\"type\":\"Nowhere\"}"), "{run:#?}");
    assert!(lines.contains(&"    {\"type\":\"Net\"}"), "{run:#?}");
    let weak = format!(
        "crd.yaml:16:11: {head} too weak: the rules allow what the union rejects: Required value: must be specified when \
         `type` is \"Net\""
    );
    assert!(lines.contains(&&*weak), "{run:#?}");
    let again = folder.run(&["check-cel", "crd.yaml"]);
    assert_eq!(again.stdout, run.stdout);
}

#[test]
fn a_report_in_sarif_has_a_result_for_each_disagreement() {
    let folder = Folder::new(&[("crd.yaml", &crd())]);
    let log = folder.run(&["check-cel", "crd.yaml", "-o", "sarif"]).code(1).json();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let rules: Vec<&Value> = results.iter().map(|result| &result["ruleId"]).collect();
    assert_eq!(rules, ["too-weak", "too-strong", "too-weak"], "{log:#}");
    let region = &results[1]["locations"][0]["physicalLocation"]["region"];
    assert_eq!((&region["startLine"], &region["startColumn"]), (&json!(20), &json!(15)), "{log:#}");
    let message = results[1]["message"]["text"].as_str().unwrap();
    assert!(message.contains("{\"type\":\"Nowhere\"}, which the union allows"), "{message}");
}

#[test]
fn lint_warns_of_a_disagreement_and_says_nothing_of_rules_that_agree() {
    let several = crd().replace(
        "  - name: v1\n    served: true\n    storage: true\n",
        "  - &v1\n    name: v1\n    served: true\n    storage: true\n",
    ) + "  - <<: *v1\n    name: v2\n    storage: false\n";
    let folder = Folder::new(&[("crd.yaml", &crd()), ("several.yaml", &several)]);
    let run = folder.run(&["lint", "crd.yaml"]).code(0).says(&["1 CRD, 1 union, 3 problems"]);
    let strong = "crd.yaml:20:15: spec: warning: rule 1 (Nowhere is not ready yet) rejects {\"type\":\"Nowhere\"}, which the \
                  union allows";
    let weak = "crd.yaml:16:11: spec: warning: the rules allow {\"type\":\"Net\"}, which the union rejects: Required value: must \
                be specified when `type` is \"Net\"";
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines.len() == 3 && lines.contains(&strong) && lines.contains(&weak), "{run:#?}");
    folder.run(&["lint", "--strict", "crd.yaml"]).code(1);

    let findings = folder.run(&["lint", "-o", "json", "several.yaml"]).code(0).json();
    let told: Vec<_> = findings.as_array().unwrap().iter().map(|it| (&it["rule"], &it["versions"])).collect();
    let (weak, strong, both) = (json!("rules-too-weak"), json!("rules-too-strong"), json!(["v1", "v2"]));
    assert_eq!(told, [(&weak, &both), (&weak, &both), (&strong, &both)]);

    let agreeing =
        crd().replace("self.type == 'Disk' ? has(self.disk) : true", "has(self.disk) == (self.type == 'Disk')");
    let agreeing = agreeing.replace("self.type != 'Nowhere'", "has(self.net) == (self.type == 'Net')");
    folder.pipe(&["lint", "--strict", "-"], &agreeing).code(0).prints("").says(&["1 CRD, 1 union, 0 problems"]);
    let unreadable = crd().replace("self.type != 'Nowhere'", "self.type != 'Nowhere' &&");
    let run = folder.pipe(&["lint", "-"], &unreadable).code(0);
    assert!(run.stdout.contains("<stdin>:16:11: spec: note: the rule is not CEL: 1:"), "{run:#?}");
}

#[test]
fn unions_come_from_declarations_and_standard_input_too() {
    let plain = crd().replace(
        "                x-kubernetes-unions: {fieldMembers: {Disk: {name: disk}, Net: {name: net}, Nowhere: null}}\n",
        "",
    );
    let declaration = "---
apiVersion: kube-unions.dev/v1alpha1
kind: UnionDeclaration
metadata: {name: stores}
spec:
  target: {group: example.com, kind: Store}
  validationActions: [Warn]
  normalization: Disabled
  unions:
  - {path: spec, fieldsToDiscriminateBy: {disk: Disk, net: Net}}
";
    let folder = Folder::new(&[]);
    folder.pipe(&["check-cel", "-"], &plain).code(0).prints("").says(&["1 CRD, 0 unions"]);
    let run = folder.pipe(&["check-cel", "-"], format!("{plain}{declaration}")).code(0);
    assert!(run.stdout.contains("Store.example.com/v1 spec: no rules\n"), "{run:#?}");
    let excluded = plain.replace("self.type != 'Nowhere'", "'!(has(self.disk) && has(self.net))'");
    let run = folder.pipe(&["check-cel", "-"], format!("{excluded}{declaration}")).code(0);
    assert!(run.stdout.contains("Store.example.com/v1 spec: agrees\n"), "{run:#?}");
}

#[test]
fn a_member_that_another_union_of_the_object_requires_is_not_missing() {
    let schema = "        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: has(self.a) != has(self.b)}, {rule: '!(has(self.c) && has(self.d))'}]
            properties: {a: {type: string}, b: {type: string}, c: {type: string}, d: {type: string}}
";
    let mut crd = yaml(&crd_of("Store", schema));
    let unions = json!([{"required": true, "members": ["a", "b"]}, {"members": ["c", "d"]}]);
    let content = json!({"v1": {"/properties/spec": unions}}).to_string();
    crd["metadata"]["annotations"] = json!({"kube-unions.dev/unions": content});
    Folder::new(&[]).pipe(&["check-cel", "-"], crd.to_string()).code(0).says(&["1 CRD, 2 unions: 2 agree"]);
}

#[test]
fn a_union_inside_a_member_is_judged_at_its_own_place() {
    let outer = "{fieldMembers: {Disk: {name: disk}, Net: {name: net}, Nowhere: null}}";
    let inner = "disk: {type: object, x-kubernetes-unions: [{fields-to-discriminateBy: {a: A, b: B}}],
                x-kubernetes-validations: [{rule: '!(has(self.a) && has(self.b))'}],
                properties: {a: {type: string}, b: {type: string}}}";
    let nested = crd().replace("disk: {type: object}", inner);
    assert!(nested.contains(outer));
    let run = Folder::new(&[("crd.yaml", &nested)]).run(&["check-cel", "crd.yaml"]).code(1);
    assert!(run.stdout.contains("Store.example.com/v1 spec.disk: agrees\n"), "{run:#?}");
}

#[test]
fn what_cannot_be_checked_is_said() {
    let unreadable = crd().replace("self.type != 'Nowhere'", "self.type != 'Nowhere' &&");
    let other = crd().replace("self.type == 'Disk' ? has(self.disk) : true", "self.type == 'Disk' ||");
    let both = other.replace("self.type != 'Nowhere'", "self.type != 'Nowhere' &&");
    let folder = Folder::new(&[("weak.yaml", &unreadable), ("crd.yaml", &both), ("broken.yaml", "a: [")]);
    let run = folder.run(&["check-cel", "crd.yaml"]).code(2).says(&["1 CRD, 1 union: 1 undecided", "undecided"]);
    assert!(run.stdout.contains("undecided: the rule is not CEL: 1:"), "{run:#?}");
    folder.run(&["check-cel", "crd.yaml", "broken.yaml"]).code(2).says(&["broken.yaml"]);
}
