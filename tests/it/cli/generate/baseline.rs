//! Findings that are known or allowed: `--baseline`, `--update-baseline`, `--allow`, and how findings are reported.

use super::super::sarif::hold_to_the_specification;
use super::super::{Folder, Run};
use super::rows::{Doubt, Severity};
use super::{FindingReport, Report};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A folder with the doubts as `api` and their CRDs as `crds`.
fn doubtful() -> Folder {
    Doubt::all().0
}

/// The doubt with a field that looks like a member.
const HEATER: &str = "api/heater/v1/heater.go";

const BASELINE: &str = "known.json";

fn generate(folder: &Folder, more: &[&str]) -> Run {
    folder.run(&[&["generate", "--go", "api", "crds"], more].concat())
}

fn check(folder: &Folder, more: &[&str]) -> Run {
    generate(folder, &[&["--check", "--baseline", BASELINE], more].concat())
}

/// The samples, written, with a baseline.
fn recorded() -> Folder {
    let folder = doubtful();
    generate(&folder, &["--write", "--baseline", BASELINE, "--update-baseline"]).code(0);
    folder
}

fn edit(folder: &Folder, file: &str, edit: impl FnOnce(String) -> String) {
    let before = folder.read(file);
    let after = edit(before.clone());
    assert_ne!(before, after, "{file} changes");
    folder.write(file, after);
}

fn errors(report: &Report) -> Vec<&FindingReport> {
    report.findings.iter().filter(|finding| finding.severity == Severity::Error && finding.standing == "new").collect()
}

#[test]
fn check_is_green_after_write_on_a_tree_with_findings_in_the_baseline() {
    let folder = doubtful();
    generate(&folder, &["--check"]).code(1);
    generate(&folder, &["--write"]).code(1);
    let run = generate(&folder, &["--check"]).code(1);
    assert!(run.stdout.lines().filter(|line| line.contains("error:")).count() > 10, "{}", run.stdout);
    generate(&folder, &["--check", "--baseline", BASELINE, "--update-baseline"]).code(0);
    let run = check(&folder, &[]).code(0);
    assert!(!run.stdout.contains("error:"), "{}", run.stdout);
    assert!(run.stdout.trim_end().ends_with("in the baseline"), "{}", run.stdout);
    let report = Report::parse(&check(&folder, &["-o", "json"]).code(0).stdout);
    assert!(report.findings.iter().filter(|finding| finding.standing == "known").count() > 10);
    generate(&folder, &["--write", "--baseline", BASELINE]).code(0);
    generate(&folder, &["--check"]).code(1);
}

#[test]
fn a_baseline_is_sorted_stable_and_has_no_positions() {
    let folder = recorded();
    let text = folder.read(BASELINE);
    let baseline: Value = serde_json::from_str(&text).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("    {")).collect();
    assert_eq!(lines.len(), baseline["findings"].as_array().unwrap().len(), "a line for each entry");
    assert!(lines.is_sorted(), "{text}");
    assert!(!text.contains(".go") && !text.contains(folder.path().to_str().unwrap()), "{text}");
    let heater = json!({"rule": "unmarked-member", "crd": "heaters.heaters.example.com", "version": "v1",
        "path": "spec", "names": ["turbo", "firing"]});
    assert!(baseline["findings"].as_array().unwrap().contains(&heater), "{text}");
    generate(&folder, &["--check", "--baseline", BASELINE, "--update-baseline"]).code(0);
    assert_eq!(folder.read(BASELINE), text);
}

#[test]
fn known_findings_may_move() {
    let folder = recorded();
    edit(&folder, HEATER, |text| text.replace("package v1\n", "package v1\n\n// A line.\n// Another.\n"));
    let heaters = folder.read(HEATER);
    fs::remove_file(folder.path().join(HEATER)).unwrap();
    folder.write("api/heater/v1/a_heater.go", heaters);
    check(&folder, &[]).code(0);
}

#[test]
fn a_new_finding_fails_and_is_the_only_one_told() {
    let folder = recorded();
    edit(&folder, HEATER, |text| {
        text.replace(
            "\tTurbo *Program",
            "\tExtra *Program `json:\"extra,omitempty\"`\n\n\t// +optional\n\tTurbo *Program",
        )
    });
    edit(&folder, "crds/heater.yaml", |text| {
        text.replace(
            "              turbo:",
            "              extra: {type: object, properties: {level: {type: integer}}}\n              turbo:",
        )
    });
    let run = check(&folder, &["-o", "json"]).code(1);
    let report = Report::parse(&run.stdout);
    let [error] = &*errors(&report) else { panic!("{:#?}", errors(&report)) };
    assert_eq!((&*error.rule, error.definition.as_deref()), ("unmarked-member", Some("heaters.heaters.example.com")));
    assert_eq!(error.definition_file.as_deref(), Some("crds/heater.yaml"));
    let run = check(&folder, &[]).code(1);
    let told: Vec<&str> = run.stdout.lines().filter(|line| line.contains("error:")).collect();
    let [line] = &*told else { panic!("{told:#?}") };
    assert!(line.contains("[unmarked-member] (crds/heater.yaml)"), "{line}");
}

