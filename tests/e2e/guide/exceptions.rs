//! The commands of pages that no test of pages runs, each with the reason.

use std::fs;
use std::path::Path;

use super::page::{REPOSITORY, commands, read, steps};

/// A command as it is on the page, without comments.
type Command = (&'static str, &'static str);

/// Who runs a command instead, or why nothing can.
enum Reason {
    /// CI runs the target of the Makefile.
    Step(&'static str),
    /// Another test runs it.
    Test { file: &'static str, words: &'static str },
    /// It needs more than this machine has, or does not end.
    Outside(&'static str),
}

use Reason::{Outside, Step, Test};

const EXCEPTIONS: &[(Command, Reason)] = &[
    (
        ("docs/guide/getting-started.md", "cargo install --locked --path crates/cli"),
        Outside("it builds the release binary a second time; the tests run the binary of `make build`"),
    ),
    (("docs/guide/getting-started.md", "make image IMAGE=kube-unions:dev"), Step("image-root")),
    (
        ("docs/guide/getting-started.md", "kind create cluster"),
        Outside("it needs a container engine; the test has a cluster"),
    ),
    (
        ("docs/guide/getting-started.md", "kind load docker-image kube-unions:dev"),
        Outside("it needs a container engine; the node of the test has the program"),
    ),
    (("README.md", "make quickstart"), Test { file: "tests/e2e/quickstart.rs", words: "tests/quickstart.sh" }),
    (("README.md", "make demo"), Step("demo")),
    (("README.md", "make test"), Step("test")),
    (
        (
            "manifests/webhook/README.md",
            "make image IMAGE=YOUR-REGISTRY/kube-unions:0.1.0 && docker push YOUR-REGISTRY/kube-unions:0.1.0",
        ),
        Step("image-root"),
    ),
    (("README.md", "KUBE_UNIONS_E2E=skip make test"), Step("test")),
];

/// Returns true if no test can run a command of a page.
pub(super) fn is_exception(page: &str, command: &str) -> bool {
    EXCEPTIONS.iter().any(|(exception, _)| *exception == (page, command))
}

#[test]
fn every_exception_is_on_its_page_and_is_run_where_its_reason_says() {
    let read_script = |name: &str| fs::read_to_string(Path::new(REPOSITORY).join(name)).unwrap();
    let (run, hosted) = (read_script(".ci/run"), read_script(".ci/hosted"));
    for ((page, command), reason) in EXCEPTIONS {
        let found = steps(page, &read(page)).iter().flat_map(commands).filter(|found| found == command).count();
        assert_eq!(found, 1, "{page}: {command}");
        match reason {
            Step(target) => {
                let is_run = run.lines().any(|line| line.strip_prefix("step ") == Some(target));
                let is_hosted = hosted.lines().any(|line| line.strip_prefix("make ") == Some(target));
                assert!(is_run || is_hosted, "{command}: neither .ci/run nor .ci/hosted has the step {target}");
            }
            Test { file, words } => assert!(read(file).contains(words), "{command}: {file} has no {words}"),
            Outside(reason) => assert!(!reason.is_empty(), "{command}"),
        }
    }
}
