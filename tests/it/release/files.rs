//! The files of a release: archives, checksums and the manifest for krew.

use super::{Checkout, VERSION, text};
use fixtures::files::parse;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const PLATFORMS: [&str; 4] = ["linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"];

fn archive(platform: &str) -> String {
    format!("kube-unions-{VERSION}-{}.tar.gz", platform.replace('/', "-"))
}

/// Writes the archives, each with another content.
fn with_archives(platforms: &[&str]) -> Checkout {
    let checkout = Checkout::uncommitted();
    fs::create_dir_all(checkout.path("target/dist")).unwrap();
    for platform in platforms {
        fs::write(checkout.path("target/dist").join(archive(platform)), platform).unwrap();
    }
    checkout
}

/// Returns the digest of a file in the folder of the release.
fn digest(checkout: &Checkout, name: &str) -> String {
    let output = Command::new("sha256sum").arg(checkout.path("target/dist").join(name)).output().unwrap();
    assert!(output.status.success());
    text(&output.stdout)[..64].to_owned()
}

#[test]
fn the_manifest_for_krew_has_each_archive_with_its_digest() {
    let checkout = with_archives(&PLATFORMS);
    checkout.succeeds("krew.sh", &[]);
    let manifest: Value = parse("unions.yaml", &checkout.read("target/dist/unions.yaml"));
    assert_eq!(manifest["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!(manifest["kind"], "Plugin");
    assert_eq!(manifest["metadata"]["name"], "unions");
    let spec = &manifest["spec"];
    assert_eq!(spec["version"], format!("v{VERSION}"));
    assert_eq!(spec["homepage"], env!("CARGO_PKG_HOMEPAGE"));
    // The index of krew asks for a line of this length.
    assert!(spec["shortDescription"].as_str().unwrap().len() <= 50, "{}", spec["shortDescription"]);
    assert!(spec["caveats"].as_str().unwrap().contains("kubectl_complete-unions"));
    let platforms: Vec<_> = PLATFORMS
        .iter()
        .map(|platform| {
            let (os, arch) = platform.split_once('/').unwrap();
            let name = archive(platform);
            json!({
                "selector": {"matchLabels": {"os": os, "arch": arch}},
                "uri": format!("{}/releases/download/v{VERSION}/{name}", env!("CARGO_PKG_REPOSITORY")),
                "sha256": digest(&checkout, &name),
                "files": [{"from": "*/kube-unions", "to": "."}, {"from": "*/LICENSE", "to": "."}],
                "bin": "kube-unions",
            })
        })
        .collect();
    assert_eq!(spec["platforms"], json!(platforms));
}

#[test]
fn the_manifest_for_krew_needs_every_archive() {
    let said = with_archives(&PLATFORMS[..3]).fails("krew.sh", &[]);
    let problem = "there is no archive `target/dist/kube-unions-";
    assert!(said.contains(problem) && said.contains("make dist DIST_PLATFORM=darwin/arm64"), "{said}");
}

#[test]
fn the_checksums_are_those_of_each_file_sorted_by_name() {
    let checkout = with_archives(&PLATFORMS);
    let more = [format!("kube-unions-{VERSION}.cdx.json"), format!("kube-unions-{VERSION}.tgz")];
    for name in more.iter().map(String::as_str).chain(["image.digest", "unions.yaml"]) {
        fs::write(checkout.path("target/dist").join(name), name).unwrap();
    }
    checkout.succeeds("checksums.sh", &[]);
    let mut names: Vec<_> = PLATFORMS.into_iter().map(archive).chain(more).collect();
    names.sort();
    let wanted: Vec<_> = names.iter().map(|name| format!("{}  {name}", digest(&checkout, name))).collect();
    assert_eq!(checkout.read("target/dist/SHA256SUMS").lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn checksums_of_nothing_are_refused() {
    let said = with_archives(&[]).fails("checksums.sh", &[]);
    assert_eq!(said, "release/checksums.sh: `target/dist` has no archive, chart or SBOM: run `make dist` first\n");
}

#[test]
fn an_archive_of_another_platform_or_version_is_refused() {
    let checkout = Checkout::uncommitted();
    assert_eq!(
        checkout.fails("dist.sh", &["linux/s390x"]),
        "release/dist.sh: unknown platform `linux/s390x`: use linux/amd64, linux/arm64, darwin/amd64 or darwin/arm64\n"
    );
    let program = checkout.path("program");
    fs::write(&program, "#!/bin/sh\necho kube-unions 9.8.7\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let output =
        checkout.command(checkout.path("release/dist.sh")).arg("linux/amd64").env("BINARY", &program).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let problem = format!("says that it is `kube-unions 9.8.7`, and the version of the workspace is {VERSION}\n");
    assert!(text(&output.stderr).ends_with(&problem), "{}", text(&output.stderr));
    assert!(!checkout.path("target/dist").join(archive("linux/amd64")).exists());
}
