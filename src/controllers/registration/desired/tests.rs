use super::super::differences;
use super::super::stored::other_installation;
use super::*;
use rcgen::{CertificateParams, KeyPair};

/// The wanted content of one configuration.
struct Wanted {
    kind: ConfigurationKind,
    intent: Intent,
    bundle: Option<&'static str>,
}

fn desired(stored: Option<&Value>, wanted: &Wanted) -> Option<Value> {
    super::desired(wanted.kind, stored, &wanted.intent, wanted.bundle)
}

fn differences(stored: &Value, desired: &Value) -> Vec<String> {
    differences::differences(ConfigurationKind::Mutating, Some(stored), desired)
}

fn service() -> ServiceReference {
    "kube-unions/kube-unions:8443".parse().unwrap()
}

fn token(digit: u8) -> InspectionToken {
    InspectionToken::from_random([digit; 16])
}

fn owner(uid: &str) -> Owner {
    Owner { name: "kube-unions".to_owned(), uid: uid.to_owned() }
}

fn certificate() -> String {
    CertificateParams::default().self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
}

/// The wanted content when only custom resources have unions.
fn wanted_of(kind: ConfigurationKind, entries: EntryOptions, trust: Trust) -> Wanted {
    let settings = Registration {
        registering: Registering::Everything,
        service: service(),
        entries,
        owner: Some("kube-unions".to_owned()),
        excluded_namespaces: ["b", "a", "kube-system"].map(str::to_owned).into(),
        enforcing: true,
        delay: Duration::ZERO,
    };
    let bundle = if let Trust::Agreed(pem) = &trust { Some(&*pem.to_string().leak()) } else { None };
    let rule = rule(("g", vec!["v1"], "Cluster"), ["things"]);
    let mut intent = Intent::empty(settings, trust, token(1));
    let custom = vec![EntryRules { label: None, condition: None, rules: vec![rule] }];
    intent.rules = Arc::new(RegistrationRules { custom, ..RegistrationRules::default() });
    (intent.inspects_declarations, intent.inspects_definitions) = (true, true);
    intent.owner = Some(owner("1"));
    Wanted { kind, intent, bundle }
}

fn wanted() -> Wanted {
    wanted_of(ConfigurationKind::Mutating, EntryOptions::default(), Trust::Agreed("pem".into()))
}

fn validating() -> Wanted {
    Wanted { kind: ConfigurationKind::Validating, ..wanted() }
}

/// The object as the API server has stored it.
fn stored_of(wanted: &Wanted) -> Value {
    let mut object = desired(None, wanted).unwrap();
    object["metadata"]["resourceVersion"] = json!("7");
    object["metadata"]["uid"] = json!("of-the-configuration");
    object["metadata"]["managedFields"] = json!([{"manager": "kube-unions", "operation": "Apply"}]);
    object
}

fn patched(mut object: Value, patch: Value) -> Value {
    let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
    json_patch::patch(&mut object, &patch).unwrap();
    object
}

fn add(pointer: &str, value: &Value) -> Value {
    json!([{"op": "add", "path": pointer, "value": value}])
}

#[test]
fn every_field_is_written_out() {
    let object = desired(None, &wanted()).unwrap();
    let entry = object["webhooks"][0].as_object().unwrap();
    // All fields of v1 except `matchConditions`, which must be absent.
    assert_eq!(entry.len(), 11, "another field manager could own an omitted field: {entry:?}");
    assert_eq!(
        object["metadata"],
        json!({
            "name": "kube-unions",
            "labels": {"app.kubernetes.io/name": "kube-unions", "app.kubernetes.io/managed-by": "kube-unions"},
            "annotations": {"kube-unions.dev/installation": "kube-unions/kube-unions"},
            "ownerReferences": [{
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "kube-unions", "uid": "1",
            }],
        })
    );
    assert_eq!(
        object["webhooks"][0]["namespaceSelector"]["matchExpressions"][0]["values"],
        json!(["a", "b", "kube-system", "kube-unions"])
    );
}

#[test]
fn without_entries_nothing_is_created() {
    let mut wanted = wanted();
    wanted.intent.rules = Arc::default();
    assert_eq!(desired(None, &wanted), None);
}

