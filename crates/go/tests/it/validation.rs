//! Markers of declarative validation: `+k8s:`.

use super::{CRD, Derivation, derive, packages, with};
use kube_unions_core::declaration::Severity;
use kube_unions_go::{FindingKind, GoFinding, Packages};
use serde_json::{Value, json};

const GO: &str = "// +groupName=kilns.example.com
package v1

// +kubebuilder:object:root=true
type Kiln struct {
\t// SPEC
\tSpec KilnSpec `json:\"spec\"`
}

// TYPE
type KilnSpec struct {
\t// FIRING
\tFiring string `json:\"firing\"`
\t// HOT
\tHot bool `json:\"hot\"`
\t// GLAZE
\tGlaze *Program `json:\"glaze\"`
\t// BISQUE
\tBisque string `json:\"bisque\"`
\t// RAKU
\tRaku []string `json:\"raku\"`
}

type Program struct{}

type Name int8
";

/// Returns the unions and findings of a kind whose comments are replaced by lines of markers.
fn derived(comments: &[(&str, &str)], crd: &str) -> (Packages, Derivation) {
    let mut go = GO.to_owned();
    for (comment, markers) in comments {
        let lines: Vec<String> = markers.split('\n').map(|marker| format!("// {marker}")).collect();
        go = with(&go, &format!("// {comment}\n"), &(lines.join("\n") + "\n"));
    }
    let packages = packages(&[("v1/kiln.go", &go)]);
    let derivation = derive(&packages, crd);
    (packages, derivation)
}

/// Returns a CRD whose discriminator has these values; none are any.
fn crd(values: &str) -> String {
    let values = if values.is_empty() { String::new() } else { format!(", enum: [{values}]") };
    let crd = with(CRD, "enum: [Cold, Glaze, Bisque]", "x: y").replace(", x: y", &values);
    let others = "bisque: {type: string}\n              hot: {type: boolean}\n              raku: {type: array, items: {type: string}}";
    with(&crd, "bisque: {type: object, properties: {degrees: {type: integer}}}", others)
}

fn unions(comments: &[(&str, &str)], crd: &str) -> (Vec<Value>, Vec<(FindingKind, String)>) {
    let (packages, derivation) = derived(comments, crd);
    let finding = |finding: &GoFinding| (finding.kind, finding.message.clone());
    let mut findings: Vec<_> = derivation.findings.iter().map(finding).collect();
    findings.extend(packages.misplaced_markers(None).iter().map(finding));
    (derivation.unions.iter().map(kube_unions_go::MarkedUnion::value).collect(), findings)
}

const MEMBER: &str = "+k8s:unionMember";

#[test]
fn a_union_without_a_discriminator_has_exactly_one_member() {
    let (found, findings) = unions(&[("GLAZE", MEMBER), ("BISQUE", MEMBER), ("RAKU", MEMBER)], &crd(""));
    let members = json!({"bisque": "Bisque", "glaze": "Glaze", "raku": "Raku"});
    // A pointer to an empty object is set, an empty text and an empty list are not.
    let options = json!({"fields-to-discriminateBy": members, "required": true, "emptyIsUnset": ["bisque", "raku"]});
    assert_eq!((found, findings), (vec![options], Vec::new()));
    let member = "+k8s:zeroOrOneOfMember";
    let (found, findings) = unions(&[("GLAZE", member), ("BISQUE", member)], &crd(""));
    let members = json!({"bisque": "Bisque", "glaze": "Glaze"});
    assert_eq!(
        (found, findings),
        (vec![json!({"fields-to-discriminateBy": members, "emptyIsUnset": ["bisque"]})], Vec::new())
    );
}

#[test]
fn the_names_of_fields_are_the_values_that_markers_name() {
    let marked = [("FIRING", "+k8s:unionDiscriminator"), ("GLAZE", MEMBER), ("RAKU", MEMBER)];
    let (found, findings) = unions(&marked, &crd(""));
    let members = json!({"Glaze": {"name": "glaze"}, "Raku": {"name": "raku"}});
    assert_eq!(found, [json!({"fieldMembers": members, "emptyIsUnset": ["raku"]})]);
    let message = "the discriminator `firing` has no enum; list its values there so that clients know them";
    assert_eq!(findings, [(FindingKind::SurprisingUnion, message.to_owned())]);
    let (found, findings) = unions(&marked, &crd("Glaze, Raku, Cold"));
    let members = json!({"Cold": null, "Glaze": {"name": "glaze"}, "Raku": {"name": "raku"}});
    assert_eq!((found, findings), (vec![json!({"fieldMembers": members, "emptyIsUnset": ["raku"]})], Vec::new()));
}

