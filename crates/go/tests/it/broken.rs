//! Go that the parser cannot read, and names that no file declares: the rest of the sources is not affected.

use super::{CRD, GO, derive, findings, found, packages, with};
use kube_unions_core::declaration::Severity;
use kube_unions_go::FindingKind;

/// Go 1.26: `new` takes an expression.
const NEWER: &str = "var replicas = new(int32(7))\n\nfunc more() *int32 {\n\treturn new(int32(7))\n}\n";

fn whole() -> Vec<(String, Vec<String>)> {
    vec![("spec".to_owned(), vec!["bisque".to_owned(), "glaze".to_owned()])]
}

#[test]
fn go_that_is_newer_than_the_grammar_costs_nothing_else() {
    let first = "// +kubebuilder:object:root=true\ntype Kiln struct {";
    let between = "// +kubebuilder:validation:Enum=Cold;Glaze;Bisque\ntype FiringType string";
    let rows = [
        with(GO, first, &format!("{NEWER}\n{first}")),
        with(GO, between, &format!("{NEWER}\n{between}")),
        format!("{GO}\n{NEWER}"),
        // On the lines around, without a blank one between.
        with(GO, between, &format!("var a = new(int32(7)) // +unionMember\n{between}\nvar b = new(int32(8))")),
        with(&format!("{GO}{NEWER}"), between, &format!("{NEWER}{between}\n{NEWER}")),
    ];
    for go in rows {
        let derivation = derive(&packages(&[("v1/kiln.go", &go)]), CRD);
        assert_eq!(found(&derivation), whole(), "{go}");
        assert_eq!(findings(&derivation), [], "{go}");
        let line = go.lines().position(|line| line.contains("Firing FiringType")).unwrap() + 1;
        assert_eq!(derivation.unions[0].source.to_string(), format!("v1/kiln.go:{line}:2"), "{go}");
    }
}

#[test]
fn an_error_does_not_swallow_the_declarations_around_it() {
    let spec = "type KilnSpec struct {";
    for broken in [
        "func broken( {{{\n",
        "func broken() {\n\tif (a[ {\n",
        "var broken = map[string]struct{ A int{}\n",
        "type broken struct {\n\tA int `json:\"a\"`\n",
        "type broken strung }}} \"\n",
        "const broken = (((\n",
        "var r = '\n",
    ] {
        for go in [with(GO, spec, &format!("{broken}\n{spec}")), format!("{GO}\n{broken}")] {
            let derivation = derive(&packages(&[("v1/kiln.go", &go)]), CRD);
            assert_eq!(found(&derivation), whole(), "{go}");
            assert_eq!(findings(&derivation), [], "{go}");
        }
    }
}

#[test]
fn a_broken_type_that_the_kind_needs_is_reported_at_its_error() {
    let go = with(GO, "Degrees int32", "Degrees int32 int64 int");
    let derivation = derive(&packages(&[("v1/kiln.go", &go)]), CRD);
    assert_eq!(found(&derivation), whole(), "members of the broken type stay");
    let [finding] = &derivation.findings[..] else { panic!("{derivation:#?}") };
    assert_eq!((finding.severity, finding.kind), (Severity::Error, FindingKind::UnreadableType));
    let line = go.lines().position(|line| line.contains("int64")).unwrap() + 1;
    assert_eq!((finding.position.line, &*finding.path), (line, "spec.glaze"));
    assert_eq!(
        finding.message,
        "cannot read the declaration of `Program`: unexpected text in a declaration; unions in it are not declared here, nor \
         at one more place"
    );
}

#[test]
fn a_broken_kind_is_reported_as_such() {
    let go = with(GO, "Spec KilnSpec `json:\"spec,omitempty\"`", "Spec KilnSpec KilnSpec KilnSpec");
    let derivation = derive(&packages(&[("v1/kiln.go", &go)]), CRD);
    let [finding] = &derivation.findings[..] else { panic!("{derivation:#?}") };
    assert_eq!((finding.severity, finding.kind), (Severity::Error, FindingKind::UnreadableType));
    assert_eq!(finding.message, "cannot read the declaration of `Kiln`: unexpected text in a declaration");
}

#[test]
fn broken_constants_are_not_taken_for_all_constants() {
    let constants = "type FiringType string\n\nconst Cold FiringType = \"Cold\"\n\nconst (\n\tGlaze FiringType = \"Glaze\"\n\tBisque \
                     FiringType = = \"Bisque\"\n)";
    let go = with(GO, "// +kubebuilder:validation:Enum=Cold;Glaze;Bisque\ntype FiringType string", constants);
    let derivation = derive(&packages(&[("v1/kiln.go", &go)]), CRD);
    assert_eq!(found(&derivation), whole(), "the enum of the schema decides");
    assert_eq!(findings(&derivation), []);
    let without_enum = with(CRD, ", enum: [Cold, Glaze, Bisque]", "");
    let derivation = derive(&packages(&[("v1/kiln.go", &go)]), &without_enum);
    assert_eq!(found(&derivation), []);
    let line = go.lines().position(|line| line.contains("= =")).unwrap() + 1;
    let [(Severity::Error, FindingKind::UnknownValues, message)] = findings(&derivation)[..] else {
        panic!("{derivation:#?}")
    };
    assert!(message.contains(&format!("the Go at v1/kiln.go:{line} cannot be evaluated")), "{message}");
}

#[test]
fn a_broken_type_that_no_kind_needs_is_a_note() {
    let go = format!("{GO}\ntype Shelf struct {{ A int int int }}\n");
    let packages = packages(&[("v1/kiln.go", &go)]);
    let derivation = derive(&packages, CRD);
    assert_eq!(findings(&derivation), []);
    let unread = packages.unread_types(None);
    let [finding] = &unread[..] else { panic!("{unread:#?}") };
    assert_eq!((finding.severity, finding.kind), (Severity::Note, FindingKind::UnreadableType));
    assert_eq!(finding.message, "cannot read the declaration of `Shelf`: unexpected text in a declaration");
    assert_eq!(packages.unread_types(Some(&[&derivation])).len(), 1, "the kind uses the package");
}

#[test]
fn a_type_that_its_package_lacks_is_reported_once() {
    let go = GO.replace("*Program `", "*Programme `");
    let derivation = derive(&packages(&[("v1/kiln.go", &go)]), CRD);
    assert_eq!(found(&derivation), whole());
    let [finding] = &derivation.findings[..] else { panic!("{derivation:#?}") };
    assert_eq!((finding.severity, finding.kind), (Severity::Warning, FindingKind::MissingType));
    assert_eq!(&*finding.path, "spec.glaze");
    let line = go.lines().position(|line| line.contains("Glaze *Programme")).unwrap() + 1;
    assert_eq!(finding.position.line, line);
    assert_eq!(
        finding.message,
        "the package `v1` does not declare `Programme`: unions in it are not declared here, nor at one more place; give all of \
         its files, or select the build by its tags"
    );
    // The same through an import.
    let go = with(
        &with(GO, "Glaze *Program", "Glaze *ovens.Program"),
        "import metav1",
        "import \"example.com/kilns/ovens\"\nimport metav1",
    );
    let derivation = derive(&packages(&[("v1/kiln.go", &go), ("ovens/ovens.go", "package ovens\n")]), CRD);
    let [(Severity::Warning, FindingKind::MissingType, message)] = findings(&derivation)[..] else {
        panic!("{derivation:#?}")
    };
    assert!(message.starts_with("the package `ovens` does not declare `Program`"), "{message}");
}
