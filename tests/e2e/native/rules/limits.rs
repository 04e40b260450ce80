//! Limits of rules: long lists, many members, many unions, deep nesting, and names and values that need escapes.

use serde_json::{Map, Value, json};

use super::super::Native;
use super::super::agreement::Subject;
use super::super::limits::{Shape, table, union};
use super::{ask, embed};
use crate::support::cluster::some_or_all;
use kube_unions_policies::{CompiledRules, PolicyOptions, RefusalReason};

const GROUP: &str = "limits.rules.example";

/// The limit of the list around a union.
#[derive(Debug, Clone, Copy)]
enum Around {
    Nothing,
    Unlimited,
    /// An unlimited list with the key `name`.
    Keyed,
    /// A map without a limit.
    Values,
    Items(u64),
}

fn object(properties: impl Into<Value>) -> Value {
    json!({"type": "object", "properties": properties.into()})
}

impl Around {
    /// Returns a field with the object, in a list or map. `forced` replaces its limit.
    fn field(self, mut inner: Value, forced: Option<u64>) -> Value {
        let (mut around, keyword) = match self {
            Self::Nothing => return inner,
            Self::Values => (json!({"type": "object", "additionalProperties": inner}), "maxProperties"),
            Self::Unlimited | Self::Items(_) => (json!({"type": "array", "items": inner}), "maxItems"),
            Self::Keyed => {
                inner["required"] = json!(["name"]);
                inner["properties"]["name"] = json!({"type": "string"});
                let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "items": inner});
                (list, "maxItems")
            }
        };
        let own = if let Self::Items(limit) = self { Some(limit) } else { None };
        if let Some(limit) = forced.or(own) {
            around[keyword] = json!(limit);
        }
        around
    }
}

/// Returns the CRD of a kind with the rules of its unions.
fn compiled(mut subject: Subject) -> (Value, CompiledRules) {
    let entry = subject.catalog.entries().first().expect("the union is in force");
    let rules = embed(schema_of(&mut subject.definition), entry.gvk(), entry.plan(), &PolicyOptions::default());
    (subject.definition, rules)
}