#[test]
fn a_condition_is_a_note() {
    let marked = [
        ("GLAZE", "+k8s:ifEnabled(Kilns)=+k8s:zeroOrOneOfMember"),
        ("RAKU", "+k8s:ifDisabled(Kilns)=+k8s:zeroOrOneOfMember"),
    ];
    let (found, findings) = unions(&marked, &crd(""));
    assert_eq!(found.len(), 1);
    let message = |condition: &str| {
        let message = format!("`{condition}` is ignored: `+k8s:zeroOrOneOfMember` is declared whatever the option is");
        (FindingKind::ConditionalMarker, message)
    };
    assert_eq!(findings, [message("+k8s:ifEnabled(Kilns)"), message("+k8s:ifDisabled(Kilns)")]);
    assert_eq!(FindingKind::ConditionalMarker.severity(), Severity::Note);
}

#[test]
fn a_subfield_is_a_field_of_the_struct() {
    let expected =
        json!({"fields-to-discriminateBy": {"bisque": "Bisque", "glaze": "Glaze"}, "emptyIsUnset": ["bisque"]});
    let markers =
        "+k8s:subfield(glaze)=+k8s:zeroOrOneOfMember\n+k8s:alpha=+k8s:subfield(\"bisque\")=+k8s:zeroOrOneOfMember";
    for at in ["SPEC", "TYPE"] {
        let (found, findings) = unions(&[(at, markers)], &crd(""));
        assert_eq!((found, findings), (vec![expected.clone()], Vec::new()), "{at}");
    }
    // On a type, they are as those of its fields. On a field, they are apart.
    let own = [("GLAZE", "+k8s:zeroOrOneOfMember")];
    let (found, findings) = unions(&[own[0], ("TYPE", "+k8s:subfield(bisque)=+k8s:zeroOrOneOfMember")], &crd(""));
    assert_eq!((found, findings), (vec![expected], Vec::new()));
    let (found, findings) = unions(&[("SPEC", "+k8s:subfield(glase)=+k8s:zeroOrOneOfMember")], &crd(""));
    let message = "`glase` is not a field of `v1.KilnSpec`: write the JSON name of a field; left out";
    assert_eq!((found, findings), (Vec::new(), vec![(FindingKind::UnknownField, message.to_owned())]));
    for (at, field) in [("RAKU", "raku"), ("BISQUE", "bisque")] {
        let (found, findings) = unions(&[(at, "+k8s:subfield(x)=+k8s:unionMember")], &crd(""));
        let message = "`+k8s:subfield(x)` has no effect on a field that is not a struct";
        assert_eq!(
            (found, findings),
            (Vec::new(), vec![(FindingKind::MisplacedMarker, message.to_owned())]),
            "{field}"
        );
    }
}

#[test]
fn fields_that_exclude_one_another_are_a_union() {
    let (found, findings) = unions(
        &[("GLAZE", "+k8s:dependentForbidden(\"bisque\")"), ("BISQUE", "+k8s:dependentForbidden(glaze)")],
        &crd(""),
    );
    let members = json!({"bisque": "Bisque", "glaze": "Glaze"});
    assert_eq!(
        (found, findings),
        (vec![json!({"fields-to-discriminateBy": members, "emptyIsUnset": ["bisque"]})], Vec::new())
    );
    let both = "+k8s:dependentForbidden(\"bisque\")\n+k8s:dependentForbidden(\"raku\")";
    let (found, findings) = unions(&[("GLAZE", both)], &crd(""));
    let members = json!({"bisque": "Bisque", "glaze": "Glaze", "raku": "Bisque"});
    let want = json!({"fields-to-discriminateBy": members, "emptyIsUnset": ["bisque", "raku"]});
    assert_eq!((found, findings), (vec![want], Vec::new()));
    // The first and the last of a chain of four go together with one in the middle each, but also with each other.
    let chain = [
        ("GLAZE", "+k8s:dependentForbidden(\"bisque\")"),
        ("BISQUE", "+k8s:dependentForbidden(\"raku\")"),
        ("RAKU", "+k8s:dependentForbidden(\"hot\")"),
    ];
    let (found, findings) = unions(&chain, &crd(""));
    let shared = |name: &str| {
        let message =
            format!("the field `{name}` is in two groups of the struct, but no two unions can share a field; left out");
        (FindingKind::OverlappingGroup, message)
    };
    assert_eq!((found, findings), (Vec::new(), vec![shared("bisque"), shared("bisque"), shared("raku")]));
    let (found, findings) = unions(&[("GLAZE", "+k8s:dependentForbidden(\"glaze\")")], &crd(""));
    let itself = "`glaze` excludes no other field: name another one; left out".to_owned();
    assert_eq!((found, findings), (Vec::new(), vec![(FindingKind::ContradictoryMarkers, itself)]));
    let (found, findings) = unions(&[("GLAZE", "+k8s:dependentForbidden(\"cone\")")], &crd(""));
    let unknown = "`cone` is not a field of `v1.KilnSpec`: write the JSON name of a field; left out".to_owned();
    assert_eq!((found, findings), (Vec::new(), vec![(FindingKind::UnknownField, unknown)]));
}

