//! Enums with data: the schema and the union of each representation of serde, and the enums that are refused.

use super::*;
use kube::CustomResource;
use kube_unions_author::EnumUnion;
use serde::{Deserialize, Serialize};

/// A kind that uses enums in every position.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "author.example.com", version = "v1", kind = "Enums", status = "Strategy")]
#[serde(rename_all = "camelCase")]
struct EnumsSpec {
    internal: Strategy,
    in_option: Option<Strategy>,
    in_list: Vec<Strategy>,
    in_map: BTreeMap<String, Strategy>,
    external: Source,
    #[serde(flatten)]
    flat: Strategy,
    #[serde(flatten)]
    flat_source: Source,
    newtypes: Newtypes,
}

/// How to roll out.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all_fields = "camelCase", deny_unknown_fields)]
#[schemars(transform = EnumUnion)]
enum Strategy {
    /// Some first.
    Canary {
        canary: Canary,
    },
    /// All at once.
    ///
    /// The old pods stay.
    #[serde(rename = "Blue/Green")]
    BlueGreen {
        /// Where to look first.
        blue_green: Option<Weight>,
    },
    Linear {
        canary: Canary,
    },
    Recreate,
}

/// A share.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Canary {
    weight: Weight,
}

type Weight = u8;

/// Where from.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = EnumUnion)]
enum Source {
    /// A repository.
    Git {
        url: String,
    },
    OciImage(Nested),
    Nothing {},
}

/// An enum in a variant of an enum.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Nested {
    strategy: Strategy,
}

