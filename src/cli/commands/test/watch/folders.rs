//! Lists the folders that `--watch` has to watch, and tells which changes count. Watches nothing itself.

use crate::cli::input::manifest;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The folders to watch, each without its subfolders. All paths are absolute.
#[derive(Debug, Default)]
pub(super) struct Folders {
    folders: BTreeMap<PathBuf, WatchedEntries>,
    /// The files and folders that the tests read.
    inputs: BTreeSet<PathBuf>,
}

/// The entries of a folder whose changes count, beside the inputs and the folders that lead to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WatchedEntries {
    None,
    /// Every manifest.
    Manifests,
    /// Every manifest and every folder.
    Folders,
}

impl Folders {
    /// Returns the folders of some files and folders. A path that does not exist has the nearest folder that does.
    pub(super) fn of(inputs: &[PathBuf]) -> Self {
        let mut all = Self::default();
        for input in inputs {
            all.add(&resolved(input));
            // A link, and the file that it leads to.
            input.canonicalize().into_iter().for_each(|target| all.add(&target));
        }
        all
    }

    fn add(&mut self, input: &Path) {
        self.inputs.insert(input.to_owned());
        let below = if input.is_dir() { manifest::folders_below(input) } else { Vec::new() };
        for folder in below {
            self.folders.insert(folder, WatchedEntries::Folders);
        }
        let above = input.ancestors().skip(1).find(|folder| folder.is_dir());
        if let Some(above) = above {
            let is_file_in_it = input.parent() == Some(above) && !input.is_dir();
            let entries = if is_file_in_it { WatchedEntries::Manifests } else { WatchedEntries::None };
            let known = self.folders.entry(above.to_owned()).or_insert(entries);
            *known = entries.max(*known);
        }
    }

    /// Returns the folders of `self` that `others` lacks.
    pub(super) fn not_in<'f>(&'f self, others: &'f Self) -> impl Iterator<Item = &'f PathBuf> {
        self.folders.keys().filter(|folder| !others.folders.contains_key(*folder))
    }

    /// Forgets a folder and those below it. Returns them.
    pub(super) fn forget(&mut self, path: &Path) -> Vec<PathBuf> {
        let gone: Vec<PathBuf> = self.folders.keys().filter(|folder| folder.starts_with(path)).cloned().collect();
        for folder in &gone {
            self.folders.remove(folder);
        }
        gone
    }

    /// Returns true if a change of a path may change a result.
    pub(super) fn may_change_a_result(&self, path: &Path) -> bool {
        if self.inputs.iter().any(|input| input.starts_with(path)) {
            return true;
        }
        let has_manifest_name = path
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known)));
        // A folder that was deleted has no type any more.
        let is_folder = path.is_dir() || path.extension().is_none() && !path.exists();
        match path.parent().and_then(|parent| self.folders.get(parent)) {
            None | Some(WatchedEntries::None) => false,
            Some(WatchedEntries::Manifests) => has_manifest_name,
            Some(WatchedEntries::Folders) => has_manifest_name || is_folder,
        }
    }
}

/// Returns an absolute path whose folders are no links, as far as they exist.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.ancestors().skip(1).find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    match folder.and_then(|(folder, canonical)| Some(canonical.join(path.strip_prefix(folder).ok()?))) {
        Some(resolved) => resolved,
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_change_counts_if_it_may_change_a_result() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        for folder in ["a/suites/inner/.git", "a/crds", "a/other"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("a/crds/crd.yaml"), "").unwrap();
        let inputs = ["a/suites", "a/crds/crd.yaml", "a/absent/deep/suite.yaml"].map(|it| root.join(it));
        let folders = Folders::of(&inputs);
        let watched: Vec<&Path> = folders.folders.keys().map(|it| it.strip_prefix(&root).unwrap()).collect();
        assert_eq!(watched, ["a", "a/crds", "a/suites", "a/suites/inner"].map(Path::new));
        for (path, counts) in [
            ("a/suites", true),
            ("a/suites/x.yaml", true),
            ("a/suites/inner/x.JSON", true),
            ("a/suites/inner/x.yaml~", false),
            ("a/suites/inner/deleted", true),
            ("a/suites/inner/.git/x.yaml", false),
            ("a/crds/crd.yaml", true),
            ("a/crds/other.yaml", true),
            ("a/crds/deleted", false),
            ("a/absent", true),
            ("a/absent/deep", true),
            ("a/other.yaml", false),
            ("a/other", false),
            ("a", true),
        ] {
            assert_eq!(folders.may_change_a_result(&root.join(path)), counts, "{path}");
        }
    }

    #[test]
    fn a_folder_that_is_replaced_is_forgotten_with_those_below_it() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        let mut folders = Folders::of(&[root.join("a")]);
        assert_eq!(folders.forget(&root.join("a")), [root.join("a"), root.join("a/b")]);
        assert_eq!(folders.not_in(&Folders::default()).collect::<Vec<_>>(), [&root]);
    }
}
