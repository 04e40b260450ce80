//! Pages, followed as they stand: every command is run, in order, on a real API server. What a page shows as the output of commands has
//! to be exactly what they print; `…` stands for any text of a line, or as a line of its own for any lines.
//!
//! [`page`] reads the commands, and [`exceptions`] lists those that no test can run. [`shell`] runs them and compares. [`node`] is a cluster
//! that runs the pods of the chart.

mod container;
mod exceptions;
mod local;
mod logs;
mod network;
mod node;
mod page;
mod release;
mod shell;

use std::collections::BTreeSet;

use crate::errors;
use fixtures::files::{files, is_linked};
pub(crate) use node::ClusterWithNode;
pub(crate) use page::Page;
use page::{read, steps};
pub(crate) use release::{INSTALL, UNINSTALL, accepted, caches, enforced, unregistered};
pub(crate) use shell::Shell;

/// Makes a test for pages, and adds them to `FOLLOWED`.
macro_rules! followed {
    ($($test:ident: $($page:literal),+ by $follow:path;)+) => {
        const FOLLOWED: &[&str] = &[$($($page),+),+];

        $(#[test]
        fn $test() {
            let mut pages = [$(Page::open($page)),+];
            if $follow(&mut pages) {
                pages.iter().for_each(Page::assert_followed);
            }
        })+
    };
}

followed! {
    the_guide_can_be_followed:
        "docs/guide/authoring.md", "docs/guide/patching.md", "docs/guide/kustomize-and-helm.md", "docs/guide/playground.md",
        "docs/guide/preview.md", "docs/guide/testing.md", "docs/guide/generators.md", "manifests/samples/README.md", "manifests/presets/README.md" by local::on_a_cluster;
    the_guide_without_a_webhook_can_be_followed:
        "manifests/policies/README.md", "docs/guide/without-a-webhook.md" by local::without_a_webhook;
    getting_started_and_declaring_can_be_followed:
        "docs/guide/getting-started.md", "docs/guide/declaring.md" by release::getting_started_and_declaring;
    troubleshooting_and_operating_can_be_followed:
        "docs/guide/troubleshooting.md", "docs/guide/operating.md" by release::troubleshooting_and_operating;
    the_readmes_can_be_followed:
        "README.md", "docs/guide/command-line.md", "manifests/webhook/README.md" by release::readmes;
    the_readme_of_the_chart_can_be_followed: "charts/kube-unions/README.md" by release::readme_of_the_chart;
}

/// Pages whose commands another test runs, with its file.
const ELSEWHERE: &[(&str, &str)] =
    &[("crates/strategic-stdio/README.md", "crates/strategic-stdio/tests/it/program.rs")];

#[test]
fn every_page_with_commands_is_followed() {
    let folders = ["docs", "charts", "manifests", "crates"].into_iter();
    let pages =
        folders.flat_map(|folder| files(folder, "md").into_iter().map(move |(path, _)| format!("{folder}/{path}")));
    let pages: BTreeSet<String> = pages.filter(|page| !is_linked(page)).chain(["README.md".to_owned()]).collect();
    // The errors are pages of their own kind, with a test that follows all of them.
    let pages = pages.iter().filter(|page| !page.starts_with(errors::FOLDER));
    let with_commands: Vec<&String> = pages.filter(|page| !steps(page, &read(page)).is_empty()).collect();
    for (page, test) in ELSEWHERE {
        let name = page.rsplit('/').next().unwrap_or(page);
        assert!(read(test).contains(name), "{test} does not read {page}");
    }
    let mut tested: Vec<&str> = FOLLOWED.iter().copied().chain(ELSEWHERE.iter().map(|(page, _)| *page)).collect();
    tested.sort_unstable();
    assert_eq!(with_commands, tested, "each page with a block `sh` or `console` is followed by one test");
}
