//! Suggestions of unions that no validation enforces.

use crate::proposals::{schema, short};
use kube_unions_evidence::Proposals;
use serde_json::{Value, json};

/// Returns what the descriptions of `a`, `b`, `c` and of the object suggest.
fn suggested(descriptions: [&str; 4], keywords: &Value) -> Vec<String> {
    let mut schema = schema(&[], keywords);
    let spec = &mut schema["properties"]["spec"];
    spec["properties"]["type"]["enum"] = json!(["X", "Y", "z-1"]);
    spec["properties"]["on"] = json!({"type": "boolean"});
    for (name, description) in ["a", "b", "c"].into_iter().zip(descriptions) {
        spec["properties"][name]["description"] = json!(description);
    }
    spec["description"] = json!(descriptions[3]);
    Proposals::of(&schema).suggestions(&schema).iter().map(short).collect()
}

/// Descriptions of `a`, `b`, `c` and the object around them, and the unions that they suggest.
const SENTENCES: [([&str; 4], &[&str]); 93] = [
    (["The first. Mutually exclusive with b.", "", "", ""], &["spec: a b"]),
    (["This field is mutually exclusive\nwith the `b` field.", "", "", ""], &["spec: a b"]),
    (["Cannot be set together with B", "", "", ""], &["spec: a b"]),
    (["", "", "", "At most one of a, b or c may be set."], &["spec: a b c"]),
    (["", "", "", "Exactly one of the following: `a`, `b`. More."], &["spec: a b"]),
    (["", "", "Only one of a and c can be used", ""], &["spec: a c"]),
    (["", "", "", "The fields a and b are mutually exclusive."], &["spec: a b"]),
    (["", "a and b cannot be set together.", "", ""], &["spec: a b"]),
    (["Mutually exclusive with b and c.", "Mutually exclusive with c.", "", ""], &["spec: a b c"]),
    (
        ["Cannot be set at the same time as `b`, or `c`.", "Cannot be set at the same time as `a` or `c`.", "", ""],
        &["spec: a b c"],
    ),
    (["Cannot be set if the `b` field is set.", "", "", ""], &["spec: a b"]),
    (["Cannot be used if b is not empty.", "", "", ""], &["spec: a b"]),
    (["If set, B and C must not be set.", "", "", ""], &["spec: a b+c"]),
    (["", "", "No more than one of the A and B may be specified.", ""], &["spec: a b"]),
    // Other words.
    (["This is a mutually exclusive setting with \"b\".", "", "", ""], &["spec: a b"]),
    (["Conflicts with `b`.", "", "", ""], &["spec: a b"]),
    (["Use it as an alternative to B.", "", "", ""], &["spec: a b"]),
    (["This field is one of the fields with b", "", "", ""], &["spec: a b"]),
    (["Must be empty if `b` is specified.", "", "", ""], &["spec: a b"]),
    (["Should be omitted when spec.b is set.", "", "", ""], &["spec: a b"]),
    (["If b is set, this field must be empty.", "", "", ""], &["spec: a b"]),
    (["When `b` is set it must not be provided.", "", "", ""], &["spec: a b"]),
    (["Settings of x. If set, b must be unset.", "", "", ""], &["spec: a b"]),
    (["Either this or b can be used.", "", "", ""], &["spec: a b"]),
    (["", "", "", "A and B cannot both be set."], &["spec: a b"]),
    (["", "", "", "Either a or b must be set, but not both."], &["spec: a b"]),
    (["", "", "", "a as well as b cannot co-exist in one object."], &["spec: a b"]),
    (["`a` and `b` are mutually exclusive properties.", "", "", ""], &["spec: a b"]),
    (["", "", "", "One of `a` or `b` must be set."], &["spec: a b"]),
    (["", "", "", "Only one of the following may be set: a, b, c"], &["spec: a b c"]),
    (["", "", "", "Either a, b or c may be specified."], &["spec: a b c"]),
    (["It may be used instead of b.", "", "", ""], &["spec: a b"]),
    (["", "", "", "It is not valid to specify both `a` and `b`."], &["spec: a b"]),
    (["", "", "", "You cannot set both a and b."], &["spec: a b"]),
    (["", "", "", "Specify either a or b."], &["spec: a b"]),
    (["", "", "", "Only one of: a, b, c"], &["spec: a b c"]),
    (["Mutually exclusive with: b, c", "", "", ""], &["spec: a b+c"]),
    // A sentence on one side names the others, and leaves out that they exclude each other.
    (["Mutually exclusive with b and c.", "Mutually exclusive with a.", "", ""], &["spec: a b+c"]),
    (["Cannot be set together with b, c or d.", "Cannot be set together with a or c.", "", ""], &["spec: a b c d"]),
    // The API server uses one of the fields that are set together.
    (["The first, takes precedence over b.", "", "", ""], &["spec: a b"]),
    (["", "If set, it takes precedence over the `a` field.", "", ""], &["spec: a b"]),
    (["`b` takes precedence over this field.", "", "", ""], &["spec: a b"]),
    (["If `b` is also defined, `b` takes precedence.", "", "", ""], &["spec: a b"]),
    (["B takes precedence over A, so use one or the other.", "", "", ""], &["spec: a b"]),
    (["It has precedence over spec.b and spec.c combinations.", "", "", ""], &["spec: a b+c"]),
    (["Takes precedence over b.", "Takes precedence over c.", "", ""], &["spec: a b c"]),
    (["It takes precedence over the values set in b.", "", "", ""], &[]),
    (["The one of a class takes precedence.", "", "", ""], &[]),
    (["Labels defined by b and c take precedence over this field.", "", "", ""], &[]),
    (["It is merged with b, and takes precedence over b.", "", "", ""], &[]),
    (["Takes precedence over the default.", "", "", ""], &[]),
    // Fields that go together are a group.
    (["Mutually exclusive with b and c.", "", "", ""], &["spec: a b+c"]),
    (["Mutually exclusive with b.", "", "b and c must be set together.", ""], &["spec: a b+c"]),
    (["Mutually exclusive with b.", "If set, c must also be set.", "", ""], &["spec: a b+c"]),
    (["Either a or a combination of b and c must be set, but not both.", "", "", ""], &["spec: a b+c"]),
    (["Either a or combination of b and c must be set, but not both simultaneously.", "", "", ""], &["spec: a b+c"]),
    (["", "", "", "Precisely one of a, b must be set."], &["spec: a b"]),
    (
        [
            "Note that one of a and b are required, but they are mutually exclusive - one and only one must be defined.",
            "",
            "Cannot be defined if a is also defined.",
            "",
        ],
        &["spec: a b+c"],
    ),
    (["", "", "", "At most one of [`a`, `b`] can be specified."], &["spec: a b"]),
    (["", "a and b are mutually exclusive and one of them must be specified.", "", ""], &["spec: a b"]),
    (["a and b are mutually exclusive, and only one should be specified.", "", "", ""], &["spec: a b"]),
    (["Cannot be specified on the same rule as b or c.", "", "", ""], &["spec: a b+c"]),
    (["", "", "", "Must be either a or b."], &["spec: a b"]),
    (["The names of the\ngroups\nMutually exclusive with b", "", "", ""], &["spec: a b"]),
    (["", "", "", "a and b formatting are mutually exclusive."], &["spec: a b"]),
    // A group has a name that is no field.
    (["This field is one of the fields with valueFrom", "", "One of field with ValueFrom.", ""], &["spec: a c"]),
    (["This field is one of the fields with valueFrom", "", "One of the fields of other", ""], &[]),
    (["One of the fields of the form.", "", "", ""], &[]),
    // Structs of which one is meant.
    (["", "", "", "A reference to either b or c."], &["spec: b c"]),
    (["", "", "", "Emitted when either b or c is ready."], &[]),
    (["", "", "", "Applied to either b or c."], &[]),
    (["This is not mutually exclusive with b.", "", "", ""], &[]),
    (["Not exclusive of b.", "", "", ""], &[]),
    (["It is not incompatible with b.", "", "", ""], &[]),
    (["There is no alternative to b.", "", "", ""], &[]),
    (["This isn't an alternative to b.", "", "", ""], &[]),
    (["Previously mutually exclusive with b.", "", "", ""], &[]),
    (["Whether it is mutually exclusive with b depends on the driver.", "", "", ""], &[]),
    (["Before v2, only one of a and b may be set.", "", "", ""], &[]),
    (["", "", "", "Not only one of a and b may be set."], &[]),
    (["Cannot be set if b is set to none.", "", "", ""], &[]),
    (["Must be empty if b is set to a value above 3.", "", "", ""], &[]),
    (["Either b or an other one.", "", "", ""], &[]),
    (["", "", "", "Either or both of a and b can be set."], &[]),
    // A chain, several that are allowed, other words, and what is not a sibling.
    (["Mutually exclusive with b.", "Mutually exclusive with c.", "", "Only one of c, d."], &[]),
    (["", "", "", "At least one of a, b must be set, at most one of a or b."], &[]),
    (["Either a or b must be set, only one of a or b.", "", "", ""], &[]),
    (["", "", "", "a and b may not both be empty."], &[]),
    (["A combination of b and c is not valid.", "", "", ""], &[]),
    (["Cannot be set when b is large.", "", "", ""], &[]),
    (["This is incompatible with a b of `Large`.", "", "", ""], &[]),
    (["Mutually exclusive with x.", "Only one of them.", "", ""], &[]),
    (["Mutually exclusive with a.", "", "", "Only one of a is set."], &[]),
];

