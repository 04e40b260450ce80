//! An `AdmissionReview` as it is sent back, within the bounds of those who read it: warnings, a denial that reads like the
//! API server's own, audit annotations. What there is to say is decided elsewhere.

use crate::field_path::cut;
use crate::union::{Buffer, Changes, Exhausted, Meter, Unmetered, render};
use base64::prelude::BASE64_STANDARD;
use base64::write::EncoderWriter;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{self, Display, Write};
use std::io;

/// The API server cuts longer warnings.
const LONGEST_WARNING: usize = 256;
/// Past this many bytes of warnings the API server cuts them all.
const LONGEST_WARNINGS: usize = 4096;
/// What is kept free for a last line, or item, that says how many are left out.
const RESERVED: usize = 64;
/// An object with more faults than this is told so; no one reads more.
const MOST_CAUSES: usize = 256;
/// Longest message of one cause, in bytes. A union may have thousands of values to list.
pub(super) const LONGEST_CAUSE: usize = 4096;
/// Longest message of a denial, in bytes. The causes hold the rest.
const LONGEST_MESSAGE: usize = 8192;
/// Longest value of an audit annotation, in bytes. The API server has no bound, but an audit event is logged or sent whole.
const LONGEST_ANNOTATION: usize = 2048;

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

/// The `Status` of a denial.
#[derive(Debug, Serialize)]
pub struct Denial {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: String,
    details: Details,
}

#[derive(Debug, Serialize)]
struct Details {
    name: String,
    group: String,
    kind: String,
    causes: Vec<DenialCause>,
}

/// One fault of an object.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct DenialCause {
    /// As the API has them (`metav1.CauseType`).
    pub reason: &'static str,
    /// Everything but the path.
    pub message: String,
    /// The path.
    pub field: String,
}

impl Denial {
    /// Worded as `NewInvalid` of the API machinery words it.
    pub fn new(group: &str, kind: &str, name: String, causes: impl IntoIterator<Item = DenialCause>) -> Self {
        Self::with_rest(group, kind, name, causes.into_iter().collect(), 0)
    }

    /// The same, for so many more faults than there are causes.
    pub(super) fn with_rest(group: &str, kind: &str, name: String, mut causes: Vec<DenialCause>, rest: usize) -> Self {
        let dot = if group.is_empty() { "" } else { "." };
        let mut message = format!("{kind}{dot}{group} {name:?} is invalid: ");
        let total = causes.len().saturating_add(rest);
        let (open, close) = if total == 1 { ("", "") } else { ("[", "]") };
        message.push_str(open);
        for (position, cause) in causes.iter().enumerate() {
            if message.len() > LONGEST_MESSAGE {
                break;
            }
            let separator = if position == 0 { "" } else { ", " };
            // Writing to a string can't fail.
            let _ = write!(message, "{separator}{}: {}", cause.field, cause.message);
        }
        message.push_str(close);
        let left_out = total.saturating_sub(causes.len().min(MOST_CAUSES));
        if left_out > 0 {
            let message = format!("and {left_out} more");
            causes.truncate(MOST_CAUSES);
            causes.push(DenialCause { reason: "FieldValueInvalid", message, field: String::new() });
        }
        let details = Details { name, group: group.to_owned(), kind: kind.to_owned(), causes };
        let message = shorten(&message, LONGEST_MESSAGE).into_owned();
        Self { status: "Failure", code: 422, reason: "Invalid", message, details }
    }

    /// Bytes that it takes, but for its causes.
    pub(super) fn size(&self) -> usize {
        let Details { name, group, kind, .. } = &self.details;
        self.message.len().saturating_add(name.len()).saturating_add(group.len()).saturating_add(kind.len())
    }

    /// Returns the message that the client prints.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the faults, one for each field.
    pub fn causes(&self) -> &[DenialCause] {
        &self.details.causes
    }
}

/// What the audit log of the API server gets, each value within a bound; it puts the webhook's name before each key. Paths
/// and reasons, never a value but a discriminator's. A mutating webhook that is asked again says what it does then, too, but
/// the API server keeps the first value of a key.
#[derive(Debug, Default, Serialize)]
pub struct Annotations {
    /// Members that the patch clears.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub cleared: Listing,
    /// Discriminators that the patch sets, and to what.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub set: Listing,
    /// Faults that are denied.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub denied: Listing,
    /// Faults that are let through, and why.
    #[serde(skip_serializing_if = "Listing::is_empty")]
    pub warned: Listing,
}

impl Annotations {
    fn is_empty(&self) -> bool {
        self.listings().into_iter().all(Listing::is_empty)
    }

    /// Bytes that they take.
    pub(super) fn size(&self) -> usize {
        self.listings().into_iter().map(|listing| listing.text.capacity()).sum()
    }

    fn listings(&self) -> [&Listing; 4] {
        [&self.cleared, &self.set, &self.denied, &self.warned]
    }
}

