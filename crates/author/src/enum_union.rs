//! The union of an enum, from the schema that schemars makes of it.

use super::mark::Mark;
use super::union::{AtMostOne, DiscriminatedUnion};
use schemars::Schema;
use schemars::transform::Transform;
use serde::Deserialize;
use serde_json::{Map, Value, json};

const NO_SUCH_ENUM: &str = "`EnumUnion` is for an enum with data in its variants that is tagged internally or externally; put it on \
    such an enum, or `DiscriminatedUnion` or `AtMostOne` on a struct";

/// The union of an enum whose variants have data. A transform for an enum that serde tags internally or externally.
///
/// With `#[serde(tag = "type")]`, the tag is the discriminator, and its value selects the fields of its variant. An `Option` may be
/// missing. The API server stores what serde writes: `{"type": "BlueGreen", "blueGreen": {…}}`.
///
/// ```
/// # use kube_unions_author::EnumUnion;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Deserialize, Serialize, schemars::JsonSchema)]
/// #[serde(tag = "type", rename_all_fields = "camelCase")]
/// #[schemars(transform = EnumUnion)]
/// enum Strategy {
///     Canary { canary: Canary },
///     BlueGreen { blue_green: Option<BlueGreen> },
///     Recreate,
/// }
/// # #[derive(Deserialize, Serialize, schemars::JsonSchema)] struct Canary {}
/// # #[derive(Deserialize, Serialize, schemars::JsonSchema)] struct BlueGreen {}
/// ```
///
/// Without a tag, each variant is a member, and exactly one is set: `{"git": {…}}`.
///
/// ```
/// # use kube_unions_author::EnumUnion;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Deserialize, Serialize, schemars::JsonSchema)]
/// #[serde(rename_all = "camelCase")]
/// #[schemars(transform = EnumUnion)]
/// enum Source {
///     Git(Git),
///     Bucket(Bucket),
/// }
/// # #[derive(Deserialize, Serialize, schemars::JsonSchema)] struct Git {}
/// # #[derive(Deserialize, Serialize, schemars::JsonSchema)] struct Bucket {}
/// ```
///
/// An enum that is no union gets a schema without a type, which no API server accepts. [`crd`](crate::crd()) says what is wrong.
#[derive(Debug, Clone, Copy)]
pub struct EnumUnion;

impl Transform for EnumUnion {
    fn transform(&mut self, schema: &mut Schema) {
        let mark = read(schema).unwrap_or_else(|message| {
            *schema = Schema::default();
            Mark::Refused(message)
        });
        mark.put_on(schema);
    }
}

/// Returns the union of an enum, and makes its schema structural if kube does not.
fn read(schema: &mut Schema) -> Result<Mark, String> {
    let is_struct = schema.get("properties").is_some();
    let variants = schema.get("oneOf").filter(|_| !is_struct).and_then(|variants| Vec::deserialize(variants).ok());
    let variants: Vec<Map<String, Value>> = variants.ok_or(NO_SUCH_ENUM)?;
    let Some(tag) = tag(&variants) else { return externally_tagged(&variants).map(Mark::AtMostOne) };
    schema.remove("oneOf");
    internally_tagged(&tag, variants, schema.ensure_object()).map(Mark::Union)
}

/// Returns the property that has a value of its own in each variant.
fn tag(variants: &[Map<String, Value>]) -> Option<String> {
    let [first, others @ ..] = variants else { return None };
    let has_value = |variant: &Map<String, Value>, name: &str| value(variant, name).is_some();
    let names = first.get("properties")?.as_object()?.keys();
    let mut tags = names.filter(|name| has_value(first, name) && others.iter().all(|other| has_value(other, name)));
    tags.next().cloned()
}

fn value<'v>(variant: &'v Map<String, Value>, tag: &str) -> Option<&'v str> {
    variant.get("properties")?.get(tag)?.get("const")?.as_str()
}

/// Each variant is an object with one field. kube makes the schema of the enum structural.
fn externally_tagged(variants: &[Map<String, Value>]) -> Result<AtMostOne, String> {
    let mut union = AtMostOne::new();
    for variant in variants {
        let names = variant.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let [name] = names.collect::<Vec<_>>()[..] else {
            let units = variant.get("enum").and_then(|units| units.get(0)).or_else(|| variant.get("const"));
            let unit = units.and_then(Value::as_str).ok_or(NO_SUCH_ENUM)?;
            return Err(format!(
                "serde writes the variant `{unit}` as a string and others as objects, which no field of a CRD can be; add \
                 `#[serde(tag = \"…\")]` to the enum, or write `{unit} {{}}`"
            ));
        };
        union = union.member(capitalized(name), name.as_str());
    }
    Ok(union)
}

/// Returns the value that Kubernetes gives a member without a discriminator.
fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// Moves the fields of all variants beside their tag.
fn internally_tagged(
    tag: &str,
    variants: Vec<Map<String, Value>>,
    schema: &mut Map<String, Value>,
) -> Result<DiscriminatedUnion, String> {
    let mut union = DiscriminatedUnion::by(tag);
    let (mut values, mut descriptions, mut fields) = (Vec::new(), Vec::new(), Map::new());
    for mut variant in variants {
        let value = value(&variant, tag).unwrap_or_default().to_owned();
        if let Some(text) = variant.remove("description").as_ref().and_then(Value::as_str) {
            descriptions.push(format!("`{value}`: {text}"));
        }
        let required = variant.remove("required").unwrap_or_default();
        let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|it| it == name));
        let Some(Value::Object(properties)) = variant.remove("properties") else { continue };
        refuse_others(&value, &variant)?;
        if properties.len() == 1 {
            union = union.empty(&value);
        }
        for (name, field) in properties.into_iter().filter(|(name, _)| name != tag) {
            put(&mut fields, &name, field)?;
            union = if is_required(&name) { union.member(&value, name) } else { union.optional(&value, name) };
        }
        values.push(value);
    }
    let mut discriminator = Map::from_iter([("type".to_owned(), json!("string")), ("enum".to_owned(), json!(values))]);
    if !descriptions.is_empty() {
        discriminator.insert("description".to_owned(), descriptions.join("\n").into());
    }
    let mut properties = Map::from_iter([(tag.to_owned(), discriminator.into())]);
    properties.extend(fields);
    schema.extend([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), properties.into()),
        ("required".to_owned(), json!([tag])),
    ]);
    Ok(union)
}

/// Adds a field, which may be in several variants.
fn put(fields: &mut Map<String, Value>, name: &str, field: Value) -> Result<(), String> {
    if fields.get(name).is_some_and(|before| *before != field) {
        return Err(format!(
            "the field `{name}` has two schemas, but a CRD has one; give it the same type and description in every variant, or \
             another name in each"
        ));
    }
    fields.insert(name.to_owned(), field);
    Ok(())
}

/// Fails if a variant has a keyword that would get lost.
fn refuse_others(value: &str, variant: &Map<String, Value>) -> Result<(), String> {
    let lost = variant.iter().find(|(keyword, content)| match keyword.as_str() {
        "type" | "title" => false,
        "additionalProperties" => **content != Value::Bool(false),
        _ => true,
    });
    match lost {
        None => Ok(()),
        Some((keyword, _)) if Mark::is_keyword(keyword) => Err(format!(
            "the type in the variant `{value}` has a union of its own, whose fields would be in two unions; put the type into a \
             field of the variant"
        )),
        Some((keyword, _)) => Err(format!(
            "the schema of the variant `{value}` has `{keyword}`, which a CRD cannot have for one variant; put its data into a \
             field of the variant"
        )),
    }
}
