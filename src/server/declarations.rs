//! Reviews of `UnionDeclaration`s themselves: whether one would be in force is asked of an [`Inspector`].
//!
//! An inspector that fails denies nothing: the condition of the declaration will tell. Nor is a declaration denied that
//! says what it said before, so that its labels can be changed although its target has changed.

use crate::admission::Operation;
use crate::declaration::{Fault, Severity};
use crate::telemetry::with_causes;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Finds everything wrong with a declaration, given as the JSON text of the whole object.
pub type Inspector = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Vec<Fault>, InspectorError>> + Send + Sync>;

/// Why an inspector has nothing to say.
pub type InspectorError = Box<dyn std::error::Error + Send + Sync>;

/// The API server waits five seconds for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Past these the API server, or a reader, cuts.
const LONGEST_WARNING: usize = 256;
const MOST_WARNINGS: usize = 12;
const MOST_CAUSES: usize = 256;
const LONGEST_MESSAGE: usize = 8192;

/// A review of a declaration.
pub(super) struct DeclarationReview<'a> {
    uid: Cow<'a, str>,
    operation: Operation,
    name: Cow<'a, str>,
    object: &'a RawValue,
    /// Its spec is what it was.
    unchanged: bool,
}

/// What is answered.
pub(super) struct Answer {
    pub(super) json: Vec<u8>,
    /// The paths of a denial.
    pub(super) denied: Option<Vec<String>>,
    pub(super) warned: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    kind: Kind<'a>,
    #[serde(borrow)]
    operation: Cow<'a, str>,
    #[serde(default, borrow)]
    sub_resource: Option<Cow<'a, str>>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(default, borrow)]
    old_object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow)]
    group: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Metadata,
    spec: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

impl<'a> DeclarationReview<'a> {
    /// `None` where the body is anything else; whoever answers those says what is wrong with it.
    pub(super) fn read(body: &'a [u8]) -> Option<Self> {
        let text = str::from_utf8(body).ok()?;
        // Most bodies are settled by this.
        if !text.contains("\"UnionDeclaration\"") {
            return None;
        }
        let Review { api_version, request } = serde_json::from_str::<Review<'a>>(text).ok()?;
        let Kind { group, kind } = &request.kind;
        if (&*api_version, &**group, &**kind) != ("admission.k8s.io/v1", "kube-unions.dev", "UnionDeclaration")
            || request.uid.is_empty()
            || request.sub_resource.is_some_and(|it| !it.is_empty())
        {
            return None;
        }
        let operation = [Operation::Create, Operation::Update].into_iter().find(|it| it.name() == request.operation)?;
        let object = request.object?;
        let read = |object: &RawValue| serde_json::from_str::<Object>(object.get()).ok();
        let new = read(object)?;
        let unchanged = request.old_object.and_then(read).is_some_and(|old| old.spec == new.spec);
        Some(Self { uid: request.uid, operation, name: new.metadata.name.into(), object, unchanged })
    }

    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    pub(super) fn operation(&self) -> Operation {
        self.operation
    }

    /// What is answered.
    pub(super) async fn answer(&self, inspector: &Inspector) -> Answer {
        let faults = match tokio::time::timeout(PATIENCE, inspector(self.object.get().to_owned())).await {
            Ok(Ok(faults)) => faults,
            Ok(Err(error)) => return self.unchecked(&with_causes(&*error)),
            Err(_elapsed) => return self.unchecked("the cluster did not answer in time"),
        };
        let (errors, warnings): (Vec<_>, Vec<_>) =
            faults.iter().partition(|fault| fault.severity == Severity::Error && !self.unchanged);
        if errors.is_empty() { self.allow(warnings.into_iter().map(say)) } else { self.deny(&errors) }
    }

    fn unchecked(&self, reason: &str) -> Answer {
        tracing::warn!(reason, declaration = &*self.name, "a declaration could not be checked and was let through");
        self.allow([format!("not checked, its condition will tell whether it is in force: {reason}")])
    }

