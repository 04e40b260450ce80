//! Managers and the fields that they own: `metadata.managedFields`.

use super::field_set::{FieldSet, ManagedFieldsError};
use kube_unions_core::declaration;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

/// The managers of an object and the fields that each owns. By default nobody owns anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Managers {
    pub(super) entries: BTreeMap<ManagerIdentity, OwnedFields>,
}

/// A field manager of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldManager {
    /// Its name.
    pub name: Box<str>,
    /// True if it applies server-side, false if it writes in another way.
    pub applies: bool,
    /// True if it owns the annotation of `kubectl apply`.
    pub has_last_applied: bool,
}

/// The path of the annotation of `kubectl apply`.
pub(crate) const LAST_APPLIED: &[&str] = &["metadata", "annotations", declaration::LAST_APPLIED];

/// The identity of a manager: its name, operation, version and subresource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ManagerIdentity {
    name: Box<str>,
    operation: ManagerOperation,
    /// Empty for an applier, which is the same manager in every version.
    api_version: Box<str>,
    subresource: Box<str>,
}

/// The way in which a manager writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ManagerOperation {
    Apply,
    Update,
}

/// The fields of one manager.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OwnedFields {
    pub(super) fields: FieldSet,
    pub(super) api_version: Box<str>,
    /// The time of the manager's last change, as it was read.
    pub(super) time: Option<Box<str>>,
}

impl ManagerIdentity {
    pub(super) fn new(name: &str, operation: ManagerOperation, api_version: &str) -> Self {
        let name = if name.is_empty() { "unknown" } else { name };
        let api_version = if operation == ManagerOperation::Update { api_version } else { "" };
        Self { name: name.into(), operation, api_version: api_version.into(), subresource: Box::default() }
    }
}

impl Managers {
    /// Reads `metadata.managedFields`. Null is nobody.
    ///
    /// # Errors
    /// A list that the API server refuses, with the place of the fault.
    pub fn from_managed_fields(list: &Json) -> Result<Self, ManagedFieldsError> {
        let list = match list {
            Json::Null => return Ok(Self::default()),
            Json::Array(list) => list,
            Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_) => {
                return Err(ManagedFieldsError::new("it must be a list"));
            }
        };
        let entries = list.iter().enumerate();
        let entries =
            entries.map(|(position, entry)| read(entry).map_err(|error| error.inside(&format!("[{position}]"))));
        Ok(Self { entries: entries.collect::<Result<_, _>>()? })
    }

    /// Writes `metadata.managedFields` in the order of the API server.
    ///
    /// An entry keeps the time with which it was read, unless an operation wrote it.
    pub fn to_managed_fields(&self) -> Json {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(identity, owned)| (identity.operation, owned.time.clone(), *identity));
        entries.into_iter().map(write).collect()
    }

    /// Returns true if nobody owns anything.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the applier that has the most of some fields, less its other fields. It is `otherwise` if no applier has more of them than
    /// of others, and if it is one of several.
    pub(super) fn nearest<'m>(&'m self, fields: &FieldSet, otherwise: &'m str) -> &'m str {
        let near = self.entries.iter().filter_map(|(identity, owned)| {
            let mut others = owned.fields.clone();
            others.subtract(fields);
            let shared = owned.fields.len() - others.len();
            let applies = identity.operation == ManagerOperation::Apply && identity.subresource.is_empty();
            Some((shared.checked_sub(others.len()).filter(|score| applies && *score > 0)?, &*identity.name))
        });
        near.max_by_key(|(score, name)| (*score, *name == otherwise)).map_or(otherwise, |(_, name)| name)
    }

    /// Gives an applier the fields of other managers, which go. Subresources have managers of their own.
    ///
    /// Returns false if there are none.
    pub fn take_over(&mut self, applier: &str, is_taken: impl Fn(&FieldManager) -> bool) -> bool {
        let own = ManagerIdentity::new(applier, ManagerOperation::Apply, "");
        let others = self.entries.iter().filter(|(identity, _)| **identity != own && identity.subresource.is_empty());
        let taken = others.filter(|(identity, owned)| is_taken(&owned.manager(identity)));
        let taken: Vec<ManagerIdentity> = taken.map(|(identity, _)| identity.clone()).collect();
        for identity in &taken {
            let Some(owned) = self.entries.remove(identity) else { continue };
            match self.entries.entry(own.clone()) {
                Entry::Vacant(place) => drop(place.insert(owned)),
                Entry::Occupied(place) => place.into_mut().fields.union(&owned.fields),
            }
        }
        !taken.is_empty()
    }

    /// Returns true if a manager owns the annotation of `kubectl apply`.
    pub(crate) fn own_last_applied(&self) -> bool {
        !self.owners(&FieldSet::of_fields(&[LAST_APPLIED])).is_empty()
    }

    /// Returns the managers that own one of these fields.
    pub(super) fn owners(&self, fields: &FieldSet) -> Vec<FieldManager> {
        let owns = |owned: &OwnedFields| {
            let mut shared = owned.fields.clone();
            shared.intersect(fields);
            !shared.is_empty()
        };
        let owners = self.entries.iter().filter(|(_, owned)| owns(owned));
        owners.map(|(identity, owned)| owned.manager(identity)).collect()
    }

    /// Returns everything that any manager owns.
    pub(super) fn all_fields(&self) -> FieldSet {
        let mut all = FieldSet::default();
        for owned in self.entries.values() {
            all.union(&owned.fields);
        }
        all
    }
}

