//! Types with kube's derive and the unions in their CRDs.

use super::*;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// A kind that uses types with unions in every position.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "author.example.com", version = "v1", kind = "Everything", status = "EverythingStatus", namespaced)]
#[kube(annotation("example.com/owner", "nobody"))]
#[serde(rename_all = "camelCase")]
struct EverythingSpec {
    plain: Strategy,
    /// A field with a description.
    in_option: Option<Strategy>,
    in_box: Box<Strategy>,
    in_list: Vec<Strategy>,
    in_map: BTreeMap<String, Strategy>,
    deep: Option<Vec<BTreeMap<String, Option<Strategy>>>>,
    #[serde(flatten)]
    flat: Strategy,
    #[serde(flatten)]
    source: FlatSource,
    #[serde(flatten)]
    target: Option<FlatTarget>,
    variants: Option<Source>,
    #[schemars(transform = AtMostOne::new().member("X", "x").member("Y", "y"))]
    foreign: Foreign,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(transform = AtMostOne::new().member("Done", "done").member("Failed", "failed"))]
struct EverythingStatus {
    done: Option<String>,
    failed: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = DiscriminatedUnion::by("type").member("Canary", "canary").optional("BlueGreen", "blueGreen").empty("Recreate"))]
struct Strategy {
    r#type: StrategyType,
    canary: Option<Nothing>,
    blue_green: Option<Nothing>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
enum StrategyType {
    Canary,
    BlueGreen,
    Recreate,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Nothing {}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(transform = AtMostOne::new().member("From", "from").member("Out", "out"))]
struct FlatSource {
    from: Option<Nothing>,
    out: Option<Nothing>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(transform = AtMostOne::new().member("Into", "into").member("Onto", "onto"))]
struct FlatTarget {
    into: Option<Nothing>,
    onto: Option<Nothing>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = AtMostOne::new().member("Git", "git").member("Bucket", "bucket"))]
enum Source {
    Git(Nothing),
    Bucket(Nothing),
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Foreign {
    x: Option<Nothing>,
    y: Option<Nothing>,
}

fn strategy() -> Value {
    json!({"fieldMembers": {"Canary": {"name": "canary"}, "BlueGreen": {"name": "blueGreen", "optional": true}, "Recreate": null}})
}

#[test]
fn finds_unions_in_every_position_of_their_type() {
    let mut places = declared::<Everything>();
    let flat = places.remove("/properties/spec").unwrap();
    let mut flat: Vec<String> = flat.as_array().unwrap().iter().map(ToString::to_string).collect();
    flat.sort();
    assert_eq!(
        flat,
        [
            r#"{"fields-to-discriminateBy":{"from":"From","out":"Out"}}"#,
            r#"{"fields-to-discriminateBy":{"into":"Into","onto":"Onto"}}"#
        ],
        "both types that are flattened keep theirs"
    );
    let pair = |one: &str, other: &str| {
        let lower = str::to_lowercase;
        json!([{"fields-to-discriminateBy": {lower(one): one, lower(other): other}}])
    };
    let want = [
        ("/properties/spec/properties/deep/items/additionalProperties/properties/type", strategy()),
        ("/properties/spec/properties/foreign", pair("X", "Y")),
        ("/properties/spec/properties/inBox/properties/type", strategy()),
        ("/properties/spec/properties/inList/items/properties/type", strategy()),
        ("/properties/spec/properties/inMap/additionalProperties/properties/type", strategy()),
        ("/properties/spec/properties/inOption/properties/type", strategy()),
        ("/properties/spec/properties/plain/properties/type", strategy()),
        ("/properties/spec/properties/type", strategy()),
        ("/properties/spec/properties/variants", pair("Git", "Bucket")),
        ("/properties/status", pair("Done", "Failed")),
    ];
    assert_eq!(places, want.map(|(pointer, value)| (pointer.to_owned(), value)).into());
}

#[test]
fn changes_only_the_annotation_of_the_crd() {
    let mut crd = kube_unions_author::crd::<Everything>().unwrap();
    let annotations = crd.metadata.annotations.as_mut().unwrap();
    let value = annotations.remove(ANNOTATION).unwrap();
    assert_eq!(annotations["example.com/owner"], "nobody");
    assert_eq!(crd, Everything::crd());
    assert_eq!((ANNOTATION.to_owned(), value), Unions::new().version::<Everything>("v1").annotation().unwrap());
}

#[test]
fn annotating_twice_changes_nothing() {
    let once = kube_unions_author::crd::<Everything>().unwrap();
    let twice = Unions::new().version::<Everything>("v1").annotate(once.clone()).unwrap();
    assert_eq!(twice, once);
}

#[test]
fn the_warnings_of_a_crd_are_those_of_the_catalog() {
    let crd = kube_unions_author::crd::<Everything>().unwrap();
    let mut builder = Builder::new();
    builder.apply(Definition::from_json(&serde_json::to_string(&crd).unwrap()).unwrap());
    let catalog = builder.build();
    assert_eq!(catalog.faults(), kube_unions_author::warnings(&crd).unwrap());
    // The only ones are about lists without keys.
    let places: Vec<_> = catalog.faults().iter().map(|fault| (fault.path.as_str(), fault.severity())).collect();
    assert_eq!(places, [("spec.deep[*].*.type", Severity::Warning), ("spec.inList[*].type", Severity::Warning)]);
    assert_eq!(catalog.union_count(), 12);
}

#[test]
fn a_kind_without_unions_has_no_annotation() {
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "author.example.com", version = "v1", kind = "Plain")]
    struct PlainSpec {
        field: Option<String>,
    }
    assert_eq!(kube_unions_author::crd::<Plain>().unwrap(), Plain::crd());
}

