//! Tells where a declaration of the 2022 form belongs that stands on an object.

use crate::schema::{Declared, Place, Schema, Source};
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the message for a declaration on an object, with the property that it was perhaps meant for.
pub(super) fn on_an_object(place: &Place, object: &Schema, declared: &Declared) -> String {
    let belongs = match discriminator(object, &declared.value) {
        Some(name) if declared.source == Source::Annotation => {
            format!("at `{}`", place.property(name).to_pointer())
        }
        Some(name) => format!("on `{}`", place.property(name)),
        None => "on the string property that has its values".to_owned(),
    };
    format!(
        "`fieldMembers` stands on the object; it belongs to its discriminator: write it {belongs}, without a `discriminator` key"
    )
}

/// Returns the string property that has the values of a declaration, or is the only one.
fn discriminator<'s>(object: &'s Schema, value: &Value) -> Option<&'s str> {
    let values: Option<BTreeSet<&str>> =
        value.get("fieldMembers").and_then(Value::as_object).map(|all| all.keys().map(String::as_str).collect());
    let strings = || object.properties.iter().filter(|(_, property)| property.type_name.as_deref() == Some("string"));
    let named = value.get("discriminator").and_then(Value::as_str);
    let name = strings()
        .find(|(name, _)| Some(&***name) == named)
        .or_else(|| strings().find(|(_, property)| values.is_some() && property.allowed_texts() == values))
        .or_else(|| Some(strings().next()).filter(|_| strings().count() == 1).flatten());
    name.map(|(name, _)| &**name)
}
