//! Finds fields of objects of built-in kinds that their schema lacks, and that resemble one which the object does not set. Clients that
//! check fields refuse them, and others lose them in silence.

use crate::assembly::Assembly;
use crate::document::Document;
use crate::file::Problem;
use kube_unions_core::field_path::{FieldPath, Segment};
use kube_unions_core::near::one_edit_off;
use kube_unions_core::schema::Schema;
use serde_json::Value;

/// The largest number of fields reported for one object.
const MOST: usize = 10;

impl Assembly {
    /// Returns a warning for each misspelt field of an object, if the schema of its built-in kind is known.
    pub fn misspelt_fields(&self, object: &Document) -> Vec<String> {
        let Some(schema) = self.built_in_schema(&object.group_version_kind()) else { return Vec::new() };
        let value = serde_json::from_str(&object.text).unwrap_or_default();
        let mut found = Vec::new();
        find(schema, &value, &FieldPath::root(), &mut found);
        let warning = |(path, meant): (FieldPath, &str)| {
            let message = format!(
                "{}: unknown field `{path}`; did you mean `{meant}`? kubectl and a server-side apply refuse the object, other clients \
                 store it without the field",
                object.title()
            );
            Problem::of_document(object, &path.to_pointer(), message).to_string()
        };
        found.into_iter().map(warning).collect()
    }
}

/// Adds the path of each misspelt field of a value, and the name of the field that it resembles.
fn find<'s>(schema: &'s Schema, value: &Value, path: &FieldPath, found: &mut Vec<(FieldPath, &'s str)>) {
    let below = |segment: Segment| path.segments().iter().cloned().chain([segment]).collect();
    if let (Value::Array(items), Some(schema)) = (value, &schema.items) {
        for (index, item) in items.iter().enumerate() {
            find(schema, item, &below(Segment::Index(index)), found);
        }
    }
    let Value::Object(fields) = value else { return };
    for (name, field) in fields.iter().filter(|_| !schema.preserve_unknown_fields) {
        if let Some(schema) = schema.properties.get(&**name) {
            find(schema, field, &below(Segment::Field(name.as_str().into())), found);
        } else if let Some(schema) = &schema.additional_properties {
            find(schema, field, &below(Segment::Key(name.as_str().into())), found);
        } else if found.len() < MOST {
            let unset = schema.properties.keys().map(|known| &**known).filter(|known| !fields.contains_key(*known));
            let meant = one_edit_off(name, unset);
            found.extend(meant.map(|meant| (below(Segment::Field(name.as_str().into())), meant)));
        }
    }
}
