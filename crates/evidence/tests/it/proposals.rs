//! Proposed unions: only those that the schema enforces.

use kube_unions_evidence::{Evidence, Proposals, ProposedMember, ProposedUnion};
use serde_json::{Value, json};

/// Returns a schema with `spec`, which has these rules and other keywords, and the fields `type`, `a`, `b`, `c` and `d`.
pub(crate) fn schema(rules: &[&str], keywords: &Value) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    let mut spec = json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
        "type": {"type": "string", "enum": ["A", "B", "N"]},
        "a": {"type": "object"}, "b": {"type": "object"}, "c": {"type": "object"}, "d": {"type": "object"}}});
    spec.as_object_mut().unwrap().extend(keywords.as_object().unwrap().clone());
    json!({"type": "object", "properties": {"spec": spec}})
}

/// Returns a union in short: `spec: a b+c`, with `!` if one is required, or with the values of the discriminator.
pub(crate) fn short(union: &ProposedUnion) -> String {
    let ProposedUnion { path, discriminator, choices, exactly_one, empty_is_unset, .. } = union;
    let empty: Vec<String> = empty_is_unset.iter().map(|member| format!(" -{member}")).collect();
    let choices = choices.iter().map(|choice| {
        let optional = |it: &ProposedMember| if it.optional && discriminator.is_some() { "?" } else { "" };
        let members: Vec<String> = choice.members.iter().map(|it| format!("{}{}", it.name, optional(it))).collect();
        let selected = if members.is_empty() { "-".to_owned() } else { members.join("+") };
        if discriminator.is_some() { format!("{}={selected}", choice.value) } else { selected }
    });
    let (choices, empty) = (choices.collect::<Vec<_>>().join(" "), empty.concat());
    let discriminator = discriminator.as_ref().map_or_else(String::new, |name| format!("{name}: "));
    format!("{path}: {discriminator}{choices}{}{empty}", if *exactly_one { "!" } else { "" })
}

fn proposed(rules: &[&str], keywords: &Value) -> Vec<String> {
    Proposals::of(&schema(rules, keywords)).unions.iter().map(short).collect()
}