#[test]
fn sentences_that_exclude_fields_suggest_unions() {
    for (descriptions, want) in SENTENCES {
        assert_eq!(suggested(descriptions, &json!({})), want, "{descriptions:?}");
    }
    let exclusive = ["Mutually exclusive with b.", "", "", ""];
    assert_eq!(suggested(exclusive, &json!({"required": ["b"]})), [""; 0]);
    assert_eq!(suggested(exclusive, &json!({"not": {"required": ["a", "b"]}})), [""; 0], "it is proven");
}

#[test]
fn sentences_about_values_suggest_unions() {
    let rows: [([&str; 3], &[&str]); 17] = [
        (["Only applicable when the type is `X`.", "", ""], &["spec: type: X=a? Y=- z-1=-"]),
        (["Can be used only when Type is set to X or \"Y\".", "", ""], &["spec: type: X=a? Y=a? z-1=-"]),
        (
            ["Present only if type = z-1.", "It is only used if the .spec.type field is set to 'Y'", ""],
            &["spec: type: X=- Y=b? z-1=a?"],
        ),
        (
            ["NOTE: Can only be set if type is X", "", "This option requires `type` to be set to `X`."],
            &["spec: type: X=a?+c? Y=- z-1=-"],
        ),
        (["May not be set if type is X.", "", ""], &["spec: type: X=- Y=a? z-1=a?"]),
        (["May only be set when `on` is true.", "", ""], &["spec: on: false=- true=a?"]),
        (["Cannot be defined when `on` is true.", "", ""], &["spec: on: =a? false=a? true=-"]),
        // An exclusion of a member is not another union.
        (["Only used if type is X. Mutually exclusive with b.", "", ""], &["spec: type: X=a? Y=- z-1=-"]),
        (["Only valid for type X.", "This is only used with the `type` of Y.", ""], &["spec: type: X=a? Y=b? z-1=-"]),
        (["Names of groups\nCannot be set if Type is \"X\" or \"Y\"", "", ""], &["spec: type: X=- Y=- z-1=a?"]),
        // Another value, a negation, another field, and a requirement.
        (["Only used if type is Z.", "Only used if type is not X.", "Only used if name is X."], &[]),
        (["Required if type is X.", "Only used, if type is X it is ignored.", ""], &[]),
        // A field that is ignored with other values may be set with them, a sentence with another subject, and a field that needs another one.
        (["Only considered if type is X.", "Only taken into account when type is X.", "Requires on to be true."], &[]),
        (
            [
                "It is honored only when type is X.",
                "It only takes effect when type is X.",
                "Only processed if type is X.",
            ],
            &[],
        ),
        (["Failures of the policy that the type names are reported as said here only if the type is X.", "", ""], &[]),
        (["Cannot be set when type is X, Y or z-1.", "", ""], &[]),
        (["Only used if a is X.", "", ""], &[]),
    ];
    for ([a, b, c], want) in rows {
        assert_eq!(suggested([a, b, c, ""], &json!({})), want, "{a} {b} {c}");
    }
    assert_eq!(suggested(["Only used if type is X.", "", "", ""], &json!({"required": ["a"]})), [""; 0]);
    let twice = json!({"type": "object", "properties": {"action": {"type": "string", "enum": ["hashmod", "HashMod", "Keep"]},
        "modulus": {"type": "integer", "description": "Only applicable when the action is `HashMod`."}}});
    let found: Vec<String> = Proposals::of(&twice).suggestions(&twice).iter().map(short).collect();
    assert_eq!(found, [": action: hashmod=modulus? HashMod=modulus? Keep=-"]);
}

