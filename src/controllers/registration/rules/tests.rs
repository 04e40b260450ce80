use super::entries::{MOST_ENTRIES, OTHERS};
use super::*;
use kube_unions_core::catalog::Builder;
use kube_unions_core::declaration::{Declaration, Definition, OpenApi, Severity};
use serde_json::{Value, json};

/// Returns a schema with unions at `spec`, at `status`, or at both.
fn schema(at: &[&str]) -> Value {
    let with = |place: &str| {
        let mut node = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        if at.contains(&place) {
            node["x-kubernetes-unions"] = json!([{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]);
        }
        node
    };
    json!({"type": "object", "properties": {"spec": with("spec"), "status": with("status")}})
}

/// A version: its name, the places of its unions, and true if it has the status subresource.
type TestVersion<'v> = (&'v str, &'v [&'v str], bool);

fn crd(group: &str, kind: &str, scope: &str, versions: &[TestVersion<'_>]) -> Definition {
    let plural = format!("{}s", kind.to_lowercase());
    let versions = versions.iter().map(|(name, unions, status)| {
        let subresources = if *status { json!({"status": {}}) } else { json!({}) };
        json!({"name": name, "schema": {"openAPIV3Schema": schema(unions)}, "subresources": subresources})
    });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "names": {"kind": kind, "plural": plural}, "scope": scope,
                 "versions": versions.collect::<Vec<_>>()},
    });
    Definition::from_json(&crd.to_string()).unwrap()
}

fn rules(definitions: impl IntoIterator<Item = Definition>) -> RegistrationRules {
    let mut builder = Builder::new();
    definitions.into_iter().for_each(|definition| builder.apply(definition));
    let catalog = builder.build();
    assert!(catalog.faults().iter().all(|fault| fault.severity() != Severity::Error), "{:#?}", catalog.faults());
    RegistrationRules::of(&catalog, EntryConditions::None)
}

/// Returns each rule as `group versions resources scope`.
fn short(entries: &[EntryRules]) -> Vec<String> {
    let line = |rule: &Value| {
        assert_eq!(rule["operations"], json!(["CREATE", "UPDATE"]));
        let joined = |field: &str| {
            let texts = rule[field].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
            texts.collect::<Vec<_>>().join(",")
        };
        let (group, scope) = (joined("apiGroups"), rule["scope"].as_str().unwrap());
        format!("{group} {} {} {scope}", joined("apiVersions"), joined("resources"))
    };
    all(entries).map(line).collect()
}

fn all(entries: &[EntryRules]) -> impl Iterator<Item = &Value> {
    entries.iter().flat_map(|entry| &entry.rules)
}

