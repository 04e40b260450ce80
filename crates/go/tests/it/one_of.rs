//! `ExactlyOneOf` and `AtMostOneOf` on structs.

use super::{CRD, GO, derive, findings, found, packages, with};
use kube_unions_core::declaration::Severity;
use kube_unions_core::union::Form;
use kube_unions_go::{Derivation, FindingKind, FoundBy};
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
fn a_group_that_must_have_a_member_is_a_union_with_a_note() {
    let derivation = derived(&["ExactlyOneOf=glaze;bisque"]);
    assert_eq!(found(&derivation), members(&[&["bisque", "glaze"]]));
    let [(Severity::Note, FindingKind::RequiredGroup, message)] = findings(&derivation)[..] else {
        panic!("{derivation:#?}")
    };
    assert!(message.starts_with("one of `bisque`, `glaze` must be set"), "{message}");
}

#[test]
fn the_same_group_twice_is_one() {
    for markers in [["AtMostOneOf=glaze;bisque", "ExactlyOneOf=bisque;glaze"], ["ExactlyOneOf=glaze;bisque"; 2]] {
        let derivation = derived(&markers);
        assert_eq!(found(&derivation), members(&[&["bisque", "glaze"]]));
        assert_eq!(findings(&derivation).len(), 1, "{derivation:#?}");
    }
}

#[test]
fn a_group_that_equals_a_marked_union_adds_nothing() {
    let derivation = derived_from(GO, &["ExactlyOneOf=glaze;bisque"]);
    assert_eq!(found(&derivation), members(&[&["bisque", "glaze"]]));
    assert_eq!(derivation.unions[0].found_by, FoundBy::Markers);
    assert_eq!(findings(&derivation), []);
}

#[test]
fn marked_unions_keep_their_fields() {
    let derivation = derived_from(GO, &["AtMostOneOf=firing;glaze"]);
    assert_eq!(found(&derivation), members(&[&["bisque", "glaze"]]));
    let [(Severity::Warning, FindingKind::OverlappingGroup, message)] = findings(&derivation)[..] else {
        panic!("{derivation:#?}")
    };
    assert!(message.contains("`firing`") && message.ends_with("; left out"), "{message}");
}

#[test]
fn groups_that_share_a_field_are_left_out() {
    let derivation = derived(&["AtMostOneOf=firing;glaze", "ExactlyOneOf=glaze;bisque"]);
    assert_eq!(found(&derivation), []);
    let reasons: Vec<_> = findings(&derivation).iter().map(|(severity, reason, _)| (*severity, *reason)).collect();
    assert_eq!(reasons, [(Severity::Warning, FindingKind::OverlappingGroup); 2]);
}

#[test]
fn a_field_of_an_inlined_struct_may_be_in_a_group() {
    let go = GO.replace("\t// +unionDiscriminator\n", "").replace("\t// +unionMember\n", "");
    let member = "\t// +optional\n\tBisque *Program `json:\"bisque,omitempty\"`\n";
    let go = with(&go, member, "\tBisques `json:\",inline\"`\n") + &format!("\ntype Bisques struct {{\n{member}}}\n");
    let derivation = derived_from(&go, &["AtMostOneOf=glaze;bisque"]);
    assert_eq!((found(&derivation), findings(&derivation)), (members(&[&["bisque", "glaze"]]), Vec::new()));
}

#[test]
fn a_name_that_is_not_a_field_is_an_error() {
    let derivation = derived(&["AtMostOneOf=glaze;bisque;Bisque"]);
    let [(Severity::Error, FindingKind::UnknownField, message)] = findings(&derivation)[..] else {
        panic!("{derivation:#?}")
    };
    assert_eq!(message, "`Bisque` is not a field of `v1.KilnSpec`: write the JSON name of a field; left out");
}

#[test]
fn a_field_that_the_schema_lacks_is_passed_over() {
    let go = GO.replace("\t// +unionDiscriminator\n", "").replace("\t// +unionMember\n", "");
    let go = with(&go, "type KilnSpec struct {", "type KilnSpec struct {\n\tRaku *Program `json:\"raku,omitempty\"`");
    let derivation = derived_from(&go, &["AtMostOneOf=glaze;bisque;raku"]);
    assert_eq!(found(&derivation), members(&[&["bisque", "glaze"]]));
    let [(Severity::Note, FindingKind::MissingField, _)] = findings(&derivation)[..] else { panic!("{derivation:#?}") };
    let derivation = derived_from(&go, &["AtMostOneOf=glaze;raku"]);
    assert_eq!(found(&derivation), [], "one field is not a union");
}

#[test]
fn a_required_field_cannot_be_in_a_group() {
    let derivation = derived(&["AtMostOneOf=firing;glaze"]);
    assert_eq!(found(&derivation), []);
    let [(Severity::Error, FindingKind::RefusedUnion, _)] = findings(&derivation)[..] else {
        panic!("{derivation:#?}")
    };
}

#[test]
fn a_union_marker_needs_no_members_beside_a_group() {
    let go = GO.replace("\t// +unionDiscriminator\n", "").replace("\t// +unionMember\n", "");
    let go = with(&go, "type KilnSpec struct {", "// +union\ntype KilnSpec struct {");
    let derivation = derived_from(&go, &["AtMostOneOf=glaze;bisque"]);
    assert_eq!((found(&derivation), findings(&derivation)), (members(&[&["bisque", "glaze"]]), Vec::new()));
}
