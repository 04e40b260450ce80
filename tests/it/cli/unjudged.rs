//! What cannot be judged: documents that cannot be read, unions with something left over, and kinds that no API server serves. Every command
//! says so, judges the rest, and is not green.

use super::chart::{LEFT_OVER, beside};
use super::{CRD, Folder, Run};

/// A Deployment that the API server refuses, as a command tells.
const REFUSED: &str = "spec.strategy.rollingUpdate";

/// The commands that judge a file of objects, with the exit code for an invalid one.
const JUDGING: [&[&str]; 4] = [
    &["audit", "-f", "new.yaml"],
    &["normalize", "-f", "new.yaml"],
    &["chart", "--new", "new.yaml"],
    &["preview", "--new", "new.yaml"],
];

fn errors(run: &Run) -> Vec<&str> {
    run.stderr.lines().filter(|line| line.starts_with("error: new.yaml:")).collect()
}

#[test]
fn a_document_that_cannot_be_read_loses_no_other_of_its_file() {
    let (template, variable) = ("`helm template`", "`flux envsubst`");
    for (document, position, advice) in [
        ("a: [SECRET", "12:", "correct this document"),
        ("kind: {{ .Values.SECRET }}", "12:", template),
        ("{{- if .Values.SECRET }}\nkind: A\n{{- end }}", "12:", template),
        ("spec: {type: ${TYPE}, a: SECRET}", "12:", variable),
        ("a:\n\tb: SECRET", "13:", "correct this document"),
        ("a: *SECRET", "12:", "correct this document"),
    ] {
        let text = beside(document);
        let folder = Folder::new(&[("new.yaml", &text)]);
        for command in JUDGING {
            let run = folder.run(command);
            assert_eq!(run.code, 2, "{command:?}, {document}: {run:?}");
            assert!(format!("{}{}", run.stdout, run.stderr).contains(REFUSED), "{command:?}, {document}: {run:?}");
            let lines = errors(&run);
            let [line] = &lines[..] else { panic!("{command:?}, {document}: {run:?}") };
            assert!(line.starts_with(&format!("error: new.yaml:{position}")), "{line}");
            assert!(line.contains(": app/templates/other.yaml: ") && line.contains(advice), "{line}");
            assert!(!line.contains("SECRET"), "{line}");
            assert!(run.stderr.contains("error: 1 problem kept something from being "), "{run:?}");
        }
    }
}

