//! `chart` without Helm: two renderings, and everything that can be wrong with the program. `tests/e2e/chart_values.rs` has Helm.

use super::{Folder, Run, binary};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

pub(super) const OLD: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
";

pub(super) const NEW: &str = "\
# Source: app/templates/deployment.yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  strategy:
    type: Recreate
    rollingUpdate: {maxSurge: 1} # of the chart
";

/// Runs `chart` with a `helm` that is a shell script. `None`: there is no helm.
fn with_helm(script: Option<&str>, arguments: &[&str]) -> Run {
    let folder =
        Folder::new(&[("helm", &format!("#!/bin/sh\n{}\n", script.unwrap_or_default())), ("values.yaml", "a: {}")]);
    let helm = folder.path().join("helm");
    std::fs::set_permissions(&helm, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = if script.is_some() { helm } else { folder.path().join("missing") };
    let mut command = Command::new(binary());
    command.env("HELM_BIN", program).arg("chart").args(arguments).current_dir(folder.path());
    super::run(&mut command, b"")
}

#[test]
fn a_member_of_the_old_rendering_beside_one_of_the_new_is_found_at_its_line_and_removed() {
    let folder = Folder::new(&[("old.yaml", OLD), ("new.yaml", NEW)]);
    let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml"]);
    assert_eq!(run.code, 1);
    assert!(
        run.stdout.starts_with("new.yaml:8:5: Deployment app: spec.strategy.rollingUpdate: error: refused: "),
        "{run:?}"
    );
    assert!(run.stdout.contains("`rollingUpdate` comes from the old rendering"), "{run:?}");
    let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml", "--fix", "manifests"]);
    assert_eq!((run.code, &*run.stdout), (0, &*NEW.replace("    rollingUpdate: {maxSurge: 1} # of the chart\n", "")));
}

#[test]
fn text_that_a_terminal_does_not_show_as_it_is_stays_in_a_rendering() {
    let fixed = NEW.replace("    rollingUpdate: {maxSurge: 1} # of the chart\n", "");
    for text in ["\tindented=1", "https://user:password@example.com/", "right \u{200f} left", "next \u{2028} line"] {
        let script =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata:\n  a: |\n    {text}\n---\n");
        let folder = Folder::new(&[("old.yaml", OLD), ("new.yaml", &(script.clone() + NEW))]);
        let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml", "--fix", "manifests"]);
        assert_eq!((run.code, &*run.stdout), (0, &*(script + &fixed)), "{run:?}");
    }
    let (old, new) = (OLD.replace('\n', "\r\n"), NEW.replace('\n', "\r\n"));
    let folder = Folder::new(&[("old.yaml", &old), ("new.yaml", &new)]);
    let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml", "--fix", "manifests"]);
    assert_eq!((run.code, &*run.stdout), (0, &*fixed.replace('\n', "\r\n")), "{run:?}");
}

/// A rendering whose second document cannot be read.
pub(super) fn beside(document: &str) -> String {
    format!("---\n{NEW}---\n# Source: app/templates/other.yaml\n{document}\n---\n# the end\n")
}

#[test]
fn a_document_that_cannot_be_read_is_named_and_loses_no_other() {
    let (template, variable) = ("render it first, for example with `helm template`", "with `flux envsubst`");
    let of_other = ": app/templates/other.yaml: ";
    let rows = [
        ("a: [SECRET", of_other, "correct this document"),
        ("a: 'SECRET", of_other, "correct this document"),
        ("kind: {{ .Values.SECRET }}", of_other, template),
        ("spec: {type: ${TYPE}, a: SECRET}", of_other, variable),
        ("a: SECRET", "1: not an object: ", "`kind` is missing"),
    ];
    for (document, place, advice) in rows {
        let rendering = beside(document);
        let folder = Folder::new(&[("old.yaml", OLD), ("new.yaml", &rendering)]);
        let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml"]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stdout.contains("Deployment app: spec.strategy.rollingUpdate: error: refused"), "{run:?}");
        let lines: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("error: new.yaml:")).collect();
        let [line] = &lines[..] else { panic!("{run:?}") };
        assert!(line.starts_with("error: new.yaml:1") && line.contains(place), "{document}: {line}");
        assert!(line.contains(advice) && !line.contains("SECRET"), "{document}: {line}");
        // A post-renderer that fails keeps Helm from every other document.
        let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml", "--fix", "manifests"]);
        let mended = rendering.replace("    rollingUpdate: {maxSurge: 1} # of the chart\n", "");
        assert_eq!((run.code, &*run.stdout), (0, &*mended), "{run:?}");
        let warnings: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("Warning: ")).collect();
        assert_eq!(warnings, [line.replacen("error", "Warning", 1) + "; passed on as it is"], "{run:?}");
    }
}

