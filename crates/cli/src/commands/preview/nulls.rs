//! The nulls that a server-side apply leaves in a custom resource.

use kube_unions_core::field_path::{FieldPath, Segment};
use serde_json::Value;

/// An API server without a later change of `structured-merge-diff` leaves an object or a list empty that a server-side apply empties, so that it
/// is set.
pub(super) const OLD_EMPTY: &str = "an API server of Kubernetes 1.36.0 to 1.36.2 leaves `{}` or `[]` there instead";

/// Returns the paths of objects and lists that are null afterwards.
pub(super) fn nulled(before: &Value, after: &Value) -> Vec<FieldPath> {
    match (before, after) {
        (Value::Object(_) | Value::Array(_), Value::Null) => vec![FieldPath::root()],
        (Value::Object(before), Value::Object(after)) => {
            let fields = after.iter().filter_map(|(name, after)| Some((name, nulled(before.get(name)?, after))));
            fields.flat_map(|(name, rest)| below(&Segment::Field(name.as_str().into()), rest)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns paths behind a step.
fn below(step: &Segment, rest: Vec<FieldPath>) -> Vec<FieldPath> {
    let path = |rest: FieldPath| [step.clone()].into_iter().chain(rest.segments().iter().cloned()).collect();
    rest.into_iter().map(path).collect()
}

/// Returns the paths of the nulls that the defaults of the API server do not replace. It removes such a null of a custom resource from
/// every write but a server-side apply, which leaves one also in place of an object or a list that loses its last part.
pub(super) fn removed_nulls(asked: &Value, completed: &Value) -> Vec<FieldPath> {
    match (asked, completed) {
        (Value::Object(asked), Value::Object(completed)) => {
            let fields = asked.iter().flat_map(|(name, value)| {
                let rest = completed.get(name).map(|completed| removed_nulls(value, completed));
                below(&Segment::Field(name.as_str().into()), rest.unwrap_or_else(|| vec![FieldPath::root()]))
            });
            fields.collect()
        }
        (Value::Array(asked), Value::Array(completed)) => {
            let pairs = asked.iter().zip(completed).enumerate();
            pairs
                .flat_map(|(at, (asked, completed))| below(&Segment::Index(at), removed_nulls(asked, completed)))
                .collect()
        }
        _ => Vec::new(),
    }
}