#[test]
fn normalize_prints_what_it_cannot_read_where_it_stands() {
    let text = "\
# Source: a
a: [
---
# Source: b
apiVersion: apps/v1
kind: Deployment
metadata: {name: w}
spec: {strategy: {rollingUpdate: {maxSurge: 1}}} # stays
---
# Source: c
kind: {{ .Values.kind }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: m, name: n}
---
spec: of no kind
";
    let folder = Folder::new(&[("new.yaml", text)]);
    let run = folder.run(&["normalize", "-f", "new.yaml"]).code(2).prints(text);
    assert_eq!(errors(&run).len(), 3, "{run:?}");
    assert!(run.stderr.contains("Warning: new.yaml:15:21: duplicate key `name`: the last one counts"), "{run:?}");
    assert!(run.stderr.contains("error: 3 problems kept something from being judged"), "{run:?}");
    // Half a file would be taken for all of it.
    folder.write("other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: o}\n");
    let run = folder.run(&["normalize", "-f", "new.yaml", "-f", "other.yaml", "-o", "json"]).code(2);
    let printed: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(printed["metadata"]["name"], "o");
    assert!(run.stderr.contains("Warning: new.yaml: not printed"), "{run:?}");
    // Nothing is an object.
    for text in ["a: [\n", "a: 1\n", "a: 1\n---\nb: [\n"] {
        let folder = Folder::new(&[("new.yaml", text)]);
        let run = folder.run(&["normalize", "-f", "new.yaml"]).code(2).prints("");
        assert_eq!(run.stderr.matches("new.yaml:").count(), text.matches("---").count() + 1, "{run:?}");
    }
    // The old objects are read alike.
    let folder = Folder::new(&[("new.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: p}}"), ("old.yaml", text)]);
    let run = folder.run(&["normalize", "--old", "old.yaml", "-f", "new.yaml"]).code(2);
    assert_eq!(run.stderr.matches("error: old.yaml:").count(), 3, "{run:?}");
}

#[test]
fn what_describes_kinds_is_read_document_by_document() {
    let faulty = format!("a: [\n---\n{CRD}---\nb: {{{{ .c }}}}\n");
    let folder = Folder::new(&[("faulty.yaml", &faulty), ("crd.yaml", CRD), ("new.yaml", "a: 1")]);
    folder.write(
        "new.yaml",
        "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {git: {}, oci: {}}}\n",
    );
    for command in [
        &["explain", "--from"][..],
        &["lint"],
        &["propose"],
        &["check-cel"],
        &["audit", "-f", "new.yaml", "--from"],
        &["normalize", "-f", "new.yaml", "--from"],
        &["preview", "--new", "new.yaml", "--from"],
        &["chart", "--new", "new.yaml", "--from"],
    ] {
        let whole = folder.run(&[command, &["crd.yaml"]].concat());
        let run = folder.run(&[command, &["faulty.yaml"]].concat()).code(2);
        let all = format!("{}{}", run.stdout, run.stderr);
        // What a sound file tells, and the two documents.
        for line in whole.stdout.lines().filter(|line| !line.contains("crd.yaml")) {
            assert!(run.stdout.contains(line), "{command:?}: no `{line}` in {run:?}");
        }
        for (place, advice) in [("faulty.yaml:1:", "correct this document"), ("faulty.yaml:", "render it first")] {
            assert!(all.lines().any(|line| line.contains(place) && line.contains(advice)), "{command:?}: {run:?}");
        }
    }
    // The last key counts, and the command is not green.
    folder.write(
        "faulty.yaml",
        CRD.replacen("kind: CustomResourceDefinition\n", "kind: A\nkind: CustomResourceDefinition\n", 1),
    );
    for command in [&["explain"][..], &["normalize", "-f", "new.yaml"]] {
        let run = folder.run(&[command, &["--from", "faulty.yaml"]].concat()).code(2);
        assert_eq!(run.stderr.matches("error: faulty.yaml:").count(), 1, "{run:?}");
        assert!(format!("{}{}", run.stdout, run.stderr).contains("git"), "{run:?}");
    }
    // An edited file is written as a whole or not at all.
    for command in ["annotate", "compile --to cel"] {
        let arguments: Vec<&str> =
            command.split(' ').chain([if command == "annotate" { "-f" } else { "--from" }, "faulty.yaml"]).collect();
        folder.run(&arguments).code(2).prints("");
    }
}

#[test]
fn what_a_tool_was_to_replace_is_judged_by_no_command() {
    for (object, field, tool) in LEFT_OVER {
        let object = format!("{{metadata: {{name: left}}, apiVersion: {object}}}\n");
        let text = format!("{object}---\n{}", super::chart::NEW);
        let folder = Folder::new(&[("new.yaml", &text), ("alone.yaml", &object)]);
        for command in JUDGING {
            let run = folder.run(command);
            assert_eq!(run.code, 2, "{command:?}, {object}: {run:?}");
            let all = format!("{}{}", run.stdout, run.stderr);
            assert!(all.contains(REFUSED), "{command:?}, {object}: {run:?}");
            let lines = errors(&run);
            let [line] = &lines[..] else { panic!("{command:?}, {object}: {run:?}") };
            assert!(line.contains(&format!("/left: {field}: undecided: ")) && line.contains(tool), "{line}");
        }
        // It is neither invalid nor changed.
        let run = folder.run(&["normalize", "-f", "alone.yaml"]).code(2).prints(&object);
        assert!(!run.stderr.contains("is invalid"), "{run:?}");
        let run = folder.run(&["audit", "-f", "alone.yaml"]).code(2).prints("");
        assert!(run.stderr.contains("1 kind: none invalid, none that normalisation would change"), "{run:?}");
    }
    // Another union of the object is judged.
    let folder = Folder::new(&[(
        "new.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: left}\nspec:\n  strategy: {type: '${TYPE}', rollingUpdate: {}}\n  \
         template: {spec: {volumes: [{name: a, emptyDir: {}, hostPath: {path: /x}}]}}\n",
    )]);
    for command in JUDGING {
        let run = folder.run(command);
        let all = format!("{}{}", run.stdout, run.stderr);
        assert_eq!((run.code, errors(&run).len()), (2, 1), "{run:?}");
        assert!(all.contains("spec.template.spec.volumes[0]") && !all.contains(REFUSED), "{run:?}");
    }
    // The text of a member that means it.
    let object = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, env: [{name: A, value: '${V}'}]}]}}\n";
    let folder = Folder::new(&[("new.yaml", object)]);
    for command in JUDGING {
        assert_eq!(folder.run(command).code, 0, "{command:?}");
    }
}

#[test]
fn a_left_over_value_of_an_update_keeps_its_members_and_no_other_union_from_being_normalised() {
    let old = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: w}
spec:
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
  template: {spec: {volumes: [{name: a, emptyDir: {}}]}}
";
    let new = old
        .replace("type: RollingUpdate", "type: '${TYPE}'")
        .replace("emptyDir: {}", "emptyDir: {}, hostPath: {path: /x}");
    let folder = Folder::new(&[("old.yaml", old), ("new.yaml", &new)]);
    let run = folder.run(&["normalize", "--old", "old.yaml", "-f", "new.yaml"]).code(2);
    assert_eq!(run.stdout, new.replace("emptyDir: {}, ", ""), "{run:?}");
    assert!(run.stderr.contains("spec.strategy.type: undecided: a variable is left over"), "{run:?}");
    assert!(!run.stderr.contains("spec.strategy.type: Unsupported"), "{run:?}");
}

