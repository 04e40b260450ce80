//! Findings: those that `--allow` names, and how they are reported.

use super::super::sarif::hold_to_the_specification;
use super::super::{Folder, Run};
use super::rows::{Doubt, Severity};
use super::{FindingReport, Report};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// A folder with the doubts as `api` and their CRDs as `crds`.
fn doubtful() -> Folder {
    Doubt::all().0
}

/// The doubt with a field that looks like a member.
const HEATER: &str = "api/heater/v1/heater.go";

fn generate(folder: &Folder, more: &[&str]) -> Run {
    folder.run(&[&["generate", "--go", "api", "crds"], more].concat())
}

fn errors(report: &Report) -> Vec<&FindingReport> {
    report.findings.iter().filter(|finding| finding.severity == Severity::Error && finding.standing == "new").collect()
}

#[test]
fn a_rule_that_is_allowed_does_not_fail() {
    let folder = doubtful();
    let heater = ["--kind", "Heater"];
    generate(&folder, &[&heater[..], &["--write"]].concat()).code(1);
    let run = generate(&folder, &[&heater[..], &["--check", "--allow", "unmarked-member"]].concat()).code(0);
    assert!(run.stdout.contains("allowed:") && run.stdout.contains("0 errors, 1 allowed"), "{}", run.stdout);
    generate(&folder, &[&heater[..], &["--check", "--allow", "unknown-value"]].concat()).code(1);
    let both = ["--check", "--allow", "unknown-value", "--allow", "unmarked-member"];
    generate(&folder, &[&heater[..], &both].concat()).code(0);
}

#[test]
fn findings_come_as_sarif() {
    let folder = doubtful();
    generate(&folder, &["--write"]).code(1);
    let log = generate(&folder, &["--check", "-o", "sarif"]).code(1).json();
    hold_to_the_specification(&log);
    let results = |log: &Value| log["runs"][0]["results"].as_array().unwrap().clone();
    let heater = |log: &Value| {
        let found = results(log).into_iter().find(|result| result["ruleId"] == "unmarked-member");
        found.expect("a result of the rule")
    };
    let result = heater(&log);
    assert_eq!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], HEATER);
    assert_eq!(result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "Heater v1 spec");
    let related = &result["relatedLocations"][0];
    let uri = &related["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(
        (uri, related["message"]["text"].as_str()),
        (&json!("crds/heater.yaml"), Some("The CRD heaters.heaters.example.com"))
    );
    assert_eq!((result.get("suppressions"), &log["runs"][0]["invocations"][0]["exitCode"]), (None, &json!(1)));

    let log = generate(&folder, &["--check", "-o", "sarif", "--allow", "unmarked-member"]).code(1).json();
    hold_to_the_specification(&log);
    assert_eq!(heater(&log)["suppressions"], json!([{"kind": "external", "justification": "allowed by --allow"}]));
    // An input that cannot be read is told in the log, too.
    folder.write("crds/broken.yaml", "a: [\n");
    let log = generate(&folder, &["--check", "-o", "sarif"]).code(2).json();
    hold_to_the_specification(&log);
    assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], false);
}

/// A package with one doubtful struct that many kinds share, and their CRDs.
fn shared(kinds: usize) -> Folder {
    let folder = Folder::new(&[("go.mod", super::broken::MODULE)]);
    let mut go = "// +groupName=shared.example.com\npackage v1\n\nimport metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\n\
                  type Probe struct {\n\t// +unionDiscriminator\n\tType string `json:\"type\"`\n\n\t// +optional\n\tExec *Exec `json:\"exec,omitempty\"`\n}\n\n\
                  type Exec struct {\n\tPath string `json:\"path\"`\n}\n"
        .to_owned();
    for number in 0..kinds {
        write!(go, "\n// +kubebuilder:object:root=true\ntype Kind{number} struct {{\n\tmetav1.TypeMeta `json:\",inline\"`\n\tProbe Probe `json:\"probe\"`\n}}\n").unwrap();
        let crd = format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: kind{number}s.shared.example.com}}\nspec:\n  group: shared.example.com\n  \
             names: {{kind: Kind{number}, plural: kind{number}s}}\n  scope: Cluster\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        \
             type: object\n        properties:\n          probe:\n            type: object\n            properties:\n              type: {{type: string}}\n              exec: {{type: object, properties: {{path: {{type: string}}}}}}\n"
        );
        folder.write(&format!("crds/kind{number:02}.yaml"), crd);
    }
    folder.write("api/v1/types.go", go);
    folder
}

#[test]
fn the_same_finding_of_many_crds_is_one_line_of_text_and_whole_in_json() {
    let folder = shared(40);
    let run = generate(&folder, &["--check"]).code(1);
    let lines: Vec<&str> = run.stdout.lines().filter(|line| line.contains("error:")).collect();
    assert_eq!(lines.len(), 1, "{}", run.stdout);
    let places = "    at 40 places: Kind0 v1 probe (crds/kind00.yaml), Kind10 v1 probe (crds/kind10.yaml), \
                  Kind11 v1 probe (crds/kind11.yaml), and 37 more";
    assert!(run.stdout.lines().any(|line| line == places), "{}", run.stdout);
    assert!(run.stdout.contains("40 errors"), "{}", run.stdout);
    let report = Report::parse(&generate(&folder, &["--check", "-o", "json"]).code(1).stdout);
    assert_eq!(errors(&report).len(), 40);
    for finding in errors(&report) {
        assert!(Path::new(finding.definition_file.as_deref().unwrap()).starts_with("crds"));
    }
}

#[test]
fn many_notes_are_counted_in_text_and_whole_in_json() {
    let folder = Folder::new(&[("go.mod", super::broken::MODULE), ("crds/crd.yaml", super::broken::CRD)]);
    let mut go = super::broken::GO.to_owned();
    for number in 0..12 {
        write!(go, "\ntype Unused{number:02} struct {{\n\t// +unionDiscriminator\n\tType string `json:\"type\"`\n}}\n")
            .unwrap();
    }
    folder.write("api/v1/kiln.go", go);
    let run = generate(&folder, &["--write"]).code(0);
    assert!(run.stdout.contains("Unused04") && !run.stdout.contains("Unused05"), "{}", run.stdout);
    assert!(run.stdout.contains("7 more notes [unreached-struct]; -o json lists them"), "{}", run.stdout);
    let report = Report::parse(&generate(&folder, &["--check", "-o", "json"]).code(0).stdout);
    assert_eq!(report.findings.iter().filter(|finding| finding.rule == "unreached-struct").count(), 12);
}
