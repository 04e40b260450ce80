//! What the API server does around an admission webhook, as far as tests need it: it keeps definitions, writes reviews,
//! applies the patch to the object, shows the result to the validating webhook, and passes the answer on.
//!
//! Every answer that passes through here is held to the rules of the admission API, so that no test has to.

use base64::Engine as _;
use kube_unions::admission::{self, Outcome, Phase, Ratcheting, ReviewError};
use kube_unions::catalog::{Builder, Catalog};
use kube_unions::declaration::{Definition, Severity};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The group of the kinds that tests make up.
pub(crate) const GROUP: &str = "cases.example.com";

/// One version of a CRD whose kind is `Thing`.
pub(crate) fn version(name: &str, schema: &Value, status_subresource: bool) -> Value {
    let mut version =
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}});
    if status_subresource {
        version["subresources"] = json!({"status": {}});
    }
    version
}

/// A CRD of the kind `Thing`.
pub(crate) fn definition(annotations: &Map<String, Value>, versions: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{GROUP}"), "annotations": annotations},
        "spec": {
            "group": GROUP,
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "scope": "Namespaced",
            "versions": versions,
        },
    })
}

/// A catalog of these CRDs, which may earn warnings and nothing worse.
pub(crate) fn catalog(definitions: &[&Value]) -> Catalog {
    let mut builder = Builder::new();
    for definition in definitions {
        builder.apply(Definition::from_json(&definition.to_string()).unwrap());
    }
    let catalog = builder.build();
    let faults = catalog.faults().iter().filter(|fault| fault.severity == Severity::Error);
    let faults: Vec<_> = faults.map(ToString::to_string).collect();
    assert!(faults.is_empty(), "the definitions are meant to be good: {faults:#?}");
    catalog
}

/// The catalog of one CRD with this schema.
pub(crate) fn catalog_of(schema: &Value) -> Catalog {
    catalog(&[&definition(&Map::new(), &[version("v1", schema, false)])])
}

/// An object of the kind `Thing` with these fields.
pub(crate) fn thing(fields: &Value) -> Value {
    let mut object = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Thing",
        "metadata": {"name": "example", "namespace": "default"},
    });
    for (name, value) in fields.as_object().expect("the fields of an object") {
        object[name] = value.clone();
    }
    object
}

/// One write of a client, as it arrives at admission.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) operation: String,
    pub(crate) subresource: Option<String>,
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
    pub(crate) ratcheting: Ratcheting,
    pub(crate) dry_run: bool,
}

impl Write {
    /// A create where there is no old object, else an update.
    pub(crate) fn new(old: Option<Value>, new: Value) -> Self {
        Self {
            operation: if old.is_some() { "UPDATE" } else { "CREATE" }.to_owned(),
            subresource: None,
            old,
            new: Some(new),
            ratcheting: Ratcheting::Enabled,
            dry_run: false,
        }
    }

    /// The same write with another object.
    fn with_object(&self, new: Value) -> Self {
        Self { new: Some(new), ..self.clone() }
    }

    /// The same write with the keys of every object in the opposite order.
    pub(crate) fn with_reversed_keys(&self) -> Self {
        Self { old: self.old.as_ref().map(reversed), new: self.new.as_ref().map(reversed), ..self.clone() }
    }

    /// The review of it, as the API server writes them.
    pub(crate) fn review(&self, uid: &str) -> Value {
        let object = self.new.as_ref().or(self.old.as_ref()).expect("a write is about an object");
        let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let kind = object["kind"].as_str().unwrap();
        let kind_reference = json!({"group": group, "version": version, "kind": kind});
        let resource = json!({"group": group, "version": version, "resource": format!("{}s", kind.to_lowercase())});
        let mut request = json!({
            "uid": uid,
            "kind": kind_reference,
            "resource": resource,
            "requestKind": kind_reference,
            "requestResource": resource,
            "name": object["metadata"]["name"],
            "namespace": "default",
            "operation": self.operation,
            "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
            "object": self.new,
            "oldObject": self.old,
            "dryRun": self.dry_run,
            "options": {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"},
        });
        if let Some(subresource) = &self.subresource {
            request["subResource"] = json!(subresource);
            request["requestSubResource"] = json!(subresource);
        }
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
    }
}

/// One reason of a denial.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cause {
    pub(crate) field: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// What becomes of a write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// Let through, as this object; nothing on a delete.
    Allowed(Option<Value>),
    /// Rejected, for these reasons.
    Denied(Vec<Cause>),
}

/// What the client gets to see, and the operations on the way.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) verdict: Verdict,
    pub(crate) warnings: Vec<String>,
    pub(crate) operations: Vec<Value>,
}

