//! The workflows call only targets of the Makefile, with the least permissions and with pinned actions.

use super::{Checkout, text};
use fixtures::files::{files, makefiles, parse, root};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

fn workflows() -> BTreeMap<String, Value> {
    let parsed = |(name, text): (String, String)| {
        let workflow = parse(&name, &text);
        (name, workflow)
    };
    files(".github/workflows", "yml").into_iter().map(parsed).collect()
}

fn jobs(workflow: &Value) -> &Map<String, Value> {
    workflow["jobs"].as_object().unwrap()
}

fn steps(job: &Value) -> impl Iterator<Item = &Value> {
    job["steps"].as_array().into_iter().flatten()
}

/// Returns the names of the actions that a job uses, without their commits.
fn actions(job: &Value) -> BTreeSet<&str> {
    steps(job).filter_map(|step| step["uses"].as_str()?.split('@').next()).collect()
}

/// Returns the targets of the Makefile that a job calls.
fn targets(job: &Value) -> Vec<&str> {
    let commands = steps(job).filter_map(|step| step["run"].as_str());
    let arguments = commands.filter_map(|command| command.split_once("make ").map(|(_, arguments)| arguments));
    arguments.flat_map(|it| it.split_whitespace()).filter(|word| !word.contains('=')).collect()
}

/// Returns the targets of the Makefile and of the files that it includes.
fn defined() -> BTreeSet<String> {
    let name = |line: &str| line.strip_prefix(".PHONY: ").map(str::to_owned);
    makefiles().iter().flat_map(|(_, text)| text.lines().filter_map(name)).collect()
}

#[test]
fn a_tag_alone_starts_a_release() {
    assert_eq!(workflows()["release.yml"]["on"], json!({"push": {"tags": ["v*"]}}));
}

/// A filter that names a file which was moved would leave out the workflow for ever.
#[test]
fn each_path_of_a_filter_exists() {
    let mut checked = 0;
    for (name, workflow) in &workflows() {
        for path in workflow["on"]["pull_request"]["paths"].as_array().into_iter().flatten() {
            let path = path.as_str().unwrap();
            checked += 1;
            let folder = path.trim_end_matches("/**");
            assert!(path.starts_with("**/") || root().join(folder).exists(), "{name}: there is no {path}");
        }
    }
    assert!(checked > 30, "only {checked} paths");
}

/// A command that is not a target must prepare the machine, or hand a result to another step.
#[test]
fn each_command_is_a_target_that_exists() {
    const OTHERS: [&str; 3] = ["rustup toolchain install ", "sudo sysctl ", "echo \"digest=$(cat target/dist/"];
    let defined = defined();
    let mut called = BTreeSet::new();
    for (name, workflow) in &workflows() {
        for (job, content) in jobs(workflow) {
            for command in steps(content).filter_map(|step| step["run"].as_str()) {
                let is_make = command.starts_with("make ") || command.starts_with("sudo make ");
                assert!(
                    is_make || OTHERS.iter().any(|other| command.starts_with(other)),
                    "{name}, {job}: `{command}` is no target of the Makefile"
                );
                assert_eq!(command.lines().count(), 1, "{name}, {job}: `{command}` belongs into a target");
            }
            for target in targets(content) {
                assert!(defined.contains(target), "{name}, {job}: the Makefile has no target `{target}`");
                called.insert(target.to_owned());
            }
        }
    }
    assert!(called.len() > 25, "only {} targets are called", called.len());
}

#[test]
fn the_workflows_for_changes_run_each_step_of_ci() {
    let scripts = ["run", "hosted"].map(|name| fs::read_to_string(root().join(".ci").join(name)).unwrap()).concat();
    let stepped = |line: &str| {
        let rest = line.trim_start().strip_prefix("step ").or_else(|| line.trim_start().strip_prefix("make "))?;
        rest.split(' ').next().filter(|target| !target.contains('$')).map(str::to_owned)
    };
    let wanted: BTreeSet<String> = scripts.lines().filter_map(stepped).collect();
    assert!(wanted.len() >= 10, "{wanted:?}");
    let all = workflows();
    let of_changes = all.values().filter(|workflow| workflow["on"].get("pull_request").is_some());
    let called: BTreeSet<_> = of_changes.flat_map(|workflow| jobs(workflow).values()).flat_map(targets).collect();
    let missing: Vec<_> = wanted.iter().filter(|step| !called.contains(step.as_str())).collect();
    assert!(missing.is_empty(), "no workflow for changes has {missing:?}, which `.ci` has");
}

