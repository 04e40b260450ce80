//! The report as a SARIF log (OASIS, version 2.1.0) with one run.

use super::AuditEnd;
use crate::cli::audit::rules::{AuditRule, FileLocation, ObjectFinding, title};
use kube_unions_core::field_path::Printable;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::Serialize;
use std::path::{Component, Path, PathBuf};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
const VERSION: &str = "2.1.0";

/// The characters that a path in a URI cannot have. A colon could end a scheme.
const NOT_IN_PATHS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
struct Driver {
    name: &'static str,
    version: &'static str,
    rules: Vec<ReportingDescriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportingDescriptor {
    id: &'static str,
    short_description: Message<'static>,
    default_configuration: Configuration,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct Message<'m> {
    text: &'m str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult<'f> {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Message<'f>,
    locations: [Location; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_location: Option<PhysicalLocation>,
    logical_locations: [LogicalLocation; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
    start_column: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    /// The path of the field.
    name: String,
    fully_qualified_name: String,
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation<'e> {
    execution_successful: bool,
    exit_code: u8,
    tool_execution_notifications: Vec<Notification<'e>>,
}

#[derive(Serialize)]
struct Notification<'e> {
    level: &'static str,
    message: Message<'e>,
}

/// Returns the text before the first result.
pub(super) fn head() -> serde_json::Result<String> {
    let rules = AuditRule::ALL.map(|rule| ReportingDescriptor {
        id: rule.id(),
        short_description: Message { text: rule.description() },
        default_configuration: Configuration { level: rule.impact().level() },
    });
    let driver = Driver { name: "kube-unions", version: env!("CARGO_PKG_VERSION"), rules: rules.into() };
    Ok(format!(
        "{{\n  \"$schema\": \"{SCHEMA}\",\n  \"version\": \"{VERSION}\",\n  \"runs\": [{{\n    \"tool\": {},\n    \
         \"columnKind\": \"unicodeCodePoints\",\n    \"results\": [",
        serde_json::to_string(&Tool { driver })?
    ))
}

pub(super) fn result(finding: &ObjectFinding<'_>) -> serde_json::Result<String> {
    let ObjectFinding { rule, kind, namespace, name, field, location, .. } = finding;
    let slash = if namespace.is_empty() { "" } else { "/" };
    let object = format!("{} {namespace}{slash}{name}", title(kind));
    let place = if field.is_empty() { object } else { format!("{object}: {field}") };
    let text = format!("{place}: {}", finding.sentence());
    let logical = LogicalLocation { name: field.clone(), fully_qualified_name: place, kind: "member" };
    let location = Location { physical_location: location.map(physical), logical_locations: [logical] };
    let result = SarifResult {
        rule_id: rule.id(),
        rule_index: *rule as usize,
        level: rule.impact().level(),
        message: Message { text: &Printable::new(&text, usize::MAX).to_string() },
        locations: [location],
    };
    Ok(format!("      {}", serde_json::to_string(&result)?))
}

/// Returns the text after the last result.
pub(super) fn tail(end: &AuditEnd<'_>, any: bool) -> serde_json::Result<String> {
    let notification = |text| Notification { level: "error", message: Message { text } };
    let invocation = Invocation {
        execution_successful: end.problems.is_empty(),
        exit_code: end.code,
        tool_execution_notifications: end.problems.iter().map(|text| notification(text)).collect(),
    };
    let close = if any { "\n    ]" } else { "]" };
    let invocations = serde_json::to_string(&[invocation])?;
    Ok(format!("{close},\n    \"invocations\": {invocations}\n  }}]\n}}\n"))
}

fn physical(location: FileLocation<'_>) -> PhysicalLocation {
    PhysicalLocation {
        artifact_location: ArtifactLocation { uri: uri(location.file) },
        region: location.position.map(|(start_line, start_column)| Region { start_line, start_column }),
    }
}

/// Returns a path as a URI reference (RFC 3986). A relative path is relative to the working directory.
fn uri(path: &Path) -> String {
    let scheme = if path.is_absolute() { "file://" } else { "" };
    let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    format!("{scheme}{}", percent_encode(path.as_os_str().as_encoded_bytes(), NOT_IN_PATHS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_uri_reference() {
        for (path, want) in [
            ("a/b c.yaml", "a/b%20c.yaml"),
            ("./a.yaml", "a.yaml"),
            ("../a.yaml", "../a.yaml"),
            ("/x/é.yaml", "file:///x/%C3%A9.yaml"),
            ("a:b.yaml", "a%3Ab.yaml"),
            ("<stdin>", "%3Cstdin%3E"),
        ] {
            assert_eq!(uri(Path::new(path)), want);
        }
    }
}
