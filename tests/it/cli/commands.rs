//! `lint`, `explain`, `certs`, `completion`, `version`, and what all commands have in common.

use super::{CRD, Folder, binary, crd_of, run, yaml};
use serde_json::json;
use std::process::{Command, Stdio};

#[test]
fn lint_names_file_line_column_and_path() {
    let folder = Folder::with_crd(&[]);
    folder.run(&["lint", "crd.yaml"]).code(0).prints("");

    let faulty = CRD.replace("Rolling: {name: rolling,", "Rolling: {name: missing,");
    folder.write("faulty.yaml", format!("a: 1\n---\n{faulty}"));
    let run = folder.run(&["lint", "faulty.yaml"]).code(1);
    let line = run.stdout.lines().find(|line| line.contains("`missing`")).unwrap();
    assert!(line.starts_with("faulty.yaml:37:58: spec.strategy.type: error: "), "{line}");

    let findings = folder.run(&["lint", "-o", "json", "faulty.yaml"]).code(1).json();
    let finding =
        findings.as_array().unwrap().iter().find(|finding| finding["message"].to_string().contains("`missing`"));
    let finding = finding.unwrap();
    assert_eq!(
        (&finding["file"], &finding["line"], &finding["column"], &finding["definition"], &finding["versions"]),
        (&json!("faulty.yaml"), &json!(37), &json!(58), &json!("widgets.example.com"), &json!(["v1"]))
    );
    assert_eq!(
        (&finding["path"], &finding["severity"], &finding["source"]),
        (&json!("spec.strategy.type"), &json!("error"), &json!("schema"))
    );
    folder.run(&["lint", "-o", "json", "crd.yaml"]).code(0).prints("[]\n");
}

#[test]
fn lint_finds_faults_in_json_and_in_lists_at_their_place() {
    let faulty = yaml(&CRD.replace("Rolling: {name: rolling,", "Rolling: {name: missing,"));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Other"}, faulty]});
    let text = serde_json::to_string_pretty(&list).unwrap();
    let line = 1 + text.lines().position(|line| line.contains("\"Rolling\": {")).unwrap();
    let run = Folder::new(&[("list.json", &text)]).run(&["lint", "list.json"]).code(1);
    assert!(run.stdout.starts_with(&format!("list.json:{line}:")), "expected line {line}: {run:#?}");
}

#[test]
fn explain_shows_a_tree() {
    let folder = Folder::with_crd(&[]);
    let tree = "\
Widget example.com/v1
├── spec (2019 form, no discriminator, from schema)
│   ├── git
│   └── oci
└── spec.strategy (2022 form, discriminator `type`, from schema)
    ├── Recreate → no member
    └── Rolling  → rolling (optional)
";
    for arguments in
        [&["--from", "."][..], &["--from", "crd.yaml", "widget"], &["WIDGET.example.com", "--from", "crd.yaml"]]
    {
        folder.run(&[&["explain"], arguments].concat()).code(0).prints(tree);
    }
    let run = folder.run(&["explain", "--from", "."]);
    assert_eq!(run.stderr, "1 kind, 2 unions: 2 from schema\n");
    folder.write("faulty.yaml", crd_of("Faulty", "        {x-kubernetes-unions: 1}\n"));
    folder
        .run(&["explain", "--from", "."])
        .code(0)
        .says(&["1 kind, 2 unions: 2 from schema; 1 fault: `kube-unions lint`"]);
    folder.run(&["explain", "--from", ".", "widget"]).code(0).prints(tree);
    std::fs::remove_file(folder.path().join("faulty.yaml")).unwrap();
    let report = folder.run(&["explain", "--from", ".", "-o", "json"]).code(0).json();
    assert_eq!(
        report[0]["unions"][1]["choices"][1],
        json!({"value": "Rolling", "members": [{"name": "rolling", "optional": true}]})
    );
}

#[test]
fn explain_takes_a_path_after_the_kind() {
    let folder = Folder::with_crd(&[]);
    let paths = |asked: &str| -> Vec<String> {
        let report = folder.run(&["explain", "--from", ".", "-o", "json", asked]).code(0).json();
        let unions = report[0]["unions"].as_array().unwrap();
        unions.iter().map(|union| union["path"].as_str().unwrap().to_owned()).collect()
    };
    for (asked, wanted) in [
        ("widget", &["spec", "spec.strategy"][..]),
        ("widget.spec", &["spec", "spec.strategy"]),
        ("widgets.example.com.spec.strategy", &["spec.strategy"]),
        ("Widget.v1.example.com.spec.strategy", &["spec.strategy"]),
        ("widget.spec.strategy.rolling", &["spec.strategy"]),
        ("widget.spec.strategy.type", &["spec.strategy"]),
        ("widget.spec.git.url", &["spec"]),
    ] {
        assert_eq!(paths(asked), wanted, "{asked}");
    }
}

#[test]
fn built_in_types_have_their_short_names() {
    let openapi = include_str!("apps-v1.openapi.json").replace("{name}/status", "{name}");
    let folder = Folder::new(&[("apps.json", &openapi)]);
    let explain = |asked: &str| folder.run(&["explain", "--builtin-unions=openapi", "--from", "apps.json", asked]);
    let whole = explain("Deployment.apps").code(0).stdout;
    assert!(whole.starts_with("Deployment apps/v1\n"), "{whole}");
    for asked in ["deploy", "DEPLOY", "deployments", "deployments.apps", "deploy.v1.apps", "deploy.apps"] {
        explain(asked).code(0).prints(&whole);
    }
    explain("deploy.spec").code(0);
    explain("sts").code(2).says(&["no kind `sts` with unions"]);
}

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
