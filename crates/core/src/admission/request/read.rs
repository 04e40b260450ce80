//! Reads and checks the body of a review.
//!
//! The API server writes the kind before the objects, so each object is projected while the body is scanned once. If a
//! client uses another order, the body is read a second time with the kind known.

use super::AdmissionRequest;
use super::draft::{Draft, Header, ReviewReader};
use crate::admission::error::ReviewError;
use crate::catalog::Catalog;
use crate::json::TextReader;
use crate::meter::Meter;
use crate::union::{Arena, LONGEST_TEXT};

impl<'a> AdmissionRequest<'a> {
    /// Reads and checks a body. The memory of the request is charged to `meter`.
    pub(in crate::admission) fn read(
        catalog: &'a Catalog,
        body: &'a [u8],
        meter: &'a dyn Meter,
    ) -> Result<Self, ReviewError> {
        let text = str::from_utf8(body).map_err(|error| ReviewError::NotUtf8(error.valid_up_to()))?;
        if text.trim_ascii().is_empty() {
            return Err(ReviewError::Empty);
        }
        if text.len() > LONGEST_TEXT {
            return Err(ReviewError::TooLong);
        }
        let (mut review, mut arena) = parse(text, catalog, None, meter)?;
        if let Some(header) =
            review.request.as_ref().filter(|request| request.misread(catalog)).map(|request| request.header.clone())
        {
            // Free the old projections before new ones are read.
            drop(arena);
            (review, arena) = parse(text, catalog, Some(&header), meter)?;
        }
        review.check(catalog, arena)
    }
}

fn parse<'a>(
    text: &'a str,
    catalog: &'a Catalog,
    known: Option<&Header<'_>>,
    meter: &'a dyn Meter,
) -> Result<(Draft<'a>, Option<Arena<'a>>), ReviewError> {
    let mut reader = ReviewReader { catalog, reader: TextReader::new(text, meter), known, projector: None };
    let draft = reader.review()?;
    Ok((draft, reader.projector.map(|(_, projector)| projector.finish())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Builder;
    use crate::declaration::Definition;
    use crate::meter::Unmetered;
    use crate::union::Part;
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
                let request = AdmissionRequest::read(&catalog, body.as_bytes(), &Unmetered).unwrap();
                let subject = request.subject.unwrap();
                assert_eq!(subject.part, Part::Status, "{body}");
                assert!(subject.new.is_object() && subject.old.unwrap().is_object(), "{body}");
            }
        }
    }
}
