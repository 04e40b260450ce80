//! Which markers can be about what they stand on.

use super::comments::Comments;
use crate::finding::Severity;
use crate::marker::{Marker, Meaning};
use crate::types::{Field, Misplaced, Type};

/// The markers of a type: those that belong to fields are reported, as are those that can't be read.
pub(super) fn fitting_type(markers: Vec<Marker>, definition: &Type, comments: &mut Comments<'_, '_>) -> Vec<Marker> {
    let complaint = |marker: &Marker| match &marker.meaning {
        Meaning::Discriminator { .. } | Meaning::Member(_) | Meaning::DiscriminatedBy(_) => {
            Some("stands on a type; it belongs on a field of a struct")
        }
        Meaning::Union if !may_be_struct(definition) => Some("stands on a type that is no struct"),
        Meaning::Union
        | Meaning::Enum(_)
        | Meaning::Root
        | Meaning::GroupName(_)
        | Meaning::VersionName(_)
        | Meaning::Elsewhere(_)
        | Meaning::Faulty(_) => None,
    };
    fitting(markers, complaint, comments)
}

/// A field with those of the markers before it that can be its own; the others are reported, as are those that can't be read.
pub(super) fn with_fitting(field: Field, markers: &[Marker], comments: &mut Comments<'_, '_>) -> Field {
    let complaint = |marker: &Marker| match &marker.meaning {
        Meaning::Union if !is_written_in_place(&field.written) => {
            Some("stands on a field; it belongs on the struct that has the members")
        }
        Meaning::Discriminator { .. } | Meaning::Member(_) | Meaning::DiscriminatedBy(_) => match field.json_name() {
            Some(_) => None,
            None if field.joins() => {
                Some("stands on a struct whose fields join those around it; it belongs on a field of one")
            }
            None => Some("stands on a field that is in no object; export the field and give it a name in JSON"),
        },
        Meaning::Union
        | Meaning::Enum(_)
        | Meaning::Root
        | Meaning::GroupName(_)
        | Meaning::VersionName(_)
        | Meaning::Elsewhere(_)
        | Meaning::Faulty(_) => None,
    };
    let markers = fitting(markers.to_vec(), complaint, comments);
    Field { markers, ..field }
}

fn fitting(
    markers: Vec<Marker>,
    complaint: impl Fn(&Marker) -> Option<&'static str>,
    comments: &mut Comments<'_, '_>,
) -> Vec<Marker> {
    let mut fitting = Vec::new();
    for marker in markers {
        let said = match &marker.meaning {
            Meaning::Faulty(message) => Some((Severity::Error, message)),
            Meaning::Elsewhere(message) => Some((Severity::Note, message)),
            Meaning::Union
            | Meaning::Discriminator { .. }
            | Meaning::Member(_)
            | Meaning::DiscriminatedBy(_)
            | Meaning::Enum(_)
            | Meaning::Root
            | Meaning::GroupName(_)
            | Meaning::VersionName(_) => None,
        };
        if let Some((severity, message)) = said {
            comments.report(Misplaced { at: marker.at.clone(), severity, message: message.clone() });
        }
        match complaint(&marker) {
            None => fitting.push(marker),
            Some(complaint) => {
                let message = format!("`{}` {complaint}", marker.spelling);
                comments.report(Misplaced { at: marker.at, severity: Severity::Error, message });
            }
        }
    }
    fitting
}

/// Whether a type is a struct, or has a name that may be one's.
fn may_be_struct(written: &Type) -> bool {
    const PLAIN: [&str; 8] = ["string", "bool", "int", "int32", "int64", "float64", "byte", "any"];
    match written {
        Type::Struct(_) => true,
        Type::Named { qualifier, name, .. } => qualifier.is_some() || !PLAIN.contains(&&**name),
        Type::Pointer(_) | Type::List(_) | Type::Map(_) | Type::Other => false,
    }
}

/// Whether a struct's fields are written where it is used.
fn is_written_in_place(written: &Type) -> bool {
    match written {
        Type::Struct(_) => true,
        Type::Pointer(inner) | Type::List(inner) | Type::Map(inner) => is_written_in_place(inner),
        Type::Named { .. } | Type::Other => false,
    }
}
