//! A release is refused unless every version is the tag's, the tree is clean, and CHANGELOG.md has the section.

use super::{Checkout, VERSION};
use std::fs;

#[test]
fn the_tag_of_this_version_can_be_released_and_another_one_or_a_changed_tree_cannot() {
    let checkout = Checkout::of_a_release();
    for arguments in [&[][..], &[&*format!("v{VERSION}")]] {
        let (_, said) = checkout.succeeds("check.sh", arguments);
        assert_eq!(said.lines().last(), Some(&*format!("release/check.sh: v{VERSION} can be released")));
    }
    let said = checkout.fails("check.sh", &["v9.8.7"]);
    let problem = format!("the tag is `v9.8.7`, and the version of the workspace in Cargo.toml is `{VERSION}`");
    assert!(said.contains(&problem), "{said}");
    assert!(said.ends_with("release/check.sh: v9.8.7 cannot be released\n"), "{said}");
    fs::write(checkout.path("forgotten"), "").unwrap();
    let said = checkout.fails("check.sh", &[]);
    assert!(said.contains("the tree has changes that are not committed:\n?? forgotten\n"), "{said}");
}

/// Each row changes one version, and the message names its file and its key. Nor has the changelog a section of the version.
#[test]
fn each_version_that_differs_is_named() {
    let cases = [
        ("charts/kube-unions/Chart.yaml", format!("\nversion: {VERSION}\n"), "\nversion: 9.8.7\n", "version"),
        ("charts/kube-unions/Chart.yaml", format!("appVersion: \"{VERSION}\""), "appVersion: \"9.8.7\"", "appVersion"),
        ("manifests/webhook/kustomization.yaml", format!("newTag: {VERSION}"), "newTag: 9.8.7", "newTag"),
        (
            "Cargo.toml",
            format!("path = \"crates/policies\", version = \"{VERSION}\""),
            "path = \"crates/policies\", version = \"9.8.7\"",
            "the required version of kube-unions-policies",
        ),
    ];
    let checkout = Checkout::uncommitted();
    for (file, from, to, _) in &cases {
        checkout.replace(file, from, to);
    }
    checkout.commit();
    let said = checkout.fails("check.sh", &[]);
    for (file, .., key) in cases {
        let problem =
            format!("release/check.sh: {file}: {key} is `9.8.7`, and the version of the workspace is `{VERSION}`\n");
        assert!(said.contains(&problem), "{said}");
    }
    assert!(said.contains(&format!("CHANGELOG.md has no section `## [{VERSION}] - DATE` with entries")), "{said}");
}

#[test]
fn lines_that_say_that_nothing_is_published_are_listed() {
    let checkout = Checkout::uncommitted();
    checkout.replace("CHANGELOG.md", "## Unreleased\n", &format!("## [{VERSION}] - 2000-01-01\n"));
    fs::write(checkout.path("docs/guide/listed.md"), "One.\nIt is not published yet.\n").unwrap();
    checkout.commit();
    let (_, said) = checkout.succeeds("check.sh", &[]);
    assert!(said.contains("change them in the commit of the release:\n"), "{said}");
    assert!(said.contains("\ndocs/guide/listed.md:2:It is not published yet.\n"), "{said}");
}

#[test]
fn the_notes_are_the_section_of_the_version() {
    let checkout = Checkout::uncommitted();
    let changelog = "# Changelog\n\n## Unreleased\n\n- Later.\n\n## [1.2.0] - 2001-01-01\n\n### Added\n\n- A.\n\n- B\n  goes on.\n\n\
                     ## 1.1.0\n\n- Older.\n\n## [1.0.0]\n\n[1.2.0]: https://example.com\n";
    fs::write(checkout.path("CHANGELOG.md"), changelog).unwrap();
    assert_eq!(checkout.succeeds("notes.sh", &["1.2.0"]).0, "### Added\n\n- A.\n\n- B\n  goes on.\n");
    assert_eq!(checkout.succeeds("notes.sh", &["1.1.0"]).0, "- Older.\n");
    assert_eq!(checkout.succeeds("notes.sh", &["Unreleased"]).0, "- Later.\n");
    for missing in ["1.0.0", "1.2", "1x2.0", "0.9.0"] {
        let said = checkout.fails("notes.sh", &[missing]);
        assert_eq!(
            said,
            format!(
                "release/notes.sh: CHANGELOG.md has no entry for {missing}: add a section `## [{missing}] - DATE`\n"
            )
        );
    }
}