/// Items with commas between them, and how many are left out where they would be too long.
#[derive(Debug, Default)]
pub struct Listing {
    text: String,
    left_out: usize,
}

impl Listing {
    /// Adds an item, or counts it if the listing is full.
    pub fn push(&mut self, item: impl Display) {
        if self.left_out > 0 {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let end = self.text.len();
        let separator = if end == 0 { "" } else { ", " };
        // Writing to a string can't fail.
        let _ = write!(self.text, "{separator}{item}");
        if self.text.len() > LONGEST_ANNOTATION.saturating_sub(RESERVED) {
            self.text.truncate(end);
            self.left_out = 1;
        }
    }

    /// True if no other item would be named.
    pub fn is_full(&self) -> bool {
        self.left_out > 0
    }

    /// Counts items that are not named.
    pub fn leave_out(&mut self, number: usize) {
        self.left_out = self.left_out.saturating_add(number);
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.left_out == 0
    }
}

impl Display for Listing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)?;
        match self.left_out {
            0 => Ok(()),
            more if self.text.is_empty() => write!(out, "{more}, too long to name"),
            more => write!(out, ", and {more} more"),
        }
    }
}

impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Warnings within the bounds of the API server.
#[derive(Debug, Default)]
pub struct Warnings {
    all: Vec<String>,
    bytes: usize,
    left_out: usize,
}

impl Warnings {
    /// Adds a warning, cut to the longest text that a client shows.
    pub fn push(&mut self, text: &impl Display) {
        if self.is_full() {
            self.leave_out(1);
            return;
        }
        // Without a meter nothing is refused.
        let text = render(&Unmetered, text, LONGEST_WARNING).unwrap_or_default();
        let warning = shorten(&text, LONGEST_WARNING);
        if self.bytes.saturating_add(warning.len()) > LONGEST_WARNINGS.saturating_sub(RESERVED) {
            self.left_out = self.left_out.saturating_add(1);
        } else {
            self.bytes = self.bytes.saturating_add(warning.len());
            self.all.push(warning.into_owned());
        }
    }

    /// Counts warnings that are not shown.
    pub fn leave_out(&mut self, number: usize) {
        self.left_out = self.left_out.saturating_add(number);
    }

    /// True if no other warning would be shown.
    pub fn is_full(&self) -> bool {
        self.left_out > 0
    }

    /// Returns the warnings, with a last one that counts those left out.
    pub fn finish(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.all.push(format!("and {} more warnings", self.left_out));
        }
        self.all
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
    fn warnings_keep_within_the_bounds_of_the_api_server() {
        let mut warnings = Warnings::default();
        for _ in 0..1000 {
            warnings.push(&"é".repeat(1000));
        }
        let all = warnings.finish();
        assert!(all.iter().all(|warning| warning.len() <= LONGEST_WARNING));
        assert!(all.iter().map(String::len).sum::<usize>() <= LONGEST_WARNINGS);
        assert_eq!(all.last().map(String::as_str), Some("and 985 more warnings"));
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(shorten("ab\ncd", 10), "ab cd");
        let long = shorten(&"é".repeat(300), LONGEST_WARNING).into_owned();
        assert!(long.len() <= LONGEST_WARNING && long.ends_with('…'), "{long}");
    }

    #[test]
    fn annotations_keep_within_a_bound_and_say_how_many_are_left_out() {
        let mut listing = Listing::default();
        for number in 0..10_000 {
            listing.push(format_args!("spec.items[{number}].git"));
        }
        let text = listing.to_string();
        assert!(text.len() <= LONGEST_ANNOTATION, "{}", text.len());
        let (shown, more) = text.rsplit_once(", and ").unwrap();
        let more: usize = more.strip_suffix(" more").unwrap().parse().unwrap();
        assert_eq!(shown.split(", ").count() + more, 10_000);

        let mut listing = Listing::default();
        listing.push("x".repeat(10_000));
        assert_eq!(listing.to_string(), "1, too long to name");
    }

    #[test]
    fn a_denial_says_how_many_faults_it_does_not_list() {
        let cause = |number: usize| DenialCause {
            reason: "FieldValueForbidden",
            message: "Forbidden: x".to_owned(),
            field: format!("spec.items[{number}]"),
        };
        let denial = Denial::new("example.com", "Thing", "x".to_owned(), (0..10_000).map(cause));
        assert!(denial.message().len() <= LONGEST_MESSAGE && denial.message().ends_with('…'));
        assert_eq!(denial.causes().len(), MOST_CAUSES + 1);
        let last = denial.causes().last().unwrap();
        assert_eq!((&*last.field, &*last.message), ("", "and 9744 more"));
        let one = Denial::new("", "Pod", "x".to_owned(), std::iter::once(cause(0)));
        assert_eq!(one.message(), "Pod \"x\" is invalid: spec.items[0]: Forbidden: x");
    }
}