/// Objects with something left over, the field that the line about it names, and the advice.
pub(super) const LEFT_OVER: [(&str, &str, &str); 9] = [
    (
        "apps/v1, kind: Deployment, spec: {strategy: {type: \"${TYPE}\", rollingUpdate: {maxSurge: 1}}}",
        "spec.strategy.type",
        "flux",
    ),
    ("apps/v1, kind: Deployment, spec: {strategy: {type: '{{ .Values.type }}'}}", "spec.strategy.type", "helm"),
    ("apps/v1, kind: Deployment, spec: {strategy: \"${STRATEGY}\"}", "spec.strategy", "flux"),
    ("v1, kind: Service, spec: {type: 'Cluster${REST:=IP}', clusterIP: None}", "spec.type", "flux"),
    ("v1, kind: Pod, spec: {volumes: [{name: a, emptyDir: {}, hostPath: '${P}'}]}", "spec.volumes[0].hostPath", "flux"),
    (
        "v1, kind: Pod, spec: {containers: [{name: a, livenessProbe: '{{ .p }}'}]}",
        "spec.containers[0].livenessProbe",
        "helm",
    ),
    (
        "policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: '${A}', maxUnavailable: 1}",
        "spec.minAvailable",
        "flux",
    ),
    (
        "v1, kind: Pod, spec: {containers: [{name: a, env: [{name: A, value: '${V}', valueFrom: {}}]}]}",
        "spec.containers[0].env[0].value",
        "flux",
    ),
    (
        "networking.k8s.io/v1, kind: Ingress, spec: {defaultBackend: {service: '${S}', resource: {}}}",
        "spec.defaultBackend.service",
        "flux",
    ),
];