impl Answer {
    /// The object that was let through.
    pub(crate) fn object(&self) -> &Value {
        match &self.verdict {
            Verdict::Allowed(Some(object)) => object,
            Verdict::Allowed(None) | Verdict::Denied(_) => panic!("not let through: {self:?}"),
        }
    }

    /// The warnings that tell of a change, not of a fault that was let through.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &String> {
        self.warnings.iter().filter(|warning| !warning.contains("let through because the union did not change"))
    }
}

/// Takes a write through both webhooks, one after the other, and checks that the phase that does both in one answers
/// the same.
pub(crate) fn admit(catalog: &Catalog, write: &Write) -> Answer {
    let mut answer = ask(catalog, Phase::Mutate, write);
    if let Verdict::Allowed(Some(object)) = &answer.verdict {
        let validated = ask(catalog, Phase::Validate, &write.with_object(object.clone()));
        assert!(validated.operations.is_empty(), "a validating webhook must not patch: {validated:?}");
        answer.warnings.extend(validated.warnings);
        answer.verdict = validated.verdict;
    }
    let both = ask(catalog, Phase::Both, write);
    assert_eq!(both.verdict, answer.verdict, "mutate, then validate, must be the same as both at once");
    if let Verdict::Allowed(_) = answer.verdict {
        assert_eq!(both.operations, answer.operations, "mutate, then validate, must be the same as both at once");
        assert_eq!(
            sorted(&both.warnings),
            sorted(&answer.warnings),
            "mutate, then validate, must be the same as both at once"
        );
    }
    answer.warnings = both.warnings;
    answer
}

/// One webhook call: the review as bytes, the answer taken apart.
pub(crate) fn ask(catalog: &Catalog, phase: Phase, write: &Write) -> Answer {
    let uid = "705ab4f5-6393-11e8-b7cc-42010a800002";
    let body = write.review(uid).to_string();
    let answer = answer(catalog, phase, write.ratcheting, body.as_bytes()).expect("a readable review");
    assert_eq!(answer.uid, uid);
    let mut verdict = answer.verdict;
    if let Verdict::Allowed(object) = &mut verdict {
        object.clone_from(&write.new);
        if let Some(object) = object {
            apply(&answer.operations, object);
        }
    }
    Answer { verdict, warnings: answer.warnings, operations: answer.operations }
}

/// An answer as it stands in the response.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) uid: String,
    /// Without the object: the response has only the patch.
    pub(crate) verdict: Verdict,
    pub(crate) warnings: Vec<String>,
    pub(crate) operations: Vec<Value>,
}

/// Any bytes to the library, and its response held to the rules of the admission API.
pub(crate) fn answer(
    catalog: &Catalog,
    phase: Phase,
    ratcheting: Ratcheting,
    body: &[u8],
) -> Result<RawAnswer, ReviewError> {
    let review = admission::review(catalog, phase, ratcheting, body)?;
    let json: Value = serde_json::from_slice(&review.to_json()).expect("a response is JSON");
    assert_eq!(json["apiVersion"], "admission.k8s.io/v1", "{json}");
    assert_eq!(json["kind"], "AdmissionReview", "{json}");
    assert!(json.get("request").is_none(), "a response does not repeat the request: {json}");
    let response = json["response"].as_object().expect("a response");
    assert_eq!(response["uid"], review.uid(), "{json}");

    let allowed = response["allowed"].as_bool().expect("`allowed` is a boolean");
    let operations = match (response.get("patch"), response.get("patchType")) {
        (None, None) => Vec::new(),
        (Some(patch), Some(kind)) => {
            assert_eq!(kind, "JSONPatch");
            assert_ne!(phase, Phase::Validate, "a validating webhook must not patch");
            assert!(allowed, "a denial carries no patch");
            let bytes = base64::engine::general_purpose::STANDARD.decode(patch.as_str().unwrap()).expect("base64");
            let operations: Vec<Value> = serde_json::from_slice(&bytes).expect("a list of operations");
            assert!(!operations.is_empty(), "an empty patch is no patch");
            operations
        }
        (patch, kind) => panic!("`patch` and `patchType` come together: {patch:?}, {kind:?}"),
    };
    let warnings: Vec<String> =
        response.get("warnings").map_or_else(Vec::new, |list| serde_json::from_value(list.clone()).unwrap());
    assert!(warnings.iter().all(|warning| !warning.is_empty() && warning.len() <= 256), "{warnings:?}");
    assert!(warnings.iter().map(String::len).sum::<usize>() <= 4096, "{warnings:?}");
    assert!(warnings.iter().all(|warning| !warning.chars().any(char::is_control)), "{warnings:?}");
    let verdict = if allowed {
        assert!(
            response.get("status").is_none_or(|status| status["code"].as_u64().is_none_or(|code| code < 400)),
            "{json}"
        );
        Verdict::Allowed(None)
    } else {
        Verdict::Denied(causes(&response["status"]))
    };

    let expected = match (&verdict, operations.is_empty(), warnings.is_empty()) {
        (Verdict::Denied(_), ..) => Outcome::Denied,
        (Verdict::Allowed(_), false, _) => Outcome::Patched,
        (Verdict::Allowed(_), true, false) => Outcome::Warned,
        (Verdict::Allowed(_), true, true) => Outcome::Allowed,
    };
    assert_eq!(review.outcome(), expected, "{json}");
    let removals = operations.iter().filter(|operation| operation["op"] == "remove").count();
    assert_eq!(review.cleared(), removals, "{json}");
    if let Verdict::Denied(causes) = &verdict {
        let fields: Vec<_> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(review.denied_paths(), fields);
    }
    let annotations = audit_annotations(response.get("auditAnnotations"));
    let keys: Vec<_> = annotations.keys().map(String::as_str).collect();
    let let_through = warnings.len() > operations.len();
    let expected = [
        ("cleared", removals > 0),
        ("denied", !allowed),
        ("set", operations.len() > removals),
        ("warned", allowed && let_through),
    ];
    let expected: Vec<_> = expected.into_iter().filter_map(|(key, due)| due.then_some(key)).collect();
    // Of more changes than there can be warnings one can't tell.
    if operations.len() < 8 {
        assert_eq!(keys, expected, "{json}");
    }
    Ok(RawAnswer { uid: review.uid().to_owned(), verdict, warnings, operations })
}

