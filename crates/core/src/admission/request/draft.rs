//! The serde side of a request: drafts that are read field by field, and their checks.

use super::LONGEST_ECHO;
use super::{AdmissionRequest, JudgedObjects, Operation, RequestKind};
use crate::admission::ReviewError;
use crate::admission::text::Text;
use crate::catalog::{Catalog, CatalogEntry};
use crate::field_path::Printable;
use crate::meter::Account;
use crate::seed::visit_as_seed;
use crate::union::{Part, Projection, ProjectionSeed};
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A review that is read but not checked.
#[derive(Default)]
pub(super) struct Draft<'a> {
    api_version: Option<Cow<'a, str>>,
    kind: Option<Cow<'a, str>>,
    pub(super) request: Option<DraftRequest<'a>>,
}

#[derive(Default)]
pub(super) struct DraftRequest<'a> {
    uid: Cow<'a, str>,
    name: Cow<'a, str>,
    pub(super) header: Header<'a>,
    object: DraftObject<'a>,
    old_object: DraftObject<'a>,
    options: Option<&'a RawValue>,
}

#[derive(Default)]
struct DraftObject<'a> {
    /// The unions of the object, `None` if there are none to judge.
    projection: Option<Projection<'a>>,
    seen: bool,
    /// The way in which the object was read.
    read_as: Option<ReadTarget<'a>>,
}

/// The fields of a request that decide how its objects are read.
#[derive(Clone, Default)]
pub(super) struct Header<'a> {
    kind: Option<RequestKind<'a>>,
    subresource: Cow<'a, str>,
    operation: Cow<'a, str>,
}

/// The way to read an object: its kind, and the part that the request can change.
#[derive(Clone, Copy)]
struct ReadTarget<'c> {
    entry: &'c CatalogEntry,
    part: Part,
}

impl PartialEq for ReadTarget<'_> {
    fn eq(&self, other: &Self) -> bool {
        // Both entries belong to the same catalog.
        (self.entry.ordinal(), self.part) == (other.entry.ordinal(), other.part)
    }
}

impl Header<'_> {
    /// Returns the way to read the objects, `None` if there is nothing to judge.
    fn reading<'c>(&self, catalog: &'c Catalog) -> Option<ReadTarget<'c>> {
        if matches!(&*self.operation, "DELETE" | "CONNECT") {
            return None;
        }
        let part = match &*self.subresource {
            "" => Part::Main,
            "status" => Part::Status,
            _ => return None,
        };
        let entry = self.entry(catalog)?;
        entry.plan().has(part).then_some(ReadTarget { entry, part })
    }

    fn entry<'c>(&self, catalog: &'c Catalog) -> Option<&'c CatalogEntry> {
        let kind = self.kind.as_ref()?;
        catalog.lookup(&kind.group, &kind.version, &kind.name)
    }
}

impl DraftRequest<'_> {
    /// Returns true if an object was read before the header was complete, in a way that turned out wrong.
    pub(super) fn misread(&self, catalog: &Catalog) -> bool {
        let due = self.header.reading(catalog);
        [&self.object, &self.old_object].into_iter().any(|object| object.seen && object.read_as != due)
    }
}

impl<'a> Draft<'a> {
    pub(super) fn check(self, catalog: &'a Catalog) -> Result<AdmissionRequest<'a>, ReviewError> {
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
            Some(ReadTarget { entry, part }) => {
                let new = object.filter(Projection::is_object).ok_or(ReviewError::NotAnObject("object"))?;
                let old = old_object.filter(|old| !old.is_null());
                if old.as_ref().is_some_and(|old| !old.is_object()) {
                    return Err(ReviewError::NotAnObject("oldObject"));
                }
                let old = old.filter(|_| operation == Operation::Update);
                Some(JudgedObjects { entry, part, new, old })
            }
        };
        let options = request.options.map(RawValue::get);
        Ok(AdmissionRequest { uid: request.uid, operation, kind, name: request.name, ordinal, options, subject })
    }
}

#[derive(Clone, Copy)]
pub(super) struct ReviewSeed<'c, 'h> {
    pub(super) catalog: &'c Catalog,
    pub(super) text: &'c str,
    pub(super) account: &'c Account<'c>,
    /// The header, if the body is read a second time.
    pub(super) known: Option<&'h Header<'h>>,
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

visit_as_seed!([] ReviewSeed<'de, '_>, deserialize_map);

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
    Options,
    #[serde(other)]
    Other,
}

visit_as_seed!([] RequestSeed<'de, '_>, deserialize_option);

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
                RequestField::Kind => request.header.kind = map.next_value::<Option<RequestKind<'de>>>()?,
                RequestField::SubResource => request.header.subresource = text(&mut map)?,
                RequestField::Name => request.name = text(&mut map)?,
                RequestField::Operation => request.header.operation = text(&mut map)?,
                RequestField::Object => request.object = self.object(&request.header, &mut map)?,
                RequestField::OldObject => request.old_object = self.object(&request.header, &mut map)?,
                RequestField::Options => request.options = map.next_value()?,
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
            Some(ReadTarget { entry, part }) => {
                Some(map.next_value_seed(ProjectionSeed::new(entry.plan(), part, text, account))?)
            }
            None => map.next_value::<IgnoredAny>().map(|_| None)?,
        };
        Ok(DraftObject { projection, seen: true, read_as: reading })
    }
}

/// Rejects a string where an object belongs. The error does not repeat the string, which may be long.
fn text_instead<E: Error>(expected: &dyn serde::de::Expected) -> E {
    E::invalid_type(Unexpected::Other("string"), expected)
}

impl<'de> Deserialize<'de> for RequestKind<'de> {
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
    type Value = RequestKind<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a group, version and kind")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(text_instead(&self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut kind = RequestKind::default();
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

/// Reads a string. Null counts as the empty string.
fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Cow<'de, str>, A::Error> {
    Ok(map.next_value::<Option<Text<'de>>>()?.map(|text| text.0).unwrap_or_default())
}
