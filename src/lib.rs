//! The webhook `kube-unions-webhook`, and the commands that run and maintain it.
//!
//! The rules of unions are not here but in `kube-unions-core` and `kube-unions-policies`. The program adds the network and a clock.
//!
//! | module | does | uses |
//! |---|---|---|
//! | [`commands`] | parses arguments and runs commands, one file for each | all modules |
//! | [`webhook`] | serves admission reviews: listeners, limits, certificates, drain | `authority`, `telemetry`, `supervision` |
//! | [`audit`] | judges stored objects, and writes reports | |
//! | [`follow`] | follows a cluster: watches, status | `compute`, `controllers`, `telemetry` |
//! | [`controllers`] | keep objects in a cluster: registration, policies, shared certificates | `authority`, `compute`, `telemetry` |
//! | [`telemetry`] | metrics, logs and traces | |
//! | `compute` | runs work that takes a processor for long | |
//! | [`supervision`] | watches the tasks that run as long as the program | |
//! | [`authority`] | issues certificates | |
//!
//! [`webhook`] and [`follow`] never name each other. `commands::serve` creates both and connects them by channels. A test holds the
//! table. The library has arguments of commands in [`commands`] only.

#![allow(missing_docs, reason = "a program: only the command line and tests use the library")]

pub mod audit;
pub mod authority;
pub mod commands;
mod compute;
pub mod controllers;
pub mod follow;
pub mod supervision;
pub mod telemetry;
pub mod webhook;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Every module, and the modules that it may use.
    const USES: &[(&str, &[&str])] = &[
        ("audit", &[]),
        ("authority", &[]),
        ("commands", &["audit", "authority", "controllers", "follow", "supervision", "telemetry", "webhook"]),
        ("compute", &[]),
        ("controllers", &["authority", "compute", "telemetry"]),
        ("follow", &["compute", "controllers", "telemetry"]),
        ("supervision", &[]),
        ("telemetry", &[]),
        ("webhook", &["authority", "supervision", "telemetry"]),
    ];

    #[test]
    fn the_table_has_every_module() {
        let lines =
            include_str!("lib.rs").lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
        let declared: Vec<&str> = lines.filter_map(|line| line.strip_suffix(';')).collect();
        assert_eq!(declared, USES.iter().map(|(module, _)| *module).collect::<Vec<_>>());
    }

    #[test]
    fn modules_use_only_what_the_table_allows() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = 0;
        for (module, allowed) in USES.iter().copied() {
            for file in sources(&source, module) {
                files += 1;
                let text = fs::read_to_string(&file).unwrap();
                for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                    assert!(!line.contains("crate::{"), "{}: name one module: {line}", file.display());
                    for (other, _) in USES.iter().filter(|(other, _)| *other != module && !allowed.contains(other)) {
                        assert!(!names(line, other), "{}: `{module}` may not use `{other}`: {line}", file.display());
                    }
                }
            }
        }
        assert!(files > 50, "only {files} files were checked");
    }

    /// Returns true if a line of code has the path of a module of this crate.
    fn names(line: &str, module: &str) -> bool {
        ["crate::", "super::"].iter().any(|prefix| {
            let path = format!("{prefix}{module}");
            let after = line.match_indices(&path).filter_map(|(at, _)| line.get(at + path.len()..));
            after.into_iter().any(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
        })
    }

    /// Returns the file of a module and every file in its folder.
    fn sources(root: &Path, module: &str) -> Vec<PathBuf> {
        let (mut found, mut folders) = (vec![root.join(module).with_extension("rs")], vec![root.join(module)]);
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    found.push(path);
                }
            }
        }
        found
    }
}
