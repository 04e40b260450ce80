//! Finds the manifests of a request: the fields that its author sets, as far as the API server tells.
//!
//! | way to apply | manifest |
//! |---|---|
//! | server-side | the entry of `metadata.managedFields` with the request's field manager and the operation `Apply`; nothing, if no entry names the field manager |
//! | client-side | the annotation of the last applied configuration, if the request's field manager is kubectl's or owns the annotation |
//!
//! Both are part of the new object. Any other write has no manifest. A manifest that cannot be read, that is of another kind, or of a
//! version with other unions, counts as none. The API server converts objects, and never their field sets or annotations, so the version
//! of a manifest is that at which it was applied. This module must not know what follows from a manifest.

mod field_set;

use super::raw::{field, for_each_item, string};
use super::request::{AdmissionRequest, JudgedObjects};
use crate::declaration::LAST_APPLIED;
use crate::json::{TextReader, Unreadable};
use crate::meter::{Exhausted, Meter};
use crate::union::{LONGEST_TEXT, MOST_OTHERS, Manifests, Part, Projection, Projector};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The field manager of `kubectl apply` without `--server-side`.
const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";

/// The beginning of the field managers of kubectl's commands. `kubectl replace` and `edit` keep the annotation up to date, and apply
/// nothing.
const COMMANDS: &str = "kubectl-";

/// The annotation of the last applied configuration, in a field set.
const OWNED_LAST_APPLIED: &str = "f:kubectl.kubernetes.io/last-applied-configuration";

/// A way to apply a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMethod {
    /// The API server keeps the text of the manifest in an annotation.
    ClientSide,
    /// The API server keeps the fields of the manifest in `metadata.managedFields`, where an empty list of owned items has none.
    ServerSide,
}

/// A manifest in the metadata of an object.
#[derive(Debug, Clone, Copy)]
pub(super) enum ManifestSource<'a> {
    /// The text of the annotation, as a JSON string.
    Annotation(&'a str),
    /// The `fieldsV1` of an entry of `managedFields`.
    FieldSet(&'a str),
    /// The manifest itself.
    Given(&'a str),
}

/// The field manager of the oldest updates, which the API server merges when there are many.
const MERGED_UPDATES: &str = "ancient-changes";

/// The owned fields of a manifest that `managedFields` has no entry for.
const NO_FIELDS: ManifestSource<'static> = ManifestSource::Given("{}");

/// An entry of `managedFields`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ManagedFields<'a> {
    #[serde(borrow)]
    manager: Option<&'a RawValue>,
    #[serde(borrow)]
    operation: Option<&'a RawValue>,
    #[serde(borrow)]
    api_version: Option<&'a RawValue>,
    #[serde(borrow)]
    subresource: Option<&'a RawValue>,
    #[serde(borrow, rename = "fieldsV1")]
    field_set: Option<&'a RawValue>,
}

/// The field sets in `managedFields` that matter for a request.
#[derive(Default)]
struct FieldSets<'a> {
    /// The field set of the last apply by the request's field manager.
    own: Option<&'a str>,
    /// The field set of the updates by the request's field manager.
    updated: Option<&'a str>,
    /// The field sets of the applies by other field managers, up to [`MOST_OTHERS`].
    others: Vec<ManifestSource<'a>>,
    /// True if the request's field manager owns the annotation of the last applied configuration.
    owns_annotation: bool,
    /// True if the request's field manager may own a field, at any version: an entry names it, or updates of several field managers.
    may_own: bool,
    /// True if there is an entry. Without one, the API server keeps none for updates.
    is_tracked: bool,
}

impl<'a> FieldSets<'a> {
    /// Reads `managedFields` of the metadata of an object. Entries of versions with other unions, and of other subresources, are left out.
    fn of(metadata: &'a str, manager: &str, subject: &JudgedObjects<'_>) -> Self {
        let subresource = if subject.part == Part::Status { "status" } else { "" };
        let judged = subject.entry.gvk().api_version();
        let mut sets = Self::default();
        for_each_item(field(metadata, "managedFields").unwrap_or_default(), |entry| {
            sets.is_tracked = true;
            let Ok(entry) = serde_json::from_str::<ManagedFields<'_>>(entry) else { return };
            let Some(field_set) = entry.field_set.map(RawValue::get) else { return };
            let is = |text: Option<&RawValue>, expected: &str| {
                text.map_or(Some("".into()), |text| string(text.get())).is_some_and(|text| text == expected)
            };
            // The API server merges updates of all subresources.
            sets.may_own |= is(entry.manager, MERGED_UPDATES);
            if !is(entry.subresource, subresource) {
                return;
            }
            let is_own = is(entry.manager, manager);
            sets.may_own |= is_own;
            let counts = || {
                let api_version = entry.api_version.and_then(|text| string(text.get()));
                api_version.is_some_and(|api_version| subject.are_judged_alike_at(&api_version))
            };
            if is(entry.operation, "Apply") && counts() {
                if is_own {
                    sets.own = Some(field_set);
                } else if sets.others.len() < MOST_OTHERS {
                    sets.others.push(ManifestSource::FieldSet(field_set));
                }
            } else if is(entry.operation, "Update") && is_own {
                // A field manager has an entry of updates for each version. What an update changes is in that of its own version.
                if is(entry.api_version, &judged) || (sets.updated.is_none() && counts()) {
                    sets.updated = Some(field_set);
                }
                sets.owns_annotation |= owns_annotation(field_set);
            }
        });
        sets
    }
}

