//! The scripts in `release`, run on copies of this repository, and the workflows that call them.
//!
//! `make release-rehearsal` runs all steps in a row, with a registry.

mod chart;
mod checks;
mod files;
mod workflows;

use fixtures::files::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The files that the scripts read.
const COPIED: [&str; 10] = [
    ".github",
    "CHANGELOG.md",
    "Cargo.toml",
    "README.md",
    "action.yml",
    "charts",
    "docs",
    "manifests",
    "release",
    "LICENSE",
];

/// A copy of this repository without its code, as a Git repository of its own with one commit.
struct Checkout {
    folder: TempDir,
}

impl Checkout {
    /// Returns a copy whose CHANGELOG.md has the section of this version.
    fn of_a_release() -> Self {
        let checkout = Self::uncommitted();
        checkout.replace("CHANGELOG.md", "## Unreleased\n", &format!("## [{VERSION}] - 2000-01-01\n"));
        checkout.commit();
        checkout
    }

    fn uncommitted() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let copied = Command::new("cp").arg("-R").args(COPIED).arg(folder.path()).current_dir(root()).status().unwrap();
        assert!(copied.success());
        Self { folder }
    }

    fn commit(&self) {
        for arguments in [&["init", "--quiet"][..], &["add", "--all"], &["commit", "--quiet", "--message=Release"]] {
            let output = self.command("git").args(arguments).output().unwrap();
            assert!(output.status.success(), "git {arguments:?}: {}", text(&output.stderr));
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Replaces the text once, which must be there.
    fn replace(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name} has no `{from}`");
        fs::write(self.path(name), text.replacen(from, to, 1)).unwrap();
    }

    /// Returns a command that runs in the copy and that no configuration of the user changes.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(self.folder.path());
        for variable in [
            "DIST",
            "CARGO_TARGET_DIR",
            "PLATFORMS",
            "BINARY",
            "DIST_RUN",
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
        ] {
            command.env_remove(variable);
        }
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("SOURCE_DATE_EPOCH", "0");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "test").env(format!("GIT_{role}_EMAIL"), "test@localhost");
        }
        command
    }

    fn script(&self, name: &str, arguments: &[&str]) -> Output {
        self.command(self.path("release").join(name)).args(arguments).output().unwrap()
    }

    /// Runs a script that must succeed, and returns what it wrote to standard output and standard error.
    #[track_caller]
    fn succeeds(&self, name: &str, arguments: &[&str]) -> (String, String) {
        let output = self.script(name, arguments);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    }

    /// Runs a script that must fail, and returns what it wrote to standard error.
    #[track_caller]
    fn fails(&self, name: &str, arguments: &[&str]) -> String {
        let output = self.script(name, arguments);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output.stderr));
        text(&output.stderr)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
