//! The response half of an `AdmissionReview`: a verdict, a patch, warnings and audit annotations, within the limits of the
//! API server.
//!
//! [`review`](super::review()) writes its responses with these types. Another webhook, for example one that reviews
//! `UnionDeclaration`s themselves, writes its own responses with them. This module must not know what is judged or why.

mod annotations;
mod denial;
mod warnings;

pub use annotations::{Annotations, Listing};
pub use denial::{Denial, DenialCause};
pub use warnings::Warnings;

pub(super) use denial::LONGEST_CAUSE;

use crate::field_path::cut;
use crate::meter::{Buffer, Exhausted, Meter, Unmetered};
use crate::union::Changes;
use base64::prelude::BASE64_STANDARD;
use base64::write::EncoderWriter;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io;

/// Bytes that a listing keeps free for a last item that counts what is left out.
const RESERVED: usize = 64;

/// The answer to one review.
#[derive(Debug)]
pub struct AdmissionResponse<'a> {
    /// That of the request.
    pub uid: &'a str,
    /// `None`: allowed.
    pub denial: Option<&'a Denial>,
    /// `None` or empty: the object is let through as it is.
    pub patch: Option<&'a Changes>,
    /// Shown to the client, in this order.
    pub warnings: &'a [String],
    /// Written to the audit event.
    pub annotations: &'a Annotations,
}

impl AdmissionResponse<'_> {
    /// The `AdmissionReview` to send.
    pub fn to_json(&self) -> Vec<u8> {
        // Without a meter nothing is refused.
        self.write(&Unmetered).unwrap_or_default()
    }

    /// The `AdmissionReview` to send. It stays charged.
    pub fn write(&self, meter: &dyn Meter) -> Result<Vec<u8>, Exhausted> {
        let patch = self.patch.filter(|changes| !changes.is_empty()).map(Patch);
        let envelope = Envelope {
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
        let mut output = Output(Buffer::new(meter));
        // Strings, numbers and lists of them: there is nothing in these types that can't be written.
        serde_json::to_writer(&mut output, &envelope).map_err(|_| Exhausted)?;
        Ok(output.0.keep())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
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

/// Bytes that are written as far as there is memory for them.
struct Output<'m>(Buffer<'m, u8>);

impl io::Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A JSON Patch in base64, written as it is made.
struct Patch<'a>(&'a Changes);

impl Serialize for Patch<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Display for Patch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut encoder = EncoderWriter::new(Characters { f, failed: false }, &BASE64_STANDARD);
        let written = serde_json::to_writer(&mut encoder, &Operations(self.0));
        written.map_err(|_| fmt::Error).and_then(|()| encoder.finish().map(drop).map_err(|_| fmt::Error))
    }
}

struct Operations<'a>(&'a Changes);

impl Serialize for Operations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|change| change.operation()))
    }
}

/// A formatter that takes bytes, which are ASCII.
struct Characters<'f, 'b> {
    f: &'f mut fmt::Formatter<'b>,
    /// After a failure nothing more is written: the encoder tries again when it is dropped, and the JSON writer must not be
    /// asked twice.
    failed: bool,
}

impl io::Write for Characters<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed {
            return Err(io::Error::other(fmt::Error));
        }
        let text = str::from_utf8(bytes).map_err(io::Error::other)?;
        self.f.write_str(text).inspect_err(|_| self.failed = true).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// At most `longest` bytes of a text, the last ones an ellipsis where some are missing, and no control characters, for which
/// the API server would drop a warning.
fn shorten(text: &str, longest: usize) -> Cow<'_, str> {
    const ELLIPSIS: &str = "…";
    let text = if text.chars().any(char::is_control) {
        Cow::Owned(text.replace(char::is_control, " "))
    } else {
        Cow::Borrowed(text)
    };
    if text.len() <= longest {
        return text;
    }
    format!("{}{ELLIPSIS}", cut(&text, longest.saturating_sub(ELLIPSIS.len()))).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(shorten("ab\ncd", 10), "ab cd");
        let long = shorten(&"é".repeat(300), 256).into_owned();
        assert!(long.len() <= 256 && long.ends_with('…'), "{long}");
    }
}
