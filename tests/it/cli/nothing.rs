//! No silent success: every command says what it checked, warns if that is nothing, and names near misses.

use super::{CRD, Folder, crd_of};

const PLAIN: &str = include_str!("plain.yaml");

/// A schema with a rule, and with a union that the rule is about.
const RULED: &str = "        type: object
        x-kubernetes-unions: [{fields-to-discriminateBy: {a: A, b: B}}]
        x-kubernetes-validations: [{rule: '!(has(self.a) && has(self.b))'}]
        properties: {a: {type: string}, b: {type: string}}
";

const WIDGET: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {git: {}}\n";
const OTHER: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n";
const SWITCHED: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: b}\n\
                        spec: {strategy: {type: Recreate, rolling: {}}}\n";

const GO: &str = "// +groupName=example.com\npackage v1\n\ntype Plain struct {\n\tSpec struct{} `json:\"spec\"`\n}\n";

/// A command, its exit code, and everything that it prints to standard error.
type Row<'r> = (&'r [&'r str], i32, &'r str);

fn folder() -> Folder {
    let misspelt = CRD
        .replace("x-kubernetes-unions: {field", "x-kubernetes-union: {field")
        .replace("labels: {app: \"widgets\"}", "annotations: {kube-unions.dev/union: '{}'}");
    let keyword = CRD.replace("x-kubernetes-unions:", "x-Kubernetes-unions:");
    let folder = Folder::with_crd(&[
        ("plain.yaml", PLAIN),
        ("ruled.yaml", &crd_of("Ruled", RULED)),
        ("misspelt.yaml", &misspelt),
        ("keyword.yaml", &keyword),
        ("widget.yaml", WIDGET),
        ("other.yaml", OTHER),
        ("mixed.yaml", &format!("{WIDGET}---\n{SWITCHED}---\n{OTHER}")),
        ("empty.yaml", ""),
        ("comment.yaml", "# nothing\n---\n"),
        ("go.mod", "module example.com/m\n"),
        ("api/v1/plain.go", GO),
    ]);
    std::fs::create_dir(folder.path().join("none")).unwrap();
    folder
}