#[test]
fn additions_of_other_writers_stay_and_cause_no_write() {
    let stored = stored_of(&wanted());
    assert_eq!(desired(Some(&stored), &wanted()), None);
    let stranger =
        json!({"name": "of.others.example", "clientConfig": {"url": "https://a"}, "fieldOfLater": [1, null]});
    let other_owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "9"});
    for (pointer, value) in [
        ("/webhooks/0", stranger.clone()),
        ("/webhooks/1", stranger),
        ("/webhooks/0/fieldOfLater", json!("Default")),
        ("/webhooks/0/clientConfig/fieldOfLater", json!({})),
        ("/webhooks/0/matchConditions", json!([])),
        ("/webhooks/0/matchConditions", Value::Null),
        ("/metadata/annotations/of", json!("others")),
        ("/metadata/labels/of", json!("others")),
        ("/metadata/finalizers", json!(["of/others"])),
        ("/metadata/ownerReferences/0", other_owner),
        ("/fieldOfLater", json!({"a": [{}]})),
    ] {
        let more = patched(stored.clone(), add(pointer, &value));
        assert_eq!(desired(Some(&more), &wanted()), None, "{pointer}");
    }
}

/// Rows: a change, and the beginning of a reported difference. One write reverts every change.
#[test]
fn every_change_of_our_parts_is_reverted_by_one_write() {
    let stored = stored_of(&wanted());
    let entry = stored["webhooks"][0].as_object().unwrap();
    let mut rows = Vec::new();
    for field in entry.keys().filter(|field| *field != "name") {
        let (path, want) = (format!("/webhooks/0/{field}"), format!("mutate.kube-unions.dev {field}"));
        rows.push((json!([{"op": "remove", "path": path}]), want.clone()));
        rows.push((add(&path, &json!(["other"])), want));
    }
    let changed = [
        ("/webhooks/0/clientConfig/service/port", json!(443), "mutate.kube-unions.dev clientConfig"),
        ("/webhooks/0/clientConfig/caBundle", json!(""), "mutate.kube-unions.dev clientConfig"),
        ("/webhooks/0/clientConfig/url", json!("https://a"), "mutate.kube-unions.dev clientConfig"),
        ("/webhooks/0/clientConfig", json!({"url": "https://a"}), "mutate.kube-unions.dev clientConfig"),
        (
            "/webhooks/0/matchConditions",
            json!([{"name": "a", "expression": "false"}]),
            "mutate.kube-unions.dev matchConditions",
        ),
        ("/webhooks/0/objectSelector/matchLabels", json!({"a": "b"}), "mutate.kube-unions.dev objectSelector"),
        ("/webhooks/0/namespaceSelector/matchLabels", json!({}), "mutate.kube-unions.dev namespaceSelector"),
        ("/webhooks/0/rules/1", json!({}), "mutate.kube-unions.dev rules"),
        (
            "/webhooks/1",
            json!({"name": "mutate.builtin.kube-unions.dev"}),
            "mutate.builtin.kube-unions.dev is not wanted",
        ),
        ("/webhooks/1", stored["webhooks"][0].clone(), "a duplicate entry"),
        ("/webhooks/0/name", json!("a.example"), "mutate.kube-unions.dev is missing"),
        ("/webhooks", json!({"not": "a list"}), "mutate.kube-unions.dev is missing"),
        ("/webhooks", Value::Null, "mutate.kube-unions.dev is missing"),
        ("/webhooks/0", json!({"name": 7}), "mutate.kube-unions.dev is missing"),
        ("/metadata/labels/app.kubernetes.io~1name", json!("else"), "labels `app.kubernetes.io/name`"),
        ("/metadata/labels", json!(["nonsense"]), "labels `app.kubernetes.io/managed-by`"),
        (
            "/metadata/annotations/cert-manager.io~1inject-ca-from",
            json!("a/b"),
            "annotations `cert-manager.io/inject-ca-from`",
        ),
        (
            "/metadata/annotations/kube-unions.dev~1installation",
            json!("a/b"),
            "annotations `kube-unions.dev/installation`",
        ),
        ("/metadata/annotations", json!("nonsense"), "annotations `kube-unions.dev/installation`"),
        ("/metadata/ownerReferences", json!("nonsense"), "ownerReferences"),
        ("/metadata/ownerReferences", json!([]), "ownerReferences"),
        ("/metadata/ownerReferences/0/uid", json!("stale"), "ownerReferences"),
        ("/metadata/ownerReferences/0/blockOwnerDeletion", json!(true), "ownerReferences"),
    ];
    rows.extend(changed.map(|(path, value, want)| (add(path, &value), want.to_owned())));
    for (patch, want) in rows {
        // The first row of a replaced entry leaves it in the place of ours.
        let patch = if patch[0]["path"] == "/webhooks/0" {
            json!([{"op": "replace", "path": "/webhooks/0", "value": patch[0]["value"]}])
        } else {
            patch
        };
        let changed = patched(stored.clone(), patch.clone());
        let written = desired(Some(&changed), &wanted()).unwrap_or_else(|| panic!("no write: {patch}"));
        let found = differences(&changed, &written);
        assert!(found.iter().any(|found| found.starts_with(&want)), "{patch}: {found:?}");
        assert_eq!(desired(Some(&written), &wanted()), None, "{patch}");
        assert_eq!(written["metadata"]["resourceVersion"], "7", "bound to the version that was read");
        let ours: Vec<_> = ours(&written).map(|(_, entry)| entry).collect();
        assert_eq!(ours, [&stored["webhooks"][0]], "{patch}");
    }
}