/// Structs of which each has one field.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind")]
#[schemars(transform = EnumUnion)]
enum Newtypes {
    One(One),
    Canary(Canary),
    None(Nothing),
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct One {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    one: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Nothing {}

fn strategy() -> Value {
    json!({"fieldMembers": {
        "Canary": {"name": "canary"},
        "Blue/Green": {"name": "blueGreen", "optional": true},
        "Linear": {"name": "canary"},
        "Recreate": null,
    }})
}

#[test]
fn finds_the_union_of_an_enum_in_every_position() {
    let source = json!({"fields-to-discriminateBy": {"git": "Git", "ociImage": "OciImage", "nothing": "Nothing"}});
    let newtypes =
        json!({"fieldMembers": {"One": {"name": "one", "optional": true}, "Canary": {"name": "weight"}, "None": null}});
    let want = [
        ("", json!([source])),
        ("/properties/external", json!([source])),
        ("/properties/external/properties/ociImage/properties/strategy/properties/type", strategy()),
        ("/properties/inList/items/properties/type", strategy()),
        ("/properties/inMap/additionalProperties/properties/type", strategy()),
        ("/properties/inOption/properties/type", strategy()),
        ("/properties/internal/properties/type", strategy()),
        ("/properties/newtypes/properties/kind", newtypes),
        ("/properties/ociImage/properties/strategy/properties/type", strategy()),
        ("/properties/type", strategy()),
    ];
    let mut want: BTreeMap<_, _> =
        want.into_iter().map(|(pointer, union)| (format!("/properties/spec{pointer}"), union)).collect();
    want.insert("/properties/status/properties/type".to_owned(), strategy());
    assert_eq!(declared::<Enums>(), want);
}

/// Returns the schema of a property in the CRD of a kind.
fn schema<K: CustomResourceExt + JsonSchema>(pointer: &str) -> Value {
    let crd = kube_unions_author::crd::<K>().unwrap_or_else(|error| panic!("{error}"));
    let crd = serde_json::to_value(crd).unwrap();
    crd.pointer(&format!("/spec/versions/0/schema/openAPIV3Schema/properties/{pointer}")).unwrap().clone()
}

#[test]
fn the_schema_of_an_internally_tagged_enum_is_structural() {
    let weight = json!({"type": "integer", "format": "uint8", "minimum": 0.0, "maximum": 255.0});
    let mut preview = weight.clone();
    preview["nullable"] = json!(true);
    preview["description"] = json!("Where to look first.");
    let want = json!({
        "type": "object",
        "description": "How to roll out.",
        "properties": {
            "type": {
                "type": "string",
                "enum": ["Canary", "Blue/Green", "Linear", "Recreate"],
                "description": "`Canary`: Some first.\n`Blue/Green`: All at once.\n\nThe old pods stay.",
            },
            "canary": {
                "type": "object",
                "description": "A share.",
                "properties": {"weight": weight},
                "required": ["weight"],
            },
            "blueGreen": preview,
        },
        "required": ["type"],
    });
    assert_eq!(schema::<Enums>("spec/properties/internal"), want);
    let mut want = want;
    want["nullable"] = json!(true);
    assert_eq!(schema::<Enums>("spec/properties/inOption"), want);
    let flat = schema::<Enums>("spec");
    assert_eq!(flat["properties"]["canary"], want["properties"]["canary"]);
    assert!(flat["required"].as_array().unwrap().contains(&json!("type")), "{flat}");
}

/// kube's derive does this. The API server then wants exactly one variant.
#[test]
fn the_schema_of_an_externally_tagged_enum_is_structural() {
    let strategy = schema::<Enums>("spec/properties/internal");
    assert_eq!(
        schema::<Enums>("spec/properties/external"),
        json!({
            "type": "object",
            "description": "Where from.",
            "properties": {
                "git": {
                    "type": "object",
                    "description": "A repository.",
                    "properties": {"url": {"type": "string"}},
                    "required": ["url"],
                },
                "ociImage": {
                    "type": "object",
                    "description": "An enum in a variant of an enum.",
                    "properties": {"strategy": strategy},
                    "required": ["strategy"],
                },
                "nothing": {"type": "object"},
            },
            "oneOf": [{"required": ["git"]}, {"required": ["ociImage"]}, {"required": ["nothing"]}],
        })
    );
}

#[test]
fn an_enum_may_be_the_spec() {
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "author.example.com", version = "v1", kind = "Root")]
    #[serde(tag = "type")]
    #[schemars(transform = EnumUnion)]
    enum RootSpec {
        Left { left: String },
        Right { right: String },
    }
    let union = json!({"fieldMembers": {"Left": {"name": "left"}, "Right": {"name": "right"}}});
    assert_eq!(declared::<Root>(), BTreeMap::from([("/properties/spec/properties/type".to_owned(), union)]));
}

/// The fields are beside the tag. A field of two variants is shared.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "provider")]
#[schemars(transform = EnumUnion)]
enum Store {
    S3 { bucket: String, region: Option<String> },
    Gcs(Gcs),
    Local { path: String },
    Memory,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Gcs {
    bucket: String,
    project: String,
}

#[test]
fn the_tag_selects_all_fields_of_a_variant() {
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "author.example.com", version = "v1", kind = "Backup")]
    struct BackupSpec {
        store: Store,
    }
    let union = json!({"fieldMembers": {
        "S3": {"fields": {"bucket": {}, "region": {"optional": true}}},
        "Gcs": {"fields": {"bucket": {}, "project": {}}},
        "Local": {"name": "path"},
        "Memory": null,
    }});
    assert_eq!(
        declared::<Backup>(),
        BTreeMap::from([("/properties/spec/properties/store/properties/provider".to_owned(), union)])
    );
    let string = json!({"type": "string"});
    assert_eq!(
        schema::<Backup>("spec/properties/store"),
        json!({
            "type": "object",
            "description": "The fields are beside the tag. A field of two variants is shared.",
            "properties": {
                "provider": {"type": "string", "enum": ["S3", "Gcs", "Local", "Memory"]},
                "bucket": string,
                "region": {"type": "string", "nullable": true},
                "project": string,
                "path": string,
            },
            "required": ["provider"],
        })
    );
}

