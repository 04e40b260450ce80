//! Managers and the fields that they own: `metadata.managedFields`.

use super::field_set::{FieldSet, FieldsFault};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::fmt;

/// The managers of an object and the fields that each owns. By default nobody owns anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Managers {
    pub(super) entries: BTreeMap<ManagerIdentity, OwnedFields>,
}

/// What distinguishes a manager from the others.
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

/// `metadata.managedFields` that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManagedFieldsFault {
    /// It is not a list.
    #[error("metadata.managedFields must be a list")]
    NotAList,
    /// A field of an entry is absent, of another type or unknown.
    #[error("metadata.managedFields[{0}].{1}: write {2}")]
    Entry(usize, &'static str, &'static str),
    /// The fields of an entry are broken.
    #[error("metadata.managedFields[{0}].fieldsV1: {1}")]
    Fields(usize, FieldsFault),
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
    /// [`ManagedFieldsFault`] with the entry, for one that the API server refuses.
    pub fn from_managed_fields(list: &Json) -> Result<Self, ManagedFieldsFault> {
        let list = match list {
            Json::Null => return Ok(Self::default()),
            Json::Array(list) => list,
            Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_) => {
                return Err(ManagedFieldsFault::NotAList);
            }
        };
        list.iter()
            .enumerate()
            .map(|(position, entry)| read(position, entry))
            .collect::<Result<_, _>>()
            .map(|entries| Self { entries })
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

    /// Returns everything that any manager owns.
    pub(super) fn all_fields(&self) -> FieldSet {
        let mut all = FieldSet::default();
        for owned in self.entries.values() {
            all.union(&owned.fields);
        }
        all
    }
}

fn read(position: usize, entry: &Json) -> Result<(ManagerIdentity, OwnedFields), ManagedFieldsFault> {
    let fault = |field, wanted| ManagedFieldsFault::Entry(position, field, wanted);
    let text = |field: &'static str| match entry.get(field) {
        None | Some(Json::Null) => Ok(""),
        Some(value) => value.as_str().ok_or_else(|| fault(field, "a string")),
    };
    let operation = match text("operation")? {
        "Apply" => ManagerOperation::Apply,
        "Update" => ManagerOperation::Update,
        _ => return Err(fault("operation", "`Apply` or `Update`")),
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err(fault("apiVersion", "the version of the fields"));
    }
    if text("fieldsType")? != "FieldsV1" {
        return Err(fault("fieldsType", "`FieldsV1`, the only known format"));
    }
    let fields = match entry.get("fieldsV1") {
        None | Some(Json::Null) => FieldSet::default(),
        Some(fields @ Json::Object(_)) => {
            FieldSet::from_json(fields, 1).map_err(|fault| ManagedFieldsFault::Fields(position, fault))?
        }
        Some(_) => return Err(fault("fieldsV1", "an object")),
    };
    let time = Some(text("time")?).filter(|time| !time.is_empty()).map(Box::from);
    let subresource = text("subresource")?.into();
    let identity = ManagerIdentity {
        subresource,
        name: text("manager")?.into(),
        ..ManagerIdentity::new("", operation, api_version)
    };
    Ok((identity, OwnedFields { fields, api_version: api_version.into(), time }))
}

fn write((identity, owned): (&ManagerIdentity, &OwnedFields)) -> Json {
    let operation = match identity.operation {
        ManagerOperation::Apply => "Apply",
        ManagerOperation::Update => "Update",
    };
    let mut entry = Map::new();
    let mut put = |name: &str, value: Json| entry.insert(name.to_owned(), value);
    put("manager", json!(identity.name));
    put("operation", json!(operation));
    put("apiVersion", json!(owned.api_version));
    if let Some(time) = &owned.time {
        put("time", json!(time));
    }
    put("fieldsType", json!("FieldsV1"));
    put("fieldsV1", owned.fields.to_json());
    if !identity.subresource.is_empty() {
        put("subresource", json!(identity.subresource));
    }
    Json::Object(entry)
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