#[test]
fn rules_that_exclude_each_pair_make_a_union() {
    let rows: &[(&[&str], &[&str])] = &[
        (&["!(has(self.a) && has(self.b))"], &["spec: a b"]),
        (&["[has(self.a),has(self.b),has(self.c)].filter(x,x==true).size() <= 1"], &["spec: a b c"]),
        (&["[has(self.a),has(self.b)].filter(x,x==true).size() == 1"], &["spec: a b!"]),
        (&["(has(self.a)?1:0)+(has(self.b)?1:0)+(has(self.c)?1:0) == 1"], &["spec: a b c!"]),
        (&["has(self.a) != has(self.b)"], &["spec: a b!"]),
        (&["!has(self.a) || !has(self.b)", "has(self.a) || has(self.b)"], &["spec: a b!"]),
        (&["!(has(self.a) && has(self.b))", "!(has(self.c) && has(self.d))"], &["spec: a b", "spec: c d"]),
        (&["has(self.a) != has(self.b)", "has(self.c) != has(self.d)"], &["spec: a b!", "spec: c d!"]),
        (&["self.?a.hasValue() ? !self.?b.hasValue() : true"], &["spec: a b"]),
        (
            &["self.type == 'A' ? has(self.a) : !has(self.a)", "self.type == 'B' ? has(self.b) : !has(self.b)"],
            &["spec: type: A=a B=b N=-"],
        ),
        (&["!has(self.a) || self.type == 'A'", "!has(self.b) || self.type == 'B'"], &["spec: type: A=a? B=b? N=-"]),
        (&["self.type == 'A' ? has(self.a) : !has(self.a)"], &["spec: type: A=a B=- N=-"]),
        (&["self.type == 'A' || !has(self.a)", "self.type != 'N'"], &["spec: type: A=a? B=- N=-"]),
        (
            &[
                "self.type == 'A' ? has(self.a) : !has(self.a)",
                "self.type == 'B' && has(self.b) || self.type == 'A' && !has(self.b)",
            ],
            &["spec: type: A=a B=b N=-"],
        ),
        (&["self.type == 'A' || !has(self.a)", "!has(self.a) || !has(self.b)"], &["spec: a b"]),
        // A field that several values allow is shared.
        (&["self.type == 'N' || has(self.a)", "self.type != 'N' || !has(self.a)"], &["spec: type: A=a B=a N=-"]),
        // Fields of which one excludes several, or requires one that is excluded, go together.
        (&["!has(self.a) || !has(self.b)", "!(has(self.b) && has(self.c))"], &["spec: a+c b"]),
        (&["!(has(self.a) || has(self.c)) || !(has(self.b) || has(self.d))"], &["spec: a+c b+d"]),
        (&["!has(self.c) || has(self.a)", "!(has(self.a) && has(self.b))"], &["spec: a+c b"]),
        (
            &["has(self.a) == has(self.c)", "has(self.c) == has(self.d)", "has(self.a) != has(self.b)"],
            &["spec: a+c+d b!"],
        ),
        (
            &["!has(self.c) || has(self.a)", "has(self.a) != has(self.b)", "!(has(self.c) && has(self.d))"],
            &["spec: a b!", "spec: c d"],
        ),
        // Each field of a large group excludes each other one, and one of them also a field outside.
        (
            &["[has(self.a), has(self.b), has(self.c)].filter(x, x).size() <= 1", "!(has(self.a) && has(self.d))"],
            &["spec: a b c"],
        ),
        // Together or not at all, one-sided, or beyond the library: no unions.
        (&["has(self.a) == has(self.b)"], &[]),
        (&["!has(self.a) || has(self.b)"], &[]),
        (&["has(self.a) || has(self.b)"], &[]),
        (&["self.type != 'A' || has(self.a)"], &[]),
        (&["self.type == 'N'"], &[]),
        (&["self.type == 'B' && has(self.b)"], &["spec: type: A=- B=b N=-"]),
        (&["isURL('x') || !(has(self.a) && has(self.b))"], &[]),
    ];
    for (rules, want) in rows {
        assert_eq!(proposed(rules, &json!({})), *want, "{rules:?}");
    }
}

#[test]
fn a_value_selects_several_fields() {
    let rows: &[(&[&str], &[&str])] = &[
        (
            &[
                "self.type == 'A' ? has(self.a) : !has(self.a)",
                "!has(self.c) || self.type == 'A'",
                "self.type == 'B' || !has(self.b)",
            ],
            &["spec: type: A=a+c? B=b? N=-"],
        ),
        (
            &["(self.type == 'A') == (has(self.a) && has(self.c))", "self.type == 'A' || !has(self.a) && !has(self.c)"],
            &["spec: type: A=a+c B=- N=-"],
        ),
        // Satellites: `c` is set only with `a`, and `d` exactly with `b`.
        (
            &[
                "(self.type == 'A') == has(self.a)",
                "(self.type == 'B') == has(self.b)",
                "!has(self.c) || has(self.a)",
                "has(self.b) == has(self.d)",
            ],
            &["spec: type: A=a+c? B=b+d? N=-"],
        ),
        // A shared field.
        (
            &[
                "self.type == 'A' || !has(self.a)",
                "self.type == 'B' || !has(self.b)",
                "self.type in ['A', 'B'] || !has(self.c)",
            ],
            &["spec: type: A=a?+c? B=b?+c? N=-"],
        ),
        // Two fields of one value that exclude each other are another union.
        (&["self.type == 'A' || !has(self.a) && !has(self.b)", "!(has(self.a) && has(self.b))"], &["spec: a b"]),
        // Each with the other, or both.
        (
            &["self.type == 'A' ? has(self.a) || has(self.b) : !has(self.a) && !has(self.b)"],
            &["spec: type: A=a?+b? B=- N=-"],
        ),
    ];
    for (rules, want) in rows {
        assert_eq!(proposed(rules, &json!({})), *want, "{rules:?}");
    }
    let boolean = json!({"properties": {"on": {"type": "boolean"}, "a": {"type": "object"}, "b": {"type": "string"}, "c": {"type": "string"}}});
    let rows: &[(&[&str], &[&str])] = &[
        (&["self.on ? has(self.a) : !has(self.a)"], &["spec: on: false=- true=a"]),
        (&["self.on || !has(self.a) && !has(self.b)", "!self.on || !has(self.c)"], &["spec: on: false=c? true=a?+b?"]),
        (&["has(self.a) == (self.on == true)"], &["spec: on: false=- true=a"]),
        // A missing value is as `false`.
        (&["has(self.on) && self.on || !has(self.a)"], &["spec: on: false=- true=a?"]),
        (&["!has(self.on) || !self.on || !has(self.a)"], &["spec: on a -on"]),
        (&["has(self.on) && self.on ? !has(self.a) : !has(self.b)"], &["spec: on: =a? false=a? true=b?"]),
        (&["!self.on || has(self.a)"], &[]),
    ];
    for (rules, want) in rows {
        assert_eq!(proposed(rules, &boolean), *want, "{rules:?}");
    }
}