#[test]
fn an_enum_of_names_of_fields_suggests_a_union() {
    let spec = |values: &[&str], required: &[&str]| {
        json!({"properties": {"type": {"type": "string", "enum": values}, "awsS3": {"type": "object"},
            "gcs": {"type": "object"}, "note": {"type": "string"}}, "required": required})
    };
    let none = ["", "", "", ""];
    let suggested = |values: &[&str], required: &[&str]| {
        let schema = json!({"type": "object", "properties": {"spec": spec(values, required)}});
        Proposals::of(&schema).suggestions(&schema).iter().map(short).collect::<Vec<_>>()
    };
    assert_eq!(suggested(&["aws-s3", "GCS", "None"], &[]), ["spec: type: aws-s3=awsS3? GCS=gcs? None=-"]);
    assert_eq!(suggested(&["aws-s3", "None"], &[]), none[..0]);
    assert_eq!(suggested(&["aws-s3", "GCS"], &["gcs"]), none[..0]);
    assert_eq!(suggested(&["GCS", "gcs"], &[]), none[..0]);
    // Names of other fields than structs are most values, or those of a type, or mean something else.
    let rows: [(&str, &[&str], &[&str]); 4] = [
        ("prefer", &["GCS", "note", "x"], &["spec: prefer: GCS=gcs? note=note? x=-"]),
        ("prefer", &["GCS", "awsS3", "x", "y", "z"], &["spec: prefer: GCS=gcs? awsS3=awsS3? x=- y=- z=-"]),
        ("storeType", &["GCS", "note", "x", "y", "z"], &["spec: storeType: GCS=gcs? note=note? x=- y=- z=-"]),
        ("prefer", &["GCS", "note", "x", "y", "z"], &[]),
    ];
    for (name, values, want) in rows {
        let mut spec = spec(values, &[]);
        spec["properties"][name] = spec["properties"].as_object_mut().unwrap().shift_remove("type").unwrap();
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let found: Vec<String> = Proposals::of(&schema).suggestions(&schema).iter().map(short).collect();
        assert_eq!(found, want, "{name} {values:?}");
    }
    // The default among several, and a field of earlier versions.
    let mut of_default = spec(&["awsS3", "GCS"], &[]);
    of_default["properties"]["defaultType"] =
        of_default["properties"].as_object_mut().unwrap().shift_remove("type").unwrap();
    let mut deprecated = spec(&["awsS3", "GCS"], &[]);
    deprecated["properties"]["type"]["description"] = json!("The type.\n\nDeprecated: both can be set.");
    let schema = json!({"type": "object", "properties": {"spec": of_default, "other": deprecated}});
    assert_eq!(Proposals::of(&schema).suggestions(&schema), []);
    // controller-gen writes the enum of a type and of its field.
    let enums = json!([{"enum": ["awsS3", "GCS", "x"]}, {"enum": ["GCS", "awsS3"]}]);
    let mut both = spec(&[], &[]);
    both["properties"]["type"] = json!({"type": "string", "allOf": enums});
    let schema = json!({"type": "object", "properties": {"spec": both}});
    let found: Vec<String> = Proposals::of(&schema).suggestions(&schema).iter().map(short).collect();
    assert_eq!(found, ["spec: type: awsS3=awsS3? GCS=gcs?"]);
}

