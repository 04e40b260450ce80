//! The response half of an `AdmissionReview`: a verdict, a patch, warnings and audit annotations, within the limits of the
//! API server.
//!
//! [`review`](super::review()) writes its responses with these types. A webhook that reviews other objects, for example
//! `UnionDeclaration`s, can use them as well. This module must not know how objects are judged.

mod annotations;
mod bounds;
mod denial;
mod warnings;

pub use annotations::{Annotations, Listing};
pub use denial::{Denial, DenialCause};
pub use warnings::Warnings;

pub(super) use denial::LONGEST_CAUSE;

use crate::meter::{Buffer, Exhausted, Meter, Unmetered};
use crate::union::Change;
use base64::prelude::BASE64_STANDARD;
use base64::write::{EncoderStringWriter, StrConsumer};
use serde::{Serialize, Serializer};
use std::fmt::{self, Display};
use std::io::BufWriter;

/// Bytes of a patch that are encoded at a time.
const WRITTEN: usize = 512;

/// The response to one review.
#[derive(Debug)]
pub struct AdmissionResponse<'a> {
    /// The uid of the request.
    pub uid: &'a str,
    /// The denial, `None` if the request is allowed.
    pub denial: Option<&'a Denial>,
    /// The changes to the object. Nothing is patched if there are none.
    pub patch: Option<&'a [Change]>,
    /// Warnings for the client, in this order.
    pub warnings: &'a [String],
    /// Annotations for the audit event.
    pub annotations: &'a Annotations,
}

impl AdmissionResponse<'_> {
    /// Returns the `AdmissionReview` to send.
    pub fn to_json(&self) -> Vec<u8> {
        // `Unmetered` never refuses memory.
        self.write(&Unmetered).unwrap_or_default()
    }

    /// Returns the `AdmissionReview` to send. Its memory stays charged to `meter`.
    pub fn write(&self, meter: &dyn Meter) -> Result<Vec<u8>, Exhausted> {
        let patch = self.patch.filter(|changes| !changes.is_empty()).map(Patch);
        let envelope = AdmissionReview {
            api_version: "admission.k8s.io/v1",
            kind: "AdmissionReview",
            response: Response {
                uid: self.uid,
                allowed: self.denial.is_none(),
                status: self.denial,
                patch_type: patch.as_ref().map(|_| "JSONPatch"),
                patch,
                warnings: self.warnings,
                audit_annotations: self.annotations,
            },
        };
        let mut output = Buffer::new(meter);
        // Only the meter can fail: every value in these types can be written as JSON.
        serde_json::to_writer(&mut output, &envelope).map_err(|_| Exhausted)?;
        Ok(output.keep())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReview<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a Denial>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<Patch<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Annotations::is_empty")]
    audit_annotations: &'a Annotations,
}

/// A JSON Patch, encoded as base64 while it is written.
struct Patch<'a>(&'a [Change]);

impl Serialize for Patch<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Display for Patch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoder = EncoderStringWriter::from_consumer(PatchText { f, result: Ok(()) }, &BASE64_STANDARD);
        // serde_json writes single tokens, and the encoder does much for each write.
        let mut encoder = BufWriter::with_capacity(WRITTEN, encoder);
        let operations = self.0.iter().map(Change::operation);
        serde_json::Serializer::new(&mut encoder).collect_seq(operations).map_err(|_| fmt::Error)?;
        encoder.into_inner().map_err(|_| fmt::Error)?.into_inner().result
    }
}

/// The output of the encoder. Nothing more is written after an error.
struct PatchText<'f, 'b> {
    f: &'f mut fmt::Formatter<'b>,
    result: fmt::Result,
}

impl StrConsumer for PatchText<'_, '_> {
    fn consume(&mut self, text: &str) {
        if self.result.is_ok() {
            self.result = self.f.write_str(text);
        }
    }
}