/// What the audit log gets, sorted by key: names that the API server takes, and values that are not too long.
pub(crate) fn audit_annotations(annotations: Option<&Value>) -> BTreeMap<String, String> {
    let Some(annotations) = annotations else { return BTreeMap::new() };
    let annotations: BTreeMap<String, String> = serde_json::from_value(annotations.clone()).expect("a map of strings");
    assert!(!annotations.is_empty(), "no annotations are no map");
    for (key, value) in &annotations {
        assert!(!key.is_empty() && key.bytes().all(|byte| byte.is_ascii_lowercase()), "{key}");
        assert!(!value.is_empty() && value.len() <= 2048 && !value.chars().any(char::is_control), "{key}: {value}");
    }
    annotations
}

/// The causes of a denial, whose status must be the one that clients know from the API server itself.
fn causes(status: &Value) -> Vec<Cause> {
    assert_eq!(status["code"], 422, "{status}");
    assert_eq!(status["reason"], "Invalid", "{status}");
    let details = &status["details"];
    let (group, kind, name) =
        (details["group"].as_str().unwrap(), details["kind"].as_str().unwrap(), details["name"].as_str().unwrap());
    let message = status["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("{kind}.{group} {name:?} is invalid: ")), "{status}");
    let causes: Vec<Cause> = serde_json::from_value(details["causes"].clone()).expect("causes");
    assert!(!causes.is_empty(), "{status}");
    for cause in &causes {
        let begins = match cause.reason.as_str() {
            "FieldValueForbidden" => "Forbidden: ",
            "FieldValueRequired" => "Required value: ",
            "FieldValueNotSupported" => "Unsupported value: ",
            other => panic!("`{other}` is not a reason that a union gives"),
        };
        assert!(cause.message.starts_with(begins), "{cause:?}");
        assert!(!cause.message.chars().any(char::is_control), "{cause:?}");
        assert!(message.contains(&format!("{}: {begins}", cause.field)), "{status}");
    }
    causes
}

/// Applies a patch with a library that is not ours, one operation at a time: each must change something.
pub(crate) fn apply(operations: &[Value], object: &mut Value) {
    for operation in operations {
        let before = object.clone();
        let parsed: json_patch::Patch = serde_json::from_value(json!([operation])).expect("a JSON Patch");
        json_patch::patch(object, &parsed).unwrap_or_else(|error| panic!("{operation} does not apply: {error}"));
        assert_ne!(&before, object, "{operation} changes nothing");
    }
}

/// The same value with the keys of every object in the opposite order.
pub(crate) fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(reversed).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn sorted(warnings: &[String]) -> Vec<&String> {
    let mut warnings: Vec<_> = warnings.iter().collect();
    warnings.sort();
    warnings
}