    fn allow(&self, warnings: impl IntoIterator<Item = String>) -> Answer {
        let mut all: Vec<String> = Vec::new();
        for warning in warnings {
            let warning = cut(&warning, LONGEST_WARNING);
            if !all.contains(&warning) {
                all.push(warning);
            }
        }
        if let Some(more) = all.len().checked_sub(MOST_WARNINGS).filter(|more| *more > 0) {
            all.truncate(MOST_WARNINGS);
            all.push(format!("and {more} more warnings"));
        }
        let warned = !all.is_empty();
        let mut response = json!({"uid": self.uid, "allowed": true});
        if let Some(response) = response.as_object_mut().filter(|_| warned) {
            response.insert("warnings".to_owned(), all.into());
        }
        Answer { json: envelope(&response), denied: None, warned }
    }

    fn deny(&self, errors: &[&Fault]) -> Answer {
        let mut causes: Vec<(String, String)> = Vec::new();
        for fault in errors {
            let cause = (field(&fault.pointer), cause(fault));
            // The versions of a kind mostly have the same to say.
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
        let lines: Vec<String> = causes.iter().map(|(field, message)| format!("{field}: {message}")).collect();
        let lines = if let [line] = lines.as_slice() { line.clone() } else { format!("[{}]", lines.join(", ")) };
        let message = format!("UnionDeclaration.kube-unions.dev {:?} is invalid: {lines}", self.name);
        let mut listed: Vec<Value> = causes
            .iter()
            .take(MOST_CAUSES)
            .map(|(field, message)| json!({"reason": "FieldValueInvalid", "message": message, "field": field}))
            .collect();
        if let Some(more) = causes.len().checked_sub(MOST_CAUSES).filter(|more| *more > 0) {
            listed.push(json!({"reason": "FieldValueInvalid", "message": format!("and {more} more"), "field": ""}));
        }
        let response = json!({
            "uid": self.uid,
            "allowed": false,
            "status": {
                "status": "Failure",
                "code": 422,
                "reason": "Invalid",
                "message": cut(&message, LONGEST_MESSAGE),
                "details": {
                    "name": self.name, "group": "kube-unions.dev", "kind": "UnionDeclaration", "causes": listed,
                },
            },
        });
        let denied = causes.into_iter().map(|(field, _)| field).collect();
        Answer { json: envelope(&response), denied: Some(denied), warned: false }
    }
}

fn envelope(response: &Value) -> Vec<u8> {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        .to_string()
        .into_bytes()
}

/// As the API server words it, with the place in the target that is meant.
fn cause(fault: &Fault) -> String {
    if fault.path.is_empty() {
        format!("Invalid value: {}", fault.message)
    } else {
        format!("Invalid value: {:?}: {}", fault.path, fault.message)
    }
}

fn say(fault: &Fault) -> String {
    let field = field(&fault.pointer);
    let (path, colon) = (&fault.path, if fault.path.is_empty() { "" } else { ": " });
    format!("{field}: {path}{colon}{}", fault.message)
}

/// `spec.unions[0]` for `/spec/unions/0`. The pointers of faults have no key that would need quotes.
fn field(pointer: &str) -> String {
    let mut field = String::new();
    for step in pointer.split('/').skip(1) {
        // Writing to a string can't fail.
        let _ = if step.bytes().all(|byte| byte.is_ascii_digit()) {
            write!(field, "[{step}]")
        } else {
            write!(field, "{}{step}", if field.is_empty() { "" } else { "." })
        };
    }
    field
}

/// At most `longest` bytes, the last ones an ellipsis where some are missing, and no control characters.
fn cut(text: &str, longest: usize) -> String {
    const ELLIPSIS: char = '…';
    let mut out = String::new();
    for character in text.chars() {
        let character = if character.is_control() { ' ' } else { character };
        if out.len() + character.len_utf8() > longest {
            while out.len() + ELLIPSIS.len_utf8() > longest {
                out.pop();
            }
            out.push(ELLIPSIS);
            break;
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_become_paths() {
        for (pointer, path) in [
            ("/spec/unions/12", "spec.unions[12]"),
            ("/spec/target/kind", "spec.target.kind"),
            ("/spec", "spec"),
            ("", ""),
        ] {
            assert_eq!(field(pointer), path);
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(cut("ab\ncd", 10), "ab cd");
        let long = cut(&"é".repeat(300), LONGEST_WARNING);
        assert!(long.len() <= LONGEST_WARNING && long.ends_with('…'), "{long}");
    }
}
