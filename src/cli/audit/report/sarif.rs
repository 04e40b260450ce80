//! The report as a SARIF log (OASIS, version 2.1.0) with one run.

use super::End;
use crate::cli::audit::finding::{Finding, Place, RULES, title};
use kube_unions_core::field_path::Printable;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Component, Path};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
const VERSION: &str = "2.1.0";

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
struct Driver {
    name: &'static str,
    version: &'static str,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
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
struct Outcome<'f> {
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
    /// The field.
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

/// Everything before the first result.
pub(super) fn head() -> serde_json::Result<String> {
    let rules = RULES.iter().map(|rule| Rule {
        id: rule.id,
        short_description: Message { text: rule.description },
        default_configuration: Configuration { level: rule.sort.level() },
    });
    let driver = Driver { name: "kube-unions", version: env!("CARGO_PKG_VERSION"), rules: rules.collect() };
    Ok(format!(
        "{{\n  \"$schema\": \"{SCHEMA}\",\n  \"version\": \"{VERSION}\",\n  \"runs\": [{{\n    \"tool\": {},\n    \
         \"columnKind\": \"unicodeCodePoints\",\n    \"results\": [",
        serde_json::to_string(&Tool { driver })?
    ))
}

pub(super) fn result(finding: &Finding<'_>) -> serde_json::Result<String> {
    let Finding { rule, kind, namespace, name, field, place, .. } = finding;
    let slash = if namespace.is_empty() { "" } else { "/" };
    let object = format!("{} {namespace}{slash}{name}", title(kind));
    let text = format!("{object}: {field}: {}", finding.sentence());
    let location = Location {
        physical_location: place.map(physical),
        logical_locations: [LogicalLocation {
            name: field.clone(),
            fully_qualified_name: format!("{object}: {field}"),
            kind: "member",
        }],
    };
    let outcome = Outcome {
        rule_id: rule.id,
        rule_index: RULES.iter().position(|it| it.id == rule.id).unwrap_or_default(),
        level: rule.sort.level(),
        message: Message { text: &Printable::new(&text, usize::MAX).to_string() },
        locations: [location],
    };
    Ok(format!("      {}", serde_json::to_string(&outcome)?))
}

/// Everything behind the last result.
pub(super) fn tail(end: &End<'_>, any: bool) -> serde_json::Result<String> {
    let notification = |text| Notification { level: "error", message: Message { text } };
    let invocation = Invocation {
        execution_successful: end.troubles.is_empty(),
        exit_code: end.code,
        tool_execution_notifications: end.troubles.iter().map(|text| notification(text)).collect(),
    };
    let close = if any { "\n    ]" } else { "]" };
    let invocations = serde_json::to_string(&[invocation])?;
    Ok(format!("{close},\n    \"invocations\": {invocations}\n  }}]\n}}\n"))
}

fn physical(place: Place<'_>) -> PhysicalLocation {
    PhysicalLocation {
        artifact_location: ArtifactLocation { uri: uri(place.file) },
        region: place.position.map(|(start_line, start_column)| Region { start_line, start_column }),
    }
}

/// A path as a URI reference (RFC 3986): one of a file where it is absolute, else relative to where the command ran.
fn uri(path: &Path) -> String {
    let mut uri = String::from(if path.is_absolute() { "file://" } else { "" });
    // A colon in the first part would read as a scheme, but it is encoded, too.
    for (position, part) in path.components().filter(|part| *part != Component::CurDir).enumerate() {
        if position > 0 && !uri.ends_with('/') {
            uri.push('/');
        }
        for byte in part.as_os_str().as_encoded_bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~/".contains(byte) {
                uri.push(char::from(*byte));
            } else {
                // Writing to a string can't fail.
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
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
