//! Unions in embedded resources belong to the CRD of another kind.

use super::{CRD, GO, derive, findings, found, packages, with};
use kube_unions_core::declaration::Severity;
use kube_unions_go::FindingKind;

const MESSAGE: &str = "the unions in an embedded resource are not declared, because it is an object of another kind: `spec`; \
                       declare them on the CRD of that kind";

#[test]
fn a_union_in_an_embedded_resource_of_the_schema_is_not_declared() {
    let spec = "          spec:\n            type: object\n";
    let crd = with(CRD, spec, &format!("{spec}            x-kubernetes-embedded-resource: true\n"));
    let derivation = derive(&packages(&[("v1/kiln.go", GO)]), &crd);
    assert_eq!(found(&derivation), []);
    assert_eq!(findings(&derivation), [(Severity::Note, FindingKind::EmbeddedUnion, MESSAGE)]);
}

#[test]
fn a_union_behind_a_marker_of_an_embedded_resource_is_not_declared() {
    for marker in ["EmbeddedResource", "XEmbeddedResource"] {
        let go = with(GO, "\tSpec KilnSpec", &format!("\t// +kubebuilder:validation:{marker}\n\tSpec KilnSpec"));
        let derivation = derive(&packages(&[("v1/kiln.go", &go)]), CRD);
        assert_eq!(found(&derivation), []);
        assert_eq!(findings(&derivation), [(Severity::Note, FindingKind::EmbeddedUnion, MESSAGE)]);
    }
}

#[test]
fn faults_in_an_embedded_resource_are_not_reported() {
    let go = with(GO, "\tSpec KilnSpec", "\t// +kubebuilder:validation:EmbeddedResource\n\tSpec KilnSpec");
    let go = with(&go, "// +unionMember\n", "// +unionMember=Raku\n");
    let derivation = derive(&packages(&[("v1/kiln.go", &go)]), CRD);
    assert_eq!((found(&derivation), findings(&derivation)), (Vec::new(), Vec::new()));
}

#[test]
fn a_raw_extension_has_no_unions() {
    let go = with(GO, "Spec KilnSpec", "Spec runtime.RawExtension");
    let go = with(&go, "import metav1", "import \"k8s.io/apimachinery/pkg/runtime\"\nimport metav1");
    let derivation = derive(&packages(&[("v1/kiln.go", &go)]), CRD);
    assert_eq!((found(&derivation), findings(&derivation)), (Vec::new(), Vec::new()));
}
