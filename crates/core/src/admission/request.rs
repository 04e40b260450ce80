//! The request half of an `AdmissionReview`.
//!
//! This module must not know how objects are judged. [`read`] reads a body, [`draft`] has its fields.

mod draft;
mod read;

use super::error::ReviewError;
use crate::catalog::{Catalog, CatalogEntry};
use crate::field_path::Printable;
use crate::union::{Arena, Objects, Part, Projected};
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
    catalog: &'a Catalog,
    pub(super) entry: &'a CatalogEntry,
    pub(super) part: Part,
    /// Has the unions of both objects.
    arena: Arena<'a>,
    pub(super) new: Projected<'a>,
    /// The old object, on UPDATE only.
    pub(super) old: Option<Projected<'a>>,
}

impl JudgedObjects<'_> {
    /// Returns true for an `apiVersion` at which a write of the kind is judged by the same unions: those of the version are the same, or
    /// the version is not known, so that the API server converts its objects. Then its fields have the same names.
    pub(super) fn are_judged_alike_at(&self, api_version: &str) -> bool {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = self.entry.gvk();
        *group == *gvk.group
            && match self.catalog.lookup(group, version, &gvk.kind) {
                Some(other) => other.has_same_unions(self.entry),
                None => !self.entry.versions_without_unions().iter().any(|without| **without == *version),
            }
    }

    /// Returns the objects without manifests.
    pub(super) fn objects(&self) -> Objects<'_> {
        let old = self.old.and_then(|old| old.root(&self.arena));
        Objects { new: self.new.root(&self.arena), old, manifests: None }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RequestKind<'a> {
    pub(super) group: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
}

impl Operation {
    fn named(name: &str) -> Result<Self, ReviewError> {
        [Self::Create, Self::Update, Self::Delete, Self::Connect]
            .into_iter()
            .find(|operation| operation.name() == name)
            .ok_or_else(|| ReviewError::UnknownOperation(Printable::new(name, LONGEST_ECHO).to_string()))
    }
}
