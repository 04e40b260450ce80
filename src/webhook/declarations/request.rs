//! Reads the review of an object that declares unions.

use kube_unions_core::admission::Operation;
use kube_unions_core::declaration::ANNOTATION;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Longest reason of the JSON reader that an error repeats, in bytes; the reason may quote the body.
const LONGEST_REASON: usize = 200;

/// A review, as far as an inspection needs it.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) uid: Cow<'a, str>,
    pub(super) operation: Operation,
    /// `None`: there is nothing to inspect.
    pub(super) subject: Option<Subject<'a>>,
}

/// An object that declares unions and is about to be stored.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) kind: SubjectKind,
    pub(super) name: Cow<'a, str>,
    /// The JSON text of the object.
    pub(super) object: &'a str,
    /// The length of its annotation, and of that of the object that it replaces: the greater one.
    pub(super) annotation: usize,
    /// The object that it replaces.
    pub(super) old: Option<&'a str>,
    /// The request changes nothing that an inspection reads.
    pub(super) unchanged: bool,
}

/// The kinds whose objects declare unions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubjectKind {
    /// `UnionDeclaration.kube-unions.dev`.
    Declaration,
    /// `CustomResourceDefinition.apiextensions.k8s.io` with the annotation.
    Definition,
}

/// Why a body is not a review that can be answered.
#[derive(Debug, thiserror::Error)]
pub(in crate::webhook) enum RequestError {
    /// Not JSON, or not of the shape of a review.
    #[error("the body is not an AdmissionReview: {0}")]
    Malformed(String),
    /// Another version.
    #[error("the body is of apiVersion `{0}`; this webhook answers AdmissionReview of admission.k8s.io/v1 only")]
    Unsupported(String),
    /// An answer could not be told from another.
    #[error("`request.uid` is empty: an answer must echo it")]
    NoUid,
    /// Not one of the four.
    #[error("`request.operation` is `{0}`; it must be CREATE, UPDATE, DELETE or CONNECT")]
    UnknownOperation(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an AdmissionReview")]
struct WireReview<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    request: WireRequest<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "the request of an AdmissionReview")]
struct WireRequest<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    kind: WireKind<'a>,
    #[serde(borrow)]
    operation: Cow<'a, str>,
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    sub_resource: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    object: Option<&'a RawValue>,
    #[serde(default, borrow)]
    old_object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(expecting = "a group, version and kind")]
struct WireKind<'a> {
    #[serde(default, borrow)]
    group: Cow<'a, str>,
    #[serde(default, borrow)]
    kind: Cow<'a, str>,
}

/// An object, as far as its kind does not matter.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WireObject<'a> {
    #[serde(borrow)]
    metadata: WireMetadata<'a>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireMetadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    annotations: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
}

impl<'a> Request<'a> {
    /// Reads a body.
    pub(super) fn read(body: &'a [u8]) -> Result<Self, RequestError> {
        let WireReview { api_version, request } =
            serde_json::from_slice(body).map_err(|error| RequestError::Malformed(head(&error.to_string())))?;
        if api_version != "admission.k8s.io/v1" {
            return Err(RequestError::Unsupported(head(&api_version)));
        }
        if request.uid.is_empty() {
            return Err(RequestError::NoUid);
        }
        let operation = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect]
            .into_iter()
            .find(|operation| operation.name() == request.operation)
            .ok_or_else(|| RequestError::UnknownOperation(head(&request.operation)))?;
        let subject = Subject::of(&request, operation);
        Ok(Self { uid: request.uid, operation, subject })
    }
}

impl<'a> Subject<'a> {
    fn of(request: &WireRequest<'a>, operation: Operation) -> Option<Self> {
        let kind = match (&*request.kind.group, &*request.kind.kind) {
            ("kube-unions.dev", "UnionDeclaration") => SubjectKind::Declaration,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => SubjectKind::Definition,
            _ => return None,
        };
        let writes = matches!(operation, Operation::Create | Operation::Update);
        if !writes || request.sub_resource.as_deref().is_some_and(|it| !it.is_empty()) {
            return None;
        }
        let object = request.object?.get();
        let old = request.old_object.map(RawValue::get);
        let new: WireObject<'a> = serde_json::from_str(object).unwrap_or_default();
        let before = old.and_then(|old| serde_json::from_str::<WireObject<'a>>(old).ok());
        let length = |object: &WireObject<'_>| object.metadata.unions().map_or(0, str::len);
        let annotation = length(&new).max(before.as_ref().map_or(0, length));
        let unchanged = before.is_some_and(|before| match kind {
            SubjectKind::Declaration => value(before.spec) == value(new.spec),
            // The API server writes both objects in the same way.
            SubjectKind::Definition => {
                before.metadata.unions() == new.metadata.unions()
                    && before.spec.map(RawValue::get) == new.spec.map(RawValue::get)
            }
        });
        if kind == SubjectKind::Definition && new.metadata.unions().is_none() {
            return None;
        }
        let name = match &request.name {
            Some(name) if !name.is_empty() => name.clone(),
            // On CREATE the API server may leave the name to the object.
            Some(_) | None => new.metadata.name,
        };
        Some(Self { kind, name, object, annotation, old, unchanged })
    }
}

impl WireMetadata<'_> {
    /// The annotation that declares unions.
    fn unions(&self) -> Option<&str> {
        self.annotations.as_ref()?.get(ANNOTATION).map(AsRef::as_ref)
    }
}

impl SubjectKind {
    pub(super) fn group(self) -> &'static str {
        match self {
            Self::Declaration => "kube-unions.dev",
            Self::Definition => "apiextensions.k8s.io",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Declaration => "UnionDeclaration",
            Self::Definition => "CustomResourceDefinition",
        }
    }
}

fn value(spec: Option<&RawValue>) -> Option<Value> {
    serde_json::from_str(spec?.get()).ok()
}

fn head(text: &str) -> String {
    super::finding::bounded(text, LONGEST_REASON)
}
