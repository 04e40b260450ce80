//! `certs`, `completion`, `version`, and what all commands have in common.

use super::{Folder, binary, run};
use clap::CommandFactory;
use kube_unions::cli::Cli;
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

#[test]
fn the_help_of_a_command_is_one_line_and_examples_that_name_its_flags() {
    let folder = Folder::new(&[]);
    let list = folder.run(&["--help"]).code(0).stdout;
    for command in ["review", "normalize", "lint", "audit", "explain", "completion", "version"] {
        let about = list.lines().find_map(|line| line.trim().strip_prefix(command)).unwrap().trim();
        assert!(about.starts_with(char::is_uppercase) && !about.ends_with('.'), "{command}: {about}");
        let help = folder.run(&[command, "--help"]).code(0).stdout;
        let (options, examples) = help.split_once("\nExamples:\n").unwrap_or_else(|| panic!("no examples: {help}"));
        // A long example continues on the next line.
        let examples = examples.replace("\\\n", "");
        assert!(examples.lines().all(|line| line.contains(&format!("kube-unions {command}"))), "{examples}");
        let flags = examples.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2);
        for flag in flags {
            assert!(options.contains(flag), "{command} has no flag {flag}");
        }
    }
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
fn no_example_in_a_help_text_is_wider_than_80_columns() {
    let folder = Folder::new(&[]);
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
