//! CRDs as sources.

use super::compact::compact;
use crate::catalog::compiling_cost;
use crate::causes::with_causes;
use crate::declaration::{ANNOTATION, Acceptance, BuiltinGroups, Definition, LAST_APPLIED};
use crate::names::GroupKind;
use crate::schema::EXTENSION;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum memory to compile one stored CRD, in bytes. CRDs that people write take a few MiB.
const MAX_COMPILE_MEMORY: usize = 32 * 1024 * 1024;

/// The parts of a stored CRD that its unions follow from.
#[derive(Debug, Clone, Copy)]
pub struct CrdText<'t> {
    /// The annotations.
    pub annotations: &'t BTreeMap<String, String>,
    /// The JSON text of `spec`.
    pub spec: &'t str,
    /// The JSON text of `status`.
    pub status: Option<&'t str>,
}

/// A CRD of a workspace.
#[derive(Debug, Clone)]
pub(super) enum KnownCrd {
    /// From a cluster, where few CRDs are compiled at a time.
    Stored(Arc<StoredCrd>),
    /// From a file.
    Read(Arc<Definition>),
}

/// A CRD, shrunk to the parts that its unions follow from.
#[derive(Debug, Clone)]
pub(super) struct StoredCrd {
    /// The error of a CRD that cannot be read does not depend on the groups of the API server.
    pub(super) acceptance: Result<Acceptance, String>,
    /// JSON text, compact.
    pub(super) spec: Box<str>,
    /// The annotations that declare unions.
    pub(super) annotations: BTreeMap<String, String>,
    /// JSON text.
    status: Option<Box<str>>,
    pub(super) mentions_unions: bool,
    /// To compile the CRD as it is stored would take more than [`MAX_COMPILE_MEMORY`].
    pub(super) too_large: bool,
}

impl KnownCrd {
    /// Returns true if the same unions follow from both. A CRD that was read already differs from every other, and a status counts
    /// by the acceptance that it says.
    pub(super) fn compiles_like(&self, other: &Self) -> bool {
        let (Self::Stored(one), Self::Stored(other)) = (self, other) else { return false };
        one.acceptance == other.acceptance
            && one.spec == other.spec
            && one.annotations == other.annotations
            && one.mentions_unions == other.mentions_unions
            && one.too_large == other.too_large
    }

    /// Returns the kind that the CRD defines, if it counts.
    pub(super) fn kind(&self) -> Option<&GroupKind> {
        match self {
            Self::Read(definition) => Some(definition.group_kind()),
            Self::Stored(stored) => match &stored.acceptance {
                Ok(Acceptance::Accepted(claim)) => Some(&claim.kind),
                Ok(Acceptance::Pending | Acceptance::Ignored(..)) | Err(_) => None,
            },
        }
    }

    pub(super) fn read(&self) -> Option<&Definition> {
        match self {
            Self::Read(definition) => Some(definition),
            Self::Stored(_) => None,
        }
    }

    /// Returns the CRD as it is where no CRD counts in these groups, `None` if that changes nothing.
    pub(super) fn accepted_anew(&self, groups: &BuiltinGroups) -> Option<Self> {
        let Self::Stored(stored) = self else { return None };
        stored.acceptance.as_ref().ok()?;
        let acceptance = acceptance(&stored.spec, stored.status.as_deref(), groups);
        let changed = acceptance != stored.acceptance;
        changed.then(|| Self::Stored(Arc::new(StoredCrd { acceptance, ..(**stored).clone() })))
    }
}

impl StoredCrd {
    pub(super) fn new(text: Result<CrdText<'_>, &str>, groups: &BuiltinGroups) -> Self {
        let CrdText { annotations, spec, status } = match text {
            Ok(text) => text,
            Err(message) => {
                return Self {
                    acceptance: Err(message.to_owned()),
                    spec: Box::default(),
                    annotations: BTreeMap::new(),
                    status: None,
                    mentions_unions: false,
                    too_large: false,
                };
            }
        };
        // kubectl keeps the whole CRD in an annotation. Few mention unions there.
        let declares = |(name, text): &(&String, &String)| {
            *name == ANNOTATION || (*name == LAST_APPLIED && text.contains(EXTENSION))
        };
        let declaring = annotations.iter().filter(declares).map(|(name, text)| (name.clone(), text.clone()));
        let declaring: BTreeMap<String, String> = declaring.collect();
        let too_large = compiling_cost(spec, annotations.values().map(String::len).sum()) > MAX_COMPILE_MEMORY;
        Self {
            acceptance: acceptance(spec, status, groups),
            // To shrink a CRD takes memory as well.
            spec: if too_large { spec.into() } else { compact(spec).into() },
            status: status.map(Box::from),
            // Most CRDs declare nothing. A text search finds out without parsing them.
            mentions_unions: !declaring.is_empty() || spec.contains(EXTENSION),
            annotations: declaring,
            too_large,
        }
    }
}

fn acceptance(spec: &str, status: Option<&str>, groups: &BuiltinGroups) -> Result<Acceptance, String> {
    Acceptance::read(spec, status, groups).map_err(|error| with_causes(&error))
}