#[test]
fn what_a_tool_was_to_replace_decides_nothing_and_keeps_no_other_from_it() {
    for (object, field, tool) in LEFT_OVER {
        let object = format!("{{metadata: {{name: left}}, apiVersion: {object}}}\n");
        let (alone, both) = (object.clone(), format!("{object}---\n{NEW}"));
        let folder = Folder::new(&[("old.yaml", OLD), ("alone.yaml", &alone), ("both.yaml", &both)]);
        for command in ["chart", "preview"] {
            let run = folder.run(&[command, "--old", "old.yaml", "--new", "alone.yaml"]);
            assert_eq!((run.code, &*run.stdout), (2, ""), "{object}: {run:?}");
            let lines: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("error: alone.yaml:1:")).collect();
            let [line] = &lines[..] else { panic!("{command}, {object}: {run:?}") };
            assert!(
                line.contains(&format!("/left: {field}: undecided: ")) && line.contains(&format!("`{tool} ")),
                "{line}"
            );
            assert!(!run.stderr.contains("every union is valid"), "{run:?}");
            assert!(run.stderr.contains("1 union undecided"), "{run:?}");
            let run = folder.run(&[command, "--old", "old.yaml", "--new", "both.yaml"]);
            let found = "Deployment app: spec.strategy.rollingUpdate: error: refused";
            assert_eq!((run.code, run.stdout.matches(found).count()), (2, 1), "{object}: {run:?}");
        }
        let run = folder.run(&["chart", "--old", "old.yaml", "--new", "both.yaml", "--fix", "manifests"]);
        let mended = both.replace("    rollingUpdate: {maxSurge: 1} # of the chart\n", "");
        assert_eq!((run.code, &*run.stdout), (0, &*mended), "{object}: {run:?}");
        assert_eq!(run.stderr.matches("passed on as it is").count(), 1, "{object}: {run:?}");
    }
    // A text that has such a part and means it, and one with none.
    for (object, code) in [
        ("v1, kind: Pod, spec: {containers: [{name: a, env: [{name: A, value: 'a ${V}', valueFrom: {}}]}]}", 1),
        ("v1, kind: Pod, spec: {containers: [{name: a, env: [{name: A, value: '${V}'}]}]}", 0),
        ("v1, kind: Pod, spec: {containers: [{name: a, livenessProbe: {httpGet: {path: '${V}', port: 1}}}]}", 0),
        ("v1, kind: ConfigMap, data: {a: '${V} {{ b }}'}", 0),
    ] {
        let folder = Folder::new(&[("new.yaml", &format!("{{metadata: {{name: left}}, apiVersion: {object}}}\n"))]);
        let run = folder.run(&["chart", "--new", "new.yaml"]);
        assert_eq!(run.code, code, "{object}: {run:?}");
    }
}

#[test]
fn a_union_with_something_left_over_keeps_its_members_when_another_one_is_mended() {
    let probes = |more: &str| {
        NEW.replace("type: Recreate", "type: \"${TYPE}\"")
            + "  template:\n    spec:\n      containers:\n      - name: a\n        livenessProbe:\n          tcpSocket: {port: 1}\n"
            + more
    };
    let (old, new) = (probes(""), probes("          exec: {command: [a]}\n"));
    let folder = Folder::new(&[("old.yaml", &old.replace("${TYPE}", "RollingUpdate")), ("new.yaml", &new)]);
    let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml", "--fix", "manifests"]);
    assert_eq!((run.code, &*run.stdout), (0, &*new.replace("          tcpSocket: {port: 1}\n", "")), "{run:?}");
}

#[test]
fn a_kind_that_is_left_over_is_no_other_kind() {
    let new = format!("{NEW}---\napiVersion: apps/v1\nkind: ${{KIND}}\nmetadata: {{name: k}}\n");
    let folder = Folder::new(&[("old.yaml", OLD), ("new.yaml", &new)]);
    for command in ["chart", "preview"] {
        let run = folder.run(&[command, "--old", "old.yaml", "--new", "new.yaml"]);
        assert_eq!((run.code, run.stderr.matches("of no kind: a variable is left over").count()), (2, 1), "{run:?}");
    }
}

#[test]
fn a_rendering_of_which_nothing_can_be_read_is_an_error_and_passed_on() {
    for text in ["a: [\n", "---\na: [\n---\nb: {{ c }}\n", "{\"a\": 1", "- a\n"] {
        let folder = Folder::new(&[("new.yaml", text)]);
        for fix in [&[][..], &["--fix", "manifests"]] {
            let run = folder.run(&[&["chart", "--new", "new.yaml"], fix].concat());
            assert_eq!((run.code, &*run.stdout), (2, if fix.is_empty() { "" } else { text }), "{run:?}");
            assert!(run.stderr.contains("error: new.yaml:"), "{run:?}");
        }
    }
}

