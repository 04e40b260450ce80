//! The values of a discriminator, and the members that they name.

use super::{CRD, GO, derive, findings, found, packages, with};
use kube_unions_core::declaration::Severity;
use kube_unions_go::{Derivation, FindingKind, FoundBy};

const ENUM: &str = "Enum=Cold;Glaze;Bisque";
const IN_SCHEMA: &str = "enum: [Cold, Glaze, Bisque]";

fn derived(go: &str, crd: &str) -> Derivation {
    derive(&packages(&[("v1/kiln.go", go)]), crd)
}

/// Returns the values of the only union with the member of each.
fn choices(derivation: &Derivation) -> Vec<(&str, Option<&str>)> {
    let [union] = &derivation.unions[..] else { panic!("{derivation:#?}") };
    union.choices.iter().map(|(value, selected)| (&**value, selected.first().map(|selected| &*selected.name))).collect()
}

#[test]
fn the_schema_decides_and_other_values_are_a_warning() {
    let derivation = derived(&with(GO, ENUM, "Enum=Cold;Glaze;Bisque;Raku"), CRD);
    assert_eq!(choices(&derivation), [("Bisque", Some("bisque")), ("Cold", None), ("Glaze", Some("glaze"))]);
    assert_eq!(
        findings(&derivation),
        [(
            Severity::Warning,
            FindingKind::OtherValues,
            "the discriminator `firing` has contradictory values, and the schema decides: the Enum marker of `FiringType` has \
             `Raku`, which the schema's enum lacks; make them equal"
        )]
    );
}

#[test]
fn without_an_enum_in_the_schema_the_sources_must_agree() {
    let go = with(GO, "type FiringType string", "type FiringType string\n\nconst Cold FiringType = \"Cold\"");
    let derivation = derived(&go, &with(CRD, &format!(", {IN_SCHEMA}"), ""));
    assert_eq!(found(&derivation), []);
    let [(Severity::Error, FindingKind::ContradictoryValues, _)] = findings(&derivation)[..] else {
        panic!("{derivation:#?}")
    };
}

#[test]
fn all_of_narrows_the_enum() {
    let go = with(
        GO,
        "\t// +required\n\tFiring",
        "\t// +required\n\t// +kubebuilder:validation:Enum=Glaze;Bisque\n\tFiring",
    );
    let constants = "type FiringType string\n\nconst (\n\tCold FiringType = \"Cold\"\n\tGlaze FiringType = \"Glaze\"\n\tBisque FiringType = \
                     \"Bisque\"\n)";
    let go = with(&go, "type FiringType string", constants);
    let crd = with(CRD, IN_SCHEMA, "allOf: [{enum: [Cold, Glaze, Bisque]}, {enum: [Glaze, Bisque]}]");
    let derivation = derived(&go, &crd);
    assert_eq!(choices(&derivation), [("Bisque", Some("bisque")), ("Glaze", Some("glaze"))]);
    assert_eq!(findings(&derivation), [], "the field leaves out a constant on purpose");
    let derivation = derived(&go, CRD);
    let [(Severity::Warning, FindingKind::OtherValues, message)] = findings(&derivation)[..] else {
        panic!("{derivation:#?}")
    };
    assert!(message.contains("the schema's enum has `Cold`, which the Enum markers lack"), "{message}");
}

#[test]
fn a_separator_at_the_end_adds_no_value() {
    let derivation = derived(&with(GO, ENUM, "Enum=Cold;Glaze;Bisque;"), CRD);
    assert_eq!(found(&derivation).len(), 1);
    assert_eq!(findings(&derivation), []);
}

/// The kind with `+union` alone.
fn by_name() -> String {
    with(&GO.replace("\t// +unionMember\n", ""), "type KilnSpec struct {", "// +union\ntype KilnSpec struct {")
}

#[test]
fn a_member_that_is_found_by_name_is_optional() {
    let derivation = derived(&by_name(), CRD);
    let [union] = &derivation.unions[..] else { panic!("{derivation:#?}") };
    assert_eq!(union.found_by, FoundBy::Names);
    let members = union.choices.values().flatten();
    assert!(members.clone().count() == 2 && members.clone().all(|member| member.optional && !member.by_rule));
    let derivation = derived(GO, CRD);
    assert!(derivation.unions[0].choices.values().flatten().all(|member| !member.optional), "a marked one is not");
}

#[test]
fn values_name_json_names_if_no_go_name_fits() {
    let names = [("Bisque *", "SecondFiring *"), ("Glaze *", "ThirdFiring *")];
    for go in [by_name(), GO.to_owned()] {
        let go = names.iter().fold(go, |go, (before, after)| with(&go, before, after));
        let derivation = derived(&go, CRD);
        assert_eq!(choices(&derivation), [("Bisque", Some("bisque")), ("Cold", None), ("Glaze", Some("glaze"))]);
        assert_eq!(findings(&derivation), []);
    }
}

#[test]
fn a_go_name_comes_before_a_json_name() {
    // The JSON names say the opposite.
    let go = by_name()
        .replace("json:\"glaze", "json:\"x")
        .replace("json:\"bisque", "json:\"glaze")
        .replace("json:\"x", "json:\"bisque");
    assert_eq!(choices(&derived(&go, CRD)), [("Bisque", Some("glaze")), ("Cold", None), ("Glaze", Some("bisque"))]);
}