fn schema_of(definition: &mut Value) -> &mut Value {
    &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Installs a kind with the rules of its unions.
fn installed(native: &Native, subject: Subject) -> Subject {
    let (definition, rules) = compiled(subject);
    assert_eq!(rules.refusals, []);
    native.apply(&definition);
    let subject = Subject::of_definition(definition);
    native.wait_until_served(&subject.api.path(""));
    subject
}

/// Compares `compile` with the API server: it refuses a schema if the API server would refuse the rules. `schema` returns the
/// schema, or with a limit in place of those of its lists.
#[track_caller]
fn agree(native: &Native, name: &str, schema: impl Fn(Option<u64>) -> Value) -> bool {
    let limit = |forced| Subject::new(GROUP, "Limit", &schema(forced));
    let (after, rules) = compiled(limit(None));
    if rules.refusals.is_empty() {
        let answer = ask(native, &after);
        assert_eq!(answer.status, 201, "{name}: compiled, and not accepted: {}", answer.body["message"]);
        return true;
    }
    for refusal in &rules.refusals {
        let text = refusal.to_string();
        assert!(text.contains("use policies") || text.contains("use the webhook"), "{name}: no alternative: {text}");
    }
    // The rules are the same whatever the limits, so those for short lists tell if the API server would refuse.
    let (_, all) = compiled(limit(Some(1)));
    let too_long = all.refusals.iter().filter(|refusal| refusal.reason == RefusalReason::TooLong).count();
    assert_eq!(all.refusals.len(), too_long, "{name}: refused for another reason than a limit: {:?}", all.refusals);
    let mut forced = limit(None).definition;
    all.apply(schema_of(&mut forced));
    let answer = ask(native, &forced);
    assert_eq!(answer.status, 422, "{name}: refused by compile, and accepted: {:?}", rules.refusals);
    assert!(answer.body["message"].to_string().contains("cost"), "{name}: {}", answer.body["message"]);
    // The API server must accept the unions that are left.
    let answer = ask(native, &after);
    assert_eq!(answer.status, 201, "{name}: the rest is not accepted: {}", answer.body["message"]);
    false
}

#[test]
fn lists_and_members_are_limited_as_the_api_server_limits_them() {
    let Some(native) = Native::shared() else { return };
    let arounds = [
        Around::Nothing,
        Around::Unlimited,
        Around::Keyed,
        Around::Values,
        Around::Items(1_000),
        Around::Items(10_000),
        Around::Items(1_000_000),
    ];
    let some =
        [(2, &arounds[..6]), (4, &arounds[..6]), (16, &arounds[..6]), (17, &arounds[3..6]), (128, &arounds[4..6])];
    let all = [2, 4, 8, 16, 17, 64, 128].map(|members| (members, &arounds[..]));
    let (mut accepted, mut refused) = (0, 0);
    for shape in [Shape::Map, Shape::TwoValues, Shape::List, Shape::Discriminated] {
        for &(members, arounds) in some_or_all(&some[..], &all) {
            for &around in arounds {
                let schema = |forced| object(json!({"spec": around.field(union(shape, "member-", members), forced)}));
                let holds = agree(native, &format!("{shape:?} of {members} in {around:?}"), schema);
                *(if holds { &mut accepted } else { &mut refused }) += 1;
                let must = matches!(around, Around::Nothing | Around::Items(1_000))
                    || (members <= 4 && matches!(around, Around::Keyed));
                assert!(holds || !must, "{shape:?} of {members} in {around:?}: refused");
            }
        }
    }
    let (least_accepted, least_refused) = some_or_all((60, 10), (100, 20));
    assert!(accepted > least_accepted && refused > least_refused, "{accepted} accepted, {refused} refused");
}

#[test]
fn a_large_table_of_values_and_members_has_rules() {
    let Some(native) = Native::shared() else { return };
    let subject = installed(native, Subject::of_definition(table(GROUP)));
    let judge = |spec: &Value| subject.ask(native, None, &json!({"spec": spec}));
    let valid = judge(&json!({"type": "V63", "m62": "v", "m64": "v"}));
    assert_eq!(valid.status, 201, "{}", valid.body["message"]);
    let refused = judge(&json!({"type": "V63", "m62": "v", "m63": "v"}));
    let causes = &refused.body["details"]["causes"];
    assert_eq!((refused.status, &causes[0]["field"], &causes[1]), (422, &json!("spec.m63"), &Value::Null), "{causes}");
}

#[test]
fn many_unions_of_one_kind_share_a_limit() {
    let Some(native) = Native::shared() else { return };
    let some = [
        (20, Shape::Map, 64, Around::Nothing),
        (20, Shape::Map, 3, Around::Items(1_000)),
        (20, Shape::List, 5, Around::Items(1_000)),
        (20, Shape::Map, 3, Around::Items(10_000)),
        (20, Shape::List, 5, Around::Unlimited),
        (60, Shape::Map, 3, Around::Keyed),
    ];
    let all = [
        (20, Around::Nothing),
        (20, Around::Items(1_000)),
        (20, Around::Items(10_000)),
        (20, Around::Unlimited),
        (60, Around::Keyed),
        (60, Around::Unlimited),
    ]
    .into_iter()
    .flat_map(|(unions, around)| {
        [(Shape::Map, 3), (Shape::List, 5), (Shape::Map, 64)].map(|(shape, members)| (unions, shape, members, around))
    });
    for (unions, shape, members, around) in some_or_all(some.to_vec(), all.collect()) {
        let schema = |forced| {
            let field = |number| (format!("u{number}"), around.field(union(shape, "member-", members), forced));
            object((0..unions).map(field).collect::<Map<_, _>>())
        };
        let name = format!("{unions} unions {shape:?} of {members} in {around:?}");
        let (after, rules) = compiled(Subject::new(GROUP, "Limit", &schema(None)));
        // A version with very long rules is refused for its size.
        if rules.refusals.iter().any(|refusal| refusal.reason == RefusalReason::TooLong) {
            assert_eq!(ask(native, &after).status, 201, "{name}");
            continue;
        }
        agree(native, &name, schema);
    }
}

#[test]
fn deep_unions_have_rules_too() {
    let Some(native) = Native::shared() else { return };
    for (depth, around) in [
        (40, Around::Nothing),
        (2, Around::Items(100)),
        (5, Around::Items(10)),
        (5, Around::Keyed),
        (3, Around::Values),
    ] {
        let schema = |forced| {
            let nest = |inner, _| object(json!({"inner": around.field(inner, forced)}));
            (0..depth).fold(union(Shape::Map, "member-", 3), nest)
        };
        agree(native, &format!("{depth} deep in {around:?}"), schema);
    }
    // Unions at every level.
    let schema = |forced| {
        let nest = |inner, _| {
            let mut outer = union(Shape::Discriminated, "member-", 4);
            outer["properties"]["inner"] = Around::Items(3).field(inner, forced);
            outer
        };
        (0..10).fold(union(Shape::Map, "member-", 3), nest)
    };
    agree(native, "unions at ten levels", schema);
}

/// Names that an expression has to escape, and names that look like escapes.
const NAMES: [&str; 18] = [
    "namespace",
    "in",
    "true",
    "a-b",
    "a.b",
    "a/b",
    "a__b",
    "a_-_b",
    "-",
    ".",
    "_",
    "__",
    "___",
    "self",
    "has",
    "size",
    "__dash__",
    "a.-/b",
];

/// Values that a literal has to escape.
const VALUES: [&str; 8] = ["\"", "\\", "it's", "a\nb", "// kube-unions", "ü\u{1F600}", "\u{1}\t", "${a} %s {{.}}"];

#[test]
fn names_and_values_that_need_escapes_are_judged_by_the_api_server() {
    let Some(native) = Native::shared() else { return };
    // No expression can select the name of this place.
    let mut properties = Map::from_iter([("ü 1".to_owned(), union(Shape::Map, "member-", 2))]);
    for (number, name) in NAMES.iter().enumerate() {
        let value = VALUES[number % VALUES.len()];
        let of_discriminator = json!({"type": "string", "nullable": true, "x-kubernetes-unions": {
            "fieldMembers": {value: {"name": "m"}, "Other": {"name": "n"}}}});
        let discriminator = object(json!({*name: of_discriminator, "m": {"type": "string"}, "n": {"type": "string"}}));
        let member = object(json!({"kind": {"type": "string", "x-kubernetes-unions": {
            "fieldMembers": {value: {"name": name}, "Other": {"name": "n"}}}}, *name: {"type": "string", "nullable": true}, "n": {"type": "string"}}));
        properties.insert(format!("d{number}"), discriminator);
        properties.insert(format!("m{number}"), member);
    }
    let subject = installed(native, Subject::new(GROUP, "Escaped", &object(properties)));
    let write = |fields: &Value| subject.ask(native, None, fields);
    assert_eq!(write(&json!({"ü 1": {"member-0": ""}})).status, 422);
    for (number, name) in NAMES.iter().enumerate() {
        let value = VALUES[number % VALUES.len()];
        let (as_discriminator, as_member) = (format!("d{number}"), format!("m{number}"));
        for valid in [
            json!({&as_discriminator: {*name: value, "m": ""}}),
            json!({&as_discriminator: {*name: null}}),
            json!({&as_member: {"kind": value, *name: ""}}),
            json!({&as_member: {"kind": "Other", "n": "", *name: null}}),
        ] {
            let answer = write(&valid);
            assert_eq!(answer.status, 201, "{valid}: {}", answer.body["message"]);
        }
        for (invalid, field, message) in [
            (
                json!({&as_discriminator: {*name: "Other", "m": "", "n": ""}}),
                format!("{as_discriminator}.m"),
                "may only be specified when",
            ),
            (json!({&as_discriminator: {*name: value}}), format!("{as_discriminator}.m"), "must be specified when"),
            (
                json!({&as_discriminator: {*name: null, "m": ""}}),
                format!("{as_discriminator}.{name}"),
                "must be specified when `m` or `n` is set",
            ),
            (
                json!({&as_member: {"kind": "Other", *name: "", "n": ""}}),
                format!("{as_member}.{name}"),
                "may only be specified when `kind` is",
            ),
            (
                json!({&as_member: {"kind": value, *name: null}}),
                format!("{as_member}.{name}"),
                "must be specified when `kind` is",
            ),
        ] {
            let answer = write(&invalid);
            assert_eq!(answer.status, 422, "{invalid}");
            let causes = answer.body["details"]["causes"].as_array().unwrap();
            let [cause] = causes.as_slice() else { panic!("{invalid}: {causes:?}") };
            assert_eq!(cause["field"], field, "{invalid}");
            assert!(cause["message"].as_str().unwrap().contains(message), "{cause}");
        }
    }
}

#[test]
fn ten_thousand_items_stay_within_the_budget_of_a_write() {
    let Some(native) = Native::shared() else { return };
    let schema = object(json!({"list": Around::Items(10_000).field(union(Shape::Map, "member-", 3), None)}));
    let subject = installed(native, Subject::new(GROUP, "Long", &schema));
    let mut items = vec![json!({"type": "MEMBER-2", "member-2": ""}); 10_000];
    let write = |items: &[Value]| subject.ask(native, None, &json!({"list": items}));
    let answer = write(&items);
    assert_eq!(answer.status, 201, "{}", answer.body["message"]);
    items[9_999]["member-0"] = json!("");
    let answer = write(&items);
    assert_eq!(answer.status, 422);
    assert_eq!(answer.body["details"]["causes"][0]["field"], "list[9999].member-0", "{}", answer.body["message"]);
}