#[test]
fn several_files_are_one_stream_in_which_no_document_is_lost() {
    let folder = Folder::new(&[
        ("a.yaml", OLD.trim_end()),
        ("b.yaml", "a: ["),
        ("c.yaml", &OLD.replace("name: app", "name: c")),
    ]);
    let run = folder.run(&["chart", "--new", "a.yaml", "b.yaml", "c.yaml", "--fix", "manifests"]);
    let stream = format!("{OLD}---\na: [\n---\n{}", OLD.replace("name: app", "name: c"));
    assert_eq!((run.code, &*run.stdout), (0, &*stream), "{run:?}");
}

#[test]
fn a_key_that_is_there_twice_counts_as_for_helm() {
    let twice = NEW.replace("    type: Recreate\n", "    type: RollingUpdate\n    type: Recreate\n");
    let folder = Folder::new(&[("old.yaml", OLD), ("new.yaml", &twice)]);
    let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml"]);
    assert_eq!((run.code, run.stdout.matches("error: refused").count()), (1, 1), "{run:?}");
    assert!(run.stderr.contains("Warning: new.yaml:8:5: duplicate key `type`: the last one counts"), "{run:?}");
}

#[test]
fn a_rendering_of_80_000_lines_is_judged_document_by_document() {
    let rendering = |one: &str| {
        let named = |at: usize| ["---\n", &one.replace("name: app", &format!("name: app-{at}"))].concat();
        (0..9_000).map(named).collect::<String>()
    };
    let (old, mut new) = (rendering(OLD), rendering(NEW));
    for at in 0..10 {
        new.insert_str(0, &format!("---\n# Source: t/{at}.yaml\na: {{{{ .Values.a }}}}\n"));
    }
    assert!(new.lines().count() > 80_000);
    let mended = new.replace("    rollingUpdate: {maxSurge: 1} # of the chart\n", "");
    let folder = Folder::new(&[("old.yaml", &old), ("new.yaml", &new)]);
    let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml", "--fix", "manifests"]);
    assert_eq!((run.code, run.stdout == mended), (0, true));
    assert_eq!(run.stderr.matches("passed on as it is").count(), 10);
    assert!(run.stderr.contains(
        "9,000 objects of kinds with unions: 9,000 invalid unions, 9,000 refused by the API server, 9,000 made valid"
    ));
}

#[test]
fn an_object_that_no_default_explains_is_judged_alone() {
    let unknown = NEW.replace("Recreate", "OnDelete");
    let two = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {volumes: [{name: v, emptyDir: {}, hostPath: {path: /x}}]}}";
    for (rendering, helps) in [(NEW, false), (&*unknown, false), (two, true)] {
        let folder = Folder::new(&[("new.yaml", rendering)]);
        let run = folder.run(&["chart", "--new", "new.yaml"]);
        assert_eq!((run.code, run.stdout.contains("helps: keep one of the members")), (1, helps), "{run:?}");
        let run = folder.run(&["chart", "--new", "new.yaml", "--fix", "manifests"]);
        assert_eq!((run.code, &*run.stdout), (1, rendering), "nothing is removed");
    }
}

/// Two volumes with two members each: one of the chart and one of the values, and both of the values.
const VOLUMES: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  template:
    spec:
      volumes:
      - name: of-chart
        emptyDir: {}
";

#[test]
fn a_union_that_cannot_be_mended_keeps_no_other_from_it() {
    let more =
        "        hostPath: {path: /x}\n      - name: of-values\n        emptyDir: {}\n        hostPath: {path: /x}\n";
    let new = format!("{VOLUMES}{more}");
    let folder = Folder::new(&[("old.yaml", VOLUMES), ("new.yaml", &new)]);
    let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml", "--fix", "manifests"]);
    let mended = new.replacen("        emptyDir: {}\n", "", 1);
    assert_eq!((run.code, &*run.stdout), (1, &*mended), "{run:?}");
}

#[test]
fn of_two_objects_with_one_name_only_the_invalid_one_is_changed() {
    let twice = format!("{OLD}---\n{NEW}");
    let folder = Folder::new(&[("old.yaml", OLD), ("new.yaml", &twice)]);
    let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml", "--fix", "manifests"]);
    let mended = twice.replace("    rollingUpdate: {maxSurge: 1} # of the chart\n", "");
    assert_eq!((run.code, &*run.stdout), (0, &*mended), "{run:?}");
}

