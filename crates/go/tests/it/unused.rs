//! Markers without effect.

use super::{CRD, GO, derive, packages};
use kube_unions_core::declaration::Severity;
use kube_unions_go::FindingKind;

const OTHER: &str = "package other\n\ntype Shelf struct {\n\t// +unionDiscriminator\n\tType string `json:\"type\"`\n}\n\n\
                     // +unionMember\nconst Wood = \"Wood\"\n";

#[test]
fn reports_misplaced_markers_of_all_packages_or_of_those_that_a_kind_uses() {
    let packages = packages(&[("v1/kiln.go", GO), ("other/shelf.go", OTHER)]);
    let all = packages.misplaced_markers(None);
    let [finding] = &all[..] else { panic!("{all:#?}") };
    assert_eq!((finding.severity, finding.kind), (Severity::Error, FindingKind::MisplacedMarker));
    assert_eq!(finding.position.to_string(), "other/shelf.go:8:1");
    assert_eq!(
        finding.message,
        "`+unionMember` has no effect on a constant: write it above a struct or one of its fields"
    );
    let derivation = derive(&packages, CRD);
    assert_eq!(packages.misplaced_markers(Some(&[&derivation])), []);
}

#[test]
fn reports_marked_structs_that_no_kind_uses() {
    let unused = "package v1\n\ntype Shelf struct {\n\t// +unionDiscriminator\n\tType string `json:\"type\"`\n}\n";
    let packages = packages(&[("v1/kiln.go", GO), ("v1/shelf.go", unused), ("other/shelf.go", OTHER)]);
    let derivation = derive(&packages, CRD);
    let findings = packages.unreached_structs(&[&derivation]);
    let [finding] = &findings[..] else { panic!("{findings:#?}") };
    assert_eq!((finding.severity, finding.kind), (Severity::Note, FindingKind::UnreachedStruct));
    assert_eq!(finding.message, "none of these kinds uses `Shelf` of the package `v1`, which has union markers");
}