#[test]
fn a_rule_names_exactly_the_resources_that_have_unions() {
    let (spec, status, both): (&[&str], &[&str], &[&str]) = (&["spec"], &["status"], &["spec", "status"]);
    let rows: [(&[TestVersion<'_>], &str, &[&str]); 9] = [
        (&[("v1", &[], true)], "Namespaced", &[]),
        (&[("v1", spec, true)], "Namespaced", &["g v1 things Namespaced"]),
        (&[("v1", spec, true)], "Cluster", &["g v1 things Cluster"]),
        (&[("v1", status, true)], "Namespaced", &["g v1 things/status Namespaced"]),
        (&[("v1", status, false)], "Namespaced", &["g v1 things Namespaced"]),
        (&[("v1", both, true)], "Namespaced", &["g v1 things,things/status Namespaced"]),
        (&[("v1", both, false)], "Namespaced", &["g v1 things Namespaced"]),
        (
            &[("v2", spec, true), ("v1", spec, true), ("v1alpha1", &[], true)],
            "Namespaced",
            &["g v1,v1alpha1,v2 things Namespaced"],
        ),
        (&[("v1", spec, true), ("v2", both, true)], "Namespaced", &["g v1,v2 things,things/status Namespaced"]),
    ];
    for (versions, scope, want) in rows {
        let found = rules([crd("g", "Thing", scope, versions)]);
        assert_eq!(short(&found.custom), want, "{versions:?}");
        assert!(found.builtin.is_empty() && found.excluded.is_empty());
    }
}

#[test]
fn kinds_that_policies_cover_have_no_rule() {
    let v1: &[TestVersion<'_>] = &[("v1", &["spec"], true), ("v2", &["spec"], true)];
    let mut builder = Builder::new();
    for kind in ["Pear", "Plum"] {
        builder.apply(crd("g", kind, "Namespaced", v1));
    }
    let covered = BTreeSet::from([GroupKind::new("g", "Pear"), GroupKind::new("h", "Plum")]);
    let found = RegistrationRules::without(&covered, &builder.build(), EntryConditions::None);
    assert_eq!(short(&found.custom), ["g v1,v2 plums Namespaced"]);
    assert_eq!(found.kinds, BTreeSet::from([GroupKind::new("g", "Plum")]));
}

#[test]
fn resources_of_one_group_version_and_scope_share_a_rule_in_any_order() {
    let definitions = || {
        let v1: &[TestVersion<'_>] = &[("v1", &["spec"], true)];
        vec![
            crd("b.example", "Pear", "Namespaced", v1),
            crd("b.example", "Apple", "Namespaced", v1),
            crd("b.example", "Fig", "Cluster", v1),
            crd("b.example", "Plum", "Namespaced", &[("v1beta1", &["spec", "status"], true)]),
            crd("a.example", "Apple", "Namespaced", v1),
        ]
    };
    let found = rules(definitions());
    assert_eq!(
        short(&found.custom),
        [
            "a.example v1 apples Namespaced",
            "b.example v1 figs Cluster",
            "b.example v1 apples,pears Namespaced",
            "b.example v1beta1 plums,plums/status Namespaced",
        ]
    );
    let mut turned = definitions();
    turned.reverse();
    assert_eq!(rules(turned), found);
    assert_eq!(
        found.custom[0].rules[3],
        json!({"apiGroups": ["b.example"], "apiVersions": ["v1beta1"], "operations": ["CREATE", "UPDATE"],
               "resources": ["plums", "plums/status"], "scope": "Namespaced"})
    );
}

/// Returns a built-in kind with one union declared at `spec`.
fn builtin(group: &str, kind: &str, path: Option<&str>) -> Definition {
    let gvk = json!({"group": group, "version": "v1", "kind": kind});
    let mut described = schema(&[]);
    described["x-kubernetes-group-version-kind"] = json!([gvk]);
    let mut document = json!({"openapi": "3.0.0", "components": {"schemas": {"it": described}}, "paths": {}});
    if let Some(path) = path {
        document["paths"][path] = json!({"put": {"x-kubernetes-group-version-kind": gvk}});
    }
    let document = OpenApi::parse(&document.to_string()).unwrap();
    let mut definition = Definition::from_openapi([&document], group, kind, false).unwrap();
    let declaration = json!({
        "apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": "it"},
        "spec": {"target": {"group": group, "kind": kind},
                 "unions": [{"path": "spec", "fieldsToDiscriminateBy": {"a": "A", "b": "B"}}]},
    });
    let (declaration, faults) = Declaration::from_json(&declaration.to_string()).unwrap();
    assert!(faults.is_empty() && definition.declare(&declaration));
    definition
}

#[test]
fn built_in_types_have_rules_of_their_own() {
    let found = rules([
        builtin("apps", "Deployment", Some("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")),
        builtin("", "PersistentVolume", Some("/api/v1/persistentvolumes/{name}")),
        crd("g", "Thing", "Namespaced", &[("v1", &["spec"], true)]),
    ]);
    assert_eq!(short(&found.builtin), [" v1 persistentvolumes Cluster", "apps v1 deployments Namespaced"]);
    assert_eq!(short(&found.custom), ["g v1 things Namespaced"]);
}

#[test]
fn kinds_that_keep_a_cluster_alive_are_never_registered() {
    let kinds = [
        ("coordination.k8s.io", "Lease", "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"),
        ("", "Event", "/api/v1/namespaces/{namespace}/events/{name}"),
        ("", "Node", "/api/v1/nodes/{name}"),
        ("authentication.k8s.io", "TokenReview", "/apis/authentication.k8s.io/v1/tokenreviews/{name}"),
        (
            "rbac.authorization.k8s.io",
            "RoleBinding",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/{name}",
        ),
        // Another kind that is written through the resource of leases.
        ("coordination.k8s.io", "Foo", "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"),
    ];
    let found = rules(kinds.map(|(group, kind, path)| builtin(group, kind, Some(path))));
    assert!(found.custom.is_empty() && found.builtin.is_empty());
    assert_eq!(found.excluded.len(), kinds.len());
    let own = rules([crd("kube-unions.dev", "UnionDeclaration", "Cluster", &[("v1alpha1", &["spec"], true)])]);
    assert!(own.custom.is_empty() && own.excluded.len() == 1);
}

#[test]
fn a_kind_without_a_resource_is_excluded() {
    let found = rules([builtin("", "Binding", None)]);
    assert!(found.builtin.is_empty());
    assert_eq!(found.excluded[0].0.to_string(), "v1, Kind=Binding");
}

#[test]
fn two_thousand_kinds_in_as_many_groups_fit_into_one_request() {
    let definitions = (0..2_000).map(|number| {
        let group = format!("group-{number:04}.of-a-vendor.example.com");
        crd(&group, "SomeCustomThing", "Namespaced", &[("v1", &["spec", "status"], true)])
    });
    let found = rules(definitions);
    assert_eq!(found.counts(), [2_000, 0]);
    let size = all(&found.custom).map(|rule| rule.to_string().len()).sum::<usize>();
    assert!(size < MOST_BYTES, "{size} bytes");
}

#[test]
fn kinds_with_the_most_versions_have_no_rules_if_all_are_too_large() {
    let many: Vec<String> = (0..64).map(|number| format!("v1{}", "0".repeat(57)) + &format!("{number:04}")).collect();
    let many: Vec<TestVersion<'_>> = many.iter().map(|name| (&**name, &["spec", "status"][..], true)).collect();
    let greedy = (0..200).map(|number| crd(&format!("a{number:03}.example"), "Greedy", "Namespaced", &many));
    let honest = crd("z.example", "Honest", "Namespaced", &[("v1", &["spec"], true), ("v2", &["spec"], true)]);
    let found = rules(greedy.chain([honest]));
    let size = all(&found.custom).map(|rule| rule.to_string().len()).sum::<usize>();
    assert!((MOST_BYTES / 4..MOST_BYTES).contains(&size), "{size} bytes");
    assert!(found.kinds.contains(&GroupKind::new("z.example", "Honest")));
    assert_eq!(found.kinds.len() + found.excluded.len(), 201);
    assert!(found.excluded.iter().all(|(gvk, _)| &*gvk.kind == "Greedy"), "{:?}", found.excluded);
}

fn with(definitions: impl IntoIterator<Item = Definition>, conditions: EntryConditions<'_>) -> RegistrationRules {
    let mut builder = Builder::new();
    definitions.into_iter().for_each(|definition| builder.apply(definition));
    RegistrationRules::of(&builder.build(), conditions)
}

/// Returns each entry as `label condition resources`.
fn entries_of(definitions: impl IntoIterator<Item = Definition>) -> Vec<String> {
    let found = with(definitions, EntryConditions::AllBut { refused: &BTreeSet::new(), repeated: 0 });
    let one = |entry: &EntryRules| {
        let resources: Vec<&str> = entry.rules.iter().map(|rule| rule["resources"][0].as_str().unwrap()).collect();
        let (label, condition) = (entry.label.as_deref().unwrap_or("-"), entry.condition.as_deref().unwrap_or("-"));
        let condition = condition.strip_prefix("request.operation == \"CREATE\" || ").unwrap_or(condition);
        format!("{label}: {condition}: {}", resources.join(","))
    };
    found.custom.iter().chain(&found.builtin).map(one).collect()
}

/// Returns a kind with a union at the root, whose members are `a` and these.
fn at_root(kind: &str, members: &[String]) -> Definition {
    let names = || ["a"].into_iter().chain(members.iter().map(String::as_str)).map(str::to_owned);
    let properties: serde_json::Map<_, _> = names().map(|name| (name, json!({"type": "string"}))).collect();
    let values: serde_json::Map<_, _> = names().map(|name| (name.clone(), name.to_uppercase().into())).collect();
    let union = json!({"fields-to-discriminateBy": values});
    of_schema(kind, &json!({"type": "object", "properties": properties, "x-kubernetes-unions": [union]}))
}

fn of_schema(kind: &str, schema: &Value) -> Definition {
    let plural = format!("{}s", kind.to_lowercase());
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.g")},
        "spec": {"group": "g", "names": {"kind": kind, "plural": plural}, "scope": "Namespaced",
                 "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]},
    });
    Definition::from_json(&crd.to_string()).unwrap()
}

/// Returns kinds with different conditions, each with this number of members.
fn different(count: usize, members: usize) -> Vec<Definition> {
    let member = |kind: usize| move |number| format!("m{kind:02}{}", "x".repeat(number));
    (0..count)
        .map(|kind| at_root(&format!("Kind{kind:02}"), &(0..members).map(member(kind)).collect::<Vec<_>>()))
        .collect()
}

/// Rows: members of each kind, bytes that each entry repeats, and the number of entries with a condition of their own.
#[test]
fn entries_with_conditions_are_bounded_by_what_they_repeat_and_what_they_take_to_compile() {
    for (members, repeated, want) in [
        (1, 0, MOST_ENTRIES),
        (1, 4 << 10, MOST_ENTRIES),
        (1, 64 << 10, 8),
        (1, 300 << 10, 1),
        (1, 1 << 20, 0),
        (20, 0, MOST_ENTRIES),
        (40, 0, 19),
    ] {
        let nothing = BTreeSet::new();
        let found = with(different(70, members), EntryConditions::AllBut { refused: &nothing, repeated });
        let own = found.custom.iter().filter(|entry| entry.label.as_deref().is_some_and(|it| it != OTHERS)).count();
        assert_eq!(own, want, "{members} members, {repeated} bytes");
        assert_eq!(found.kinds.len(), 70, "every kind is registered");
    }
}

#[test]
fn kinds_with_the_same_condition_share_an_entry_and_those_beyond_share_a_coarse_one() {
    let changed = |fields: &[&str]| {
        let each = fields.iter().map(|field| format!("object.?{field} != oldObject.?{field}"));
        each.collect::<Vec<_>>().join(" || ")
    };
    let one = |kind: &str, member: &str| at_root(kind, &[member.to_owned()]);
    let found = entries_of([one("Fig", "c"), one("Apple", "b"), one("Pear", "b"), one("Builtin", "d")]);
    assert_eq!(
        found,
        [
            format!("apples.g: {}: apples", changed(&["a", "b"])),
            format!("builtins.g: {}: builtins", changed(&["a", "d"])),
            format!("figs.g: {}: figs", changed(&["a", "c"])),
        ]
    );
    let found = entries_of(different(MOST_ENTRIES + 3, 1));
    assert_eq!(found.len(), MOST_ENTRIES + 1);
    let rest = found.iter().find(|entry| entry.starts_with("others: ")).unwrap();
    assert_eq!(*rest, format!("others: {}: kind64s", changed(&["a", "m64", "m65", "m66"])));
}

#[test]
fn built_in_kinds_and_those_without_a_coarse_condition_come_before_others() {
    let deduced = |kind: &str| {
        let text = json!({"type": "string"});
        let union = json!({"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}});
        of_schema(
            kind,
            &json!({"type": "object", "properties": {"type": text, "a": text, "b": text}, "x-kubernetes-unions": [union]}),
        )
    };
    let deployments = builtin("apps", "Deployment", Some("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"));
    let nothing = BTreeSet::new();
    let definitions = different(MOST_ENTRIES, 1).into_iter().chain([deduced("Zebra"), deployments]);
    let found = with(definitions, EntryConditions::AllBut { refused: &nothing, repeated: 0 });
    let labels = |entries: &[EntryRules]| -> Vec<String> { entries.iter().filter_map(|it| it.label.clone()).collect() };
    assert_eq!(labels(&found.builtin), ["deployments.apps"]);
    let custom = labels(&found.custom);
    assert!(custom.contains(&"zebras.g".to_owned()) && custom.contains(&OTHERS.to_owned()), "{custom:?}");
    assert_eq!(custom.len(), MOST_ENTRIES);
}

#[test]
fn the_coarse_condition_has_as_many_kinds_as_it_can_compare_fields() {
    let found = entries_of(different(MOST_ENTRIES + 70, 1));
    let parts = |label: &str| {
        let entry = found.iter().find(|entry| entry.starts_with(&format!("{label}: "))).unwrap();
        (entry.matches("object.?a ").count(), entry.matches("object.?m").count())
    };
    // `a` and 63 others; the kinds beyond share the entry without a condition.
    assert_eq!((parts(OTHERS), parts("-")), ((1, 63), (0, 0)));
}

/// Rows: a condition that the API server refuses, and the number of kinds by their conditions.
#[test]
fn kinds_are_counted_by_their_conditions_and_a_refused_condition_is_left_out() {
    let audited = || {
        let mut definition = crd("g", "Audited", "Namespaced", &[("v1", &[], true)]);
        let declaration = json!({
            "apiVersion": "kube-unions.dev/v1alpha1", "kind": "UnionDeclaration", "metadata": {"name": "it"},
            "spec": {"target": {"group": "g", "kind": "Audited"}, "validationActions": ["Audit"],
                     "unions": [{"path": "spec", "fieldsToDiscriminateBy": {"a": "A", "b": "B"}}]},
        });
        let (declaration, faults) = Declaration::from_json(&declaration.to_string()).unwrap();
        assert!(faults.is_empty() && definition.declare(&declaration));
        definition
    };
    let definitions = || {
        let of = |kind: &str, at: &'static [&'static str]| crd("g", kind, "Namespaced", &[("v1", at, true)]);
        [of("Fig", &["spec"]), of("Pear", &["spec"]), of("Plum", &["spec", "status"]), audited()]
    };
    let counts = |found: &RegistrationRules| -> Vec<(&str, usize)> {
        let all = KindCondition::ALL.map(|it| (it.name(), found.conditions.get(&it).copied().unwrap_or_default()));
        all.into_iter().filter(|(_, kinds)| *kinds > 0).collect()
    };
    let nothing = BTreeSet::new();
    let all = with(definitions(), EntryConditions::AllBut { refused: &nothing, repeated: 0 });
    let figs = all.custom.iter().find(|entry| entry.label.as_deref() == Some("figs.g")).unwrap();
    let refused = BTreeSet::from([figs.condition.clone().unwrap()]);
    let without = with(definitions(), EntryConditions::AllBut { refused: &refused, repeated: 0 });
    assert_eq!(counts(&all), [("unions", 3), ("audited", 1)]);
    assert_eq!(counts(&without), [("unions", 1), ("audited", 1), ("refused", 2)]);
    assert_eq!(counts(&with(definitions(), EntryConditions::None)), [("off", 4)]);
    assert_eq!(short(&without.custom[..1]), ["g v1 auditeds,figs,pears Namespaced"]);
    assert_eq!((&without.custom[0].condition, without.custom.len()), (&None, 2));
}

#[test]
fn a_resource_that_makes_no_name_of_an_entry_shares_one() {
    let long = format!("{}.example", vec!["group"; 36].join("."));
    for (group, kind) in [("g", "Thing"), (&*long, "Thing")] {
        let found = entries_of([crd(group, kind, "Namespaced", &[("v1", &["spec"], true)])]);
        let label = if group == "g" { "things.g" } else { OTHERS };
        assert!(found.len() == 1 && found[0].starts_with(&format!("{label}: ")), "{found:?}");
    }
}