#[test]
fn two_renderings_tell_no_values() {
    let folder = Folder::new(&[("new.yaml", NEW)]);
    let run = folder.run(&["chart", "--new", "new.yaml", "--fix", "values"]);
    assert_eq!((run.code, &*run.stdout), (2, ""));
    assert!(run.stderr.contains("--fix values takes a chart"), "{run:?}");
}

/// Rows: what the chart renders with the values of a user, what it renders with a null as well, and the null that helps.
#[test]
fn a_null_is_found_for_an_object_that_the_defaults_do_not_render() {
    let probe = |members: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers:\n  - name: a\n    livenessProbe:\n{members}"
        )
    };
    let [exec, http, tcp] =
        ["      exec: {command: [SECRET]}\n", "      httpGet: {port: 1}\n", "      tcpSocket: {port: 1}\n"];
    let service = |policy: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec:\n{policy}  type: ClusterIP\n  ports: [{{port: 1}}]\n"
        )
    };
    let both = probe(&format!("{exec}{http}"));
    let all = probe(&format!("{exec}{http}{tcp}"));
    let deployment = NEW.replace("    rollingUpdate: {maxSurge: 1} # of the chart\n", "");
    let rows = [
        (NEW.to_owned(), deployment, Some("strategy: {rollingUpdate: null}")),
        (both.clone(), probe(exec), Some("probe: {httpGet: null}")),
        (service("  externalTrafficPolicy: Local\n"), service(""), Some("service: {externalTrafficPolicy: null}")),
        // The template has the member, and which of three is meant is not known.
        (both.clone(), both, None),
        (all.clone(), all, None),
        (probe(exec), probe(exec), None),
    ];
    let values = "{strategy: {rollingUpdate: {maxSurge: 1}}, probe: {httpGet: {port: 1}}, service: {externalTrafficPolicy: Local}}";
    let disabled = "printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: c}\\n'";
    // A chart may require values that it has no defaults for.
    for (otherwise, warned) in [(disabled, 0), ("echo 'Error: an image is required' >&2; exit 1", 1)] {
        for (rendered, with_null, help) in &rows {
            let script = format!(
                "case \"$*\" in\n*'--values -'*) cat <<'END'\n{with_null}END\n;;\n'show values'*) echo '{values}' ;;\n\
                 *--set*) cat <<'END'\n{rendered}END\n;;\n*) {otherwise} ;;\nesac"
            );
            let given = ["app", "--set", "image=SECRET"];
            let is_valid = help.is_none() && !rendered.contains("httpGet");
            let run = with_helm(Some(&script), &given);
            assert_eq!((run.code, run.stdout.is_empty()), (i32::from(!is_valid), is_valid), "{run:?}");
            let helps: Vec<&str> = run.stdout.lines().filter(|line| line.contains("helps: `")).collect();
            let wanted: Vec<String> = help.iter().map(|help| format!("  helps: `{help}` in the values")).collect();
            assert_eq!(helps, wanted, "{run:?}");
            let warning = "Warning: the chart cannot be rendered with its defaults alone";
            assert_eq!(run.stderr.matches(warning).count(), warned, "{run:?}");
            assert!(!format!("{}{}", run.stdout, run.stderr).contains("SECRET"), "{run:?}");

            let left = i32::from(!is_valid && help.is_none());
            let run = with_helm(Some(&script), &[&given[..], &["--fix", "values"]].concat());
            assert_eq!((run.code, run.stdout != "{}\n"), (left, help.is_some()), "{run:?}");
            let run = with_helm(Some(&script), &[&given[..], &["--fix", "manifests"]].concat());
            assert_eq!((run.code, &run.stdout), (left, with_null), "{run:?}");
        }
    }
    // Values with which it does not render, either.
    let run = with_helm(Some("echo 'Error: an image is required' >&2; exit 1"), &["app", "--set", "a=b"]);
    assert_eq!((run.code, run.stderr.matches("an image is required").count()), (2, 1), "{run:?}");
}

