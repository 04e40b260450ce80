//! Which unions of built-in kinds need a choice: each is removed from an object, alone and with the object around it.

use serde_json::{Value, json};
use std::collections::BTreeSet;

use crate::builtin::{Objects, collection};
use crate::presets::{POD_SPECS, is_validated, with_pod_spec};
use crate::support::cluster::say;
use crate::support::kind::documents;
use crate::support::process::Workspace;
use crate::support::version::is_served;
use crate::support::webhook::kube_unions;

/// The unions whose object the API server requires where offline commands take a missing one: a field that is a pointer in Go has no default.
const NOT_KNOWN: [(&str, &str); 1] = [("CustomResourceDefinition", "spec.conversion.webhook.clientConfig")];

/// Returns an object of each kind with unions, in which each union has a choice.
fn bases() -> Vec<Value> {
    let [file] = &documents(include_str!("unions.yaml"))[..] else { panic!("unions.yaml has one document") };
    let pods = POD_SPECS.iter().filter(|(_, kind, _)| is_validated(kind));
    let pods = pods.map(|(version, kind, at)| {
        let mut object = with_pod_spec(version, kind, at, "base", &file["pod"]);
        if let Some(more) = file["workloads"].get(kind) {
            json_patch::merge(&mut object, &json!({"spec": more}));
        }
        object
    });
    let others = file["objects"].as_array().unwrap().iter().filter(|object| is_served(object)).cloned();
    let named = others.map(|mut object| {
        let name = object["metadata"]["name"].as_str().unwrap_or("base").to_owned();
        object["metadata"] = json!({"name": name});
        object
    });
    pods.chain(named).collect()
}

/// Returns the unions of a kind, as `explain` has them.
fn unions_of(object: &Value) -> Vec<Value> {
    let (kind, version) = (object["kind"].as_str().unwrap(), object["apiVersion"].as_str().unwrap());
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    let explained = kube_unions(&["explain", kind, "-o", "json"], "").accepted().json();
    let mut kinds = explained.as_array().unwrap().iter();
    let own = kinds.find(|own| own["group"] == group && own["version"] == version);
    own.unwrap_or_else(|| panic!("{kind}"))["unions"].as_array().unwrap().clone()
}

/// Returns the JSON Pointer of the first object at the path of a union.
fn pointer(value: &Value, path: &str) -> Option<String> {
    let Some((step, rest)) = path.split_once('.').or((!path.is_empty()).then_some((path, ""))) else {
        return Some(String::new());
    };
    let Some(name) = step.strip_suffix("[*]") else {
        return Some(format!("/{step}{}", pointer(value.get(step)?, rest)?));
    };
    let mut items = value.get(name)?.as_array()?.iter().enumerate();
    items.find_map(|(index, item)| Some(format!("/{name}/{index}{}", pointer(item, rest)?)))
}

/// An object without the choice of a union.
struct Variant {
    title: String,
    object: Value,
    /// True if commands say that the union is required. `None`: the object around the union is missing.
    is_required: Option<bool>,
    is_known: bool,
}

/// Returns the object without the choice of each union, and without the object of each.
fn variants(base: &Value) -> Vec<Variant> {
    let kind = base["kind"].as_str().unwrap();
    let mut seen = BTreeSet::new();
    let mut variants = Vec::new();
    for union in unions_of(base) {
        let path = union["path"].as_str().unwrap();
        let at = pointer(base, path).unwrap_or_else(|| panic!("the base of {kind} lacks {path}"));
        let mut without_choice = base.clone();
        let object = without_choice.pointer_mut(&at).and_then(Value::as_object_mut).unwrap();
        let members = union["members"].as_array().unwrap().iter().chain([&union["discriminator"]]);
        for name in members.filter_map(Value::as_str) {
            object.remove(name);
        }
        variants.push(Variant {
            title: format!("{kind} {path}: no choice"),
            object: without_choice,
            is_required: union["required"].as_bool(),
            is_known: true,
        });
        let (around, name) = at.rsplit_once('/').unwrap();
        // Nothing but its union is said of a whole `spec`, an item that is missing is no item, and a CRD without a conversion is no object.
        let is_left_out = path.ends_with("[*]") || name == "spec" || path == "spec.conversion";
        if is_left_out || !seen.insert(at.clone()) {
            continue;
        }
        let mut without_object = base.clone();
        without_object.pointer_mut(around).and_then(Value::as_object_mut).unwrap().remove(name).unwrap();
        variants.push(Variant {
            title: format!("{kind} {path}: missing"),
            object: without_object,
            is_required: None,
            is_known: !NOT_KNOWN.contains(&(kind, path)),
        });
    }
    variants
}

/// Returns the numbers of the objects that are invalid by `audit`, which is asked about all at once.
fn invalid(workspace: &Workspace, variants: &[Variant]) -> BTreeSet<usize> {
    let items: Vec<Value> = variants.iter().enumerate().map(|(number, variant)| named(variant, number)).collect();
    let list =
        workspace.write("objects.json", &json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string());
    let report = kube_unions(&["audit", "-o", "json", "-f", list.to_str().unwrap()], "").json();
    let summary = &report["summary"];
    assert_eq!((&summary["objects"], &summary["complete"]), (&json!(variants.len()), &json!(true)), "{report}");
    let findings = report["findings"].as_array().unwrap().iter().filter(|finding| finding["finding"] == "invalid");
    findings.map(|finding| finding["name"].as_str().unwrap().parse().unwrap()).collect()
}

fn named(variant: &Variant, number: usize) -> Value {
    let mut object = variant.object.clone();
    object["metadata"]["name"] = number.to_string().into();
    object
}

#[test]
fn a_union_is_required_where_the_server_requires_a_choice() {
    let Some(objects) = Objects::without_presets() else { return };
    let workspace = Workspace::new("built-in-unions");
    let (mut refused, mut total, mut faults) = (0, 0, Vec::new());
    for base in bases() {
        let path = format!("{}?dryRun=All", collection(&base));
        let send = |object: &Value| objects.send("POST", &path, "application/json", object);
        let answer = send(&base);
        assert!(answer.is_success(), "{base}: {}", answer.body["message"]);
        let variants = variants(&base);
        let invalid = invalid(&workspace, &variants);
        for (number, Variant { title, object, is_required, is_known }) in variants.iter().enumerate() {
            let answer = send(object);
            let is_refused = !answer.is_success();
            let is_right = (invalid.contains(&number) == is_refused) == *is_known;
            if !is_right || is_required.is_some_and(|is_required| is_required != is_refused) {
                faults.push(format!("{title}: required: {is_required:?}: {}", answer.body["message"]));
            }
            refused += usize::from(is_refused);
            total += 1;
        }
    }
    say(&format!("{total} objects without a choice or the object of a union, refused: {refused}"));
    assert!(faults.is_empty(), "{}:\n{}", faults.len(), faults.join("\n"));
    assert!(refused > total / 4 && refused < total, "{refused} of {total}");
}
