//! Manifests that were applied at another version of the kind than that of a request.

use fixtures::applies::{CLIENT_SIDE_APPLY, LAST_APPLIED};
use fixtures::laws::admit_lawfully;
use fixtures::reviews::{GROUP, Verdict, Write, catalog, definition, version};
use kube_unions_core::catalog::Catalog;
use serde_json::{Map, Value, json};

/// The versions of the kind and the members of their unions. Two have the same, and one has no union.
const VERSIONS: [(&str, &[&str]); 5] =
    [("v1", &["a", "b"]), ("v1beta1", &["a", "b"]), ("v2", &["a", "b", "c"]), ("v2beta1", &["b", "c"]), ("v3", &[])];

/// The API versions of manifests, and true if such a manifest counts for a request at `v1`. No CRD has `v9`: the API server would convert
/// an object of it.
const AT_V1: [(&str, bool); 8] = [
    ("cases.example.com/v1", true),
    ("cases.example.com/v1beta1", true),
    ("cases.example.com/v2", false),
    ("cases.example.com/v2beta1", false),
    ("cases.example.com/v3", false),
    ("cases.example.com/v9", true),
    ("other.example.com/v1", false),
    ("v1", false),
];

fn kind() -> Catalog {
    let versions = VERSIONS.map(|(name, members)| {
        let fields: Map<String, Value> =
            ["a", "b", "c", "type"].map(|name| (name.to_owned(), json!({"type": "string"}))).into_iter().collect();
        let mut spec = json!({"type": "object", "properties": fields});
        if !members.is_empty() {
            let values: Value = members.iter().map(|member| (*member, member.to_uppercase())).collect();
            spec["x-kubernetes-unions"] = json!([{"discriminator": "type", "fields-to-discriminateBy": values}]);
        }
        version(name, &json!({"type": "object", "properties": {"spec": spec}}), false)
    });
    catalog(&[&definition(&Map::new(), &versions)])
}

/// The managers of an object: name, operation, API version, and the fields of `spec`.
type Entry<'e> = (&'e str, &'e str, &'e str, &'e [&'e str]);