#[test]
fn a_name_that_yaml_reads_as_something_else_is_quoted_in_the_advice() {
    let fixed = NEW.replace("    rollingUpdate: {maxSurge: 1} # of the chart\n", "");
    for (name, key) in [
        ("on", "\"on\""),
        ("N", "\"N\""),
        ("8080", "\"8080\""),
        ("a, b: c", "\"a, b: c\""),
        ("web.site/x-1", "web.site/x-1"),
        ("grüße", "grüße"),
    ] {
        let script = format!(
            "case \"$*\" in\n*'--values -'*) cat <<'END'\n{fixed}END\n;;\n'show values'*) echo '{{\"{name}\": {{rollingUpdate: 1}}}}' ;;\n\
             *--set*) cat <<'END'\n{NEW}END\n;;\n*) cat <<'END'\n{OLD}END\n;;\nesac"
        );
        let run = with_helm(Some(&script), &["app", "--set", "a=b"]);
        let help = format!("helps: `{key}: {{rollingUpdate: null}}` in the values");
        assert_eq!((run.code, run.stdout.matches(&help).count()), (1, 1), "{name}: {run:?}");
    }
}

#[test]
fn files_of_values_may_be_a_list() {
    let script = format!("case \"$*\" in\n'show values'*) echo '{{}}' ;;\n*) cat <<'END'\n{OLD}END\n;;\nesac");
    let one = with_helm(Some(&script), &["app", "-f", "values.yaml", "-f", "values.yaml", "--matrix"]);
    let list = with_helm(Some(&script), &["app", "-f", "values.yaml,values.yaml", "--matrix"]);
    assert_eq!((one.code, &one.stdout, &one.stderr), (0, &list.stdout, &list.stderr), "{list:?}");
    assert_eq!(list.code, 0, "{list:?}");
}