#[test]
fn a_malformed_object_is_completed() {
    for stored in
        [json!(null), json!([]), json!("a"), json!({}), json!({"metadata": 1, "webhooks": [1, null, "a", []]})]
    {
        let written = desired(Some(&stored), &wanted()).unwrap();
        assert_eq!(ours(&written).count(), 1);
        assert_eq!(desired(Some(&written), &wanted()), None);
        assert_eq!(other_installation(&stored, &service()), None);
        assert!(!differences(&stored, &written).is_empty());
        assert_eq!(with_bundle(&stored, "pem"), None);
        assert!(inspection_token(&stored).is_none());
    }
}

#[test]
fn an_entry_under_another_name_that_calls_our_service_is_removed() {
    let calls = |name: &str, namespace: &str| json!({"name": name, "clientConfig": {"service": {"namespace": namespace, "name": "kube-unions"}}});
    let mut stored = stored_of(&wanted());
    let own = stored["webhooks"][0].clone();
    stored["webhooks"] = json!([calls("a.example", "else"), calls("b.example", "kube-unions"), own]);
    let written = desired(Some(&stored), &wanted()).unwrap();
    assert_eq!(written["webhooks"], json!([calls("a.example", "else"), own]));
    assert_eq!(differences(&stored, &written), ["b.example is not wanted"]);
}

#[test]
fn foreign_owners_stay_and_without_an_owner_of_ours_they_are_unchanged() {
    let other = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "9"});
    let mut stored = stored_of(&wanted());
    stored["metadata"]["ownerReferences"] = json!([owner("stale").reference(), other]);
    let written = desired(Some(&stored), &wanted()).unwrap();
    assert_eq!(written["metadata"]["ownerReferences"], json!([other, owner("1").reference()]));
    let mut without = wanted();
    without.intent.owner = None;
    assert_eq!(desired(Some(&stored), &without), None);
}

