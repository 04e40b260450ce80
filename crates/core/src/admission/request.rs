//! Reading an `AdmissionReview` in one pass.
//!
//! The API server writes the kind before the objects, so each object is projected as it goes by, and the body is scanned
//! once. Where the order is another one the body is read a second time, with the kind known.

use super::text::{Text, scratch};
use crate::catalog::{Catalog, CatalogEntry};
use crate::field_path::Printable;
use crate::union::{Account, Exhausted, LONGEST_TEXT, Meter, Part, Projection, ProjectionSeed};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Unexpected, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Longest piece of a body that an error repeats.
const LONGEST_ECHO: usize = 64;

/// Longest reason that the JSON reader gives which an error repeats; it may quote the body.
const LONGEST_REASON: usize = 200;

/// What is asked of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of an object, by PUT, PATCH or server-side apply.
    Update,
    /// The end of an object.
    Delete,
    /// A connection to a subresource.
    Connect,
}

impl Operation {
    /// The name in a review.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Why a body is not an `AdmissionReview` that can be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewError {
    /// Nothing was sent.
    #[error("the body is empty; send an AdmissionReview of admission.k8s.io/v1 as JSON")]
    Empty,
    /// Not text.
    #[error("the body is not UTF-8, from byte {0} on")]
    NotUtf8(usize),
    /// Not JSON, or not of the shape of a review.
    #[error("the body is not an AdmissionReview: {0}")]
    Malformed(String),
    /// Another kind.
    #[error(
        "the body is of kind `{kind}` and apiVersion `{api_version}`; this webhook answers AdmissionReview of admission.k8s.io/v1 only"
    )]
    Unsupported {
        /// The kind it says it is.
        kind: String,
        /// The version it says it is.
        api_version: String,
    },
    /// No `request`.
    #[error("`request` is missing: this AdmissionReview asks nothing")]
    NoRequest,
    /// An answer could not be told from another.
    #[error("`request.uid` is missing or empty: an answer must echo it")]
    NoUid,
    /// Longer than an offset can be.
    #[error("the body is longer than {LONGEST_TEXT} bytes")]
    TooLong,
    /// Reading or answering it takes more memory than there is for it.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// No kind.
    #[error("`request.kind` is missing: it says what the object is")]
    NoKind,
    /// Not one of the four.
    #[error("`request.operation` is `{0}`; it must be CREATE, UPDATE, DELETE or CONNECT")]
    UnknownOperation(String),
    /// No object where there must be one.
    #[error("`request.{0}` is not an object")]
    NotAnObject(&'static str),
}

/// A review, as far as it is needed.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) uid: Cow<'a, str>,
    pub(super) operation: Operation,
    pub(super) kind: Kind<'a>,
    pub(super) name: Cow<'a, str>,
    /// The position of the kind in the catalog, if that knows it.
    pub(super) ordinal: Option<usize>,
    /// What is to be judged, `None` where nothing is.
    pub(super) subject: Option<Subject<'a>>,
}

/// Objects whose unions are to be judged.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) entry: &'a CatalogEntry,
    pub(super) part: Part,
    pub(super) new: Projection<'a>,
    /// On UPDATE only.
    pub(super) old: Option<Projection<'a>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Kind<'a> {
    pub(super) group: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
}

impl<'a> Request<'a> {
    /// Reads a body. What is kept of it is charged to `account` as long as it exists.
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
            // Its projections are freed before others are read.
            drop(review);
            review = parse(text, catalog, Some(&header), account)?;
        }
        account.release(scratch);
        review.check(catalog)
    }
}

/// A review as it is read; nothing is checked yet.
#[derive(Default)]
struct Draft<'a> {
    api_version: Option<Cow<'a, str>>,
    kind: Option<Cow<'a, str>>,
    request: Option<DraftRequest<'a>>,
}

#[derive(Default)]
struct DraftRequest<'a> {
    uid: Cow<'a, str>,
    name: Cow<'a, str>,
    header: Header<'a>,
    object: DraftObject<'a>,
    old_object: DraftObject<'a>,
}