/// Rows: a helm, the exit code, and a part of standard error.
#[test]
fn whatever_helm_does_there_is_one_line_and_no_value() {
    let rows = [
        (None, 2, "cannot run `helm`: install Helm 3 or 4, or give --old and --new"),
        (Some("exit 3"), 2, "`helm template` failed: exit status: 3"),
        (Some("kill -9 $$"), 2, "`helm template` failed: signal: 9"),
        (Some("echo 'a: {b: SECRET'"), 2, "the rendering:"),
        (Some("echo 'warning: SECRET' >/dev/null"), 0, "nothing to judge: no object of a kind with unions"),
        (Some("echo '[SECRET]'"), 2, "the rendering:1:1: not an object: `apiVersion` or `kind` is missing"),
    ];
    for ((script, code, words), more) in rows.into_iter().flat_map(|row| [(row, &[][..]), (row, &["--matrix"][..])]) {
        let run = with_helm(script, &[&["app", "--set", "password=SECRET"], more].concat());
        let words = if more.is_empty() { words } else { words.split(" judge").next().unwrap() };
        assert_eq!(run.code, code, "{script:?} {more:?}: {run:?}");
        assert!(run.stderr.contains(words), "{script:?} {more:?}: {run:?}");
        assert!(!format!("{}{}", run.stdout, run.stderr).contains("SECRET"), "{script:?} {more:?}: {run:?}");
    }
    // A helm that hangs.
    for matrix in [&["app", "--helm-timeout", "1"][..], &["app", "--matrix", "--helm-timeout", "1"]] {
        let run = with_helm(Some("exec sleep 600"), matrix);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains("`helm template` has not ended after 1 s"), "{run:?}");
    }
    // One that hangs only with other values than the user's: nothing else is lost.
    let script = format!(
        "case \"$*\" in\n*'--values -'*) exec sleep 600 ;;\n'show values'*) echo 'strategy: {{rollingUpdate: {{maxSurge: 1}}}}' ;;\n\
         *--set*) cat <<'END'\n{NEW}END\n;;\n*) cat <<'END'\n{OLD}END\n;;\nesac"
    );
    for (more, found) in [(&[][..], "spec.strategy.rollingUpdate: error: refused"), (&["--matrix"], "")] {
        let run = with_helm(Some(&script), &[&["app", "--set", "a=b", "--helm-timeout", "1"], more].concat());
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stdout.contains(found), "{run:?}");
        let line = "`helm template` has not ended after 1 s: other values were not tried";
        assert_eq!(run.stderr.matches(line).count(), 1, "{run:?}");
    }
    let run = with_helm(Some("true"), &["app", "--require"]);
    assert_eq!(run.code, 1, "{run:?}");
    let run = with_helm(Some("exec yes 'a: 1'"), &["app", "--matrix"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("`helm template` printed more than 268435456 bytes"), "{run:?}");
    let run = with_helm(Some("true"), &["app", "-f", "-"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("-f cannot be `-`"), "{run:?}");
}

/// A title, a rendering, what stands in the repaired one instead, and the fields that are left to the user.
type SharedText = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

/// Renderings that share texts or have a key twice.
const SHARED: [SharedText; 7] = [
    (
        "a key that is there twice",
        "# Source: a\nspec: # of spec\n  minAvailable: 1 # first\n  # of max\n  maxUnavailable: 2\n  minAvailable: 3 # last\n",
        &[("  minAvailable: 1 # first\n", ""), ("  minAvailable: 3 # last\n", "")],
        &[],
    ),
    (
        "another key that is there twice",
        "# Source: a\nspec: {minAvailable: 1, maxUnavailable: 2}\nstatus: {a: 1, a: 2} # twice\n",
        &[("minAvailable: 1, ", "")],
        &[],
    ),
    (
        "an anchor that nothing else has",
        "# Source: a\nspec:\n  minAvailable: &min 1\n  maxUnavailable: 2 # stays\n",
        &[("  minAvailable: &min 1\n", "")],
        &[],
    ),
    (
        "an alias of an anchor elsewhere",
        "# Source: a\nstatus: {a: &min 1} # stays\nspec:\n  minAvailable: *min\n  maxUnavailable: 2\n",
        &[("  minAvailable: *min\n", "")],
        &[],
    ),
    (
        "an anchor that another place shares",
        "# Source: a\nspec:\n  minAvailable: &min 1 # stays\n  maxUnavailable: 2\nstatus: {a: *min}\n",
        &[],
        &["spec.minAvailable"],
    ),
    (
        "a merge key",
        "# Source: a\nstatus: &shared {minAvailable: 1} # stays\nspec:\n  <<: *shared\n  maxUnavailable: 2\n",
        &[],
        &["spec.minAvailable"],
    ),
    (
        "a merge key of something else",
        "# Source: a\nstatus: &shared {selector: {}} # stays\nspec:\n  <<: *shared\n  minAvailable: 1\n  maxUnavailable: 2\n",
        &[("  minAvailable: 1\n", "")],
        &[],
    ),
];

#[test]
fn texts_that_other_places_share_are_edited_in_place_or_left_to_the_user() {
    let head = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: p}\n";
    for (what, text, edits, by_hand) in SHARED {
        let new = text.replacen("# Source: a\n", &format!("# Source: a\n{head}"), 1);
        let folder = Folder::new(&[("old.yaml", &format!("{head}spec: {{minAvailable: 1}}\n")), ("new.yaml", &new)]);
        let mended = edits.iter().fold(new.clone(), |text, (before, after)| text.replace(before, after));
        let code = i32::from(!by_hand.is_empty());
        let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml", "--fix", "manifests"]);
        assert_eq!((run.code, &*run.stdout), (code, &*mended), "{what}: {run:?}");
        for fix in [&[][..], &["--fix", "manifests"]] {
            let run = folder.run(&[&["chart", "--old", "old.yaml", "--new", "new.yaml"], fix].concat());
            let all = format!("{}{}", run.stdout, run.stderr);
            let helps =
                if by_hand.is_empty() { "helps: --fix manifests" } else { "helps: remove `minAvailable` by hand: " };
            assert_eq!(all.matches(helps).count(), 1, "{what}: {run:?}");
            assert!(by_hand.iter().all(|field| all.contains(field)), "{what}: {run:?}");
        }
        assert_eq!(run.stderr.contains("1 made valid"), by_hand.is_empty(), "{what}: {run:?}");
    }
}

