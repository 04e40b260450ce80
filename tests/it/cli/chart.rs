//! `chart` without Helm: two renderings, and everything that can be wrong with the program. `tests/e2e/chart_values.rs` has Helm.

use super::{Folder, Run, binary};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const OLD: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
";

const NEW: &str = "\
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

/// Rows: a helm, the exit code, and a part of standard error.
#[test]
fn whatever_helm_does_there_is_one_line_and_no_value() {
    let rows = [
        (None, 2, "cannot run `helm`: install Helm 3 or 4, or give --old and --new"),
        (Some("exit 3"), 2, "`helm template` failed: exit status: 3"),
        (Some("kill -9 $$"), 2, "`helm template` failed: signal: 9"),
        (Some("echo 'a: {b: SECRET'"), 2, "the rendering:"),
        (Some("echo 'warning: SECRET' >/dev/null"), 0, "nothing to judge: no object of a kind with unions"),
        (Some("echo '[SECRET]'"), 0, "nothing to judge"),
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