fn owns_annotation(field_set: &str) -> bool {
    let annotations = field(field_set, "f:metadata").and_then(|metadata| field(metadata, "f:annotations"));
    annotations.and_then(|annotations| field(annotations, OWNED_LAST_APPLIED)).is_some()
}

impl<'a> ManifestSource<'a> {
    /// Returns a manifest that the caller knows.
    pub(super) fn given(manifest: &'a str, method: ApplyMethod) -> Manifests<Self> {
        let server_side = method == ApplyMethod::ServerSide;
        Manifests { own: Self::Given(manifest), earlier: None, updated: None, others: Vec::new(), server_side }
    }

    /// Finds the manifests of a request. Returns `None` if the request is not an apply.
    pub(super) fn of(request: &AdmissionRequest<'_>, subject: &JudgedObjects<'a>) -> Option<Manifests<Self>> {
        let manager = string(field(request.options?, "fieldManager")?)?;
        let (new, old) = (subject.new.metadata(), subject.old.map_or("", |old| old.metadata()));
        let FieldSets { own, updated, others, owns_annotation, may_own, is_tracked } =
            FieldSets::of(new, &manager, subject);
        // An apply of nothing but empty lists leaves no entry. An update that leaves none changes nothing but empty lists either.
        let may_be_traceless = is_tracked && !may_own && !manager.is_empty() && !manager.starts_with(COMMANDS);
        if let Some(own) = own.map(Self::FieldSet).or(may_be_traceless.then_some(NO_FIELDS)) {
            let earlier = FieldSets::of(old, &manager, subject).own;
            let [earlier, updated] = [earlier, updated].map(|set| set.map(Self::FieldSet));
            return Some(Manifests { own, earlier, updated, others, server_side: true });
        }
        // The annotation tells nothing about the status.
        let is_apply = manager == CLIENT_SIDE_APPLY || (owns_annotation && !manager.starts_with(COMMANDS));
        if subject.part == Part::Status || !is_apply {
            return None;
        }
        let annotation = |metadata| Some(Self::Annotation(field(field(metadata, "annotations")?, LAST_APPLIED)?));
        Some(Manifests { own: annotation(new)?, earlier: annotation(old), updated: None, others, server_side: false })
    }

    /// Returns the manifest as JSON text. Returns `None` if it cannot be read, is of another kind, or of a version with other unions.
    pub(super) fn text<'m>(
        &self,
        subject: &JudgedObjects<'_>,
        meter: &'m dyn Meter,
    ) -> Result<Option<ManifestText<'m>>, Exhausted> {
        let (Self::Annotation(source) | Self::FieldSet(source) | Self::Given(source)) = self;
        // The text is no longer than its source, nor are the keys that a place of a field set is in.
        let charge = Charge::new(meter, source.len().saturating_mul(2))?;
        let text = match self {
            Self::Annotation(source) => {
                let mut reader = TextReader::new(source, meter);
                let text = reader.string().and_then(|text| reader.unicode(text, str::to_owned));
                readable(text)?.filter(|text| {
                    let value = |name| field(text, name).and_then(string);
                    value("apiVersion").is_some_and(|it| subject.are_judged_alike_at(&it))
                        && value("kind").is_some_and(|it| *it == *subject.entry.gvk().kind)
                })
            }
            Self::FieldSet(source) => readable(field_set::to_manifest(source, meter))?,
            Self::Given(source) => Some((*source).to_owned()),
        };
        let has_values = !matches!(self, Self::FieldSet(_));
        Ok(text.filter(|text| text.len() <= LONGEST_TEXT).map(|text| ManifestText {
            text,
            has_values,
            _charge: charge,
        }))
    }
}

pub(super) struct ManifestText<'m> {
    text: String,
    /// False if only the fields are known.
    has_values: bool,
    _charge: Charge<'m>,
}

impl ManifestText<'_> {
    /// Reads the unions of the manifest. Returns `None` if it is not an object.
    pub(super) fn project<'a>(
        &'a self,
        subject: &JudgedObjects<'_>,
        meter: &'a dyn Meter,
    ) -> Result<Option<Projection<'a>>, Exhausted> {
        let mut reader = TextReader::new(&self.text, meter);
        let mut projector = Projector::new(subject.entry.plan(), subject.part, &reader).of_manifest();
        if !self.has_values {
            projector = projector.with_wholes();
        }
        Ok(readable(projector.only(&mut reader))?.filter(Projection::is_object))
    }
}

/// Returns `None` for a text that cannot be read.
fn readable<T>(read: Result<T, Unreadable>) -> Result<Option<T>, Exhausted> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Unreadable::Malformed(_)) => Ok(None),
        Err(Unreadable::Exhausted(exhausted)) => Err(exhausted),
    }
}

/// Charged memory that is released when dropped.
struct Charge<'m> {
    meter: &'m dyn Meter,
    bytes: usize,
}

impl<'m> Charge<'m> {
    fn new(meter: &'m dyn Meter, bytes: usize) -> Result<Self, Exhausted> {
        meter.charge(bytes)?;
        Ok(Self { meter, bytes })
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.meter.release(self.bytes);
    }
}