#[test]
fn a_field_and_its_source_are_alternatives_if_a_sentence_says_or() {
    let rows: [([&str; 2], [&str; 2], &[&str]); 14] = [
        (
            ["token", "tokenFile"],
            ["The token. Either `token` or `tokenFile` is required.", ""],
            &["spec: token tokenFile"],
        ),
        (["url", "urlSecret"], ["", "urlSecret takes precedence over url."], &["spec: url urlSecret"]),
        (["value", "valueFrom"], ["The value, or see valueFrom.", ""], &["spec: value valueFrom"]),
        (
            ["keySecret", "keyFile"],
            ["Either `keySecret` or `keyFile` must be defined.", ""],
            &["spec: keySecret keyFile"],
        ),
        (["role", "roleRef"], ["", "Use this instead of role."], &["spec: role roleRef"]),
        (
            ["password", "passwordSecretRef"],
            ["Is ignored if passwordSecretRef is set.", ""],
            &["spec: password passwordSecretRef"],
        ),
        // The names of Go.
        (["value", "valueFrom"], ["Note: Either Value or ValueFrom is required.", ""], &["spec: value valueFrom"]),
        (["key", "keySecretRef"], ["", "If Key is empty, KeySecretRef is used instead."], &["spec: key keySecretRef"]),
        // Names of something else, several at once, and no such words.
        (["token", "user"], ["Either `token` or `user` is required.", ""], &[]),
        (["token", "tokenFile"], ["The token and/or tokenFile.", ""], &[]),
        (["config", "configRef"], ["", "Both are merged, and this has precedence over config."], &[]),
        (["token", "tokenFile"], ["The token.", "The tokenFile has the token."], &[]),
        (["itemRef", "itemSelector"], ["", "Is ignored if ItemRef is set."], &[]),
        (["itemRef", "itemSelector"], ["", "The selector, ignored if itemRef is set."], &[]),
    ];
    for (names, texts, want) in rows {
        let fields = names.into_iter().zip(texts);
        let fields = fields.map(|(name, text)| (name.to_owned(), json!({"type": "string", "description": text})));
        let spec = json!({"type": "object", "properties": fields.collect::<serde_json::Map<_, _>>()});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let found: Vec<String> = Proposals::of(&schema).suggestions(&schema).iter().map(short).collect();
        assert_eq!(found, want, "{names:?} {texts:?}");
    }
    // Lists are merged.
    let list = |text: &str| json!({"type": "array", "items": {"type": "object"}, "description": text});
    let spec = json!({"type": "object", "properties": {
        "env": list("The variables."), "envFrom": list("Those of an Env take precedence.")}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    assert_eq!(Proposals::of(&schema).suggestions(&schema), []);
}

#[test]
fn a_sentence_about_all_members_of_an_object_suggests_a_union() {
    let structs = "git(url) http(url) oci(url)";
    let rows = [
        (structs, "The source. Only one of its members may be specified.", "spec.source: git http oci"),
        (structs, "Exactly one source must be set.", "spec.source: git http oci"),
        (structs, "At most one of these fields can be set", "spec.source: git http oci"),
        (structs, "Only one can be specified.", "spec.source: git http oci"),
        (structs, "Only one of these should be set.", "spec.source: git http oci"),
        (structs, "Only one may be busy.", ""),
        ("git(url) name", "Only one of its members may be specified.", ""),
    ];
    for (names, description, want) in rows {
        let mut source = fields(names);
        source["description"] = json!(description);
        if let Some(name) = source["properties"].get_mut("name") {
            *name = json!({"type": "string"});
        }
        let schema =
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"source": source}}}});
        let found: Vec<String> = Proposals::of(&schema).suggestions(&schema).iter().map(short).collect();
        assert_eq!(found.join(", "), want, "{names}: {description}");
    }
}