#[test]
fn bundle_and_policy_change_in_one_write() {
    let injected =
        || wanted_of(ConfigurationKind::Mutating, EntryOptions::default(), Trust::InjectedFrom("a/b".into()));
    let bundle = BASE64_STANDARD.encode(certificate());
    let with = |bundle: &str| {
        let mut object = stored_of(&injected());
        object["webhooks"][0]["clientConfig"]["caBundle"] = json!(bundle);
        desired(Some(&object), &injected()).unwrap_or(object)
    };
    let fresh = desired(None, &injected()).unwrap();
    assert_eq!(fresh["metadata"]["annotations"]["cert-manager.io/inject-ca-from"], "a/b");
    // Without a usable bundle the policy is `Ignore`, and the stored text stays.
    assert_eq!(fresh["webhooks"][0]["failurePolicy"], "Ignore");
    assert_eq!(fresh["webhooks"][0]["clientConfig"].get("caBundle"), None);
    for bundle in ["", "nonsense", "AAAA"] {
        assert_eq!(with(bundle)["webhooks"][0]["failurePolicy"], "Ignore", "{bundle}");
        assert_eq!(with(bundle)["webhooks"][0]["clientConfig"]["caBundle"], bundle);
    }
    assert_eq!(with(&bundle)["webhooks"][0]["failurePolicy"], "Fail");
    assert_eq!(with(&bundle)["webhooks"][0]["clientConfig"]["caBundle"], bundle.as_str());

    // To cert-manager and back: no step has `Fail` without a bundle.
    let ours = wanted_of(ConfigurationKind::Mutating, EntryOptions::default(), Trust::Agreed(certificate().into()));
    let switched = desired(Some(&stored_of(&ours)), &injected()).unwrap();
    assert_eq!(
        switched["webhooks"],
        stored_of(&ours)["webhooks"],
        "the bundle stays until cert-manager writes its own"
    );
    let back = desired(Some(&with("")), &ours).unwrap();
    assert_eq!(back["webhooks"], stored_of(&ours)["webhooks"]);
    assert_eq!(back["metadata"]["annotations"].get(INJECT), None);
}

#[test]
fn with_bundle_changes_the_bundle_of_our_entries_alone() {
    let mut stored = stored_of(&wanted());
    stored["webhooks"].as_array_mut().unwrap().push(json!({"name": "of.others.example", "clientConfig": {}}));
    assert_eq!(with_bundle(&stored, "pem"), None);
    let written = with_bundle(&stored, "other").unwrap();
    let mut want = stored.clone();
    want["webhooks"][0]["clientConfig"]["caBundle"] = BASE64_STANDARD.encode("other").into();
    assert_eq!(written, want);
}

#[test]
fn a_well_formed_stored_token_is_kept() {
    let path = |object: &Value, entry: usize| object["webhooks"][entry]["clientConfig"]["service"]["path"].clone();
    let fresh = stored_of(&validating());
    let names: Vec<_> = ours(&fresh).map(|(name, _)| name).collect();
    assert_eq!(names, ["validate.kube-unions.dev", "declarations.kube-unions.dev", "definitions.kube-unions.dev"]);
    assert_eq!(inspection_token(&fresh), Some(token(1)));
    assert_eq!(
        [path(&fresh, 0), path(&fresh, 1), path(&fresh, 2)],
        [json!("/validate"), json!(token(1).path()), json!(token(1).path())]
    );
    let mut other = validating();
    other.intent.fresh = token(2);
    assert_eq!(desired(Some(&fresh), &other), None, "the token of another replica is kept");
    // Every entry for inspections gets the stored token, or a fresh one if none is stored.
    for (entries, kept) in [(&[1][..], 1), (&[2], 1), (&[1, 2], 2)] {
        let mut stored = fresh.clone();
        for &entry in entries {
            stored["webhooks"][entry]["clientConfig"]["service"]["path"] = json!("/validate/inspect/short");
        }
        let written = desired(Some(&stored), &other).unwrap();
        assert_eq!([path(&written, 1), path(&written, 2)], [token(kept).path(), token(kept).path()].map(Value::from));
        assert!(differences(&stored, &written).iter().all(|found| !found.contains("inspect/")));
    }
}

