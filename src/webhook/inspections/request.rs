//! Reads the review of an object that declares unions.
//!
//! A review is read once. The result owns what the answer needs and refers to the objects by their position in the body,
//! so that it can move to another thread together with the body.

use super::finding::bounded;
use kube_unions_core::admission::{Operation, ReviewError};
use kube_unions_core::declaration::ANNOTATION;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// Longest reason of the JSON reader that an error repeats, in bytes. The reason may quote the body.
const LONGEST_REASON: usize = 200;

/// The parts of a review that an inspection needs.
#[derive(Debug)]
pub(super) struct InspectionRequest {
    pub(super) uid: String,
    pub(super) operation: Operation,
    /// `None` if there is nothing to inspect.
    pub(super) subject: Option<InspectedObject>,
}

/// An object that declares unions and is about to be stored.
#[derive(Debug)]
pub(super) struct InspectedObject {
    pub(super) kind: SubjectKind,
    pub(super) name: String,
    /// The position of the object's JSON text in the body.
    pub(super) object: Range<usize>,
    /// The position of the old object's JSON text.
    pub(super) old: Option<Range<usize>>,
    /// Length of the annotation that declares unions, in the new or the old object, whichever is longer.
    pub(super) annotation: usize,
    /// True if the request changes nothing that an inspection reads.
    pub(super) unchanged: bool,
}

/// A kind whose objects declare unions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubjectKind {
    /// `UnionDeclaration.kube-unions.dev`.
    Declaration,
    /// `CustomResourceDefinition.apiextensions.k8s.io` with the annotation.
    Definition,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an AdmissionReview")]
struct WireReview<'a> {
    #[serde(default, borrow)]
    kind: Cow<'a, str>,
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
    kind: WireGroupKind<'a>,
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
struct WireGroupKind<'a> {
    #[serde(default, borrow)]
    group: Cow<'a, str>,
    #[serde(default, borrow)]
    kind: Cow<'a, str>,
}

/// The parts of an object that every kind has.
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

impl InspectionRequest {
    pub(super) fn read(body: &[u8]) -> Result<Self, ReviewError> {
        let shorten = |text: &str| bounded(text, LONGEST_REASON);
        let WireReview { kind, api_version, request } =
            serde_json::from_slice(body).map_err(|error| ReviewError::Malformed(shorten(&error.to_string())))?;
        if api_version != "admission.k8s.io/v1" {
            return Err(ReviewError::Unsupported { kind: shorten(&kind), api_version: shorten(&api_version) });
        }
        if request.uid.is_empty() {
            return Err(ReviewError::NoUid);
        }
        let operation = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect]
            .into_iter()
            .find(|operation| operation.name() == request.operation)
            .ok_or_else(|| ReviewError::UnknownOperation(shorten(&request.operation)))?;
        let subject = InspectedObject::new(&request, operation, body);
        Ok(Self { uid: request.uid.into_owned(), operation, subject })
    }
}

impl InspectedObject {
    /// Returns the object of a request in `body`; `None` if it declares no unions or is not about to be stored.
    fn new(request: &WireRequest<'_>, operation: Operation, body: &[u8]) -> Option<Self> {
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
        let new: WireObject<'_> = serde_json::from_str(object).unwrap_or_default();
        let before = old.and_then(|old| serde_json::from_str::<WireObject<'_>>(old).ok());
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
            // On CREATE the API server may send the name only in the object.
            Some(_) | None => new.metadata.name,
        };
        let position = |text: &str| position(text, body);
        let (object, old) = (position(object), old.map(position));
        Some(Self { kind, name: name.into_owned(), object, old, annotation, unchanged })
    }
}

impl WireMetadata<'_> {
    /// Returns the annotation that declares unions.
    fn unions(&self) -> Option<&str> {
        self.annotations.as_ref()?.get(ANNOTATION).map(AsRef::as_ref)
    }
}

impl SubjectKind {
    pub(super) fn group_kind(self) -> (&'static str, &'static str) {
        match self {
            Self::Declaration => ("kube-unions.dev", "UnionDeclaration"),
            Self::Definition => ("apiextensions.k8s.io", "CustomResourceDefinition"),
        }
    }
}

/// Returns the text at a position of the body that [`InspectionRequest::read`] returned.
pub(super) fn text_at<'a>(body: &'a [u8], position: &Range<usize>) -> &'a str {
    body.get(position.clone()).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Returns the position of `text`, which is a part of `body`.
fn position(text: &str, body: &[u8]) -> Range<usize> {
    let start = text.as_ptr().addr().saturating_sub(body.as_ptr().addr());
    start..start + text.len()
}

fn value(spec: Option<&RawValue>) -> Option<Value> {
    serde_json::from_str(spec?.get()).ok()
}
