//! `ExactlyOneOf` and `AtMostOneOf` on structs.

use super::{CRD, GO, derive, findings, found, packages, with};
use kube_unions_core::union::Form;
use kube_unions_go::{Derivation, FoundBy};
use serde_json::json;

/// The kind without other markers.
fn derived(markers: &[&str]) -> Derivation {
    derived_from(&GO.replace("\t// +unionDiscriminator\n", "").replace("\t// +unionMember\n", ""), markers)
}

fn derived_from(go: &str, markers: &[&str]) -> Derivation {
    let comment = markers.iter().map(|marker| ["// +kubebuilder:validation:", marker, "\n"].concat());
    let comment: String = comment.collect();
    let go = with(go, "type KilnSpec struct {", &format!("{comment}type KilnSpec struct {{"));
    derive(&packages(&[("v1/kiln.go", &go)]), CRD)
}

fn members(names: &[&[&str]]) -> Vec<(String, Vec<String>)> {
    names.iter().map(|names| ("spec".to_owned(), names.iter().map(|&name| name.to_owned()).collect())).collect()
}

#[test]
fn a_group_is_a_2019_union_without_a_discriminator() {
    let derivation = derived(&["AtMostOneOf=glaze;bisque"]);
    let [union] = &derivation.unions[..] else { panic!("{derivation:#?}") };
    assert_eq!((union.form, union.discriminator.as_deref(), union.found_by), (Form::List, None, FoundBy::OneOf));
    assert_eq!(union.value(), json!({"fields-to-discriminateBy": {"bisque": "Bisque", "glaze": "Glaze"}}));
    assert_eq!((union.members(), &*union.go_type), (vec!["glaze", "bisque"], "v1.KilnSpec"));
    assert!(union.source.to_string().ends_with(":1"), "at the marker: {}", union.source);
    assert_eq!(findings(&derivation), []);
}

#[test]
fn the_same_group_twice_is_one() {
    for markers in [["AtMostOneOf=glaze;bisque", "ExactlyOneOf=bisque;glaze"], ["ExactlyOneOf=glaze;bisque"; 2]] {
        let derivation = derived(&markers);
        assert_eq!(found(&derivation), members(&[&["bisque", "glaze"]]));
        assert!(derivation.unions[0].required && derivation.findings.is_empty(), "{derivation:#?}");
    }
}

#[test]
fn a_union_marker_needs_no_members_beside_a_group() {
    let go = GO.replace("\t// +unionDiscriminator\n", "").replace("\t// +unionMember\n", "");
    let go = with(&go, "type KilnSpec struct {", "// +union\ntype KilnSpec struct {");
    let derivation = derived_from(&go, &["AtMostOneOf=glaze;bisque"]);
    assert_eq!((found(&derivation), findings(&derivation)), (members(&[&["bisque", "glaze"]]), Vec::new()));
}
