//! Errors and positions of the parser, and the values of derived unions.

use super::{CRD, GO, derive, packages};
use kube_unions_core::union::Form;
use kube_unions_go::{GoParser, GoSyntaxError};
use serde_json::json;
use std::path::Path;

#[test]
fn a_union_has_its_value_place_and_position() {
    let derivation = derive(&packages(&[("v1/kiln.go", GO)]), CRD);
    let [union] = &derivation.unions[..] else { panic!("{derivation:#?}") };
    assert_eq!((union.form, union.discriminator.as_deref()), (Form::Map, Some("firing")));
    assert_eq!(union.members(), ["glaze", "bisque"], "in the order of the sources");
    assert_eq!(
        (union.go_type.as_str(), union.declared_at().to_pointer()),
        ("v1.KilnSpec", "/properties/spec/properties/firing".to_owned())
    );
    let value = json!({"fieldMembers": {"Bisque": {"name": "bisque"}, "Cold": null, "Glaze": {"name": "glaze"}}});
    assert_eq!(union.value(), value);
    assert_eq!(derivation.declarations().into_iter().collect::<Vec<_>>(), [(union.declared_at(), value)]);
    let line = 1 + GO.lines().position(|line| line.contains("Firing FiringType")).unwrap();
    assert_eq!(union.source.to_string(), format!("v1/kiln.go:{line}:2"));
    assert!(derivation.findings.is_empty() && derivation.source.is_some());
}

#[test]
fn deprecated_members_make_a_2019_union() {
    let go = GO.replace("+unionMember", "+unionDeprecated");
    let derivation = derive(&packages(&[("v1/kiln.go", &go)]), CRD);
    let [union] = &derivation.unions[..] else { panic!("{derivation:#?}") };
    assert_eq!((union.form, union.declared_at().to_pointer()), (Form::List, "/properties/spec".to_owned()));
    let fields = json!({"bisque": "Bisque", "glaze": "Glaze"});
    assert_eq!(union.value(), json!({"discriminator": "firing", "fields-to-discriminateBy": fields}));
}

#[test]
fn a_kind_without_a_struct_derives_nothing() {
    let derivation = derive(&packages(&[("v1/kiln.go", GO)]), &CRD.replace("kind: Kiln,", "kind: Oven,"));
    assert!(derivation.source.is_none() && derivation.unions.is_empty() && derivation.findings.is_empty());
}

#[test]
fn syntax_errors_have_a_position() {
    let mut parser = GoParser::new().unwrap();
    let mut error = |bytes: &[u8]| parser.parse(&Path::new("k.go").into(), bytes).unwrap_err();
    let broken = error(b"package v1\n\nimport \"a\" b\n\ntype K string\n");
    assert!(matches!(broken, GoSyntaxError::InvalidGo { .. }), "{broken:?}");
    assert_eq!((&*broken.position().file, broken.position().line), (Path::new("k.go"), 3));
    for no_go in ["type K string {{{\n", "package\n\ntype K string {\n", "package v1\n\ntype K string {\n/*\n", "\0\0"]
    {
        assert!(matches!(error(no_go.as_bytes()), GoSyntaxError::InvalidGo { .. }), "{no_go}");
    }
    let binary = error(b"package v1\n// \xff\n");
    assert!(matches!(binary, GoSyntaxError::InvalidUtf8 { .. }), "{binary:?}");
    assert_eq!(binary.position().to_string(), "k.go:2:4");
}