#[test]
fn members_that_count_only_if_they_are_not_empty_make_a_union() {
    let fields = json!({"properties": {
        "type": {"type": "string", "enum": ["A", "B"]},
        "list": {"type": "array", "items": {"type": "string"}},
        "some": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "text": {"type": "string"}, "flag": {"type": "boolean"}, "count": {"type": "integer"},
        "ref": {"type": "object", "properties": {"conf": {"type": "object"}}},
        "refs": {"type": "object", "properties": {"conf": {"type": "object"}, "other": {"type": "object"}}},
        "a": {"type": "object"}}});
    let rows: &[(&[&str], &[&str])] = &[
        (&["!has(self.list) || size(self.list) == 0 || !has(self.a)"], &["spec: list a -list"]),
        (
            &["!(has(self.list) && self.list.size() > 0 && has(self.text) && self.text != '')"],
            &["spec: list text -list -text"],
        ),
        (&["!(has(self.some) && 0 < size(self.some) && has(self.a))"], &["spec: some a"]),
        (&["!has(self.a) || !has(self.flag) || !self.flag"], &["spec: flag a -flag"]),
        (&["!has(self.a) || !has(self.count) || self.count == 0"], &["spec: count a -count"]),
        (&["!has(self.a) || !has(self.ref) || !has(self.ref.conf)"], &["spec: ref a -ref"]),
        (
            &[
                "[has(self.list) && self.list != [], has(self.text) && self.text != '', has(self.a)].filter(x, x).size() == 1",
            ],
            &["spec: list text a! -list -text"],
        ),
        (
            &[
                "self.type == 'A' || !has(self.list) || size(self.list) == 0",
                "self.type == 'A' ? true : has(self.a)",
                "self.type == 'B' || !has(self.a)",
            ],
            &["spec: type: A=list? B=a -list"],
        ),
        // The contents decide, a value of either sign is not positive, and `refs` may have another field.
        (&["!has(self.list) || size(self.list) < 2 || !has(self.a)"], &[]),
        (&["!has(self.a) || !has(self.count) || self.count < 0"], &[]),
        (&["!has(self.a) || !has(self.refs) || !has(self.refs.conf)"], &[]),
        (&["!has(self.list) || size(self.list) == 0", "!has(self.list) || !has(self.a) || size(self.list) == 0"], &[]),
    ];
    for (rules, want) in rows {
        assert_eq!(proposed(rules, &fields), *want, "{rules:?}");
    }
}