#[test]
fn options_apply_to_the_entries_for_objects_alone() {
    let options = EntryOptions {
        failure_policy: FailurePolicy::Ignore,
        timeout_seconds: 7,
        match_conditions: r#"[{"name": "a", "expression": "true"}]"#.parse().unwrap(),
        object_selector: r#"{"matchLabels": {"c": "d"}}"#.parse().unwrap(),
        namespace_selector: r#"{"matchLabels": {"e": "f"}, "matchExpressions": [{"key": "g", "operator": "Exists"}]}"#
            .parse()
            .unwrap(),
        ..EntryOptions::default()
    };
    let wanted = wanted_of(ConfigurationKind::Validating, options, Trust::Agreed("pem".into()));
    let object = desired(None, &wanted).unwrap();
    let [entry, declarations] = [0, 1].map(|index: usize| &object["webhooks"][index]);
    assert_eq!(entry["failurePolicy"], "Ignore");
    assert_eq!(entry["timeoutSeconds"], 7);
    assert_eq!(entry["matchConditions"], json!([{"name": "a", "expression": "true"}]));
    assert_eq!(entry["objectSelector"], json!({"matchLabels": {"c": "d"}}));
    let always = declarations["namespaceSelector"]["matchExpressions"].as_array().unwrap();
    let mut all = always.clone();
    all.push(json!({"key": "g", "operator": "Exists"}));
    assert_eq!(entry["namespaceSelector"], json!({"matchLabels": {"e": "f"}, "matchExpressions": all}));
    assert_eq!(always.len(), 2);
    assert_eq!([&declarations["timeoutSeconds"], &declarations["objectSelector"]], [&json!(5), &json!({})]);
    let changed = patched(stored_of(&wanted), json!([{"op": "remove", "path": "/webhooks/0/matchConditions"}]));
    assert_eq!(
        differences(&changed, &desired(Some(&changed), &wanted).unwrap()),
        ["validate.kube-unions.dev matchConditions"]
    );
}

/// Rows: the annotation, the Services that our entries call, and the other installation.
#[test]
fn a_configuration_is_of_another_installation_if_neither_annotation_nor_entries_name_ours() {
    let (own, other) = ("kube-unions/kube-unions", "else/kube-unions");
    for (annotation, called, want) in [
        (None, &[][..], None),
        (Some(own), &[], None),
        (Some(own), &[other], None),
        (Some(other), &[own], None),
        (Some(other), &[other, own], None),
        (None, &[own, other], None),
        (Some(other), &[], Some(other)),
        (Some(other), &[other], Some(other)),
        (None, &[other], Some(other)),
        (Some(""), &[], None),
        (Some(" \t"), &[], None),
        (Some(""), &[other], Some(other)),
    ] {
        let entry = |called: &&str| {
            let (namespace, name) = called.split_once('/').unwrap();
            json!({"name": "mutate.kube-unions.dev", "clientConfig": {"service": {"namespace": namespace, "name": name}}})
        };
        let mut stored =
            json!({"metadata": {"name": "kube-unions"}, "webhooks": called.iter().map(entry).collect::<Vec<_>>()});
        if let Some(annotation) = annotation {
            stored["metadata"]["annotations"] = json!({"kube-unions.dev/installation": annotation});
        }
        let found = other_installation(&stored, &service());
        assert_eq!(found.as_deref(), want, "{annotation:?} {called:?}");
    }
    let stranger = json!({"webhooks": [{"name": "of.others.example", "clientConfig": {"service": {"namespace": "a", "name": "b"}}}]});
    assert_eq!(other_installation(&stranger, &service()), None);
}

/// Conditions of the user and ours stand beside each other, and each class has its timeout.
#[test]
fn an_entry_has_its_label_its_condition_and_the_timeout_of_its_class() {
    let options = EntryOptions {
        match_conditions: r#"[{"name": "a", "expression": "true"}]"#.parse().unwrap(),
        ..EntryOptions::default()
    };
    let mut wanted = wanted_of(ConfigurationKind::Mutating, options, Trust::Agreed("pem".into()));
    let entry = |label: Option<&str>, resource: &str| EntryRules {
        label: label.map(str::to_owned),
        condition: label.map(|label| format!("object.{label}")),
        rules: vec![rule(("g", vec!["v1"], "Cluster"), [resource])],
    };
    let custom = vec![entry(None, "things"), entry(Some("figs.g"), "figs")];
    let builtin = vec![entry(Some("pods"), "pods")];
    wanted.intent.rules = Arc::new(RegistrationRules { custom, builtin, ..RegistrationRules::default() });
    let object = desired(None, &wanted).unwrap();
    let short = |entry: &Value| {
        let conditions = entry["matchConditions"].as_array().unwrap();
        let conditions = conditions.iter().map(|it| format!("{}: {}", it["name"], it["expression"]));
        let conditions: Vec<String> = conditions.collect();
        format!("{} {} {}", entry["name"], entry["timeoutSeconds"], conditions.join(", ").replace('"', ""))
    };
    let touches = "touches-a-union.kube-unions.dev";
    let want = [
        "\"mutate.kube-unions.dev\" 5 a: true".to_owned(),
        format!("\"mutate.figs.g.kube-unions.dev\" 5 a: true, {touches}: object.figs.g"),
        format!("\"mutate.builtin.pods.kube-unions.dev\" 2 a: true, {touches}: object.pods"),
    ];
    assert_eq!(entries(&object).iter().map(short).collect::<Vec<_>>(), want);
    assert!(ours_are_all(&object));
    // While nobody knows which kinds policies enforce, rules and conditions stay as they are.
    wanted.intent.keeps_rules = true;
    assert_eq!(desired(Some(&object), &wanted), None);
    wanted.intent.rules = Arc::default();
    let written = desired(Some(&object), &wanted).unwrap();
    assert_eq!(ours(&written).count(), 0, "there is nothing to send");
    // A user who waits for built-in types waits as long as for others.
    wanted.intent.settings.entries.builtin_failure_policy = FailurePolicy::Fail;
    assert_eq!(wanted.intent.settings.entries.builtin_timeout_seconds(), 5);
}

