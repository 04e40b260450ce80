//! Compiling through the public interface of the crate. Tests of the program run the compiled policies on an API server.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets an unexpected state stops"
)]

mod json_schema;
mod names;
mod rows;
mod touched;
mod types;

use fixtures::crds;
use fixtures::reviews::{declaration, declared_catalog};
use kube_unions_core::catalog::{Builder, Catalog};
use kube_unions_core::declaration::Definition;
use kube_unions_policies::{
    CompiledPolicies, KubernetesVersion, PolicyObject, PolicyOptions, PolicyRatcheting, PolicyTarget, RefusalReason,
    compile,
};
use serde_json::{Value, json};

/// Returns an object with a union of the 2022 form, `type` over `a` and `b`.
fn union() -> Value {
    json!({"type": "object", "properties": {
        "type": {"type": "string", "enum": ["A", "B", "None"],
            "x-kubernetes-unions": {"fieldMembers": {"A": {"name": "a"}, "B": {"name": "b", "optional": true}, "None": null}}},
        "a": {"type": "object"}, "b": {"type": "object"}}})
}

/// Returns a catalog with the kind `Thing`, whose `spec` has these properties.
fn thing(properties: &Value) -> Catalog {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
    catalog([crds::crd("example.com", "Thing", &[crds::version("v1", &schema)])])
}

fn catalog(crds: impl IntoIterator<Item = Value>) -> Catalog {
    let mut builder = Builder::new();
    crds.into_iter().for_each(|crd| builder.apply(Definition::from_json(&crd.to_string()).unwrap()));
    builder.build()
}

fn compiled(catalog: &Catalog, options: &PolicyOptions) -> CompiledPolicies {
    let [target] = &PolicyTarget::of_catalog(catalog)[..] else { panic!("one kind") };
    compile(target, options)
}

fn for_version(minor: u32) -> PolicyOptions {
    PolicyOptions { server: KubernetesVersion::new(1, minor), ..PolicyOptions::default() }
}

#[test]
fn a_version_does_what_it_can() {
    let catalog = thing(&json!({"x": union()}));
    let old = compiled(&catalog, &for_version(33));
    let text = serde_json::to_string(&old.objects.iter().map(PolicyObject::to_json).collect::<Vec<_>>()).unwrap();
    assert!(!text.contains("flatten") && !text.contains("sortBy"), "{text}");
    let ancient = compiled(&catalog, &for_version(29));
    assert_eq!((ancient.objects.len(), ancient.refusals.len()), (0, 2));
    let observed = declared(&[("one", json!({"normalization": "Disabled", "validationActions": ["Audit"]}))]);
    let observed = compiled(&observed, &for_version(33));
    assert_eq!((observed.refusals.len(), works(&observed)), (0, vec![("audit".to_owned(), json!(["Audit"]))]));
}

#[test]
fn options_select_requests_and_metadata() {
    let options = PolicyOptions {
        excluded_namespaces: vec!["b".to_owned(), "a".to_owned(), "b".to_owned()],
        labels: [("k".to_owned(), "v".to_owned())].into(),
        ratcheting: PolicyRatcheting::Warn,
        ..PolicyOptions::default()
    };
    let compiled = compiled(&thing(&json!({"x": union()})), &options);
    assert!(compiled.objects.iter().all(|object| object.to_json()["metadata"]["labels"]["k"] == "v"));
    let [deny, warn] = [2, 4].map(|at| compiled.objects[at].to_json()["spec"]["matchConstraints"].clone());
    let operations = |constraints: &Value| constraints["resourceRules"][0]["operations"].clone();
    assert_eq!(operations(&deny), json!(["CREATE", "UPDATE"]));
    assert_eq!(operations(&warn), json!(["UPDATE"]), "a choice that is created is not an old one");
    let namespaces = [
        json!({"key": "kube-unions.dev/enforcement", "operator": "NotIn", "values": ["disabled"]}),
        json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["a", "b"]}),
    ];
    assert_eq!(deny["namespaceSelector"]["matchExpressions"], json!(namespaces));
}

