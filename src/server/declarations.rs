//! Reviews of `UnionDeclaration`s themselves: whether one would be in force is asked of an [`Inspector`].
//!
//! An inspector that fails denies nothing: the condition of the declaration will tell. Nor is a declaration denied that
//! says what it said before, so that its labels can be changed although its target has changed.

use crate::admission::{Annotations, Answer, Cause, Denial, Operation, Outcome, Warnings};
use crate::declaration::{Fault, Severity};
use crate::telemetry::with_causes;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// Finds everything wrong with a declaration, given as the JSON text of the whole object.
pub type Inspector = Arc<dyn Fn(String) -> BoxFuture<'static, Result<Vec<Fault>, InspectorError>> + Send + Sync>;

/// Why an inspector has nothing to say.
pub type InspectorError = Box<dyn std::error::Error + Send + Sync>;

/// The API server waits five seconds for an answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is reviewed here.
pub(super) const GROUP: &str = "kube-unions.dev";
pub(super) const KIND: &str = "UnionDeclaration";

/// The reason of every fault of a declaration, as the API has them (`metav1.CauseType`).
const INVALID: &str = "FieldValueInvalid";

/// A review of a declaration.
pub(super) struct DeclarationReview<'a> {
    uid: Cow<'a, str>,
    name: Cow<'a, str>,
    object: &'a RawValue,
    /// Its spec is what it was.
    unchanged: bool,
}

/// What is answered.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) json: Vec<u8>,
    pub(super) outcome: Outcome,
    /// The paths of a denial.
    pub(super) denied: Vec<String>,
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
        if (&*api_version, &**group, &**kind) != ("admission.k8s.io/v1", GROUP, KIND)
            || request.uid.is_empty()
            || request.sub_resource.is_some_and(|it| !it.is_empty())
            || ![Operation::Create, Operation::Update].iter().any(|it| it.name() == request.operation)
        {
            return None;
        }
        let object = request.object?;
        let read = |object: &RawValue| serde_json::from_str::<Object>(object.get()).ok();
        let new = read(object)?;
        let unchanged = request.old_object.and_then(read).is_some_and(|old| old.spec == new.spec);
        Some(Self { uid: request.uid, name: new.metadata.name.into(), object, unchanged })
    }

    /// What is answered.
    pub(super) async fn answer(&self, inspector: &Inspector) -> Answered {
        let faults = match tokio::time::timeout(PATIENCE, inspector(self.object.get().to_owned())).await {
            Ok(Ok(faults)) => faults,
            Ok(Err(error)) => return self.unchecked(&with_causes(&*error)),
            Err(_elapsed) => return self.unchecked("the cluster did not answer in time"),
        };
        let (errors, warnings): (Vec<_>, Vec<_>) =
            faults.iter().partition(|fault| fault.severity == Severity::Error && !self.unchanged);
        if errors.is_empty() {
            self.allow(warnings.into_iter().map(|fault| {
                let why =
                    if fault.severity == Severity::Error { "the declaration did not change" } else { "may surprise" };
                (say(fault), format!("{} ({why})", field(&fault.pointer)))
            }))
        } else {
            self.deny(&errors)
        }
    }

    fn unchecked(&self, reason: &str) -> Answered {
        tracing::warn!(reason, declaration = &*self.name, "a declaration could not be checked and was let through");
        let warning = format!("not checked, its condition will tell whether it is in force: {reason}");
        self.allow([(warning, "not checked".to_owned())])
    }

    /// With warnings, each with what the audit log says of it. The versions of a kind mostly have the same to say.
    fn allow(&self, said: impl IntoIterator<Item = (String, String)>) -> Answered {
        let (mut warnings, mut annotations) = (Warnings::default(), Annotations::default());
        let (mut warned, mut noted) = (HashSet::new(), HashSet::new());
        for (warning, note) in said {
            if !warned.contains(&warning) {
                warnings.push(&warning);
                warned.insert(warning);
            }
            if !noted.contains(&note) {
                annotations.warned.push(&note);
                noted.insert(note);
            }
        }
        let outcome = if warned.is_empty() { Outcome::Allowed } else { Outcome::Warned };
        Answered { json: self.write(None, &warnings.finish(), &annotations), outcome, denied: Vec::new() }
    }

    fn deny(&self, errors: &[&Fault]) -> Answered {
        let mut causes: Vec<Cause> = Vec::new();
        let mut annotations = Annotations::default();
        for fault in errors {
            let cause = Cause { reason: INVALID, message: cause(fault), field: field(&fault.pointer) };
            // The versions of a kind mostly have the same to say.
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
        let mut denied: Vec<String> = causes.iter().map(|cause| cause.field.clone()).collect();
        denied.dedup();
        for field in &denied {
            annotations.denied.push(format_args!("{field}: {INVALID}"));
        }
        let denial = Denial::new(GROUP, KIND, self.name.to_string(), causes.into_iter());
        Answered { json: self.write(Some(&denial), &[], &annotations), outcome: Outcome::Denied, denied }
    }

    fn write(&self, denial: Option<&Denial>, warnings: &[String], annotations: &Annotations) -> Vec<u8> {
        Answer { uid: &self.uid, denial, patch: &[], warnings, annotations }.to_json()
    }
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
}
