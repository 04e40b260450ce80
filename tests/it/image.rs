//! The build context of the image, which `.dockerignore` selects. `make image-root` builds from it.

use crate::crates::members;
use fixtures::files::{makefiles, root};
use std::fs::read_to_string;
use std::path::PathBuf;

/// Panics if the build context lacks one of `paths`, which are relative to the root.
fn assert_sent(paths: impl IntoIterator<Item = PathBuf>) {
    let ignored = read_to_string(root().join(".dockerignore")).unwrap();
    let sent: Vec<_> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    for path in paths {
        assert!(sent.iter().any(|it| path.starts_with(it)), "add `!{}` to .dockerignore", path.display());
    }
}

#[test]
fn the_build_context_has_the_makefile_and_every_file_that_it_includes() {
    assert_sent(makefiles().into_iter().map(|(path, _)| path.into()));
}

#[test]
fn the_build_context_has_every_crate_and_every_target_that_cargo_reads() {
    let files = members().into_iter().flat_map(|package| {
        let sources = package.targets.into_iter().map(|it| it.src_path);
        sources.chain([package.manifest_path.into()])
    });
    assert_sent(files.map(|it| it.strip_prefix(root()).unwrap().to_owned()));
}