impl OwnedFields {
    fn manager(&self, identity: &ManagerIdentity) -> FieldManager {
        let mut missing = FieldSet::of_fields(&[LAST_APPLIED]);
        missing.subtract(&self.fields);
        let applies = identity.operation == ManagerOperation::Apply;
        FieldManager { name: identity.name.clone(), applies, has_last_applied: missing.is_empty() }
    }
}

fn read(entry: &Json) -> Result<(ManagerIdentity, OwnedFields), ManagedFieldsError> {
    let wrong = |field: &str, problem| ManagedFieldsError::new(problem).inside(&format!(".{field}"));
    let text = |field: &str| match entry.get(field) {
        None | Some(Json::Null) => Ok(""),
        Some(Json::String(text)) => Ok(text.as_str()),
        Some(_) => Err(wrong(field, "it must be a string")),
    };
    let operation = match text("operation")? {
        "Apply" => ManagerOperation::Apply,
        "Update" => ManagerOperation::Update,
        _ => return Err(wrong("operation", "it must be `Apply` or `Update`")),
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err(wrong("apiVersion", "it must be the version of the fields"));
    }
    if text("fieldsType")? != "FieldsV1" {
        return Err(wrong("fieldsType", "it must be `FieldsV1`, the only known format"));
    }
    let fields = entry.get("fieldsV1").map(|fields| FieldSet::from_json(fields, 1)).transpose();
    let fields = fields.map_err(|error| error.inside(".fieldsV1"))?.unwrap_or_default();
    let time = Some(text("time")?).filter(|time| !time.is_empty()).map(Box::from);
    let (name, subresource) = (text("manager")?.into(), text("subresource")?.into());
    let identity = ManagerIdentity { name, subresource, ..ManagerIdentity::new("", operation, api_version) };
    Ok((identity, OwnedFields { fields, api_version: api_version.into(), time }))
}

fn write((identity, owned): (&ManagerIdentity, &OwnedFields)) -> Json {
    let operation = match identity.operation {
        ManagerOperation::Apply => "Apply",
        ManagerOperation::Update => "Update",
    };
    let mut entry = json!({
        "manager": identity.name, "operation": operation, "apiVersion": owned.api_version, "time": owned.time,
        "fieldsType": "FieldsV1", "fieldsV1": owned.fields.to_json(),
        "subresource": Some(&identity.subresource).filter(|name| !name.is_empty()),
    });
    if let Some(fields) = entry.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    entry
}

/// Prints the manager as the API server does in a conflict.
impl fmt::Display for ManagerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        match self.operation {
            ManagerOperation::Apply => Ok(()),
            ManagerOperation::Update => write!(f, " using {}", self.api_version),
        }
    }
}