#[test]
fn unions_that_may_not_change_are_marked() {
    let pair = "!(has(self.a) && has(self.b))";
    let rows = [
        ("self == oldSelf", true),
        ("has(self.a) == has(oldSelf.a)", true),
        ("!has(oldSelf.b) || self.b == oldSelf.b", true),
        ("self.c == oldSelf.c", false),
        ("self.a.size == oldSelf.a.size", false),
        ("has(self.c)", false),
    ];
    for (rule, immutable) in rows {
        let found = Proposals::of(&schema(&[pair, rule], &json!({})));
        assert_eq!(found.unions.iter().map(|it| it.immutable).collect::<Vec<_>>(), [immutable], "{rule}");
    }
    let mut of_field = schema(&[pair], &json!({}));
    of_field["properties"]["spec"]["properties"]["b"]["x-kubernetes-validations"] =
        json!([{"rule": "self == oldSelf"}]);
    assert!(Proposals::of(&of_field).unions[0].immutable);
    for (rule, immutable) in
        [("self.spec == oldSelf.spec", true), ("self.spec.b == oldSelf.spec.b", true), ("self.x == oldSelf.x", false)]
    {
        let mut above = schema(&[pair], &json!({}));
        above["x-kubernetes-validations"] = json!([{"rule": rule}]);
        assert_eq!(Proposals::of(&above).unions[0].immutable, immutable, "{rule}");
    }
}

#[test]
fn every_object_has_a_name() {
    let mut root = schema(&["!(has(self.a) && has(self.b))"], &json!({}));
    root["properties"]["metadata"] = json!({"type": "object"});
    for rule in [
        "self.metadata.name == 'default' || !(has(self.spec.a) && has(self.spec.c))",
        "!has(self.metadata.name) || !has(self.spec.a) || !has(self.spec.c)",
        "self.metadata.name == '' || !has(self.spec.a) || !has(self.spec.c)",
    ] {
        root["x-kubernetes-validations"] = json!([{"rule": rule}]);
        let found = Proposals::of(&root);
        assert_eq!(found.unions.len() + found.doubts.len(), 1, "{rule}: {found:?}");
        let want = if rule.contains("default") { "spec: a b" } else { "spec: a b+c" };
        assert_eq!(found.unions.iter().map(short).collect::<Vec<_>>(), [want], "{rule}: {found:?}");
    }
}

#[test]
fn keywords_that_exclude_each_pair_make_a_union() {
    let required = |name: &str| json!({"required": [name]});
    let rows: [(Value, &[&str]); 6] = [
        (json!({"oneOf": [required("a"), required("b"), required("c")]}), &["spec: a b c!"]),
        (json!({"not": {"required": ["a", "b"]}}), &["spec: a b"]),
        (json!({"maxProperties": 1, "minProperties": 1}), &["spec: type a b c d!"]),
        (json!({"anyOf": [required("a"), required("b")]}), &[]),
        (json!({"oneOf": [{"required": ["a", "b"]}, required("c")]}), &[]),
        (json!({"oneOf": [required("a"), {"not": required("a")}]}), &[]),
    ];
    for (keywords, want) in rows {
        assert_eq!(proposed(&[], &keywords), want, "{keywords}");
    }
}

