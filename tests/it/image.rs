//! The build context of the image, which `.dockerignore` selects. `make image-root` builds from it.

use fixtures::files::root;
use std::fs::read_to_string;

#[test]
fn the_build_context_has_every_file_that_the_makefile_includes() {
    let read = |path: &str| read_to_string(root().join(path)).unwrap();
    let (makefile, ignored) = (read("Makefile"), read(".dockerignore"));
    let included: Vec<_> = makefile.lines().filter_map(|line| line.strip_prefix("include ")).collect();
    assert!(!included.is_empty(), "the Makefile includes no file: delete this test");
    let sent: Vec<_> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    for path in included {
        let is_sent =
            sent.iter().any(|it| *it == path || path.strip_prefix(it).is_some_and(|rest| rest.starts_with('/')));
        assert!(is_sent, "the Makefile includes {path}: add `!{path}` to .dockerignore");
    }
}