#[derive(Default)]
struct DraftObject<'a> {
    /// `None` where nothing is to be judged.
    projection: Option<Projection<'a>>,
    seen: bool,
    /// How it was read.
    read_as: Option<Reading<'a>>,
}

/// What must be known to read an object.
#[derive(Clone, Default)]
struct Header<'a> {
    kind: Option<Kind<'a>>,
    subresource: Cow<'a, str>,
    operation: Cow<'a, str>,
}

/// How to read an object: the kind, and the part that the request can change.
#[derive(Clone, Copy)]
struct Reading<'c> {
    entry: &'c CatalogEntry,
    part: Part,
}

impl PartialEq for Reading<'_> {
    fn eq(&self, other: &Self) -> bool {
        // Entries of one catalog.
        (self.entry.ordinal(), self.part) == (other.entry.ordinal(), other.part)
    }
}

impl Header<'_> {
    /// `None` where there is nothing to judge.
    fn reading<'c>(&self, catalog: &'c Catalog) -> Option<Reading<'c>> {
        if matches!(&*self.operation, "DELETE" | "CONNECT") {
            return None;
        }
        let part = match &*self.subresource {
            "" => Part::Main,
            "status" => Part::Status,
            _ => return None,
        };
        let entry = self.entry(catalog)?;
        entry.plan().has(part).then_some(Reading { entry, part })
    }

    fn entry<'c>(&self, catalog: &'c Catalog) -> Option<&'c CatalogEntry> {
        let kind = self.kind.as_ref()?;
        catalog.lookup(&kind.group, &kind.version, &kind.name)
    }
}

impl DraftRequest<'_> {
    /// Whether an object went by before all was known that says how to read it.
    fn misread(&self, catalog: &Catalog) -> bool {
        let due = self.header.reading(catalog);
        [&self.object, &self.old_object].into_iter().any(|object| object.seen && object.read_as != due)
    }
}