fn object(at: &str, spec: &Value, entries: &[Entry<'_>]) -> Value {
    let entries = entries.iter().map(|(manager, operation, api_version, fields)| {
        let fields: Value = fields.iter().map(|name| (format!("f:{name}"), json!({}))).collect();
        json!({"manager": manager, "operation": operation, "apiVersion": api_version, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": fields}})
    });
    json!({"apiVersion": format!("{GROUP}/{at}"), "kind": "Thing",
        "metadata": {"name": "example", "namespace": "default", "managedFields": entries.collect::<Vec<_>>()}, "spec": spec})
}

/// Returns the `spec` that is stored, or the messages of a refusal.
fn judged(catalog: &Catalog, manager: &str, old: Value, new: Value) -> Result<Value, Vec<String>> {
    let write = Write { field_manager: Some(manager.to_owned()), ..Write::new(Some(old), new) };
    match admit_lawfully(catalog, &write).verdict {
        Verdict::Allowed(object) => Ok(object.expect("an update has an object")["spec"].take()),
        Verdict::Denied(causes) => Err(causes.into_iter().map(|cause| cause.message).collect()),
    }
}

fn refused(message: &str) -> Result<Value, Vec<String>> {
    Err(vec![format!("Invalid value: {message}")])
}

#[test]
fn the_manifest_of_a_version_that_is_judged_by_the_same_unions_counts() {
    let catalog = kind();
    let (a, b) = (json!({"type": "A", "a": "x"}), json!({"type": "B", "b": "x"}));
    let both = json!({"type": "A", "a": "x", "b": "x"});
    for (api_version, counts) in AT_V1 {
        let new = object("v1", &both, &[("own", "Apply", api_version, &["a", "b"])]);
        let wanted = if counts { refused("the applied manifest sets `a` and `b`; keep one") } else { Ok(b.clone()) };
        assert_eq!(judged(&catalog, "own", object("v1", &a, &[]), new), wanted, "{api_version}");
    }
}

#[test]
fn manifests_of_versions_that_are_judged_by_the_same_unions_contest() {
    let catalog = kind();
    let (a, b) = (json!({"type": "A", "a": "x"}), json!({"type": "B", "b": "x"}));
    let both = json!({"type": "B", "a": "x", "b": "x"});
    for (earlier, earlier_counts) in AT_V1 {
        for (other, other_counts) in AT_V1 {
            let old = object("v1", &b, &[("other", "Apply", other, &["b"]), ("own", "Apply", earlier, &["a"])]);
            let new = object(
                "v1",
                &both,
                &[("other", "Apply", other, &["b"]), ("own", "Apply", "cases.example.com/v1", &["a"])],
            );
            let words = "the applied manifest sets `a`, and the manifest of another field manager sets `b`; keep one";
            let wanted = if earlier_counts && other_counts { refused(words) } else { Ok(a.clone()) };
            assert_eq!(judged(&catalog, "own", old, new), wanted, "{earlier} {other}");
        }
    }
}

#[test]
fn a_manifest_counts_at_each_version_for_itself() {
    let catalog = kind();
    let (a, b) = (json!({"type": "A", "a": "x"}), json!({"type": "B", "b": "x"}));
    let both = json!({"type": "A", "a": "x", "b": "x"});
    for (at, _) in VERSIONS.iter().filter(|(name, members)| members.contains(&"a") && name != &"v1") {
        for (of, _) in VERSIONS {
            let new = object(at, &both, &[("own", "Apply", &format!("{GROUP}/{of}"), &["a", "b"])]);
            let counts = at == &of || ["v1", "v1beta1"].contains(at) && ["v1", "v1beta1"].contains(&of);
            let wanted =
                if counts { refused("the applied manifest sets `a` and `b`; keep one") } else { Ok(b.clone()) };
            assert_eq!(judged(&catalog, "own", object(at, &a, &[]), new), wanted, "{at} {of}");
        }
    }
}

#[test]
fn the_annotation_of_a_version_that_is_judged_by_the_same_unions_counts() {
    let catalog = kind();
    let (a, b) = (json!({"type": "A", "a": "x"}), json!({"type": "B", "b": "x"}));
    let both = json!({"type": "B", "a": "x", "b": "x"});
    let applied = |mut object: Value, api_version: &str| {
        let manifest = json!({"apiVersion": api_version, "kind": "Thing", "spec": {"a": "x"}});
        object["metadata"]["annotations"] = json!({ LAST_APPLIED: manifest.to_string() });
        object
    };
    for (earlier, counts) in AT_V1 {
        let others: &[Entry<'_>] = &[("other", "Apply", "cases.example.com/v1beta1", &["b"])];
        let old = applied(object("v1", &b, others), earlier);
        let new = applied(object("v1", &both, others), "cases.example.com/v1");
        let words = "the applied manifest sets `a`, and the manifest of another field manager sets `b`; keep one";
        let wanted = if counts { refused(words) } else { Ok(a.clone()) };
        assert_eq!(judged(&catalog, CLIENT_SIDE_APPLY, old, new), wanted, "{earlier}");
    }
}

#[test]
fn an_update_is_known_by_its_entry_of_its_version_in_any_order() {
    let catalog = kind();
    let (old, new) = (json!({"type": "B", "b": "x"}), json!({"type": "None", "b": "x"}));
    let apply: Entry<'_> = ("own", "Apply", "cases.example.com/v1beta1", &["b"]);
    let update: Entry<'_> = ("own", "Update", "cases.example.com/v1", &["type"]);
    let stale: Entry<'_> = ("own", "Update", "cases.example.com/v1beta1", &["c"]);
    let differing: Entry<'_> = ("own", "Update", "cases.example.com/v2", &["c"]);
    // Without the entry, the value would be a default, over which the manifest wins.
    for (updates, wanted) in [
        (vec![update], json!({"type": "None"})),
        (vec![update, stale], json!({"type": "None"})),
        (vec![stale, update], json!({"type": "None"})),
        (vec![update, differing], json!({"type": "None"})),
        (vec![differing, update], json!({"type": "None"})),
        (vec![stale, differing], json!({"type": "B", "b": "x"})),
    ] {
        let entries: Vec<Entry<'_>> = [apply].into_iter().chain(updates).collect();
        let before = object("v1", &old, &[apply]);
        let judged = judged(&catalog, "own", before, object("v1", &new, &entries));
        assert_eq!(judged, Ok(wanted), "{entries:?}");
    }
}