#[test]
fn unions_of_items_are_reported() {
    for marker in ["+k8s:item(a: \"b\")=+k8s:zeroOrOneOfMember", "+k8s:alpha=+k8s:eachVal=+k8s:unionMember"] {
        let (found, findings) = unions(&[("RAKU", marker)], &crd(""));
        let [(FindingKind::UnsupportedMarker, message)] = &findings[..] else { panic!("{findings:?}") };
        assert!(found.is_empty() && message.contains("is about the items of a list or map"), "{message}");
    }
}

#[test]
fn a_mode_forbids_every_field_that_does_not_name_it() {
    let modes = [
        ("FIRING", "+k8s:modeDiscriminator"),
        (
            "GLAZE",
            "+k8s:ifMode(\"A\")=+k8s:optional\n+k8s:ifMode(\"A\")=+k8s:required\n+k8s:ifMode(\"B\")=+k8s:optional",
        ),
        ("RAKU", "+k8s:ifMode(\"C\")=+k8s:maxItems=3\n+k8s:ifMode(\"D\")=+k8s:forbidden"),
    ];
    let (found, findings) = unions(&modes, &crd("A, B, C, D, E"));
    let members = json!({
        "A": {"name": "glaze"},
        "B": {"name": "glaze", "optional": true},
        "C": {"name": "raku", "optional": true},
        "D": null,
        "E": null,
    });
    assert_eq!((found, findings), (vec![json!({"fieldMembers": members, "emptyIsUnset": ["raku"]})], Vec::new()));
}

#[test]
fn a_mode_selects_several_fields_and_may_be_a_boolean() {
    let mode = "+k8s:ifMode(\"A\")=+k8s:optional";
    let required = "+k8s:ifMode(\"A\")=+k8s:required\n+k8s:ifMode(\"B\")=+k8s:optional";
    let several = [("FIRING", "+k8s:modeDiscriminator"), ("GLAZE", required), ("RAKU", mode)];
    let (found, findings) = unions(&several, &crd("A, B, C"));
    let members = json!({
        "A": {"fields": {"glaze": {}, "raku": {"optional": true}}},
        "B": {"name": "glaze", "optional": true},
        "C": null,
    });
    assert_eq!((found, findings), (vec![json!({"fieldMembers": members, "emptyIsUnset": ["raku"]})], Vec::new()));
    let boolean = [("HOT", "+k8s:modeDiscriminator"), ("GLAZE", "+k8s:ifMode(\"true\")=+k8s:required")];
    let (found, findings) = unions(&boolean, &crd(""));
    let members = json!({"false": null, "true": {"name": "glaze"}});
    assert_eq!((found, findings), (vec![json!({"fieldMembers": members})], Vec::new()));
}

#[test]
fn faults_of_modes_are_reported() {
    let mode = "+k8s:ifMode(\"A\")=+k8s:required";
    let named = "+k8s:ifMode(modality: \"m\", mode: \"A\")=+k8s:required";
    let rows = [
        (
            vec![("GLAZE", mode)],
            FindingKind::ContradictoryMarkers,
            "no field of the struct has `+k8s:modeDiscriminator`",
        ),
        (
            vec![("FIRING", "+k8s:modeDiscriminator"), ("GLAZE", named)],
            FindingKind::ContradictoryMarkers,
            "no field of the struct has `+k8s:modeDiscriminator(modality: \"m\")`",
        ),
        (
            vec![("FIRING", "+k8s:modeDiscriminator"), ("BISQUE", "+k8s:modeDiscriminator"), ("GLAZE", mode)],
            FindingKind::AmbiguousUnion,
            "two fields of the struct have `+k8s:modeDiscriminator`",
        ),
        (vec![("FIRING", "+k8s:modeDiscriminator")], FindingKind::DiscriminatorAlone, "no field has `+k8s:ifMode`"),
        (
            vec![("FIRING", "+k8s:modeDiscriminator"), ("GLAZE", mode), ("RAKU", "+k8s:ifMode(\"Z\")=+k8s:optional")],
            FindingKind::UnknownValue,
            "the value `Z` of the member `raku`",
        ),
        (
            vec![("RAKU", "+k8s:modeDiscriminator"), ("GLAZE", mode)],
            FindingKind::DiscriminatorType,
            "its type in the schema is array",
        ),
    ];
    for (comments, kind, says) in rows {
        let (found, findings) = unions(&comments, &crd("A, B"));
        assert!(found.is_empty(), "{comments:?}: {found:?}");
        assert!(
            findings.iter().any(|(found, message)| *found == kind && message.contains(says)),
            "{says}: {findings:?}"
        );
    }
}

#[test]
fn a_marker_of_structs_does_not_fit_a_number() {
    let go = with(GO, "type Name int8", "// +k8s:subfield(x)=+k8s:unionMember\ntype Name int8");
    let found = packages(&[("v1/kiln.go", &go)]).misplaced_markers(None);
    let kinds: Vec<_> = found.iter().map(|finding| (finding.kind, &*finding.message)).collect();
    assert_eq!(
        kinds,
        [(FindingKind::MisplacedMarker, "`+k8s:unionMember` has no effect on a type that is not a struct")]
    );
}
