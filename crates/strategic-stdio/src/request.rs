//! The messages that a client sends: a JSON-RPC 2.0 request, and the parameters of each method.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use strategic_merge_patch::Conflicts;

/// A request. Without an `id` it is a notification, which has no answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a request of JSON-RPC 2.0")]
pub(crate) struct Request<'r> {
    pub(crate) jsonrpc: String,
    /// `null` is an `id`, too.
    #[serde(borrow, default, deserialize_with = "even_null")]
    pub(crate) id: Option<&'r RawValue>,
    pub(crate) method: String,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'r RawValue>,
}

/// The parameters of `define`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", expecting = "the parameters of `define`")]
pub(crate) struct Define<'r> {
    pub(crate) schema: String,
    #[serde(borrow)]
    pub(crate) source: SchemaSource<'r>,
    /// Refuse a patch that removes a merge key of one of several matching items.
    #[serde(default)]
    pub(crate) strict: bool,
}

/// The document that describes a kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "one of `definition`, `openapi` and `jsonSchema`")]
pub(crate) enum SchemaSource<'r> {
    #[serde(borrow)]
    Definition(OfDefinition<'r>),
    Openapi(OfOpenApi<'r>),
    JsonSchema(OfJsonSchema<'r>),
}

/// A version of a CRD, and declarations of unions for its kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct OfDefinition<'r> {
    #[serde(borrow)]
    pub(crate) document: &'r RawValue,
    /// `None`: the only version.
    pub(crate) version: Option<String>,
    #[serde(borrow, default)]
    pub(crate) union_declarations: Vec<&'r RawValue>,
}

/// A kind of an OpenAPI document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfOpenApi<'r> {
    #[serde(borrow)]
    pub(crate) document: &'r RawValue,
    #[serde(default)]
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// A JSON schema. The name stands for the kind in error messages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfJsonSchema<'r> {
    #[serde(borrow)]
    pub(crate) document: &'r RawValue,
    pub(crate) name: String,
}

/// The parameters of `apply`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the parameters of `apply`")]
pub(crate) struct Apply<'r> {
    pub(crate) schema: String,
    #[serde(borrow)]
    pub(crate) original: &'r RawValue,
    #[serde(borrow)]
    pub(crate) patch: &'r RawValue,
}

/// The parameters of `createTwoWay`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the parameters of `createTwoWay`")]
pub(crate) struct CreateTwoWay<'r> {
    pub(crate) schema: String,
    #[serde(borrow)]
    pub(crate) original: &'r RawValue,
    #[serde(borrow)]
    pub(crate) modified: &'r RawValue,
}

/// The parameters of `createThreeWay`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "the parameters of `createThreeWay`")]
pub(crate) struct CreateThreeWay<'r> {
    pub(crate) schema: String,
    #[serde(borrow)]
    pub(crate) original: &'r RawValue,
    #[serde(borrow)]
    pub(crate) modified: &'r RawValue,
    #[serde(borrow)]
    pub(crate) current: &'r RawValue,
    #[serde(deserialize_with = "ConflictTreatment::deserialize")]
    pub(crate) conflicts: Conflicts,
}

/// The treatment of a field that both sides changed differently.
#[derive(Deserialize)]
#[serde(remote = "Conflicts", rename_all = "camelCase")]
enum ConflictTreatment {
    Overwrite,
    Refuse,
}

fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
