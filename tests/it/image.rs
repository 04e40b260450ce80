//! The build context of the image, which `.dockerignore` selects. `make image-root` builds from it.

use fixtures::files::{makefiles, root};
use std::fs::read_to_string;

#[test]
fn the_build_context_has_the_makefile_and_every_file_that_it_includes() {
    let ignored = read_to_string(root().join(".dockerignore")).unwrap();
    let sent: Vec<_> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    for (path, _) in makefiles() {
        let folder = |sent: &&str| path.strip_prefix(*sent).is_some_and(|rest| rest.starts_with('/'));
        assert!(sent.contains(&path.as_str()) || sent.iter().any(folder), "add `!{path}` to .dockerignore");
    }
}
