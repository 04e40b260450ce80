//! Writes SARIF logs (OASIS, version 2.1.0) with one run, for every command that has findings.
//!
//! A [`SarifLog`] is written in parts, so that results need not be collected. This module knows no rules; each command has its
//! own.

use super::conclusion::Conclusion;
use super::json_list::JsonList;
use kube_unions_command::json::present;
use kube_unions_core::declaration::Severity;
use kube_unions_core::field_path::Printable;
use kube_unions_offline::HelpPage;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde_json::{Value, json};
use std::fmt;
use std::path::{Component, Path, PathBuf};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
const VERSION: &str = "2.1.0";

/// The characters that a path in a URI cannot have. A colon could end a scheme.
const NOT_IN_PATHS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A rule that findings are reported under: its name, its level and its meaning.
pub(crate) type SarifRule = (&'static str, Severity, &'static str);

/// A rule, with the page about it.
pub(crate) type ExplainedRule = (SarifRule, HelpPage);

/// A finding. Most have a place, and neither related places nor a reason not to count.
#[derive(Debug)]
pub(crate) struct SarifFinding<'f> {
    pub(crate) rule: &'static str,
    pub(crate) level: Severity,
    pub(crate) message: String,
    pub(crate) place: Option<FilePlace<'f>>,
    /// The path of the field that the finding is about, alone and with its object or kind.
    pub(crate) subject: Option<[String; 2]>,
    /// Other places that matter, each with its meaning.
    pub(crate) related: Vec<(FilePlace<'f>, String)>,
    /// The reason why the finding does not count.
    pub(crate) suppressed: Option<&'static str>,
    /// The page about the finding, if it is not that of its rule.
    pub(crate) help: Option<HelpPage>,
}

/// A file, or a place in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilePlace<'f> {
    pub(crate) file: &'f Path,
    /// Line and column, counted from 1.
    pub(crate) position: Option<(usize, usize)>,
}

impl fmt::Display for FilePlace<'_> {
    /// Writes `file:line:column`, the format of compilers that editors understand.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.file.display())?;
        self.position.map_or(Ok(()), |(line, column)| write!(out, ":{line}:{column}"))
    }
}

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct SarifLog {
    rules: Vec<ExplainedRule>,
    /// The text, with the list of results.
    pub(crate) list: JsonList,
}

impl<'f> SarifFinding<'f> {
    /// Returns a finding about a field. `full`: its path with its object or kind, which the message begins with; empty if the
    /// finding is about neither.
    pub(crate) fn new(
        rule: &'static str,
        level: Severity,
        field: &str,
        full: String,
        message: String,
        place: Option<FilePlace<'f>>,
    ) -> Self {
        let message = if full.is_empty() { message } else { format!("{full}: {message}") };
        let subject = (!full.is_empty()).then(|| [field.to_owned(), full]);
        Self { rule, level, message, place, subject, related: Vec::new(), suppressed: None, help: None }
    }
}

impl SarifLog {
    pub(crate) fn begin(rules: impl IntoIterator<Item = ExplainedRule>) -> Self {
        let rules: Vec<ExplainedRule> = rules.into_iter().collect();
        let described = rules.iter().map(|((id, level, description), help)| {
            json!({"id": id, "shortDescription": {"text": description}, "helpUri": help.to_string(),
                "defaultConfiguration": {"level": level.name()}})
        });
        let described: Vec<Value> = described.collect();
        let driver = json!({"name": "kube-unions", "version": env!("CARGO_PKG_VERSION"), "rules": described});
        let head = format!(
            "{{\n  \"$schema\": \"{SCHEMA}\",\n  \"version\": \"{VERSION}\",\n  \"runs\": [{{\n    \"tool\": {},\n    \
             \"columnKind\": \"unicodeCodePoints\",\n    \"results\": [",
            json!({"driver": driver})
        );
        Self { rules, list: JsonList::begin(head, "    ") }
    }

    pub(crate) fn push(&mut self, finding: &SarifFinding<'_>) -> serde_json::Result<()> {
        let SarifFinding { rule, level, message, place, subject, related, suppressed, help } = finding;
        let logical =
            subject.iter().map(|[field, full]| json!({"name": field, "fullyQualifiedName": full, "kind": "member"}));
        let location = json!({
            "physicalLocation": place.map(physical),
            "logicalLocations": logical.collect::<Vec<Value>>(),
        });
        let related = related.iter().enumerate().map(|(position, (place, text))| {
            json!({"id": position, "physicalLocation": physical(*place), "message": {"text": text}})
        });
        self.list.push(&present(json!({
            "ruleId": rule,
            "ruleIndex": self.rules.iter().position(|((id, ..), _)| id == rule),
            "level": level.name(),
            "message": {"text": Printable::new(message, usize::MAX).to_string()},
            "locations": [present(location)],
            "relatedLocations": related.collect::<Vec<Value>>(),
            "suppressions": suppressed.map(|why| [json!({"kind": "external", "justification": why})]),
            // A result has no address of its own in the format, and the page of its rule is about more.
            "properties": help.map(|help| json!({"helpUri": help.to_string()})),
        })))
    }

    pub(crate) fn end(&mut self, conclusion: &Conclusion) {
        let problems = &conclusion.problems;
        let notifications =
            problems.iter().map(|text| json!({"level": Severity::Error.name(), "message": {"text": text}}));
        let invocations = json!([{
            "executionSuccessful": problems.is_empty(),
            "exitCode": conclusion.code(),
            "toolExecutionNotifications": notifications.collect::<Vec<Value>>(),
        }]);
        self.list.end(&format!(",\n    \"invocations\": {invocations}\n  }}]\n}}\n"));
    }
}

fn physical(FilePlace { file, position }: FilePlace<'_>) -> Value {
    let region = position.map(|(line, column)| json!({"startLine": line, "startColumn": column}));
    present(json!({"artifactLocation": {"uri": uri(file)}, "region": region}))
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