#[test]
fn a_boolean_that_is_false_counts_as_not_set_in_a_suggestion() {
    let spec = |skip: Value| {
        json!({"type": "object", "properties": {"skip": skip,
            "ca": {"type": "string", "description": "Mutually exclusive with skip."}}})
    };
    let rows: [(Value, &[&str]); 4] = [
        (json!({"type": "boolean"}), &["spec: skip ca -skip"]),
        (json!({"type": "boolean", "default": false}), &["spec: skip ca -skip"]),
        (json!({"type": "string", "default": ""}), &["spec: skip ca -skip"]),
        (json!({"type": "boolean", "default": true}), &[]),
    ];
    for (skip, want) in rows {
        let schema = json!({"type": "object", "properties": {"spec": spec(skip.clone())}});
        let found: Vec<String> = Proposals::of(&schema).suggestions(&schema).iter().map(short).collect();
        assert_eq!(found, want, "{skip}");
    }
}

/// Returns the schema of an object with these fields. A name in brackets has fields of its own: `port(name number)`.
fn fields(names: &str) -> Value {
    let mut object = json!({"type": "object", "properties": {}});
    for name in names.split(' ') {
        let (name, below) = name.split_once('(').unwrap_or((name, ""));
        let below = below.trim_end_matches(')').split('|').filter(|name| !name.is_empty());
        let below: serde_json::Map<_, _> = below.map(|name| (name.to_owned(), json!({"type": "string"}))).collect();
        object["properties"][name] = json!({"type": "object", "properties": below});
    }
    object
}

