//! `audit` and `lint` hold one object at a time: they run with a data segment that has no room for all of them.
//!
//! The limit of 32 MiB counts the stack of the thread that parses YAML, 16 MiB. A reader that holds every object ends with an
//! abort.

use super::{Folder, Run, binary, run};
use fixtures::crds;
use serde_json::json;
use std::process::Command;
use std::slice;

/// Every object with a number that this divides is invalid.
const EACH: usize = 10;

/// Runs with a limit of the data segment, in MiB.
pub(super) fn limited(folder: &Folder, limit: usize, arguments: &[&str], stdin: &str) -> Run {
    let limit = format!("ulimit -d {} && exec \"$0\" \"$@\"", limit << 10);
    let mut shell = Command::new("sh");
    run(shell.args(["-c", &limit]).arg(binary()).args(arguments).current_dir(folder.path()), stdin.as_bytes())
}

/// Returns an object in YAML, in block style.
fn rollout(number: usize) -> String {
    let invalid = if number.is_multiple_of(EACH) { "      rollingUpdate: {maxSurge: 1}\n" } else { "" };
    format!(
        "\
- apiVersion: samples.kube-unions.dev/v1
  kind: Rollout
  metadata:
    name: web-{number}
    namespace: shop
  spec:
    strategy:
      type: Recreate
{invalid}"
    )
}

/// Returns an object in JSON, in one line.
fn json_rollout(number: usize) -> String {
    let invalid = if number.is_multiple_of(EACH) { ",\"rollingUpdate\":{\"maxSurge\":1}" } else { "" };
    format!(
        "{{\"apiVersion\":\"samples.kube-unions.dev/v1\",\"kind\":\"Rollout\",\"metadata\":{{\"name\":\"web-{number}\",\
         \"namespace\":\"shop\"}},\"spec\":{{\"strategy\":{{\"type\":\"Recreate\"{invalid}}}}}}}"
    )
}

#[test]
fn objects_are_audited_in_less_memory_than_they_would_take_together() {
    let in_json: Vec<String> = (0..20_000).map(json_rollout).collect();
    let in_yaml: String = (0..10_000).map(rollout).collect();
    let documents: String = in_yaml.lines().fold(String::new(), |text, line| {
        let (begins, line) = line.split_at(2);
        text + if begins == "- " { "---\n" } else { "" } + line + "\n"
    });
    let list = format!("{{\"apiVersion\":\"v1\",\"items\":[{}],\"kind\":\"List\"}}", in_json.join(",\n"));
    for (objects, text) in
        [(20_000, list), (10_000, format!("apiVersion: v1\nitems:\n{in_yaml}kind: List\n")), (10_000, documents)]
    {
        let folder = Folder::new(&[("crd.yaml", include_str!("../../../manifests/samples/rollout/crd.yaml"))]);
        let run = limited(&folder, 32, &["audit", "--from", "crd.yaml", "-f", "-"], &text);
        assert!(run.stdout.contains("<stdin>:11:") || objects == 10_000, "each object has a line");
        let summary = format!("audited {}0,000 objects of 1 kind: {},000 invalid", objects / 10_000, objects / 10_000);
        let run = run.code(1).says(&[&summary]);
        // The table begins with its titles.
        assert_eq!(run.stdout.lines().count(), 1 + objects / EACH);
        let end = run.stdout.lines().last().unwrap();
        assert!(end.contains(&format!("web-{} ", objects - EACH)), "{end}");
    }
}

#[test]
fn a_crd_is_compiled_and_forgotten() {
    const CRDS: usize = 400;
    let union = json!({"discriminator": "type", "fields-to-discriminateBy": {"git": "Git", "none": "None"}});
    let members = json!({"type": {"type": "string"}, "git": {"type": "object"}});
    let spec = json!({"type": "object", "description": "x".repeat(20_000), "properties": members, "x-kubernetes-unions": [union]});
    let version = crds::version("v1", &json!({"type": "object", "properties": {"spec": spec}}));
    let folder = Folder::new(&[]);
    for number in 0..CRDS {
        let crd = crds::crd("example.com", &format!("Widget{number}"), slice::from_ref(&version));
        folder.write(&format!("crds/{number:03}.json"), crd.to_string());
    }
    let run = limited(&folder, 32, &["lint", "crds"], "").code(1).says(&["400 CRDs, 0 unions, 400 problems"]);
    let last = run.stdout.lines().last().unwrap();
    assert!(last.starts_with("crds/399.json:1:") && last.contains("`none`"), "{last}");
    assert_eq!(run.stdout.lines().count(), CRDS);
}