#[track_caller]
fn check(rows: &[Row<'_>]) {
    let folder = folder();
    for (arguments, code, stderr) in rows {
        let run = folder.run(arguments);
        assert_eq!((run.code, run.stderr.as_str()), (*code, *stderr), "{arguments:?}\n{}", run.stdout);
    }
}

#[test]
fn each_command_says_what_it_checked() {
    check(&[
        (&["lint", "crd.yaml"], 0, "1 CRD, 2 unions, 0 problems\n"),
        (&["lint", "crd.yaml", "ruled.yaml", "other.yaml"], 0, "2 CRDs, 3 unions, 0 problems\n"),
        (&["lint", "--require", "-o", "json", "crd.yaml"], 0, "1 CRD, 2 unions, 0 problems\n"),
        (&["annotate", "crd.yaml"], 0, "1 CRD, 2 declarations, 2 moved\n"),
        (
            &["annotate", "--check", "crd.yaml"],
            1,
            "crd.yaml:2:1: widgets.example.com: would change\n1 CRD, 2 declarations, 2 to move\n",
        ),
        (&["normalize", "--from", "crd.yaml", "-f", "widget.yaml"], 0, "1 object: 0 changed, 0 rejected\n"),
        (
            &["normalize", "--from", "crd.yaml", "-f", "mixed.yaml"],
            1,
            "The Widget \"b\" is invalid: spec.strategy.rolling: Forbidden: may only be specified when `type` is \
             \"Rolling\"\n2 objects: 0 changed, 1 rejected; 1 of kinds without unions\n",
        ),
        (
            &["audit", "--from", "crd.yaml", "--from", "widget.yaml"],
            0,
            "audited 1 object of 1 kind: none invalid, none that normalisation would change\n",
        ),
        (&["check-cel", "ruled.yaml"], 0, "1 CRD, 1 union: 1 agrees\n"),
    ]);
}

#[test]
fn nothing_to_check_is_a_warning_that_fails_if_something_is_required() {
    let rows: [(&[&str], &str); 10] = [
        (&["lint", "plain.yaml"], "nothing to check: 1 CRD, 0 unions"),
        (&["annotate", "plain.yaml"], "nothing to annotate: 1 CRD, 0 declarations"),
        (&["annotate", "other.yaml"], "nothing to annotate: 0 CRDs, 0 declarations"),
        (&["annotate", "empty.yaml"], "nothing to annotate: no objects in `empty.yaml`: the input is empty"),
        (
            &["normalize", "--from", "crd.yaml", "-f", "other.yaml"],
            "nothing to normalise: 1 object of kinds without unions",
        ),
        (
            &["audit", "--from", "crd.yaml", "--from", "other.yaml"],
            "nothing to audit: no object of a kind with unions; 1 document of other kinds passed over",
        ),
        (&["check-cel", "crd.yaml"], "nothing to compare: 1 CRD, 2 unions: 2 no rules"),
        (&["check-cel", "plain.yaml"], "nothing to compare: 1 CRD, 0 unions"),
        (
            &["generate", "--from-crd", "plain.yaml"],
            "nothing to propose: 1 CRD: 0 unions proposed, 0 groups of fields in doubt",
        ),
        (&["generate", "--check", "--go", "api", "plain.yaml"], "nothing to declare: no markers of unions for 1 CRD"),
    ];
    for (arguments, nothing) in rows {
        let warning = format!("Warning: {nothing}\n");
        check(&[(arguments, 0, &warning), (&[arguments, &["--require"]].concat(), 1, &warning)]);
    }
}

#[test]
fn a_report_tells_the_exit_code_that_require_makes() {
    let folder = folder();
    let audit = ["audit", "--require", "-o", "sarif", "--from", "crd.yaml", "--from", "other.yaml"];
    let log = folder.run(&audit).code(1).json();
    assert_eq!(log["runs"][0]["invocations"][0]["exitCode"], 1);
    let log = folder.run(&["check-cel", "--require", "-o", "sarif", "crd.yaml"]).code(1).json();
    assert_eq!(log["runs"][0]["invocations"][0]["exitCode"], 1);
}

#[test]
fn every_near_miss_of_a_file_is_named_by_each_command_that_reads_it() {
    let annotation = "misspelt.yaml:6:17: widgets.example.com: error: the annotation `kube-unions.dev/union` has no \
                      effect; did you mean `kube-unions.dev/unions`?\n";
    let keyword = "misspelt.yaml:35:21: spec.strategy.type: error: the keyword `x-kubernetes-union` has no effect; did \
                   you mean `x-kubernetes-unions`?\n";
    let folder = folder();
    folder.run(&["lint", "misspelt.yaml"]).code(1).prints(&format!("{annotation}{keyword}"));
    let findings = folder.run(&["lint", "-o", "json", "misspelt.yaml"]).code(1).json();
    let sources = findings.as_array().unwrap().iter().map(|it| (it["source"].as_str(), it["versions"].clone()));
    assert_eq!(
        sources.collect::<Vec<_>>(),
        [(Some("annotation"), serde_json::json!([])), (Some("schema"), serde_json::json!(["v1"]))]
    );
    let moved = "misspelt.yaml:2:1: widgets.example.com: would change\n1 CRD, 1 declaration, 1 to move\n";
    check(&[
        (&["annotate", "--check", "misspelt.yaml"], 1, &format!("{annotation}{keyword}{moved}")),
        (
            &["annotate", "keyword.yaml"],
            1,
            "keyword.yaml:22:13: spec: error: the keyword `x-Kubernetes-unions` has no effect; did you mean \
             `x-kubernetes-unions`?\nkeyword.yaml:35:21: spec.strategy.type: error: the keyword `x-Kubernetes-unions` has \
             no effect; did you mean `x-kubernetes-unions`?\n1 CRD, 0 declarations, 0 moved\n",
        ),
    ]);
}

#[test]
fn a_kind_has_the_same_names_in_every_command() {
    let folder = folder();
    let renamed = CRD.replace("singular: widget", "singular: widget, shortNames: [wdg]");
    folder.write("crd.yaml", renamed);
    let commands: [&[&str]; 4] = [
        &["explain", "--from", "crd.yaml"],
        &["audit", "--from", "crd.yaml", "--from", "widget.yaml"],
        &["generate", "--from-crd", "crd.yaml", "--kind"],
        &["generate", "--check", "--allow=kind-not-found", "--go", "api", "crd.yaml", "--kind"],
    ];
    for command in commands {
        for kind in ["Widget", "WIDGETS", "widget", "wdg", "Widget.example.com", "widgets.v1.example.com"] {
            let run = folder.run(&[command, &[kind]].concat());
            assert!(!run.stderr.contains("no kind") && run.code < 2, "{command:?} {kind}: {run:#?}");
        }
        let of = if command[0] == "generate" { "" } else { "with unions " };
        for (kind, near) in [
            ("widgt", "; did you mean `widget`?"),
            ("Widgets.exmple.com", "; did you mean `widgets.example.com`?"),
            ("gadget", ""),
            ("widgets.v2", ""),
        ] {
            let run = folder.run(&[command, &[kind]].concat()).code(2).prints("");
            let files = if command[0] == "audit" { "`crd.yaml`, `widget.yaml`" } else { "`crd.yaml`" };
            let error = format!("error: no kind `{kind}` {of}in {files}; there are: Widget.example.com/v1{near}\n");
            assert_eq!(run.stderr, error, "{command:?}");
        }
    }
    // One of two is not enough.
    let run = folder.run(&["generate", "--from-crd", "crd.yaml", "--kind", "widget", "--kind", "widgt"]);
    run.code(2).prints("").says(&["no kind `widgt`"]);
}

#[test]
fn empty_input_is_told_alike() {
    let commands: [&[&str]; 10] = [
        &["lint"],
        &["explain", "--from"],
        &["review", "--from"],
        &["review", "--from", "crd.yaml", "-f"],
        &["normalize", "-f", "widget.yaml", "--from"],
        &["normalize", "--from", "crd.yaml", "-f"],
        &["audit", "--from"],
        &["check-cel"],
        &["generate", "--from-crd"],
        &["generate", "--go", "api"],
    ];
    for command in commands {
        for (file, name) in
            [("empty.yaml", "`empty.yaml`"), ("comment.yaml", "`comment.yaml`"), ("-", "standard input")]
        {
            let error = format!("error: no objects in {name}: the input is empty\n");
            check(&[(&[command, &[file]].concat(), 2, &error)]);
        }
    }
}

#[test]
fn the_reason_of_a_missing_cluster_is_one_sentence() {
    let folder = folder();
    let home = folder.path().display().to_string();
    for command in ["audit", "verify", "install-crd", "unregister"] {
        let mut process = std::process::Command::new(super::binary());
        process.current_dir(folder.path()).arg(command).env("HOME", &home);
        process.env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST");
        let run = super::run(&mut process, b"").code(2);
        let reason =
            format!("error: no cluster: give --kubeconfig, or set KUBECONFIG: there is no `{home}/.kube/config`\n");
        assert_eq!(run.stderr, reason, "{command}");
    }
}

#[test]
fn no_example_in_a_help_text_is_wider_than_80_columns() {
    let folder = folder();
    let (mut checked, mut seen) = (0, 0);
    let mut waiting: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let help = folder.run(&[&path[..], &["--help"]].concat()).code(0).stdout;
        seen += 1;
        let below = subcommands(&help).filter(|name| *name != "help");
        waiting.extend(below.map(|name| path.iter().copied().chain([name]).map(str::to_owned).collect()));
        let Some((_, examples)) = help.split_once("\nExamples:\n") else { continue };
        for line in examples.lines().take_while(|line| line.is_empty() || line.starts_with(' ')) {
            checked += 1;
            assert!(line.chars().count() <= 80, "{path:?}: {line}");
        }
    }
    assert!(seen > 18, "{seen} commands");
    assert!(checked > 60, "{checked} lines of examples");
}

/// Returns the commands that a help text lists. The program lists them in groups.
fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let (list, _) = help.split_once("\nOptions:\n").unwrap_or((help, ""));
    let groups = list.split("\n\n").filter(|group| group.contains(":\n  ") && !group.starts_with("Arguments:"));
    let lines = groups.flat_map(str::lines).filter_map(|line| line.strip_prefix("  "));
    lines.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_whitespace().next())
}