#[test]
fn places_in_lists_are_refused_for_versions_without_list_functions() {
    let list = json!({"type": "array", "items": union()});
    let compiled = compiled(&thing(&json!({"list": list, "x": union()})), &for_version(34));
    let places: Vec<_> = compiled.refusals.iter().filter_map(|refusal| refusal.place.clone()).collect();
    assert_eq!(places, ["spec.list[*]"]);
    assert_eq!(
        compiled.refusals[1].to_string(),
        "example.com/v1, Kind=Thing: the union at spec.list[*]: policies of Kubernetes 1.34 cannot look into lists and maps; \
         use 1.35 or newer, or the webhook"
    );
    assert_eq!(compiled.objects.len(), 2, "the other place has its policies");
}

#[test]
fn kinds_that_repair_a_cluster_and_names_that_no_patch_can_carry_are_refused() {
    let schema = json!({"type": "object", "properties": {"x": union()}});
    let exempt = catalog([crds::crd("flowcontrol.apiserver.k8s.io", "Thing", &[crds::version("v1", &schema)])]);
    let refused = compiled(&exempt, &PolicyOptions::default());
    assert_eq!((refused.objects.len(), &refused.refusals[0].reason), (0, &RefusalReason::ExemptKind));
    for name in ["", "\n", "a\tb", "\u{7f}"] {
        let hostile = compiled(&thing(&json!({name: union(), "x": union()})), &PolicyOptions::default());
        assert_eq!(hostile.refusals[0].reason, RefusalReason::UnprintableName(name.to_owned()));
        assert_eq!(hostile.objects.len(), 4, "the other union has its policies");
    }
}

/// Returns a catalog with `one` and `two`, unions of declarations with these specs.
fn declared(specs: &[(&str, Value)]) -> Catalog {
    let pair = json!({"type": "object", "properties": {"type": {"type": "string"}, "a": {"type": "object"}, "b": {"type": "object"}}});
    let schema = json!({"type": "object", "properties": {"one": pair, "two": pair}});
    let declarations: Vec<_> = specs
        .iter()
        .map(|(path, spec)| {
            let mut spec = spec.clone();
            spec["unions"] = json!([{"path": path, "fieldsToDiscriminateBy": {"a": "A", "b": "B"}}]);
            declaration(path, "example.com", "Thing", &spec)
        })
        .collect();
    declared_catalog(&crds::crd("example.com", "Thing", &[crds::version("v1", &schema)]), &declarations)
}

/// Returns the works of the policies, and the actions of their bindings.
fn works(compiled: &CompiledPolicies) -> Vec<(String, Value)> {
    let bindings = compiled.objects.iter().filter(|object| object.kind().ends_with("Binding"));
    let work = |object: &PolicyObject| {
        let name = object.name().strip_prefix("unions-things.example.com-").unwrap().to_owned();
        (name, object.to_json()["spec"]["validationActions"].clone())
    };
    bindings.map(work).collect()
}

#[test]
fn each_set_of_actions_has_a_policy_of_its_own_and_unions_that_are_only_judged_have_no_mutation() {
    let normalize = || ("normalize".to_owned(), Value::Null);
    let actions = |name: &str, actions: Value| (name.to_owned(), actions);
    for (spec, wanted) in [
        (json!({"validationActions": ["Audit"]}), vec![normalize(), actions("audit", json!(["Audit"]))]),
        (
            json!({"normalization": "Disabled", "validationActions": ["Audit"]}),
            vec![actions("audit", json!(["Audit"]))],
        ),
        (
            json!({"normalization": "Disabled", "validationActions": ["Audit", "Warn"]}),
            vec![actions("warn-audit", json!(["Warn", "Audit"]))],
        ),
        (
            json!({"normalization": "Disabled", "validationActions": ["Deny", "Audit"]}),
            vec![actions("deny-audit", json!(["Deny", "Audit"])), actions("warn-audit", json!(["Warn", "Audit"]))],
        ),
    ] {
        let compiled = compiled(&declared(&[("one", spec.clone())]), &PolicyOptions::default());
        assert_eq!((works(&compiled), &compiled.refusals[..]), (wanted, &[][..]), "{spec}");
    }
    let mixed = [("one", json!({"normalization": "Disabled", "validationActions": ["Audit"]})), ("two", json!({}))];
    let compiled = compiled(&declared(&mixed), &PolicyOptions::default());
    let wanted = [normalize(), actions("deny", json!(["Deny"])), actions("audit", json!(["Audit"]))];
    assert_eq!(works(&compiled), wanted);
    let text = |name: &str| {
        let object = compiled.objects.iter().find(|object| object.name().ends_with(name)).unwrap();
        object.to_json().to_string()
    };
    assert!(!text("-normalize").contains("one") && text("-normalize").contains("two"));
    assert!(text("-audit").contains("one") && !text("-audit").contains("two"));
}

