//! Refuses markers that do not fit their declaration.

use super::source::SourceText;
use crate::finding::GoFinding;
use crate::finding_kind::FindingKind;
use crate::marker::{Marker, Meaning};
use crate::types::{Field, Type};

/// Returns the markers that fit a type, and reports the others and the invalid ones.
pub(super) fn keep_fitting_type_markers(
    markers: Vec<Marker>,
    definition: &Type,
    source: &SourceText<'_>,
) -> Vec<Marker> {
    let complaint = |meaning: &Meaning| {
        if is_for_fields(meaning) {
            return Some("has no effect on a type: write it above a field of a struct");
        }
        let is_for_structs = matches!(meaning, Meaning::Union | Meaning::OneOf(_) | Meaning::Subfield(..));
        let misplaced = is_for_structs && !may_be_struct(definition);
        misplaced.then_some("has no effect on a type that is not a struct")
    };
    keep_fitting(markers, complaint, source)
}

/// Returns a field with the markers that fit it, and reports the others and the invalid ones.
pub(super) fn with_fitting_markers(field: Field, markers: &[Marker], source: &SourceText<'_>) -> Field {
    let complaint = |meaning: &Meaning| {
        // controller-gen reads groups on declarations only.
        let is_group = matches!(meaning, Meaning::OneOf(_));
        if is_group || (*meaning == Meaning::Union && !is_anonymous_struct(&field.written)) {
            Some("has no effect on a field: write it above the struct that has the members")
        } else if is_for_fields(meaning) && field.is_inlined() {
            Some("has no effect on an inlined struct: write it above one of its fields")
        } else if is_for_fields(meaning) && field.json_name().is_none() {
            Some("has no effect on a field that JSON does not have: export the field and give it a `json` tag")
        } else {
            None
        }
    };
    let markers = keep_fitting(markers.to_vec(), complaint, source);
    Field { markers, ..field }
}

fn keep_fitting(
    mut markers: Vec<Marker>,
    complaint: impl Fn(&Meaning) -> Option<&'static str>,
    source: &SourceText<'_>,
) -> Vec<Marker> {
    markers.retain(|marker| {
        let misplaced = complaint(&marker.meaning);
        let (kind, message) = match (&marker.meaning, misplaced) {
            (Meaning::Invalid(message), _) => (FindingKind::InvalidMarker, message.clone()),
            (Meaning::Unsupported(message), _) => (FindingKind::UnsupportedMarker, message.clone()),
            (_, Some(complaint)) => (FindingKind::MisplacedMarker, format!("`{}` {complaint}", marker.spelling)),
            (_, None) => {
                source.note_condition(marker);
                return true;
            }
        };
        source.report(GoFinding::new(&marker.at, kind, message));
        misplaced.is_none()
    });
    markers
}

impl SourceText<'_> {
    /// Notes a condition of a marker, which a declared union does not have.
    fn note_condition(&self, Marker { at, spelling, condition, .. }: &Marker) {
        if let Some(condition) = condition {
            let message = format!("`{condition}` is ignored: `{spelling}` is declared whatever the option is");
            self.report(GoFinding::new(at, FindingKind::ConditionalMarker, message));
        }
    }
}

fn is_for_fields(meaning: &Meaning) -> bool {
    matches!(
        meaning,
        Meaning::Discriminator { .. } | Meaning::Member(_) | Meaning::DiscriminatedBy(_) | Meaning::Excludes(_)
    )
}

/// Returns true for a struct and for a name that may stand for one.
fn may_be_struct(written: &Type) -> bool {
    const PREDECLARED: [&str; 20] = [
        "any",
        "bool",
        "byte",
        "complex128",
        "complex64",
        "error",
        "float32",
        "float64",
        "int",
        "int16",
        "int32",
        "int64",
        "int8",
        "rune",
        "string",
        "uint",
        "uint16",
        "uint32",
        "uint64",
        "uint8",
    ];
    match written {
        Type::Struct(_) => true,
        Type::Named { qualifier, name, .. } => qualifier.is_some() || !PREDECLARED.contains(&&**name),
        Type::Pointer(_) | Type::List(_) | Type::Map(_) | Type::Other => false,
    }
}

/// Returns true for a struct without a name, or a pointer, list or map of one.
fn is_anonymous_struct(written: &Type) -> bool {
    match written {
        Type::Struct(_) => true,
        Type::Pointer(inner) | Type::List(inner) | Type::Map(inner) => is_anonymous_struct(inner),
        Type::Named { .. } | Type::Other => false,
    }
}
