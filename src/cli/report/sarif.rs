//! Writes SARIF logs (OASIS, version 2.1.0) with one run, for every command that has findings.
//!
//! A log is written in parts, so that results need not be collected: [`head`], the [`SarifFinding`]s with commas in between,
//! and [`tail`]. This module knows no rules; each command has its own.

use kube_unions_core::declaration::Severity;
use kube_unions_core::field_path::Printable;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::Serialize;
use std::path::{Component, Path, PathBuf};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
const VERSION: &str = "2.1.0";

/// The characters that a path in a URI cannot have. A colon could end a scheme.
const NOT_IN_PATHS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A rule that findings are reported under.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SarifRule {
    pub(crate) id: &'static str,
    pub(crate) description: &'static str,
    pub(crate) level: SarifLevel,
}

/// The severity of a rule or of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SarifLevel {
    Error,
    Warning,
    Note,
}

impl SarifLevel {
    /// Returns the level of a fault of a declaration.
    pub(crate) fn of(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self::Error,
            Severity::Warning => Self::Warning,
            Severity::Note => Self::Note,
        }
    }
}

/// A finding.
#[derive(Debug)]
pub(crate) struct SarifFinding<'f> {
    pub(crate) rule: &'static str,
    /// Position of the rule among those of [`head`].
    pub(crate) rule_index: usize,
    pub(crate) level: SarifLevel,
    pub(crate) message: String,
    pub(crate) place: Option<FilePlace<'f>>,
    /// The objects and fields that the finding names.
    pub(crate) subjects: Vec<SarifSubject>,
    /// Other places that matter, each with its meaning.
    pub(crate) related: Vec<(FilePlace<'f>, String)>,
    /// The reason why the finding does not count.
    pub(crate) suppressed: Option<&'static str>,
}

/// A file, or a place in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilePlace<'f> {
    pub(crate) file: &'f Path,
    /// Line and column, counted from 1.
    pub(crate) position: Option<(usize, usize)>,
}

/// The subject of a finding.
#[derive(Debug, Clone)]
pub(crate) struct SarifSubject {
    /// The path of the field.
    pub(crate) field: String,
    /// The path with its object or kind.
    pub(crate) full: String,
}

/// The end of a run.
#[derive(Debug)]
pub(crate) struct SarifEnd<'e> {
    /// The reasons why something was not checked.
    pub(crate) problems: &'e [String],
    /// The exit code.
    pub(crate) code: u8,
}

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
    level: SarifLevel,
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
    level: SarifLevel,
    message: Message<'f>,
    locations: [Location; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<RelatedLocation<'f>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<Suppression>,
}

#[derive(Serialize)]
struct Suppression {
    kind: &'static str,
    justification: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RelatedLocation<'f> {
    id: usize,
    physical_location: PhysicalLocation,
    message: Message<'f>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_location: Option<PhysicalLocation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation>,
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
    level: SarifLevel,
    message: Message<'e>,
}

/// Returns the text before the first result.
pub(crate) fn head(rules: impl Iterator<Item = SarifRule>) -> serde_json::Result<String> {
    let rules = rules.map(|rule| ReportingDescriptor {
        id: rule.id,
        short_description: Message { text: rule.description },
        default_configuration: Configuration { level: rule.level },
    });
    let driver = Driver { name: "kube-unions", version: env!("CARGO_PKG_VERSION"), rules: rules.collect() };
    Ok(format!(
        "{{\n  \"$schema\": \"{SCHEMA}\",\n  \"version\": \"{VERSION}\",\n  \"runs\": [{{\n    \"tool\": {},\n    \
         \"columnKind\": \"unicodeCodePoints\",\n    \"results\": [",
        serde_json::to_string(&Tool { driver })?
    ))
}

impl SarifFinding<'_> {
    /// Returns the text of the result, on a line of its own.
    pub(crate) fn text(&self) -> serde_json::Result<String> {
        let logical = self.subjects.iter().map(|subject| LogicalLocation {
            name: subject.field.clone(),
            fully_qualified_name: subject.full.clone(),
            kind: "member",
        });
        let location = Location { physical_location: self.place.map(physical), logical_locations: logical.collect() };
        let related = self.related.iter().enumerate().map(|(position, (place, text))| RelatedLocation {
            id: position,
            physical_location: physical(*place),
            message: Message { text },
        });
        let suppression = |justification| Suppression { kind: "external", justification };
        let result = SarifResult {
            rule_id: self.rule,
            rule_index: self.rule_index,
            level: self.level,
            message: Message { text: &Printable::new(&self.message, usize::MAX).to_string() },
            locations: [location],
            related_locations: related.collect(),
            suppressions: self.suppressed.map(suppression).into_iter().collect(),
        };
        Ok(format!("      {}", serde_json::to_string(&result)?))
    }
}

/// Returns the text after the last result.
pub(crate) fn tail(end: &SarifEnd<'_>, any: bool) -> serde_json::Result<String> {
    let notification = |text| Notification { level: SarifLevel::Error, message: Message { text } };
    let invocation = Invocation {
        execution_successful: end.problems.is_empty(),
        exit_code: end.code,
        tool_execution_notifications: end.problems.iter().map(|text| notification(text)).collect(),
    };
    let close = if any { "\n    ]" } else { "]" };
    let invocations = serde_json::to_string(&[invocation])?;
    Ok(format!("{close},\n    \"invocations\": {invocations}\n  }}]\n}}\n"))
}

fn physical(place: FilePlace<'_>) -> PhysicalLocation {
    PhysicalLocation {
        artifact_location: ArtifactLocation { uri: uri(place.file) },
        region: place.position.map(|(start_line, start_column)| Region { start_line, start_column }),
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