#[test]
fn one_version_stands_for_a_kind_and_status_has_policies_of_its_own() {
    let schema = json!({"type": "object", "properties": {"status": union()}});
    let mut old = crds::version("v2", &schema);
    old["subresources"] = json!({"status": {}});
    let mut stored = old.clone();
    stored["name"] = "v1".into();
    stored["storage"] = true.into();
    let compiled = compiled(&catalog([crds::crd("example.com", "Thing", &[old, stored])]), &PolicyOptions::default());
    let policy = compiled.objects[0].to_json();
    let rule = &policy["spec"]["matchConstraints"]["resourceRules"][0];
    assert_eq!(rule["apiVersions"], json!(["v2"]), "the version that Kubernetes prefers");
    assert_eq!(rule["resources"], json!(["things/status"]));
    assert_eq!(policy["metadata"]["name"], "unions-things.example.com-status-normalize");
}

#[test]
fn an_expression_is_never_deeper_than_an_api_server_parses() {
    let deep = (0..40).fold(union(), |inner, _| json!({"type": "object", "properties": {"field": inner}}));
    let compiled = compiled(&thing(&json!({"x": deep})), &PolicyOptions::default());
    let policy = compiled.objects[0].to_json();
    let variables = policy["spec"]["variables"].as_array().unwrap();
    let conditions = policy["spec"]["matchConditions"].as_array().unwrap();
    let steps = |it: &Value| it["expression"].as_str().unwrap().matches(".map(").count();
    assert!(variables.iter().chain(conditions).all(|it| steps(it) < 40), "a long path is followed in several steps");
}

/// Versions of a CRD: v1 and v1beta1 have the members `a` and `b`, v2 has `c` as well, and v3 has none.
fn catalog_of_versions(grown: bool) -> Catalog {
    let version = |name: &str, members: &[&str]| {
        let members: serde_json::Map<String, Value> =
            members.iter().map(|name| ((*name).to_owned(), json!({"type": "object"}))).collect();
        let values: serde_json::Map<String, Value> =
            members.keys().map(|name| (name.clone(), name.to_uppercase().into())).collect();
        let mut spec = json!({"type": "object", "properties": members});
        if !values.is_empty() {
            spec["x-kubernetes-unions"] = json!([{"fields-to-discriminateBy": values}]);
        }
        crds::version(name, &json!({"type": "object", "properties": {"spec": spec}}))
    };
    let newest: &[&str] = if grown { &["a", "b", "c"] } else { &["a", "b"] };
    let versions =
        [version("v1beta1", &["a", "b"]), version("v1", &["a", "b"]), version("v2", newest), version("v3", &[])];
    catalog([crds::crd("versions.example", "Thing", &versions)])
}

#[test]
fn versions_with_other_unions_have_policies_of_their_own() {
    let rules = |catalog: &Catalog| {
        let targets = PolicyTarget::of_catalog(catalog);
        let objects = targets.iter().flat_map(|target| compile(target, &PolicyOptions::default()).objects);
        let policies = objects.map(|object| object.to_json()).filter(|it| it["kind"] == "ValidatingAdmissionPolicy");
        let described = policies.map(|policy| {
            let constraints = &policy["spec"]["matchConstraints"];
            let first = &policy["spec"]["matchConditions"][0]["expression"];
            let versions = constraints["resourceRules"][0]["apiVersions"].to_string();
            let excluded = first.as_str().and_then(|it| it.strip_prefix("!(request.requestKind.version in "));
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (
                text(&policy["metadata"]["name"]),
                text(&constraints["matchPolicy"]),
                versions,
                excluded.unwrap_or_default().to_owned(),
            )
        });
        described.filter(|it| it.0.ends_with("-deny")).collect::<Vec<_>>()
    };
    let row = |name: &str, policy: &str, version: &str, excluded: &str| {
        (name.to_owned(), policy.to_owned(), format!("[\"{version}\"]"), excluded.to_owned())
    };
    let one = row("unions-things.versions.example-deny", "Equivalent", "v2", "[\"v3\"])");
    assert_eq!(rules(&catalog_of_versions(false)), [one]);
    let newest = row("unions-things.versions.example-deny", "Equivalent", "v2", "[\"v1\", \"v1beta1\", \"v3\"])");
    let (name, policy, _, excluded) = row("unions-things.versions.example-only-v1-deny", "Exact", "", "");
    let others = (name, policy, "[\"v1\",\"v1beta1\"]".to_owned(), excluded);
    assert_eq!(rules(&catalog_of_versions(true)), [newest, others]);
}

