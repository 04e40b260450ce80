//! The methods: runs a request and returns its result as JSON text.

use crate::answer::{ErrorObject, FaultReason};
use crate::request::{Apply, CreateThreeWay, CreateTwoWay, Define, Request};
use crate::schemas::SchemaCache;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use strategic_merge_patch::ThreeWay;

/// The version of the protocol. It changes if a client of the older version could fail.
pub const PROTOCOL: u32 = 1;

#[derive(Serialize)]
struct VersionResult {
    protocol: u32,
    version: &'static str,
}

#[derive(Serialize)]
struct DefineResult {
    warnings: Vec<String>,
}

pub(crate) fn run(request: &Request<'_>, schemas: &mut SchemaCache) -> Result<String, ErrorObject> {
    if request.jsonrpc != "2.0" {
        return Err(ErrorObject::new(FaultReason::InvalidRequest, "`jsonrpc` must be \"2.0\""));
    }
    match &*request.method {
        "version" => result(&VersionResult { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION") }),
        "define" => {
            let length = request.params.map_or(0, |params| params.get().len());
            let warnings = schemas.define(&params::<Define<'_>>(request)?, length)?;
            result(&DefineResult { warnings })
        }
        "apply" => {
            let Apply { schema, original, patch } = params(request)?;
            Ok(schemas.patcher(&schema)?.apply(original.get(), patch.get())?)
        }
        "createTwoWay" => {
            let CreateTwoWay { schema, original, modified } = params(request)?;
            Ok(schemas.patcher(&schema)?.create_two_way(original.get(), modified.get())?)
        }
        "createThreeWay" => {
            let CreateThreeWay { schema, original, modified, current, conflicts } = params(request)?;
            let (original, modified, current) = (original.get(), modified.get(), current.get());
            let sides = ThreeWay { original, modified, current, conflicts };
            Ok(schemas.patcher(&schema)?.create_three_way(&sides)?)
        }
        method => Err(ErrorObject::new(
            FaultReason::MethodNotFound,
            format!("no method `{method}`: use version, define, apply, createTwoWay or createThreeWay"),
        )),
    }
}

fn params<'r, P: Deserialize<'r>>(request: &Request<'r>) -> Result<P, ErrorObject> {
    let text = request.params.map_or("{}", RawValue::get);
    if !text.starts_with('{') {
        return Err(ErrorObject::new(FaultReason::InvalidParams, "`params` must be an object"));
    }
    serde_json::from_str(text).map_err(|error| ErrorObject::new(FaultReason::InvalidParams, error.to_string()))
}

fn result(value: &impl Serialize) -> Result<String, ErrorObject> {
    serde_json::to_string(value).map_err(|error| ErrorObject::new(FaultReason::InvalidRequest, error.to_string()))
}