impl<'a> Draft<'a> {
    fn check(self, catalog: &'a Catalog) -> Result<Request<'a>, ReviewError> {
        let (api_version, kind) = (self.api_version.unwrap_or_default(), self.kind.unwrap_or_default());
        if (&*api_version, &*kind) != ("admission.k8s.io/v1", "AdmissionReview") {
            let [kind, api_version] = [kind, api_version].map(|text| Printable::new(&text, LONGEST_ECHO).to_string());
            return Err(ReviewError::Unsupported { kind, api_version });
        }
        let request = self.request.ok_or(ReviewError::NoRequest)?;
        if request.uid.is_empty() {
            return Err(ReviewError::NoUid);
        }
        let operation = Operation::named(&request.header.operation)?;
        let ordinal = request.header.entry(catalog).map(CatalogEntry::ordinal);
        let reading = request.header.reading(catalog);
        let (object, old_object) = (request.object.projection, request.old_object.projection);
        let kind = request.header.kind.ok_or(ReviewError::NoKind)?;
        let subject = match reading {
            None => None,
            Some(Reading { entry, part }) => {
                let new = object.filter(Projection::is_object).ok_or(ReviewError::NotAnObject("object"))?;
                let old = old_object.filter(|old| !old.is_null());
                if old.as_ref().is_some_and(|old| !old.is_object()) {
                    return Err(ReviewError::NotAnObject("oldObject"));
                }
                let old = old.filter(|_| operation == Operation::Update);
                Some(Subject { entry, part, new, old })
            }
        };
        Ok(Request { uid: request.uid, operation, kind, name: request.name, ordinal, subject })
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

#[derive(Clone, Copy)]
struct ReviewSeed<'c, 'h> {
    catalog: &'c Catalog,
    text: &'c str,
    account: &'c Account<'c>,
    /// How to read objects, where that is known beforehand.
    known: Option<&'h Header<'h>>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum ReviewField {
    ApiVersion,
    Kind,
    Request,
    #[serde(other)]
    Other,
}

impl<'de> DeserializeSeed<'de> for ReviewSeed<'de, '_> {
    type Value = Draft<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ReviewSeed<'de, '_> {
    type Value = Draft<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an AdmissionReview")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(text_instead(&self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut draft = Draft::default();
        while let Some(field) = map.next_key()? {
            match field {
                ReviewField::ApiVersion => {
                    draft.api_version = map.next_value::<Option<Text<'de>>>()?.map(|text| text.0);
                }
                ReviewField::Kind => draft.kind = map.next_value::<Option<Text<'de>>>()?.map(|text| text.0),
                ReviewField::Request => draft.request = map.next_value_seed(RequestSeed(self))?,
                ReviewField::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(draft)
    }
}

struct RequestSeed<'c, 'h>(ReviewSeed<'c, 'h>);

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum RequestField {
    Uid,
    Kind,
    SubResource,
    Name,
    Operation,
    Object,
    OldObject,
    #[serde(other)]
    Other,
}

impl<'de> DeserializeSeed<'de> for RequestSeed<'de, '_> {
    type Value = Option<DraftRequest<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for RequestSeed<'de, '_> {
    type Value = Option<DraftRequest<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request of an AdmissionReview")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(text_instead(&self))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut request = DraftRequest::default();
        while let Some(field) = map.next_key()? {
            match field {
                RequestField::Uid => request.uid = text(&mut map)?,
                RequestField::Kind => request.header.kind = map.next_value::<Option<Kind<'de>>>()?,
                RequestField::SubResource => request.header.subresource = text(&mut map)?,
                RequestField::Name => request.name = text(&mut map)?,
                RequestField::Operation => request.header.operation = text(&mut map)?,
                RequestField::Object => request.object = self.object(&request.header, &mut map)?,
                RequestField::OldObject => request.old_object = self.object(&request.header, &mut map)?,
                RequestField::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Some(request))
    }
}

impl<'de> RequestSeed<'de, '_> {
    fn object<A: MapAccess<'de>>(&self, so_far: &Header<'_>, map: &mut A) -> Result<DraftObject<'de>, A::Error> {
        let ReviewSeed { catalog, known, text, account } = self.0;
        let reading = known.map_or_else(|| so_far.reading(catalog), |header| header.reading(catalog));
        let projection = match reading {
            Some(Reading { entry, part }) => {
                Some(map.next_value_seed(ProjectionSeed::new(entry.plan(), part, text, account))?)
            }
            None => map.next_value::<IgnoredAny>().map(|_| None)?,
        };
        Ok(DraftObject { projection, seen: true, read_as: reading })
    }
}

/// A text where something else belongs. It may be long, so the error does not repeat it.
fn text_instead<E: Error>(expected: &dyn serde::de::Expected) -> E {
    E::invalid_type(Unexpected::Other("string"), expected)
}

impl<'de> Deserialize<'de> for Kind<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KindVisitor)
    }
}

struct KindVisitor;

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum KindField {
    Group,
    Version,
    Kind,
    #[serde(other)]
    Other,
}

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a group, version and kind")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(text_instead(&self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut kind = Kind::default();
        while let Some(field) = map.next_key()? {
            match field {
                KindField::Group => kind.group = map.next_value::<Text<'de>>()?.0,
                KindField::Version => kind.version = map.next_value::<Text<'de>>()?.0,
                KindField::Kind => kind.name = map.next_value::<Text<'de>>()?.0,
                KindField::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(kind)
    }
}

/// A string; null reads as empty.
fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Cow<'de, str>, A::Error> {
    Ok(map.next_value::<Option<Text<'de>>>()?.map(|text| text.0).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Builder;
    use crate::declaration::Definition;
    use crate::union::Unmetered;
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
                let request = Request::read(&catalog, body.as_bytes(), &account).unwrap();
                let subject = request.subject.unwrap();
                assert_eq!(subject.part, Part::Status, "{body}");
                assert!(subject.new.is_object() && subject.old.unwrap().is_object(), "{body}");
            }
        }
    }
}
