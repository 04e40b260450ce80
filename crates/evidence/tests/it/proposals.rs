//! Proposed unions: only those that the schema enforces.

use kube_unions_evidence::{Evidence, Proposals, ProposedMember, ProposedUnion};
use serde_json::{Value, json};

/// Returns a schema with `spec`, which has these rules and other keywords, and the fields `type`, `a`, `b`, `c` and `d`.
fn schema(rules: &[&str], keywords: &Value) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    let mut spec = json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
        "type": {"type": "string", "enum": ["A", "B", "N"]},
        "a": {"type": "object"}, "b": {"type": "object"}, "c": {"type": "object"}, "d": {"type": "object"}}});
    spec.as_object_mut().unwrap().extend(keywords.as_object().unwrap().clone());
    json!({"type": "object", "properties": {"spec": spec}})
}

/// Returns a union in short: `spec: a b+c`, with `!` if one is required, or with the values of the discriminator.
fn short(union: &ProposedUnion) -> String {
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

#[test]
fn sentences_that_exclude_fields_suggest_unions() {
    let rows: [([&str; 4], &[&str]); 50] = [
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
        // Fields that go together are a group.
        (["Mutually exclusive with b and c.", "", "", ""], &["spec: a b+c"]),
        (["Mutually exclusive with b.", "", "b and c must be set together.", ""], &["spec: a b+c"]),
        (["Mutually exclusive with b.", "If set, c must also be set.", "", ""], &["spec: a b+c"]),
        // A chain, several that are allowed, other words, and what is not a sibling.
        (["Mutually exclusive with b.", "Mutually exclusive with c.", "", "Only one of c, d."], &[]),
        (["", "", "", "At least one of a, b must be set, at most one of a or b."], &[]),
        (["Either a or b must be set, only one of a or b.", "", "", ""], &[]),
        (["", "", "", "a and b may not both be empty."], &[]),
        (["Either a or a combination of b and c must be set, but not both.", "", "", ""], &[]),
        (["Cannot be set when b is large.", "", "", ""], &[]),
        (["Mutually exclusive with x.", "Only one of them.", "", ""], &[]),
        (["Mutually exclusive with a.", "", "", "Only one of a is set."], &[]),
    ];
    for (descriptions, want) in rows {
        assert_eq!(suggested(descriptions, &json!({})), want, "{descriptions:?}");
    }
    let exclusive = ["Mutually exclusive with b.", "", "", ""];
    assert_eq!(suggested(exclusive, &json!({"required": ["b"]})), [""; 0]);
    assert_eq!(suggested(exclusive, &json!({"not": {"required": ["a", "b"]}})), [""; 0], "it is proven");
}

#[test]
fn sentences_about_values_suggest_unions() {
    let rows: [([&str; 3], &[&str]); 14] = [
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
        // Another value, a negation, another field, and a requirement.
        (["Only used if type is Z.", "Only used if type is not X.", "Only used if name is X."], &[]),
        (["Required if type is X.", "Only used, if type is X it is ignored.", ""], &[]),
        // What is ignored with other values may be set with them, another subject, and a field that needs another one.
        (["Only considered if type is X.", "Only taken into account when type is X.", "Requires on to be true."], &[]),
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
}

#[test]
fn a_field_and_its_source_are_alternatives_if_a_sentence_says_or() {
    let rows: [([&str; 2], [&str; 2], &[&str]); 9] = [
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
        // Names of something else, several at once, and no such words.
        (["token", "user"], ["Either `token` or `user` is required.", ""], &[]),
        (["token", "tokenFile"], ["The token and/or tokenFile.", ""], &[]),
        (["token", "tokenFile"], ["The token.", "The tokenFile has the token."], &[]),
    ];
    for (names, texts, want) in rows {
        let fields = names.into_iter().zip(texts);
        let fields = fields.map(|(name, text)| (name.to_owned(), json!({"type": "string", "description": text})));
        let spec = json!({"type": "object", "properties": fields.collect::<serde_json::Map<_, _>>()});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let found: Vec<String> = Proposals::of(&schema).suggestions(&schema).iter().map(short).collect();
        assert_eq!(found, want, "{names:?} {texts:?}");
    }
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

    // Of the types in a template, those are suggested whose unions its declaration does not have.
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
