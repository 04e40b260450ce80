//! Several versions of a kind, and CRDs that already have an annotation.

use super::*;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::crd::merge_crds;

/// Declares a version of the kind `Thing` in a module of its own.
macro_rules! version {
    ($module:ident, $version:literal, $group:literal, $union:expr) => {
        mod $module {
            use kube_unions_author::{AtMostOne, DiscriminatedUnion};
            #[derive(
                kube::CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema,
            )]
            #[kube(group = $group, version = $version, kind = "Thing")]
            #[schemars(transform = $union)]
            pub(super) struct ThingSpec {
                kind: Option<Kind>,
                a: Option<String>,
                b: Option<String>,
            }
            #[derive(Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
            enum Kind {
                A,
                B,
            }
            #[allow(dead_code, reason = "each version uses one of them")]
            fn both() -> (AtMostOne, DiscriminatedUnion) {
                (AtMostOne::new(), DiscriminatedUnion::by(""))
            }
        }
    };
}

version!(v1, "v1", "author.example.com", AtMostOne::new().member("A", "a").member("B", "b"));
version!(v2, "v2", "author.example.com", DiscriminatedUnion::by("kind").member("A", "a").optional("B", "b"));
version!(v3, "v3", "author.example.com", DiscriminatedUnion::by("kind").member("A", "a"));
version!(elsewhere, "v2", "other.example.com", AtMostOne::new().member("A", "a"));

fn annotation(crd: &CustomResourceDefinition) -> Value {
    serde_json::from_str(&crd.metadata.annotations.as_ref().unwrap()[ANNOTATION]).unwrap()
}

fn both() -> Value {
    json!({
        "v1": {"/properties/spec": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]},
        "v2": {"/properties/spec/properties/kind":
            {"fieldMembers": {"A": {"name": "a"}, "B": {"name": "b", "optional": true}}}},
    })
}

#[test]
fn merged_versions_keep_the_unions_of_each() {
    for stored in ["v1", "v2"] {
        let crds =
            || [kube_unions_author::crd::<v1::Thing>().unwrap(), kube_unions_author::crd::<v2::Thing>().unwrap()];
        let mut merged = kube_unions_author::merge(crds(), stored).unwrap();
        assert_eq!(annotation(&merged), both());
        assert_eq!(kube_unions_author::warnings(&merged).unwrap(), []);
        merged.metadata.annotations = None;
        assert_eq!(merged, merge_crds(vec![v1::Thing::crd(), v2::Thing::crd()], stored).unwrap());
    }
}

#[test]
fn annotates_versions_that_kube_merged() {
    let merged = merge_crds(vec![v1::Thing::crd(), v2::Thing::crd()], "v2").unwrap();
    let unions = Unions::new().version::<v1::Thing>("v1").version::<v2::Thing>("v2");
    assert_eq!(annotation(&unions.annotate(merged).unwrap()), both());
}

#[test]
fn a_fault_names_its_version() {
    let merged = merge_crds(vec![v1::Thing::crd(), v3::Thing::crd()], "v3").unwrap();
    let unions = Unions::new().version::<v1::Thing>("v1").version::<v3::Thing>("v3");
    assert_eq!(
        lines(unions.annotate(merged)),
        [
            "v3: spec.kind: error: the enum of `kind` has `B`, which is not in `fieldMembers`; add it, as an empty member if it \
          selects no field"
        ]
    );
}

#[test]
fn reports_a_version_that_the_crd_lacks() {
    let reported = lines(Unions::new().version::<v2::Thing>("v2").annotate(v1::Thing::crd()));
    assert_eq!(reported, ["error: the CRD has no version `v2` with a schema; correct the name or remove it"]);
}

#[test]
fn reports_crds_that_kube_cannot_merge() {
    let one = || kube_unions_author::crd::<v1::Thing>().unwrap();
    for (crds, stored, want) in [
        (vec![], "v1", "cannot merge the versions: empty list of CRDs cannot be merged"),
        (vec![one()], "v9", "cannot merge the versions: root api version v9 not found"),
        (
            vec![one(), kube_unions_author::crd::<elsewhere::Thing>().unwrap()],
            "v1",
            "cannot merge the versions: mismatching group property from given CRDs",
        ),
    ] {
        assert_eq!(kube_unions_author::merge(crds, stored).unwrap_err().to_string(), want);
    }
}

#[test]
fn merging_reports_faults_made_after_annotating() {
    let mut crd = kube_unions_author::crd::<v2::Thing>().unwrap();
    let schema = crd.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
    schema.properties.as_mut().unwrap().get_mut("spec").unwrap().properties.as_mut().unwrap().remove("a");
    assert_eq!(
        lines(kube_unions_author::merge([crd], "v2")),
        ["v2: spec.kind: error: the member `a` is not a property of this object; declare it or correct the name"]
    );
}

/// Returns the CRD of the first version with an annotation.
fn with_annotation(key: &str, value: &str) -> CustomResourceDefinition {
    let mut crd = v1::Thing::crd();
    crd.metadata.annotations = Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
    crd
}

#[test]
fn keeps_the_annotation_and_reports_contradictions() {
    let unions = Unions::new().version::<v1::Thing>("v1");
    let by_kind = r#"{"v1": {"/properties/spec/properties/kind": {"fieldMembers": {"A": {"name": "a"}, "B": null}}}}"#;
    let reported = lines(unions.annotate(with_annotation(ANNOTATION, by_kind)));
    assert_eq!(reported.len(), 1, "two unions have the same field: {reported:?}");
    assert!(reported[0].contains("the field `a` already belongs to another union"), "{reported:?}");

    let otherwise = r#"{"v1": {"/properties/spec": [{"fields-to-discriminateBy": {"a": "A"}}]}}"#;
    assert_eq!(
        lines(unions.annotate(with_annotation(ANNOTATION, otherwise))),
        ["v1: spec: error: the annotation already declares another union here; make them equal or remove one"]
    );
    let error = unions.annotate(with_annotation(ANNOTATION, "[")).unwrap_err().to_string();
    let start = "invalid annotation `kube-unions.dev/unions` of `things.author.example.com`: ";
    assert!(error.starts_with(start) && error.ends_with("; remove it"), "{error}");
}

#[test]
fn limits_all_annotations_to_256_kib() {
    let unions = Unions::new().version::<v1::Thing>("v1");
    let (key, value) = unions.annotation().unwrap();
    let room = 256 * 1024 - key.len() - value.len() - "note".len();
    unions.annotate(with_annotation("note", &"x".repeat(room))).unwrap();
    assert_eq!(
        unions.annotate(with_annotation("note", &"x".repeat(room + 1))).unwrap_err().to_string(),
        "the annotations of `things.author.example.com` would have 262145 bytes, more than the 262144 that Kubernetes \
         allows: declare the unions in fewer versions, or split the CRD"
    );
    let long = AtMostOne::new().member("A", "a".repeat(300_000)).member("B", "b");
    let fields = json!({"a".repeat(300_000): {"type": "string"}, "b": {"type": "string"}});
    let error = spec(&fields, vec![Box::new(long)]).annotation().unwrap_err();
    assert!(error.to_string().starts_with("the annotations would have 3000"), "{error}");
}
