//! The format of a suite file, as its author writes it. Knows neither files nor unions; `read` makes a suite of it.
//!
//! The JSON Schema for editors is made from these types. Their comments are its descriptions.

use crate::cli::input::kinds::BuiltinUnionsArg;
use crate::cli::input::values::{RatchetingArg, Subresource};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The API group of suites.
pub(super) const GROUP: &str = "test.kube-unions.dev";

/// The version that this program reads.
pub(super) const API_VERSION: &str = "test.kube-unions.dev/v1alpha1";

pub(super) const KIND: &str = "Suite";

/// The address of the JSON Schema.
const SCHEMA_ID: &str = "https://kube-unions.dev/schemas/suite.json";

/// Returns the JSON Schema of suite files, for editors.
pub fn suite_schema() -> Value {
    let mut schema = schemars::schema_for!(SuiteManifest);
    schema.insert("$id".to_owned(), SCHEMA_ID.into());
    schema.to_value()
}

/// Tests of unions, which `kube-unions test` runs without a cluster.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a Suite with `from` and `tests`")]
#[schemars(title = "Suite")]
pub(super) struct SuiteManifest {
    /// The version of this format.
    #[allow(dead_code, reason = "the finder checks it")]
    #[schemars(extend("const" = API_VERSION))]
    api_version: String,
    /// The kind of this document.
    #[allow(dead_code, reason = "the finder checks it")]
    #[schemars(extend("const" = KIND))]
    kind: String,
    /// The name of the suite in reports.
    #[serde(default)]
    pub(super) metadata: SuiteMetadata,
    /// Files and folders with the CRDs, UnionDeclarations and saved OpenAPI documents that declare the unions. Paths are
    /// relative to the folder of this file.
    #[schemars(length(min = 1))]
    pub(super) from: Vec<String>,
    /// Use or ignore the unions that OpenAPI documents declare for built-in types. The default is Ignored.
    #[serde(default)]
    pub(super) builtin_unions: BuiltinUnionsArg,
    /// The tests. Each has a name of its own.
    #[schemars(length(min = 1))]
    pub(super) tests: Vec<TestManifest>,
}

/// The name of a suite, and labels for other tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map with `name`")]
pub(super) struct SuiteMetadata {
    /// The name of the suite in reports. The default is the path of this file.
    pub(super) name: Option<String>,
    /// Labels for other tools.
    #[allow(dead_code, reason = "for other tools")]
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// Annotations for other tools, for example `config.kubernetes.io/local-config`.
    #[allow(dead_code, reason = "for other tools")]
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// A write, and the answer that is expected.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a test with `name`, `new` and `want`")]
pub(super) struct TestManifest {
    /// The name of the test. No other test of the suite has it.
    #[schemars(length(min = 1))]
    pub(super) name: String,
    /// The stored object. Without it, the test creates an object.
    pub(super) old: Option<ObjectManifest>,
    /// The object that is written.
    pub(super) new: ObjectManifest,
    /// The subresource that is written. The default is the object itself.
    pub(super) subresource: Option<Subresource>,
    /// Allow or deny a write that leaves an invalid union unchanged. The default is Enabled.
    #[serde(default)]
    pub(super) ratcheting: RatchetingArg,
    /// The expected answer.
    pub(super) want: WantManifest,
}

/// An object: the path of a file with one object, relative to the folder of this file, or the object itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a path or an object")]
pub(super) enum ObjectManifest {
    /// The path of a file with one object, relative to the folder of this file.
    Path(String),
    /// The object itself.
    Object(Map<String, Value>),
}

/// The expected answer: exactly one of `accepted`, `normalized` and `rejected`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map with `accepted`, `normalized` or `rejected`")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub(super) struct WantManifest {
    /// The object is accepted and not changed.
    #[serde(default)]
    #[schemars(with = "AcceptedManifest")]
    pub(super) accepted: Option<AcceptedManifest>,
    /// The object is accepted and becomes another one.
    #[serde(default)]
    #[schemars(with = "NormalizedManifest")]
    pub(super) normalized: Option<NormalizedManifest>,
    /// The object is rejected.
    #[serde(default)]
    #[schemars(with = "RejectedManifest")]
    pub(super) rejected: Option<RejectedManifest>,
}

/// An object that is accepted and not changed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map, for example `{}`")]
pub(super) struct AcceptedManifest {
    /// All warnings that the client sees, in their order. The default is none.
    #[serde(default)]
    pub(super) warnings: Vec<String>,
}

/// An object that is accepted and becomes another one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map with `object`")]
pub(super) struct NormalizedManifest {
    /// The object that is stored. Defaults of its schema may be left out.
    pub(super) object: ObjectManifest,
    /// All warnings that the client sees, in their order. Without it, warnings are not compared.
    pub(super) warnings: Option<Vec<String>>,
}

/// An object that is rejected.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a map with `causes`")]
pub(super) struct RejectedManifest {
    /// All causes of the rejection, in any order.
    #[schemars(length(min = 1))]
    pub(super) causes: Vec<CauseManifest>,
}

/// One cause of a rejection.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a cause with `field`")]
pub(super) struct CauseManifest {
    /// The path of the field, for example `spec.strategy.canary`. It is empty for the whole object.
    pub(super) field: String,
    /// The reason, for example `FieldValueForbidden`.
    pub(super) reason: Option<String>,
    /// A text that the message contains.
    pub(super) message: Option<String>,
}
