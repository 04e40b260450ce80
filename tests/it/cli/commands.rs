//! `certs`, `completion`, `version`, and what all commands have in common.

use super::{Folder, binary, run, visible_commands};
use clap::CommandFactory;
use kube_unions::Cli;
use serde_json::json;
use std::process::{Command, Stdio};

#[test]
fn certs_are_whole_private_and_not_overwritten() {
    let folder = Folder::new(&[]);
    folder
        .run(&["certs", "--dir", "certs/dev", "--host", "web.example.com", "10.0.0.1"])
        .code(0)
        .prints("")
        .says(&["tls.key"]);
    assert!(folder.read("certs/dev/ca.crt").starts_with("-----BEGIN CERTIFICATE-----"));
    let key = folder.read("certs/dev/tls.key");
    assert!(key.starts_with("-----BEGIN PRIVATE KEY-----"));
    #[cfg(unix)]
    for (file, mode) in [("tls.key", 0o600), ("ca.key", 0o600)] {
        use std::os::unix::fs::PermissionsExt;
        let metadata = std::fs::metadata(folder.path().join("certs/dev").join(file)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{file}");
    }
    folder.run(&["certs", "--dir", "certs/dev"]).code(2).says(&["exists already", "--force"]);
    assert_eq!(folder.read("certs/dev/tls.key"), key);
    folder.run(&["certs", "--dir", "certs/dev", "--force"]).code(0);
    assert_ne!(folder.read("certs/dev/tls.key"), key);
    assert_eq!(std::fs::read_dir(folder.path().join("certs/dev")).unwrap().count(), 4);
}

#[test]
fn version_is_told_in_each_way_and_with_the_features() {
    let folder = Folder::new(&[]);
    let version = env!("CARGO_PKG_VERSION");
    folder.run(&["version"]).code(0).prints(&format!("kube-unions {version}\n"));
    folder.run(&["--version"]).code(0).prints(&format!("kube-unions {version}\n"));
    let build = folder.run(&["version", "-o", "json"]).code(0).json();
    let features = if cfg!(feature = "otlp") { json!(["otlp"]) } else { json!([]) };
    assert_eq!((&build["version"], &build["features"]), (&json!(version), &features));
}

#[cfg(unix)]
#[test]
fn as_a_kubectl_plugin_it_is_called_what_users_type() {
    let folder = Folder::new(&[]);
    let plugin = folder.path().join("kubectl-unions");
    std::os::unix::fs::symlink(binary(), &plugin).unwrap();
    let help = run(Command::new(&plugin).args(["explain", "--help"]), b"").code(0);
    assert!(help.stdout.contains("Usage: kubectl unions explain"), "{help:#?}");
    run(Command::new(&plugin).arg("explode"), b"").code(2).says(&["Usage: kubectl unions"]);
}

#[test]
fn nobody_reading_is_no_reason_to_panic() {
    let widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {git: {}, oci: {}}\n";
    let folder = Folder::with_crd(&[("widget.yaml", widget)]);
    for arguments in [
        &["annotate", "crd.yaml"][..],
        &["explain", "--from", ".", "widget"],
        &["completion", "bash"],
        &["version"],
        &["--version"],
        &["--help"],
        &["explain", "--help"],
        &["audit", "--from", ".", "-o", "table"],
        &["audit", "--from", ".", "-o", "json"],
        &["audit", "--from", ".", "-o", "sarif"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(binary())
            .current_dir(folder.path())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn each_command_has_one_line_and_examples_of_at_most_80_columns_that_name_its_flags() {
    let folder = Folder::new(&[]);
    let mut checked = 0;
    let commands = visible_commands();
    for (path, command) in &commands {
        let arguments: Vec<&str> = path[1..].iter().map(String::as_str).chain(["--help"]).collect();
        let help = folder.run(&arguments).code(0).stdout;
        let path = path.join(" ");
        let about = command.get_about().unwrap().to_string();
        assert!(about.starts_with(char::is_uppercase) && !about.ends_with('.') && !about.contains('\n'), "{about}");
        let Some((options, examples)) = help.split_once("\nExamples:\n") else { continue };
        let examples: String =
            examples.split_inclusive('\n').take_while(|line| line.trim().is_empty() || line.starts_with(' ')).collect();
        for line in examples.lines() {
            checked += 1;
            assert!(line.chars().count() <= 80, "{path}: {line}");
        }
        // A long example continues on the next line. Others call more programs.
        let examples = examples.replace("\\\n", " ");
        let calls = examples.lines().filter_map(|line| line.split_once(&format!("{path} "))?.1.split('|').next());
        for flag in calls.flat_map(str::split_whitespace).filter(|word| word.starts_with("--") && word.len() > 2) {
            let flag = flag.split('=').next().unwrap();
            assert!(options.contains(flag), "`{path}` has no flag {flag}");
        }
    }
    assert!(commands.len() > 18, "{} commands", commands.len());
    assert!(checked > 60, "{checked} lines of examples");
}

#[test]
fn help_lists_every_command_in_one_group() {
    let help = Folder::new(&[]).run(&["--help"]).code(0).stdout;
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