#[test]
fn a_kind_that_no_api_server_serves_is_not_judged_and_never_green() {
    for (api_version, kind, advice) in [
        ("policy/v1beta1", "PodDisruptionBudget", "the API server serves `policy/v1`: write that"),
        ("apps/v1", "deployment", "did you mean `Deployment` of `apps/v1`?"),
        ("apps/v1beta1", "Deployment", "the API server serves `apps/v1`: write that"),
        ("extensions/v1beta1", "Ingress", "did you mean `Ingress` of `networking.k8s.io/v1`?"),
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "the API server serves `autoscaling/v2`: write that"),
        ("v1", "Pods", "did you mean `Pod` of `v1`?"),
        ("v1", "Deployment", "did you mean `Deployment` of `apps/v1`?"),
        ("networking.k8s.io/v1", "ingresses", "did you mean `Ingress` of `networking.k8s.io/v1`?"),
        ("batch/v1", "Cronjob", "did you mean `CronJob` of `batch/v1`?"),
        ("apps/v1", "Deploymnet", "did you mean `Deployment` of `apps/v1`?"),
    ] {
        let object = format!(
            "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: w}}\nspec: {{minAvailable: 1, maxUnavailable: 1}}\n"
        );
        let folder = Folder::new(&[("new.yaml", &object)]);
        let both = format!("{object}---\n{object}---\n{}", super::chart::NEW);
        for command in JUDGING {
            let run = folder.run(command);
            assert_eq!(run.code, 2, "{command:?}, {object}: {run:?}");
            let lines = errors(&run);
            let [line] = &lines[..] else { panic!("{command:?}, {object}: {run:?}") };
            let message = format!("{kind}/w: not judged: the kind `{kind}` of `{api_version}` is not known; {advice}");
            assert!(line.ends_with(&message), "{line}");
            assert!(!run.stderr.contains("without unions") && !run.stderr.contains("other kinds"), "{run:?}");
        }
        folder.run(&["normalize", "-f", "new.yaml"]).code(2).prints(&object);
        // Each object is told, and the others are judged. For `preview`, two objects need two names.
        folder.write("new.yaml", both.replacen("name: w", "name: v", 1));
        for command in JUDGING {
            let run = folder.run(command);
            assert_eq!((run.code, errors(&run).len()), (2, 2), "{command:?}, {object}: {run:?}");
            assert!(format!("{}{}", run.stdout, run.stderr).contains(REFUSED), "{command:?}, {object}: {run:?}");
        }
    }
    for object in [
        "v1, kind: ConfigMap",
        "v1, kind: configmap",
        "apps/v1, kind: ControllerRevision",
        "autoscaling/v1, kind: HorizontalPodAutoscaler",
        "rbac.authorization.k8s.io/v1beta1, kind: Role",
        "serving.knative.dev/v1, kind: Service",
    ] {
        let text = format!("{{metadata: {{name: w}}, apiVersion: {object}}}\n---\n{}", super::chart::OLD);
        let folder = Folder::new(&[("new.yaml", &text)]);
        for command in JUDGING {
            let run = folder.run(command);
            assert_eq!(
                (run.code, run.stderr.matches("is not known").count()),
                (0, 0),
                "{command:?}, {object}: {run:?}"
            );
        }
    }
}

#[test]
fn an_object_of_a_version_that_its_crd_does_not_serve_is_not_judged() {
    let object =
        |kind: &str| format!("{{apiVersion: example.com/{kind}, metadata: {{name: w}}, spec: {{git: {{}}}}}}\n");
    for (kind, errs, warnings) in [
        ("v9, kind: Widget", 1, 0),
        ("v1, kind: widget", 1, 0),
        ("v1, kind: Widgets", 1, 0),
        // It may be a kind of its own.
        ("v1, kind: Wigdet", 0, 1),
        ("v1, kind: Gadget", 0, 0),
    ] {
        let folder = Folder::with_crd(&[("new.yaml", &object(kind))]);
        for command in JUDGING {
            let run = folder.run(&[command, &["--from", "crd.yaml"]].concat());
            let warned =
                run.stderr.lines().filter(|line| line.starts_with("Warning: ") && line.contains("did you mean"));
            let code = if errs == 1 { 2 } else { 0 };
            let warnings = if command[0] == "chart" { 0 } else { warnings };
            assert_eq!(
                (run.code, errors(&run).len(), warned.count()),
                (code, errs, warnings),
                "{command:?}, {kind}: {run:?}"
            );
        }
    }
    // A kind that nobody asks for is no problem.
    let folder = Folder::with_crd(&[("new.yaml", &object("v9, kind: Widget"))]);
    folder.write("pod.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: p}}");
    let run = folder.run(&["audit", "--from", "crd.yaml", "-f", "new.yaml", "-f", "pod.yaml", "pods"]);
    assert_eq!((run.code, errors(&run).len()), (0, 0), "{run:?}");
}
