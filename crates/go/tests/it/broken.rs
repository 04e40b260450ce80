//! Go that the parser cannot read beside the kind, at every place of its file: the rest of the sources is not affected.

use super::{CRD, GO, derive, packages, with};

/// Go 1.26: `new` takes an expression.
const NEWER: &str = "var replicas = new(int32(7))\n\nfunc more() *int32 {\n\treturn new(int32(7))\n}\n";

/// Checks that the union of the kind is found where it stands, and nothing else.
fn is_whole(go: &str) {
    let derivation = derive(&packages(&[("v1/kiln.go", go)]), CRD);
    let [union] = &derivation.unions[..] else { panic!("{go}\n{derivation:#?}") };
    let mut members = union.members();
    members.sort_unstable();
    assert_eq!((union.place.to_string().as_str(), members), ("spec", vec!["bisque", "glaze"]), "{go}");
    let line = go.lines().position(|line| line.contains("Firing FiringType")).unwrap() + 1;
    assert_eq!(union.source.to_string(), format!("v1/kiln.go:{line}:2"), "{go}");
    assert_eq!(derivation.findings, [], "{go}");
}

#[test]
fn go_that_is_newer_than_the_grammar_costs_nothing_else() {
    let first = "// +kubebuilder:object:root=true\ntype Kiln struct {";
    let between = "// +kubebuilder:validation:Enum=Cold;Glaze;Bisque\ntype FiringType string";
    for go in [
        with(GO, first, &format!("{NEWER}\n{first}")),
        with(GO, between, &format!("{NEWER}\n{between}")),
        format!("{GO}\n{NEWER}"),
        // On the lines around, without a blank one between.
        with(GO, between, &format!("var a = new(int32(7)) // +unionMember\n{between}\nvar b = new(int32(8))")),
        with(&format!("{GO}{NEWER}"), between, &format!("{NEWER}{between}\n{NEWER}")),
    ] {
        is_whole(&go);
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
        is_whole(&with(GO, spec, &format!("{broken}\n{spec}")));
        is_whole(&format!("{GO}\n{broken}"));
    }
}
