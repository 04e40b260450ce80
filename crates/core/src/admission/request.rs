//! Reads and checks the request half of an `AdmissionReview`.
//!
//! The API server writes the kind before the objects, so each object is projected while the body is scanned once. If a
//! client uses another order, the body is read a second time with the kind known. This module must not know how objects are
//! judged. [`draft`] has the serde side.

mod draft;

use super::text::scratch;
use super::{LONGEST_REASON, ReviewError};
use crate::catalog::{Catalog, CatalogEntry};
use crate::field_path::Printable;
use crate::meter::{Account, Exhausted, Meter};
use crate::union::{LONGEST_TEXT, Part, Projection};
use draft::{Draft, Header, ReviewSeed};
use serde::de::DeserializeSeed;
use std::borrow::Cow;

/// Longest part of a body that an error repeats, in bytes.
const LONGEST_ECHO: usize = 64;

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// An object is created.
    Create,
    /// An object is changed by PUT, PATCH or server-side apply.
    Update,
    /// An object is deleted.
    Delete,
    /// A client connects to a subresource.
    Connect,
}

impl Operation {
    /// Returns the name that reviews use, for example `CREATE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A checked request, reduced to the fields that a review needs.
#[derive(Debug)]
pub(super) struct AdmissionRequest<'a> {
    pub(super) uid: Cow<'a, str>,
    pub(super) operation: Operation,
    pub(super) kind: RequestKind<'a>,
    pub(super) name: Cow<'a, str>,
    /// Position of the kind in the catalog, `None` if the kind has no unions.
    pub(super) ordinal: Option<usize>,
    /// The JSON text of `options`, if there are any.
    pub(super) options: Option<&'a str>,
    /// The objects to judge, `None` if the request cannot change a union.
    pub(super) subject: Option<JudgedObjects<'a>>,
}

/// The objects of a request whose unions are judged.
#[derive(Debug)]
pub(super) struct JudgedObjects<'a> {
    pub(super) entry: &'a CatalogEntry,
    pub(super) part: Part,
    pub(super) new: Projection<'a>,
    /// The old object, on UPDATE only.
    pub(super) old: Option<Projection<'a>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RequestKind<'a> {
    pub(super) group: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
}

impl RequestKind<'_> {
    /// Returns the `apiVersion` of objects of the kind.
    pub(super) fn api_version(&self) -> Cow<'_, str> {
        let Self { group, version, .. } = self;
        if group.is_empty() { Cow::Borrowed(version) } else { format!("{group}/{version}").into() }
    }
}

impl<'a> AdmissionRequest<'a> {
    /// Reads and checks a body. The memory of the request is charged to `account`.
    pub(super) fn read(catalog: &'a Catalog, body: &'a [u8], account: &'a Account<'a>) -> Result<Self, ReviewError> {
        let text = str::from_utf8(body).map_err(|error| ReviewError::NotUtf8(error.valid_up_to()))?;
        if text.trim_ascii().is_empty() {
            return Err(ReviewError::Empty);
        }
        if text.len() > LONGEST_TEXT {
            return Err(ReviewError::TooLong);
        }
        let scratch = scratch(text);
        account.charge(scratch)?;
        let mut review = parse(text, catalog, None, account)?;
        if let Some(header) =
            review.request.as_ref().filter(|request| request.misread(catalog)).map(|request| request.header.clone())
        {
            // Free the old projections before new ones are read.
            drop(review);
            review = parse(text, catalog, Some(&header), account)?;
        }
        account.release(scratch);
        review.check(catalog)
    }
}

impl Operation {
    fn named(name: &str) -> Result<Self, ReviewError> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect]
            .into_iter()
            .find(|operation| operation.name() == name)
            .ok_or_else(|| ReviewError::UnknownOperation(Printable::new(name, LONGEST_ECHO).to_string()))
    }
}

fn parse<'a>(
    text: &'a str,
    catalog: &'a Catalog,
    known: Option<&Header<'_>>,
    account: &'a Account<'a>,
) -> Result<Draft<'a>, ReviewError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let draft = ReviewSeed { catalog, text, account, known }.deserialize(&mut deserializer);
    draft.and_then(|draft| deserializer.end().map(|()| draft)).map_err(|error| {
        if account.refused() {
            ReviewError::Exhausted(Exhausted)
        } else {
            ReviewError::Malformed(Printable::new(&error.to_string(), LONGEST_REASON).to_string())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Builder;
    use crate::declaration::Definition;
    use crate::meter::Unmetered;
    use serde_json::json;

    fn catalog() -> Catalog {
        let union = json!({"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "object"}},
            "x-kubernetes-unions": [{"fields-to-discriminateBy": {"a": "A", "b": "B"}}]});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": [{"name": "v1", "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": union, "status": union}}}}]}});
        let mut builder = Builder::new();
        builder.apply(Definition::from_json(&definition.to_string()).unwrap());
        builder.build()
    }

    #[test]
    fn the_order_of_keys_in_a_review_does_not_matter() {
        let catalog = catalog();
        let fields = [
            r#""uid": "1""#,
            r#""kind": {"group": "example.com", "version": "v1", "kind": "Thing"}"#,
            r#""subResource": "status""#,
            r#""operation": "UPDATE""#,
            r#""object": {"spec": {"a": 1}, "status": {"a": 1, "b": 1}}"#,
            r#""oldObject": {"status": {"a": 1}}"#,
        ];
        for turn in 0..fields.len() {
            let mut fields = fields;
            fields.rotate_left(turn);
            for reversed in [false, true] {
                if reversed {
                    fields.reverse();
                }
                let body = format!(
                    r#"{{"request": {{{}}}, "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}}"#,
                    fields.join(",")
                );
                let account = Account::new(&Unmetered);
                let request = AdmissionRequest::read(&catalog, body.as_bytes(), &account).unwrap();
                let subject = request.subject.unwrap();
                assert_eq!(subject.part, Part::Status, "{body}");
                assert!(subject.new.is_object() && subject.old.unwrap().is_object(), "{body}");
            }
        }
    }
}
