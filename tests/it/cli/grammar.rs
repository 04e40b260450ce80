//! One grammar: `-f` names what a command works on, `--from` names what declares unions, and every older form still means the same.

use super::{CRD, Folder, crd_of};
use clap::CommandFactory;
use kube_unions::cli::Cli;

const STORED: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n\
                      spec: {strategy: {type: Rolling, rolling: {}}}\n";

const TOO_STRONG: &str = "        type: object
        x-kubernetes-unions: [{fields-to-discriminateBy: {a: A, b: B}}]
        x-kubernetes-validations: [{rule: '!has(self.a)'}]
        properties: {a: {type: string}, b: {type: string}}
";

/// An older form of a command line, the form of today, and the exit code of both.
const FORMS: [(&[&str], &[&str], i32); 18] = [
    (&["lint", "suite"], &["lint", "--from", "suite"], 0),
    (&["lint", "crd.yaml", "faulty.yaml"], &["lint", "--from", "crd.yaml", "faulty.yaml"], 1),
    (&["lint", "crd.yaml", "faulty.yaml"], &["lint", "crd.yaml", "-f", "faulty.yaml"], 1),
    (&["lint", "crd.yaml"], &["lint", "--filename", "crd.yaml"], 0),
    (&["check-cel", "strong.yaml"], &["check-cel", "--from", "strong.yaml"], 1),
    (&["annotate", "crd.yaml", "faulty.yaml"], &["annotate", "crd.yaml", "-f", "faulty.yaml"], 1),
    (&["annotate", "--check", "crd.yaml"], &["annotate", "--check", "--filename", "crd.yaml"], 1),
    (&["generate", "--from-crd", "strong.yaml"], &["generate", "--from-crd", "-f", "strong.yaml"], 0),
    (&["generate", "--go", "api", "crd.yaml"], &["generate", "--go", "api", "--filename", "crd.yaml"], 1),
    (
        &["test", "suite", "suite/valid-stored.yaml"],
        &["test", "-f", "suite", "--filename", "suite/valid-stored.yaml"],
        0,
    ),
    (
        &["audit", "--from", "crd.yaml", "--from", "new.yaml", "widget"],
        &["audit", "--from", "crd.yaml", "-f", "new.yaml", "widget"],
        1,
    ),
    (&["audit", "--from", "suite", "--from", "new.yaml"], &["audit", "--from", "suite", "--filename", "new.yaml"], 1),
    (
        &["patch", "create", "--schema", "crd.yaml", "--original", "stored.yaml", "--modified", "new.yaml"],
        &["patch", "create", "--from", "crd.yaml", "--original", "stored.yaml", "-f", "new.yaml"],
        0,
    ),
    (
        &["patch", "create", "--schema=crd.yaml", "--original=stored.yaml", "--modified=new.yaml"],
        &["patch", "create", "--from=crd.yaml", "--original=stored.yaml", "--filename=new.yaml"],
        0,
    ),
    (
        &["patch", "apply", "--schema", "crd.yaml", "strong.yaml", "--original", "stored.yaml", "-p", "kind: Widget"],
        &["patch", "apply", "--from", "crd.yaml", "strong.yaml", "-f", "stored.yaml", "-p", "kind: Widget"],
        0,
    ),
    (
        &["patch", "apply", "--schema", "crd.yaml", "--original", "stored.yaml", "--patch-file", "new.yaml"],
        &["patch", "apply", "--from", "crd.yaml", "--filename", "stored.yaml", "--patch-file", "new.yaml"],
        1,
    ),
    (
        &["normalize", "--from", "crd.yaml", "strong.yaml", "-f", "stored.yaml"],
        &["normalize", "--from", "crd.yaml", "--from", "strong.yaml", "-f", "stored.yaml"],
        0,
    ),
    (
        &["compile", "--to", "vap", "--from", "crd.yaml", "strong.yaml"],
        &["compile", "--to", "vap", "--from", "crd.yaml", "--from", "strong.yaml"],
        0,
    ),
];

fn folder() -> Folder {
    Folder::with_crd(&[
        (
            "faulty.yaml",
            &CRD.replace("Rolling: {name: rolling,", "Rolling: {name: missing,")
                .replace("widget", "gadget")
                .replace("Widget", "Gadget"),
        ),
        ("strong.yaml", &crd_of("Strong", TOO_STRONG)),
        ("stored.yaml", STORED),
        ("new.yaml", &STORED.replace("type: Rolling", "type: Recreate")),
        ("suite/crd.yaml", CRD),
        ("suite/valid-stored.yaml", STORED),
        ("go.mod", "module example.com/m\n"),
        ("api/v1/other.go", "package v1\n\ntype Other struct{}\n"),
    ])
}

#[test]
fn an_older_form_prints_what_the_form_of_today_prints() {
    let folder = folder();
    for (older, today, code) in FORMS {
        let (older, today) = (folder.run(older), folder.run(today).code(code));
        assert_eq!((older.code, &older.stdout, &older.stderr), (code, &today.stdout, &today.stderr), "{today:#?}");
        assert!(!today.stdout.is_empty() || !today.stderr.is_empty(), "{today:#?}");
    }
}

#[test]
fn objects_need_declarations() {
    let run = folder().run(&["audit", "-f", "new.yaml"]).code(2);
    run.says(&["required arguments were not provided", "--from <PATH>"]);
}

#[test]
fn help_lists_every_command_in_one_group() {
    let help = folder().run(&["--help"]).code(0).stdout;
    let (list, _) = help.split_once("\nOptions:\n").unwrap();
    let (_, list) = list.split_once("\n\n").and_then(|(_, list)| list.split_once("\n\n")).unwrap();
    let headings: Vec<&str> = list.lines().filter(|line| !line.is_empty() && !line.starts_with(' ')).collect();
    assert_eq!(headings, ["Write unions:", "Try them:", "On a cluster:", "Run the webhook:", "Other commands:"]);
    let listed: Vec<&str> =
        list.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next()).collect();
    let command = Cli::command();
    let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
    assert_eq!(listed, visible.map(clap::Command::get_name).collect::<Vec<_>>());
}
