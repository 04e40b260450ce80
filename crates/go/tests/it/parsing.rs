//! Errors and positions of the parser.

use kube_unions_go::GoParser;
use std::path::Path;

#[test]
fn syntax_errors_have_a_position() {
    let mut parser = GoParser::new().unwrap();
    let mut error = |bytes: &[u8]| parser.parse(&Path::new("k.go").into(), bytes).unwrap_err();
    let broken = error(b"package v1\n\nimport \"a\" b\n\ntype K string\n");
    assert!(broken.to_string().starts_with("invalid Go: "), "{broken}");
    assert_eq!((&*broken.position.file, broken.position.line), (Path::new("k.go"), 3));
    for no_go in ["type K string {{{\n", "package\n\ntype K string {\n", "package v1\n\ntype K string {\n/*\n", "\0\0"]
    {
        assert!(error(no_go.as_bytes()).to_string().starts_with("invalid Go: "), "{no_go}");
    }
    let binary = error(b"package v1\n// \xff\n");
    assert_eq!(binary.to_string(), "invalid UTF-8; the file is left out");
    assert_eq!(binary.position.to_string(), "k.go:2:4");
}