/// Returns the faults of a kind that has an enum in each position, and checks that no API server takes its schema.
macro_rules! refused {
    ($(#[$attribute:meta])* {$($variants:tt)*}) => {{
        #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
        #[kube(group = "author.example.com", version = "v1", kind = "Refused")]
        struct RefusedSpec {
            plain: Enum,
            optional: Option<Enum>,
        }
        #[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
        $(#[$attribute])*
        #[schemars(transform = EnumUnion)]
        enum Enum { $($variants)* }

        let derived = serde_json::to_value(Refused::crd()).unwrap();
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/plain";
        assert_eq!(derived.pointer(schema), Some(&json!({})), "a field without a type is not structural");
        let reported = lines(kube_unions_author::crd::<Refused>());
        let [optional, plain] = &reported[..] else { panic!("{reported:?}") };
        assert_eq!(optional.replace("spec.optional:", "spec.plain:"), *plain);
        plain.strip_prefix("v1: spec.plain: error: ").unwrap().to_owned()
    }};
}

#[test]
fn refuses_enums_that_are_no_union() {
    const NO_SUCH_ENUM: &str = "`EnumUnion` is for an enum with data in its variants that is tagged internally or externally; \
        put it on such an enum, or `DiscriminatedUnion` or `AtMostOne` on a struct";
    assert_eq!(refused!({ A, B }), NO_SUCH_ENUM);
    assert_eq!(refused!(#[serde(untagged)] { A(Nothing), B(Canary) }), NO_SUCH_ENUM);
    assert_eq!(refused!({ A(Nothing), #[serde(untagged)] B(Canary) }), NO_SUCH_ENUM);
    let string = |unit: &str| {
        format!(
            "serde writes the variant `{unit}` as a string and others as objects, which no field of a CRD can be; add \
             `#[serde(tag = \"…\")]` to the enum, or write `{unit} {{}}`"
        )
    };
    assert_eq!(refused!({ A(Nothing), B, C }), string("B"));
    assert_eq!(refused!({ A(Nothing), /** Has a description. */ B }), string("B"));
    assert_eq!(
        refused!(#[serde(tag = "t", content = "c")] { A(String), B(bool), C }),
        "the field `c` has two schemas, but a CRD has one; give it the same type and description in every variant, or another \
         name in each"
    );
    assert_eq!(
        refused!(#[serde(tag = "type")] { A(BTreeMap<String, String>), B }),
        "the schema of the variant `A` has `additionalProperties`, which a CRD cannot have for one variant; put its data into a \
         field of the variant"
    );
    assert_eq!(
        refused!(#[serde(tag = "type")] { A(Strategy), B }),
        "the type in the variant `A` has a union of its own, whose fields would be in two unions; put the type into a field of \
         the variant"
    );
}

#[test]
fn refuses_structs() {
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Object {
        spec: Spec,
    }
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    #[schemars(transform = EnumUnion)]
    struct Spec {
        field: String,
        #[serde(flatten)]
        source: Source,
    }
    let reported = lines(Unions::new().version::<Object>("v1").annotation());
    assert!(reported[0].starts_with("v1: spec: error: `EnumUnion` is for an enum"), "{reported:?}");
    assert_eq!(reported.len(), 1);
}

/// The contents of an adjacently tagged enum are one field. If they have one type, it is a member.
#[test]
fn a_field_of_all_variants_is_a_member() {
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Object {
        spec: Adjacent,
    }
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    #[serde(tag = "op", content = "value")]
    #[schemars(transform = EnumUnion)]
    enum Adjacent {
        In(Vec<String>),
        NotIn(Vec<String>),
        Exists,
    }
    let union = json!({"fieldMembers": {"In": {"name": "value"}, "NotIn": {"name": "value"}, "Exists": null}});
    assert_eq!(declared::<Object>(), BTreeMap::from([("/properties/spec/properties/op".to_owned(), union)]));
}