#[test]
fn a_default_that_is_not_serialized_is_not_in_the_schema() {
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "author.example.com", version = "v1", kind = "Defaulted")]
    #[schemars(transform = AtMostOne::new().member("A", "a").member("B", "b").member("C", "c"))]
    struct DefaultedSpec {
        #[serde(default)]
        a: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        b: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        c: Vec<String>,
    }
    let crd = kube_unions_author::crd::<Defaulted>().unwrap();
    assert_eq!(kube_unions_author::warnings(&crd).unwrap(), []);
    assert_eq!(declared::<Defaulted>().len(), 1);
}

/// Declares a kind whose strategy has a discriminator of a type.
macro_rules! discriminated_by {
    ($(#[$attribute:meta])* $type:ty) => {{
        #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
        #[kube(group = "author.example.com", version = "v1", kind = "By")]
        struct BySpec {
            strategy: By2,
        }
        #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
        #[schemars(transform = DiscriminatedUnion::by("type").member("canary", "canary").empty("Re-Create"))]
        struct By2 {
            $(#[$attribute])*
            r#type: $type,
            canary: Option<Nothing>,
        }
        let crd = kube_unions_author::crd::<By>().unwrap_or_else(|error| panic!("{}: {error}", stringify!($type)));
        (crd.clone(), kube_unions_author::warnings(&crd).unwrap().into_iter().map(|fault| fault.message).collect::<Vec<_>>())
    }};
}

/// Returns the schema of the discriminator.
fn discriminator(crd: &CustomResourceDefinition) -> Value {
    let crd = serde_json::to_value(crd).unwrap();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/strategy/properties/type";
    let mut schema = crd.pointer(schema).unwrap().clone();
    schema.as_object_mut().unwrap().remove("description");
    schema
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Renamed {
    #[default]
    Canary,
    #[serde(rename = "Re-Create")]
    Recreate,
}

/// An enum with descriptions, for which schemars generates `oneOf`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Documented {
    /// Some first.
    Canary,
    /// All at once.
    #[serde(rename = "Re-Create")]
    Recreate,
}

#[test]
fn an_enum_of_unit_variants_gives_the_discriminator_its_values() {
    for (crd, warnings) in [discriminated_by!(Renamed), discriminated_by!(Documented)] {
        assert_eq!(discriminator(&crd), json!({"type": "string", "enum": ["canary", "Re-Create"]}));
        assert_eq!(warnings, [""; 0]);
    }
    for (crd, warnings) in [discriminated_by!(Option<Renamed>), discriminated_by!(Option<Documented>)] {
        let schema = discriminator(&crd);
        assert_eq!((&schema["type"], &schema["nullable"]), (&json!("string"), &json!(true)));
        let values: Vec<_> = schema["enum"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!((values, warnings), (vec!["canary", "Re-Create"], vec![]));
    }
}

#[test]
fn warns_about_a_discriminator_with_a_default_or_without_values() {
    let (crd, warnings) = discriminated_by!(
        #[serde(default)]
        Renamed
    );
    assert_eq!(discriminator(&crd)["default"], "canary");
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("the discriminator `type` has a default:"), "{warnings:?}");
    let (_, warnings) = discriminated_by!(String);
    assert_eq!(warnings, ["the discriminator `type` has no enum; list its values there so that clients know them"]);
}