#[test]
fn a_rule_above_the_place_and_a_list_are_places_too() {
    let item = json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let mut root = schema(&[], &json!({}));
    root["x-kubernetes-validations"] = json!([{"rule": "!has(self.spec) || !(has(self.spec.a) && has(self.spec.b))"}]);
    root["properties"]["items"] = json!({"type": "array", "items": item});
    let rules = [
        "self.all(x, !(has(x.c) && has(x.d)))",
        "!self.exists(y, has(y.e) && has(y.f))",
        "self.all(x, has(x.g) && has(x.h))",
    ];
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    let fields: serde_json::Map<_, _> =
        ["c", "d", "e", "f", "g", "h"].map(|name| (name.to_owned(), json!({"type": "string"}))).into_iter().collect();
    let item_with_rules = json!({"type": "object", "properties": fields});
    root["properties"]["ruled"] = json!({"type": "array", "items": item_with_rules, "x-kubernetes-validations": rules});
    root["properties"]["byName"] = json!({"type": "object", "additionalProperties": item});
    let found = Proposals::of(&root);
    assert!(found.complete);
    let short: Vec<_> = found.unions.iter().map(|union| (short(union), union.keyless)).collect();
    let want = [
        ("spec: a b", false),
        ("items[*]: a b!", true),
        ("ruled[*]: c d", true),
        ("ruled[*]: e f", true),
        ("byName.*: a b!", false),
    ];
    assert_eq!(short, want.map(|(union, keyless)| (union.to_owned(), keyless)));
    let positions: Vec<String> =
        found.unions.iter().flat_map(|union| &union.evidence).map(Evidence::position).collect();
    assert_eq!(
        positions,
        [
            "/x-kubernetes-validations/0",
            "/properties/items/items/oneOf",
            "/properties/ruled/x-kubernetes-validations/0",
            "/properties/ruled/x-kubernetes-validations/1",
            "/properties/byName/additionalProperties/oneOf",
        ]
    );
}