/// While the rules stay as they are, kinds may get other unions. The old condition would skip writes that touch them.
///
/// Rows: the entry of a catalog that changed since, and the condition that the stored entry then has.
#[test]
fn an_entry_whose_rules_are_kept_has_the_condition_that_its_kinds_have_now() {
    let entry = |label: &str, condition: &str, versions: &[&'static str], resources: &[&str]| EntryRules {
        label: Some(label.to_owned()),
        condition: Some(condition.to_owned()),
        rules: vec![rule(("g", versions.to_vec(), "Cluster"), resources.iter().copied())],
    };
    let v1 = &["v1"][..];
    let old = || entry("figs.g", "old", v1, &["figs", "pears"]);
    let rows = [
        (vec![old()], Some("old")),
        (vec![entry("figs.g", "new", v1, &["figs", "pears"])], Some("new")),
        (vec![entry("apples.g", "new", v1, &["apples", "figs", "pears"])], Some("new")),
        (vec![entry("figs.g", "new", &["v1", "v2"], &["figs", "pears"])], Some("new")),
        // The kinds have different conditions by now, one has none any more, or a version of one is gone.
        (vec![entry("figs.g", "old", v1, &["figs"]), entry("pears.g", "new", v1, &["pears"])], None),
        (vec![EntryRules { label: None, condition: None, ..old() }], None),
        (vec![entry("figs.g", "old", v1, &["figs"])], None),
        (vec![entry("figs.g", "old", &["v2"], &["figs", "pears"])], None),
    ];
    for (custom, want) in rows {
        let mut wanted = wanted_of(ConfigurationKind::Mutating, EntryOptions::default(), Trust::Agreed("pem".into()));
        let rules = |custom| Arc::new(RegistrationRules { custom, ..RegistrationRules::default() });
        wanted.intent.rules = rules(vec![old()]);
        let stored = desired(None, &wanted).unwrap();
        let told = format!("{custom:?}");
        wanted.intent.rules = rules(custom);
        wanted.intent.keeps_rules = true;
        let now = desired(Some(&stored), &wanted).unwrap_or_else(|| stored.clone());
        assert_eq!(entries(&now)[0]["rules"], entries(&stored)[0]["rules"], "{told}");
        assert_eq!(entries(&now)[0].pointer("/matchConditions/0/expression"), want.map(Value::from).as_ref(), "{told}");
    }
}

/// Returns true if all entries of a configuration have names of ours.
fn ours_are_all(object: &Value) -> bool {
    ours(object).count() == entries(object).len()
}

/// Rows: a name of an entry, and whether it is ours.
#[test]
fn a_name_of_ours_has_our_domain_and_begins_with_a_phase() {
    for (name, want) in [
        ("mutate.kube-unions.dev", true),
        ("validate.builtin.kube-unions.dev", true),
        ("mutate.figs.example.com.kube-unions.dev", true),
        ("validate.builtin.deployments.apps.kube-unions.dev", true),
        ("declarations.kube-unions.dev", true),
        ("mutated.kube-unions.dev", false),
        ("kube-unions.dev", false),
        ("audit.kube-unions.dev", false),
        ("mutate.figs.example.com", false),
    ] {
        assert_eq!(is_ours(name), want, "{name}");
    }
}