#[test]
fn a_union_that_is_left_to_the_user_keeps_no_other_of_its_document_from_being_mended() {
    let shared = NEW.replace("rollingUpdate: {", "rollingUpdate: &shared {")
        + "  template:\n    metadata: {annotations: *shared} # as above\n    spec:\n      volumes:\n      - name: a\n        emptyDir: {}\n";
    let old = shared.replace("type: Recreate", "type: RollingUpdate");
    let new = format!("{shared}        hostPath: {{path: /x}}\n");
    let folder = Folder::new(&[("old.yaml", &old), ("new.yaml", &new)]);
    let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml", "--fix", "manifests"]);
    assert_eq!((run.code, &*run.stdout), (1, &*new.replace("        emptyDir: {}\n", "")), "{run:?}");
    assert!(run.stderr.contains("helps: remove `rollingUpdate` by hand: "), "{run:?}");
    assert!(run.stderr.contains("2 invalid unions, 2 refused by the API server, 1 made valid"), "{run:?}");
    let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml", "-o", "json"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let by_hand = report["findings"].as_array().unwrap().iter().map(|finding| finding["byHand"] == true);
    assert_eq!(by_hand.filter(|it| *it).count(), 1, "{report}");
}

/// Edits of the items of a list are made together, and an alias of the one in the other is edited with its anchor.
#[test]
fn items_of_a_list_are_mended_in_one_text() {
    let item = |name: &str, members: &str| {
        format!(
            "- apiVersion: policy/v1\n  kind: PodDisruptionBudget\n  metadata: {{name: {name}}}\n  spec: {members}\n"
        )
    };
    let list = |specs: [&str; 2]| {
        format!("apiVersion: v1\nkind: List\nitems: # both\n{}{}", item("p", specs[0]), item("q", specs[1]))
    };
    let old = list(["{minAvailable: 1}", "{minAvailable: 1}"]);
    for (specs, mended, code) in [
        (["{minAvailable: 1, maxUnavailable: 2}"; 2], ["{maxUnavailable: 2}"; 2], 0),
        (["&s {minAvailable: 1, maxUnavailable: 2}", "*s"], ["&s {maxUnavailable: 2}", "*s"], 0),
        (
            ["{minAvailable: &m 1, maxUnavailable: 2}", "{minAvailable: *m, maxUnavailable: 2}"],
            ["{maxUnavailable: 2}"; 2],
            0,
        ),
        (
            ["{minAvailable: &m 1, maxUnavailable: 2}", "{minAvailable: 3, maxUnavailable: *m}"],
            ["{minAvailable: &m 1, maxUnavailable: 2}", "{maxUnavailable: *m}"],
            1,
        ),
    ] {
        let folder = Folder::new(&[("old.yaml", &old), ("new.yaml", &list(specs))]);
        let run = folder.run(&["chart", "--old", "old.yaml", "--new", "new.yaml", "--fix", "manifests"]);
        assert_eq!((run.code, &*run.stdout), (code, &*list(mended)), "{run:?}");
    }
}