#[test]
fn types_of_kubernetes_are_known_by_their_fields() {
    let rows: &[(&str, &str, &[&str])] = &[
        (
            "metric",
            "containerResource external object pods resource type",
            &[
                "spec.metric: type: ContainerResource=containerResource? External=external? Object=object? Pods=pods? Resource=resource?",
            ],
        ),
        ("backend", "resource service(name|port)", &["spec.backend: resource service"]),
        ("port", "name number", &["spec.port: name number"]),
        (
            "source",
            "clusterTrustBundle configMap downwardAPI secret serviceAccountToken",
            &["spec.source: clusterTrustBundle configMap downwardAPI secret serviceAccountToken"],
        ),
        (
            "claim",
            "name resourceClaimName resourceClaimTemplateName",
            &["spec.claim: resourceClaimName resourceClaimTemplateName"],
        ),
        ("probe", "exec grpc httpGet tcpSocket periodSeconds", &["spec.probe: exec grpc httpGet tcpSocket"]),
        ("stop", "exec httpGet sleep tcpSocket", &["spec.stop: exec httpGet sleep tcpSocket"]),
        ("env", "name value valueFrom(secretKeyRef)", &["spec.env: value valueFrom -value"]),
        ("from", "configMapKeyRef fieldRef secretKeyRef", &["spec.from: configMapKeyRef fieldRef secretKeyRef"]),
        ("volume", "name configMap emptyDir secret csi", &["spec.volume: configMap csi emptyDir secret"]),
        ("budget", "maxUnavailable minAvailable", &["spec.budget: maxUnavailable minAvailable"]),
        ("peer", "ipBlock namespaceSelector podSelector", &["spec.peer: ipBlock namespaceSelector+podSelector"]),
        (
            "strategy",
            "rollingUpdate(maxSurge|maxUnavailable) type",
            &["spec.strategy: type: OnDelete=- Recreate=- RollingUpdate=rollingUpdate?"],
        ),
        (
            "profile",
            "localhostProfile type",
            &["spec.profile: type: Localhost=localhostProfile? RuntimeDefault=- Unconfined=-"],
        ),
        // A field more, or one less, and another place.
        ("metric", "external object pods resource type name", &[]),
        ("backend", "resource service(name)", &[]),
        ("listener", "name number", &[]),
        ("probe", "exec grpc", &[]),
        ("env", "name value valueFrom(secretKeyRef) kind", &[]),
    ];
    for (at, names, want) in rows {
        let spec = json!({"type": "object", "properties": {*at: fields(names)}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let found: Vec<String> = Proposals::of(&schema).suggestions(&schema).iter().map(short).collect();
        assert_eq!(found, *want, "{at}: {names}");
    }
    // A value of the enum that the type does not have selects nothing, and a member that is required is none.
    let mut strategy = fields("rollingUpdate(maxUnavailable) type");
    strategy["properties"]["type"] = json!({"type": "string", "enum": ["RollingUpdate", "Serial"]});
    let mut claim = fields("resourceClaimName resourceClaimTemplateName");
    claim["required"] = json!(["resourceClaimName"]);
    let schema = json!({"type": "object", "properties": {"strategy": strategy, "claim": claim}});
    let found: Vec<String> = Proposals::of(&schema).suggestions(&schema).iter().map(short).collect();
    assert_eq!(found, ["strategy: type: RollingUpdate=rollingUpdate? Serial=-"]);
}

#[test]
fn pod_templates_are_known_by_their_shape() {
    let containers = json!({"type": "array", "items": {"type": "object", "properties": {
        "name": {}, "image": {}, "env": {}, "livenessProbe": {}, "volumeMounts": {}}}});
    let pod = json!({"type": "object", "properties": {"containers": containers, "volumes": {}, "restartPolicy": {}}});
    let template = json!({"type": "object", "properties": {"metadata": {}, "spec": pod}});
    let mut without = template.clone();
    without["properties"]["spec"]["properties"]["containers"] = json!({"type": "array", "items": {"type": "object"}});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "template": template, "other": without, "jobs": {"type": "array", "items": {"type": "object", "properties":
            {"template": template}}}}}}});
    assert_eq!(Proposals::of(&schema).pod_templates, ["spec.template", "spec.jobs[*].template"]);

    // A declaration of a template has the unions of most types in it. Those of the others are suggested.
    let mut schema = schema;
    let pod = &mut schema["properties"]["spec"]["properties"]["template"]["properties"]["spec"]["properties"];
    pod["resourceClaims"] = fields("name resourceClaimName resourceClaimTemplateName");
    pod["volumes"] = fields("projected");
    pod["volumes"]["properties"]["projected"] = fields("configMap secret serviceAccountToken");
    pod["containers"]["items"]["properties"]["livenessProbe"] = fields("exec httpGet tcpSocket");
    pod["containers"]["items"]["properties"]["from"] = fields("configMapRef secretRef");
    let found: Vec<String> = Proposals::of(&schema).suggestions(&schema).iter().map(short).collect();
    let at = "spec.template.spec";
    let claim = format!("{at}.resourceClaims: resourceClaimName resourceClaimTemplateName");
    let source = format!("{at}.volumes.projected: configMap secret serviceAccountToken");
    assert_eq!(found, [source, claim]);
}