#[test]
fn members_that_every_object_has_are_in_doubt() {
    let pair = "!(has(self.a) && has(self.b))";
    let some = "[has(self.a), has(self.b), has(self.c)].filter(x, x).size() <= 1";
    let with_default = json!({"properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "object"}}});
    let of_type = ["self.type == 'A' || !has(self.a)", "self.type == 'B' || !has(self.b)"];
    let both = json!({"required": ["type", "a", "b"]});
    let cannot = "`b` is required, so it cannot be cleared";
    let rows: [(&[&str], Value, &str, &str); 7] = [
        (&[pair], json!({"required": ["a"]}), "a b", "`a` is required, so `b` can never be set"),
        (&[pair], with_default, "a b", "`a` has a default, so `b` can never be set"),
        (&[some], json!({"required": ["c"]}), "a b c", "`c` is required, so `a`, `b` can never be set"),
        (
            &[],
            json!({"required": ["a"], "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            "a b",
            "`a` is required, so `b` can never be set",
        ),
        (&of_type, json!({"required": ["type", "b"]}), "a b", cannot),
        (&of_type, both, "a b", "`a` is required, so it cannot be cleared"),
        // Fields that go together with one that is required are not rejected.
        (
            &[pair, "!has(self.c) || has(self.a)"],
            json!({"required": ["a"]}),
            "a b c",
            "`a` is required, so `b` can never be set",
        ),
    ];
    for (rules, keywords, fields, why) in rows {
        let found = Proposals::of(&schema(rules, &keywords));
        let doubts: Vec<_> = found.doubts.iter().map(|it| (it.fields.join(" "), &*it.why)).collect();
        assert_eq!((found.unions.len(), doubts), (0, vec![(fields.to_owned(), why)]), "{rules:?} {keywords}");
    }
    // A field that only others require, or that excludes nothing, is none.
    for (rules, keywords) in
        [("!has(self.a) || has(self.b)", json!({"required": ["b"]})), (pair, json!({"required": ["c"]}))]
    {
        assert_eq!(Proposals::of(&schema(&[rules], &keywords)).doubts, [], "{rules}");
    }
}

#[test]
fn an_empty_default_counts_as_not_set() {
    let fields = |default: Value| json!({"properties": {"skip": {"type": "boolean", "default": default}, "ca": {"type": "string"}}});
    let rule = ["!self.skip || !has(self.ca)"];
    assert_eq!(proposed(&rule, &fields(json!(false))), ["spec: skip ca -skip"]);
    let found = Proposals::of(&schema(&rule, &fields(json!(true))));
    assert_eq!(
        found.doubts.iter().map(|it| &*it.why).collect::<Vec<_>>(),
        ["`skip` has a default, so it cannot be cleared"]
    );
    let texts = |default: &str| json!({"properties": {"url": {"type": "string", "default": default}, "ref": {"type": "object"}}});
    let rule = ["self.url == '' || !has(self.ref)"];
    assert_eq!(proposed(&rule, &texts("")), ["spec: url ref -url"]);
    assert_eq!(proposed(&rule, &texts("x")), [""; 0]);
    let list = json!({"properties": {"some": {"type": "array", "default": [], "items": {"type": "string"}}, "a": {"type": "object"}}});
    assert_eq!(proposed(&["size(self.some) == 0 || !has(self.a)"], &list), ["spec: some a -some"]);
}

#[test]
fn an_enum_in_all_of_has_the_values_of_a_discriminator() {
    let rules = ["self.type == 'A' ? has(self.a) : !has(self.a)", "self.type == 'B' ? has(self.b) : !has(self.b)"];
    let of = |kind: Value| json!({"required": ["type"], "properties": {"type": kind, "a": {"type": "object"}, "b": {"type": "object"}}});
    for (kind, want) in [
        (json!({"type": "string", "allOf": [{"enum": ["A", "B"]}, {"enum": ["B", "A"]}]}), "spec: type: A=a B=b"),
        (json!({"type": "string", "enum": ["C", "A", "B"], "allOf": [{"enum": ["A", "C"]}]}), "spec: type: C=- A=a"),
    ] {
        assert_eq!(proposed(&rules, &of(kind.clone())), [want], "{kind}");
    }
}

#[test]
fn a_bound_of_the_number_of_fields_makes_a_union() {
    let text = || json!({"type": "string"});
    let fields = json!({"type": text(), "name": text(), "a": text(), "b": text(), "c": text()});
    let rows: [(Value, &[&str]); 8] = [
        (json!({"required": ["type"], "maxProperties": 2}), &["spec: name a b c"]),
        (json!({"required": ["type"], "maxProperties": 2, "minProperties": 2}), &["spec: name a b c!"]),
        (json!({"required": ["type", "name"], "maxProperties": 3, "minProperties": 3}), &["spec: a b c!"]),
        (json!({"allOf": [{"maxProperties": 1}]}), &["spec: type name a b c"]),
        (json!({"maxProperties": 1, "x-kubernetes-preserve-unknown-fields": true}), &["spec: type name a b c"]),
        // Room for two, for none, and no upper bound.
        (json!({"required": ["type"], "maxProperties": 3}), &[]),
        (json!({"required": ["type"], "maxProperties": 1}), &[]),
        (json!({"minProperties": 1}), &[]),
    ];
    for (keywords, want) in rows {
        let mut keywords = keywords;
        keywords["properties"] = fields.clone();
        assert_eq!(proposed(&[], &keywords), want, "{keywords}");
    }
}

#[test]
fn doubtful_groups_say_why() {
    let overlapping =
        ["!(has(self.a) && has(self.b))", "!(has(self.b) && has(self.c))", "!(has(self.c) && has(self.d))"];
    let overlapping = schema(&overlapping, &json!({}));
    let found = Proposals::of(&overlapping);
    assert!(found.unions.is_empty(), "{found:?}");
    assert_eq!(found.doubts[0].fields, ["a", "b"]);
    assert!(found.doubts[0].why.contains("`c`"), "{found:?}");

    let found = Proposals::of(&schema(&["!has(self.type) || self.type == 'A' || !has(self.a)"], &json!({})));
    assert!(found.unions.is_empty(), "{found:?}");
    assert!(found.doubts[0].why.starts_with("`a` is also allowed without `type`"), "{found:?}");

    // Without a value, at most one is set.
    let list = [
        "!has(self.a) || (has(self.type) ? self.type == 'A' : !has(self.b))",
        "!has(self.b) || !has(self.type) || self.type == 'B'",
    ];
    let found = Proposals::of(&schema(&list, &json!({})));
    assert_eq!((found.unions.len(), &*found.doubts[0].fields), (0, &["a".to_owned(), "b".to_owned()][..]), "{found:?}");

    let required = schema(&["!(has(self.a) && has(self.b))"], &json!({"required": ["a"]}));
    let found = Proposals::of(&required);
    assert!(found.unions.is_empty(), "{found:?}");

    let unknown = schema(&["isURL('x') || !(has(self.a) && has(self.b))"], &json!({}));
    let [doubt] = &*Proposals::of(&unknown).doubts else { panic!() };
    assert!(doubt.why.contains("`isURL`"), "{doubt:?}");
}

#[test]
fn a_pair_of_which_one_field_is_in_another_union_is_in_doubt() {
    let (of_a, of_b) = ("!has(self.a) || self.type == 'A'", "!has(self.b) || self.type == 'B'");
    let rows: [(&[&str], &[&str], &[&str]); 4] = [
        (&[of_a, of_b, "!has(self.a) || !has(self.c)"], &["spec: type: A=a? B=b? N=-"], &["a c"]),
        (
            &[of_a, of_b, "!has(self.c) || !has(self.b)", "!has(self.c) || !has(self.d)"],
            &["spec: type: A=a? B=b? N=-", "spec: c d"],
            &["b c"],
        ),
        (&[of_a, of_b, "!has(self.a) || !has(self.b)"], &["spec: type: A=a? B=b? N=-"], &[]),
        (&[of_a, "!has(self.a) || !has(self.c)"], &["spec: a c"], &["type a"]),
    ];
    for (rules, unions, doubts) in rows {
        let found = Proposals::of(&schema(rules, &json!({"required": ["type"]})));
        assert_eq!(found.unions.iter().map(short).collect::<Vec<_>>(), unions, "{rules:?}");
        assert_eq!(found.doubts.iter().map(|it| it.fields.join(" ")).collect::<Vec<_>>(), doubts, "{rules:?}");
        assert!(found.doubts.iter().all(|it| it.why.ends_with("and a field can be in one union only")), "{found:?}");
    }
}

#[test]
fn a_schema_without_validations_has_no_proposals() {
    for schema in [schema(&[], &json!({})), json!(null), json!({"properties": []})] {
        assert_eq!(Proposals::of(&schema), Proposals { complete: true, ..Proposals::default() });
    }
}

#[test]
fn ten_members_that_are_counted_make_a_union() {
    let names: Vec<String> = (0..10).map(|number| format!("m{number}")).collect();
    let sum: Vec<String> = names.iter().map(|name| format!("(has(self.{name}) ? 1 : 0)")).collect();
    let properties: serde_json::Map<_, _> = names.iter().map(|it| (it.clone(), json!({"type": "object"}))).collect();
    let rule = format!("{} <= 1", sum.join(" + "));
    let schema = json!({"type": "object", "properties": properties, "x-kubernetes-validations": [{"rule": rule}]});
    let found = Proposals::of(&schema);
    assert_eq!(found.unions.iter().map(|union| union.members.clone()).collect::<Vec<_>>(), [names]);
}

#[test]
fn fields_of_which_not_every_pair_can_be_tried_are_in_doubt() {
    let names: Vec<String> = (0..120).map(|number| format!("m{number}")).collect();
    let properties: serde_json::Map<_, _> = names.iter().map(|it| (it.clone(), json!({"type": "object"}))).collect();
    let found = Proposals::of(&json!({"type": "object", "properties": properties, "maxProperties": 1}));
    assert_eq!(found.unions, []);
    assert!(found.doubts[0].why.contains("too many fields"), "{:?}", found.doubts[0].why);
}