#[test]
fn the_jobs_of_a_release_have_exactly_these_permissions() {
    let all = workflows();
    let release = &all["release.yml"];
    assert_eq!(release["permissions"], json!({}));
    let read = json!({"contents": "read"});
    let attest = json!({"contents": "read", "id-token": "write", "attestations": "write"});
    let publish = json!({"contents": "read", "packages": "write", "id-token": "write", "attestations": "write"});
    let wanted = json!({
        "check": read,
        "binaries": attest,
        "image": publish,
        "chart": publish,
        "crates": {"contents": "read", "id-token": "write"},
        "release": {"contents": "write", "id-token": "write", "attestations": "write"},
        "site": read,
        "pages": {"pages": "write", "id-token": "write"},
        "go-module": {"contents": "write"},
    });
    let found: Map<_, _> = jobs(release).iter().map(|(name, job)| (name.clone(), job["permissions"].clone())).collect();
    assert_eq!(Value::Object(found), wanted);
    assert_eq!(all["release.yml"]["jobs"]["binaries"]["uses"], "./.github/workflows/build.yml");
    assert_eq!(
        (&all["build.yml"]["permissions"], &all["build.yml"]["jobs"]["build"]["permissions"]),
        (&json!({}), &attest)
    );
    let judged = json!({"contents": "read", "security-events": "write"});
    assert_eq!(all["codeql.yml"]["jobs"]["analyze"]["permissions"], judged);
    for name in ["codeql.yml", "scorecard.yml"] {
        assert_eq!(all[name]["permissions"], read, "{name}");
    }
    for name in ["advisories.yml", "ci.yml", "fuzz.yml", "go.yml", "scheduled.yml", "site.yml"] {
        assert_eq!(all[name]["permissions"], read, "{name}");
        assert!(jobs(&all[name]).values().all(|job| job["permissions"].is_null()), "{name}");
    }
}

/// A pull request could have written a cache, and a token that stays in the checkout can be read by every later step.
#[test]
fn a_release_reads_no_cache_and_leaves_no_token_in_the_checkout() {
    for (name, workflow) in &workflows() {
        for (job, content) in jobs(workflow) {
            if ["release.yml", "build.yml"].contains(&&**name) {
                assert!(!actions(content).iter().any(|action| action.contains("cache")), "{job} uses a cache");
            }
            for step in steps(content) {
                let action = step["uses"].as_str().unwrap_or_default();
                if action.starts_with("actions/setup-go@") {
                    assert_eq!(step["with"]["cache"], false, "{name}, {job}");
                }
                if action.starts_with("actions/checkout@") && job != "go-module" {
                    assert_eq!(step["with"]["persist-credentials"], false, "{name}, {job}");
                }
            }
        }
    }
}

/// Nothing is published before every version agrees and every archive is built.
#[test]
fn every_job_of_a_release_that_may_write_waits_for_the_check_and_the_binaries() {
    let all = workflows();
    let jobs = jobs(&all["release.yml"]);
    let needs = |name: &str| -> BTreeSet<String> {
        let needs = &jobs[name]["needs"];
        let listed = needs.as_array().cloned().unwrap_or_else(|| vec![needs.clone()]);
        listed.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    for name in jobs.keys().filter(|name| !["check", "binaries", "site"].contains(&name.as_str())) {
        let mut before = needs(name);
        while !before.iter().all(|it| before.is_superset(&needs(it))) {
            before = before.iter().flat_map(|it| needs(it)).chain(before.clone()).collect();
        }
        assert!(before.contains("check") && before.contains("binaries"), "{name} waits for {before:?}");
    }
}

#[test]
fn a_release_builds_each_platform() {
    let all = workflows();
    let built = all["release.yml"]["jobs"]["binaries"]["strategy"]["matrix"]["include"].as_array().unwrap();
    let built: Vec<_> = built.iter().map(|row| row["platform"].as_str().unwrap()).collect();
    let makefile = fs::read_to_string(root().join("release/targets.mk")).unwrap();
    assert!(makefile.contains(&format!("\nDIST_PLATFORMS ?= {}\n", built.join(" "))), "{built:?}");
}

#[test]
fn an_action_that_is_not_pinned_is_found() {
    let pinned = "uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1";
    let check = |change: Option<&str>| {
        let checkout = Checkout::uncommitted();
        if let Some(loose) = change {
            checkout.replace(".github/workflows/ci.yml", pinned, loose);
        }
        checkout.command(checkout.path("release/workflows.sh")).env("ACTIONLINT", "true").output().unwrap()
    };
    let fine = check(None);
    assert!(fine.status.success(), "{}", text(&fine.stderr));
    for loose in [
        "uses: actions/checkout@v7",
        "uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1",
        "uses: actions/checkout@3d3c42e # v7.0.1",
        "uses: actions/checkout@main # v7.0.1",
    ] {
        let output = check(Some(loose));
        assert_eq!(output.status.code(), Some(1), "{loose}");
        let said = text(&output.stderr);
        assert!(said.contains("pin these actions by commit"), "{said}");
        assert!(said.contains(".github/workflows/ci.yml:") && said.contains(loose), "{said}");
    }
}