#[test]
fn versions_that_differ_in_nulls_or_owners_have_policies_of_their_own() {
    let names = |differs: &dyn Fn(&mut Value)| {
        let union = json!({"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "object"}},
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
        let mut list = json!({"type": "array", "items": {"type": "object", "properties": {"u": union}}});
        list["items"]["properties"]["k"] = json!({"type": "string"});
        list["items"]["required"] = json!(["k"]);
        list["x-kubernetes-list-type"] = "map".into();
        list["x-kubernetes-list-map-keys"] = json!(["k"]);
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"u": union, "l": list}}}});
        let mut other = schema.clone();
        differs(&mut other["properties"]["spec"]["properties"]);
        let versions = [crds::version("v1", &other), crds::version("v2", &schema)];
        PolicyTarget::of_catalog(&catalog([crds::crd("versions.example", "Thing", &versions)])).len()
    };
    assert_eq!(names(&|fields| fields["u"]["description"] = "a".into()), 1);
    assert_eq!(names(&|fields| fields["u"]["x-kubernetes-map-type"] = "atomic".into()), 2);
    assert_eq!(names(&|fields| fields["l"]["items"]["properties"]["u"]["x-kubernetes-map-type"] = "atomic".into()), 2);
    assert_eq!(names(&|fields| fields["l"]["nullable"] = true.into()), 2);
    assert_eq!(names(&|fields| fields["u"]["nullable"] = true.into()), 2);
}

#[test]
fn a_policy_reads_the_manifests_of_the_versions_that_it_judges() {
    let conditions = |catalog: &Catalog| {
        let targets = PolicyTarget::of_catalog(catalog);
        let objects = targets.iter().flat_map(|target| compile(target, &PolicyOptions::default()).objects);
        let described = objects.map(|object| object.to_json()).filter_map(|policy| {
            let expression = policy.pointer("/spec/variables/1/expression")?.as_str()?.to_owned();
            let kind = policy["kind"].as_str()?.trim_end_matches("AdmissionPolicy").to_owned();
            let (_, rest) = expression.split_once(".map(entry, ")?;
            let (condition, _) = rest.split_once(", {")?;
            Some((kind, condition.split_whitespace().collect::<Vec<_>>().join(" ")))
        });
        described.collect::<Vec<_>>()
    };
    let both = |counts: &str| {
        let condition = format!("entry.operation == \"Apply\" && {counts}entry.?subresource.orValue(\"\") == \"\"");
        ["Mutating", "Validating"].map(|kind| (kind.to_owned(), condition.clone()))
    };
    let not_in_v3 = "!(entry.apiVersion in [\"versions.example/v3\"]) && ";
    assert_eq!(conditions(&catalog_of_versions(false)), both(not_in_v3));
    let newest =
        "!(entry.apiVersion in [\"versions.example/v1\", \"versions.example/v1beta1\", \"versions.example/v3\"]) && ";
    let others = "entry.apiVersion in [\"versions.example/v1\", \"versions.example/v1beta1\"] && ";
    assert_eq!(conditions(&catalog_of_versions(true)), [both(newest), both(others)].concat());
    // A kind whose versions all have the same unions.
    let one = conditions(&thing(&json!({"spec": union()})));
    assert_eq!(one.len(), 2, "{one:?}");
    assert!(one.iter().all(|(_, condition)| !condition.contains("apiVersion")), "{one:?}");
}
