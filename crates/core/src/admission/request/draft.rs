//! Drafts of a request, which are read field by field, and their checks.

use super::LONGEST_ECHO;
use super::{AdmissionRequest, JudgedObjects, Operation, RequestKind};
use crate::admission::ReviewError;
use crate::admission::raw::read_string;
use crate::catalog::{Catalog, CatalogEntry};
use crate::field_path::Printable;
use crate::json::{TextReader, Unreadable};
use crate::union::{Arena, Part, Projected, Projector};
use std::borrow::Cow;

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
    options: Option<&'a str>,
}

#[derive(Default)]
struct DraftObject<'a> {
    /// The unions of the object, `None` if there are none to judge.
    projected: Option<Projected<'a>>,
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
pub(super) struct ReadTarget<'c> {
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
    /// `arena` has the unions of both objects.
    pub(super) fn check(
        self,
        catalog: &'a Catalog,
        arena: Option<Arena<'a>>,
    ) -> Result<AdmissionRequest<'a>, ReviewError> {
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
        let (object, old_object) = (request.object.projected, request.old_object.projected);
        let kind = request.header.kind.ok_or(ReviewError::NoKind)?;
        let subject = match reading {
            None => None,
            Some(ReadTarget { entry, part }) => {
                let new = object.filter(Projected::is_object).zip(arena);
                let (new, arena) = new.ok_or(ReviewError::NotAnObject("object"))?;
                let old = old_object.filter(|old| !old.is_null());
                if old.is_some_and(|old| !old.is_object()) {
                    return Err(ReviewError::NotAnObject("oldObject"));
                }
                let old = old.filter(|_| operation == Operation::Update);
                Some(JudgedObjects { catalog, entry, part, arena, new, old })
            }
        };
        let DraftRequest { uid, name, options, .. } = request;
        Ok(AdmissionRequest { uid, operation, kind, name, ordinal, options, subject })
    }
}

/// Reads a review.
pub(super) struct ReviewReader<'a, 'h> {
    pub(super) catalog: &'a Catalog,
    pub(super) reader: TextReader<'a>,
    /// The header, if the body is read a second time.
    pub(super) known: Option<&'h Header<'h>>,
    /// Has the unions of the objects that were read last in this way.
    pub(super) projector: Option<(ReadTarget<'a>, Projector<'a, 'a>)>,
}

impl<'a> ReviewReader<'a, '_> {
    pub(super) fn review(&mut self) -> Result<Draft<'a>, Unreadable> {
        let mut draft = Draft::default();
        let mut fields = self.reader.object("an AdmissionReview")?;
        while let Some(field) = self.reader.known_name(&mut fields, &["apiVersion", "kind", "request"])? {
            match field {
                "apiVersion" => draft.api_version = self.text_or_null()?,
                "kind" => draft.kind = self.text_or_null()?,
                "request" => draft.request = self.request()?,
                _ => drop(self.reader.skip()?),
            }
        }
        self.reader.end()?;
        Ok(draft)
    }

    fn request(&mut self) -> Result<Option<DraftRequest<'a>>, Unreadable> {
        const FIELDS: [&str; 8] = ["uid", "kind", "subResource", "name", "operation", "object", "oldObject", "options"];
        if self.reader.null()? {
            return Ok(None);
        }
        let mut request = DraftRequest::default();
        let mut fields = self.reader.object("the request of an AdmissionReview")?;
        while let Some(field) = self.reader.known_name(&mut fields, &FIELDS)? {
            match field {
                "uid" => request.uid = self.text_or_null()?.unwrap_or_default(),
                "kind" => request.header.kind = self.kind()?,
                "subResource" => request.header.subresource = self.text_or_null()?.unwrap_or_default(),
                "name" => request.name = self.text_or_null()?.unwrap_or_default(),
                "operation" => request.header.operation = self.text_or_null()?.unwrap_or_default(),
                "object" => request.object = self.object(&request.header)?,
                "oldObject" => request.old_object = self.object(&request.header)?,
                "options" => request.options = Some(self.reader.skip()?).filter(|options| *options != "null"),
                _ => drop(self.reader.skip()?),
            }
        }
        Ok(Some(request))
    }

    fn kind(&mut self) -> Result<Option<RequestKind<'a>>, Unreadable> {
        if self.reader.null()? {
            return Ok(None);
        }
        let mut kind = RequestKind::default();
        let mut fields = self.reader.object("a group, version and kind")?;
        while let Some(field) = self.reader.known_name(&mut fields, &["group", "version", "kind"])? {
            match field {
                "group" => kind.group = read_string(&mut self.reader)?,
                "version" => kind.version = read_string(&mut self.reader)?,
                "kind" => kind.name = read_string(&mut self.reader)?,
                _ => drop(self.reader.skip()?),
            }
        }
        Ok(Some(kind))
    }

    fn object(&mut self, so_far: &Header<'_>) -> Result<DraftObject<'a>, Unreadable> {
        let read_as = self.known.unwrap_or(so_far).reading(self.catalog);
        if let Some(target) = read_as
            && self.projector.as_ref().is_none_or(|(known, _)| *known != target)
        {
            // An object with another target was misread.
            self.projector = Some((target, Projector::new(target.entry.plan(), target.part, &self.reader)));
        }
        let projected = match &mut self.projector {
            Some((_, projector)) if read_as.is_some() => Some(projector.object(&mut self.reader)?),
            _ => self.reader.skip().map(|_| None)?,
        };
        Ok(DraftObject { projected, seen: true, read_as })
    }

    fn text_or_null(&mut self) -> Result<Option<Cow<'a, str>>, Unreadable> {
        if self.reader.null()? { Ok(None) } else { read_string(&mut self.reader).map(Some) }
    }
}