#[test]
fn what_no_longer_occurs_is_told_and_fails_a_check_only() {
    let folder = recorded();
    edit(&folder, "api/meter/v1/meter.go", |text| text.replace("+unionMember", "unionMember"));
    edit(&folder, "api/meter/v1/meter.go", |text| text.replace("+unionDiscriminator", "unionDiscriminator"));
    let run = check(&folder, &[]).code(1);
    assert!(
        run.stdout
            .contains("no longer found: refused-union at meters.meters.example.com v1 spec (`bisque`, `required`)"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("--update-baseline"), "{}", run.stdout);
    generate(&folder, &["--baseline", BASELINE]).code(0);
    let stale = Report::parse(&check(&folder, &["-o", "json"]).code(1).stdout).stale;
    assert_eq!(stale.len(), 1, "{stale:?}");
    generate(&folder, &["--check", "--baseline", BASELINE, "--update-baseline"]).code(0);
    check(&folder, &[]).code(0);
}

#[test]
fn a_run_of_some_kinds_leaves_the_entries_of_others() {
    let folder = recorded();
    let text = folder.read(BASELINE);
    check(&folder, &["--kind", "Heater"]).code(0);
    generate(&folder, &["--check", "--kind", "Heater", "--baseline", BASELINE, "--update-baseline"]).code(0);
    assert_eq!(folder.read(BASELINE), text);
}

#[test]
fn more_of_the_same_than_is_known_is_new() {
    let folder = Folder::new(&[("go.mod", super::broken::MODULE), ("crds/crd.yaml", super::broken::CRD)]);
    let misplaced = "\n// +unionMember\nconst Spare = \"Spare\"\n";
    folder.write("api/v1/kiln.go", format!("{}{misplaced}", super::broken::GO));
    generate(&folder, &["--write", "--baseline", BASELINE, "--update-baseline"]).code(0);
    let text = folder.read(BASELINE);
    assert!(text.contains(r#""file":"api/v1/kiln.go""#), "{text}");
    check(&folder, &[]).code(0);
    // From another folder, and by its absolute path.
    let (path, known) = (folder.path().to_str().unwrap(), folder.path().join(BASELINE));
    let known = known.to_str().unwrap();
    let away = Folder::new(&[]);
    let (go, crds) = (format!("{path}/api"), format!("{path}/crds"));
    away.run(&["generate", "--go", &go, &crds, "--check", "--baseline", known]).code(0);
    edit(&folder, "api/v1/kiln.go", |text| format!("{text}{}", misplaced.replace("Spare", "Other")));
    check(&folder, &[]).code(1).says(&[]);
    generate(&folder, &["--check", "--baseline", BASELINE, "--update-baseline"]).code(0);
    assert!(folder.read(BASELINE).contains("\"count\":2"), "{}", folder.read(BASELINE));
}

#[test]
fn a_baseline_that_cannot_be_read_is_an_error_and_nothing_is_written() {
    let folder = recorded();
    let whole = folder.read(BASELINE);
    let before = folder.read("crds/heater.yaml");
    for (text, says) in [
        (whole[..whole.len() / 2].to_owned(), "cut off"),
        ("a: b\n".to_owned(), "is not a file that `generate --update-baseline` wrote"),
        (whole.replace("GenerateBaseline", "List"), "`GenerateBaseline`"),
        (whole.replace("unmarked-member", "unmarked"), "unknown rule `unmarked`"),
    ] {
        folder.write(BASELINE, &text);
        for more in [&["--check"][..], &["--write", "--update-baseline"]] {
            let run = generate(&folder, &[&["--baseline", BASELINE], more].concat()).code(2);
            assert!(run.stderr.contains(says) && run.stderr.contains(BASELINE), "{}", run.stderr);
        }
        assert_eq!(folder.read(BASELINE), text, "a file of somebody else stays");
    }
    assert_eq!(folder.read("crds/heater.yaml"), before);
    fs::remove_file(folder.path().join(BASELINE)).unwrap();
    let run = check(&folder, &[]).code(2);
    assert!(run.stderr.contains("--update-baseline"), "{}", run.stderr);
}

#[test]
fn an_input_that_cannot_be_read_leaves_the_baseline_as_it_is() {
    let folder = recorded();
    let text = folder.read(BASELINE);
    folder.write("crds/broken.yaml", "a: [\n");
    fs::remove_file(folder.path().join("api/meter/v1/meter.go")).unwrap();
    generate(&folder, &["--check", "--baseline", BASELINE, "--update-baseline"]).code(2);
    assert_eq!(folder.read(BASELINE), text);
    let run = check(&folder, &[]).code(2);
    assert!(!run.stdout.contains("no longer found"), "{}", run.stdout);
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
    // An allowed finding is not in the baseline, so that it fails without --allow.
    let allowed = ["--check", "--allow", "unmarked-member", "--baseline", BASELINE, "--update-baseline"];
    generate(&folder, &[&heater[..], &allowed].concat()).code(0);
    check(&folder, &heater).code(1);
}

#[test]
fn findings_come_as_sarif() {
    let folder = recorded();
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

    let log = check(&folder, &["-o", "sarif"]).code(0).json();
    hold_to_the_specification(&log);
    assert_eq!(heater(&log)["suppressions"], json!([{"kind": "external", "justification": "in the baseline"}]));
    let log = generate(&folder, &["--check", "-o", "sarif", "--allow", "unmarked-member"]).code(1).json();
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
    generate(&folder, &["--check", "--baseline", BASELINE, "--update-baseline"]).code(0);
    // One more kind has the same finding, which is new for it.
    let (go, crd) = (shared(41).read("api/v1/types.go"), shared(41).read("crds/kind40.yaml"));
    folder.write("api/v1/types.go", go);
    folder.write("crds/kind40.yaml", crd);
    let report = Report::parse(&check(&folder, &["-o", "json"]).code(1).stdout);
    assert_eq!(errors(&report).len(), 1);
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
