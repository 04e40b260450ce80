//! Faults of unions, which are all reported when the CRD is made.

use super::*;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

#[test]
fn reports_faults_that_no_extension_can_express() {
    let twice = |union: Box<dyn Transform>| lines(spec(&fields(), vec![union]).annotation());
    assert_eq!(
        twice(Box::new(DiscriminatedUnion::by("type").member("A", "a").optional("A", "a").member("B", "b").empty("B"))),
        [
            "v1: spec.type: error: duplicate value `A`; keep one",
            "v1: spec.type: error: duplicate value `B`; keep one",
            NO_ENUM
        ]
    );
    assert_eq!(
        twice(Box::new(AtMostOne::new().member("A", "a").member("B", "a"))),
        [
            "v1: spec: error: duplicate member `a`; keep one",
            "v1: spec: warning: the union has the only member `a`, so it keeps nothing apart; add the others, or remove the union"
        ]
    );
    let two: Vec<Box<dyn Transform>> = vec![
        Box::new(DiscriminatedUnion::by("type").member("A", "a")),
        Box::new(DiscriminatedUnion::by("type").member("B", "b")),
    ];
    assert_eq!(
        lines(spec(&fields(), two).annotation()),
        ["v1: spec.type: error: two unions have this field as their discriminator; keep one", NO_ENUM]
    );
    let shared: Vec<Box<dyn Transform>> =
        vec![Box::new(DiscriminatedUnion::by("type").member("A", "a")), Box::new(AtMostOne::new().member("A", "a"))];
    let reported = lines(spec(&fields(), shared).annotation());
    let taken =
        "error: the field `a` already belongs to another union of this object; a field can be in one union only";
    assert!(reported.iter().any(|line| line.ends_with(taken)), "{reported:?}");
}

#[test]
fn reports_schemas_and_marks_that_cannot_be_read() {
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Object {
        spec: Option<Box<Object>>,
        list: Vec<Source>,
    }
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    #[schemars(transform = AtMostOne::new().member("A", "a").member("B", "b"))]
    struct Source {
        a: Option<String>,
        b: Option<String>,
    }
    let reference = "error: a CRD cannot have `$ref`; generate the schema with `inline_subschemas`, and write the schema of a \
                     recursive type by hand";
    let with_references = Unions::new().version_of("v1", &schemars::schema_for!(Object));
    let reported = lines(with_references.annotation());
    assert!(reported.contains(&format!("v1: list[*]: {reference}")), "{reported:?}");
    let reported = lines(Unions::new().version::<Object>("v1").annotation());
    assert!(reported.contains(&format!("v1: spec: {reference}")), "{reported:?}");

    let schema = schemars::json_schema!({"type": "object", "x-kube-unions {\"Union\":{\"other\":1}}": true});
    let reported = lines(Unions::new().version_of("v1", &schema).annotation());
    assert_eq!(reported.len(), 1);
    assert!(reported[0].starts_with("v1: error: invalid union (unknown field `other`"), "{reported:?}");
    assert!(
        reported[0].ends_with("; use one version of kube-unions-author for the types and for the CRD"),
        "{reported:?}"
    );
}

const NO_ENUM: &str =
    "v1: spec.type: warning: the discriminator `type` has no enum; list its values there so that clients know them";

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Nothing {}

#[test]
fn reports_all_faults_of_a_kind_at_once() {
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "author.example.com", version = "v1alpha1", kind = "Wrong")]
    struct WrongSpec {
        strategies: Vec<Strategy>,
        other: Other,
    }
    #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    #[schemars(transform = DiscriminatedUnion::by("kind").member("Canary", "canary").member("BlueGreen", "blue_green").empty("Recreate"))]
    struct Strategy {
        r#type: Kind,
        canary: Nothing,
        blue_green: Option<Nothing>,
    }
    #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[schemars(transform = DiscriminatedUnion::by("type").member("Canary", "canary").member("Green", "green"))]
    struct Other {
        r#type: Kind,
        #[serde(default = "some")]
        canary: Option<String>,
        green: Option<Nothing>,
    }
    #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
    enum Kind {
        Canary,
        Recreate,
    }
    #[allow(clippy::unnecessary_wraps, reason = "serde asks for the type of the field")]
    fn some() -> Option<String> {
        Some("some".to_owned())
    }

    assert_eq!(Wrong::crd().metadata.name.as_deref(), Some("wrongs.author.example.com"));
    let error = kube_unions_author::crd::<Wrong>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid unions of `wrongs.author.example.com`:\n  \
         v1alpha1: spec.other.type: error: the enum of `type` has `Recreate`, which is not in `fieldMembers`; add it, as an empty \
         member if it selects no field\n  \
         v1alpha1: spec.other.type: error: the value `Green` is not in the enum of `type`; add it there or correct it\n  \
         v1alpha1: spec.other.type: error: the member `canary` has a default, so the API server would restore it whenever it \
         is cleared; remove the default\n  \
         v1alpha1: spec.strategies[*]: error: the discriminator `kind` is not a property of this object; declare it or correct \
         the name\n  \
         v1alpha1: spec.strategies[*]: error: the member `blue_green` is not a property of this object (did you mean \
         `blueGreen`?); declare it or correct the name\n  \
         v1alpha1: spec.strategies[*]: error: the member `canary` is required, so it can never be cleared; take it out of \
         `required`"
    );
    assert_eq!(format!("{error:?}"), error.to_string(), "a `main` that returns the error prints it with Debug");
    let CrdError::Faulty { definition, faults } = error else { panic!("it is faulty") };
    assert_eq!(definition, "wrongs.author.example.com");
    assert!(faults.iter().all(|fault: &Fault| fault.definition == definition));
}

#[test]
fn refuses_a_union_inside_a_variant() {
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "author.example.com", version = "v1", kind = "Either")]
    struct EitherSpec {
        either: OneOrOther,
    }
    // kube's derive panics if the shared field has two different schemas.
    #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[serde(untagged)]
    enum OneOrOther {
        One(One),
        Other(Other),
    }
    #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[schemars(transform = DiscriminatedUnion::by("type").member("A", "a"))]
    struct One {
        r#type: String,
        a: Option<Nothing>,
    }
    #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
    struct Other {
        r#type: String,
        b: Option<Nothing>,
    }
    let _ = Either::crd();
    assert_eq!(
        lines(kube_unions_author::crd::<Either>()),
        [
            "v1: spec.either: error: the union is below `anyOf`, where a CRD has no fields; put it on the type around it, \
          or for a variant on the enum"
        ]
    );
}

#[test]
fn refuses_a_crd_whose_schema_is_not_derived_from_its_type() {
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
    #[kube(group = "author.example.com", version = "v1", kind = "Schemaless", schema = "disabled")]
    struct SchemalessSpec {}
    impl JsonSchema for Schemaless {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Schemaless".into()
        }

        fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
            schemars::json_schema!({"type": "object"})
        }
    }
    assert_eq!(
        kube_unions_author::crd::<Schemaless>().unwrap_err().to_string(),
        "the schema of `schemalesses.author.example.com` v1 is not the one that kube derives from its type: pass the \
         schema to `Unions::version_of` and the CRD to `Unions::annotate`"
    );
}
