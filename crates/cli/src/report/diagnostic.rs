//! Prints diagnostics as lines for people.

pub(crate) use kube_unions_manifests::diagnostic::{Diagnostic, compare, diagnose};

use super::output::{self, Paint};
use super::sarif::FilePlace;
use kube_unions_core::declaration::{Severity, Source};

/// Returns `file:line:column: path: message`, the format of compilers that editors understand.
pub(crate) fn line(diagnostic: &Diagnostic, paint: Paint) -> String {
    let place = FilePlace { file: &diagnostic.file, position: diagnostic.position() };
    let whole = diagnostic.definition.as_deref().unwrap_or_default();
    let path = if diagnostic.path.is_empty() { whole } else { &diagnostic.path };
    let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
    // The position in a schema tells its version.
    let positioned = diagnostic.versions.is_empty() || diagnostic.source.as_deref() == Some(Source::Schema.name());
    let versions = if positioned { String::new() } else { format!("{}: ", diagnostic.versions.join(", ")) };
    let severity = painted(diagnostic.severity, paint);
    let line = format!("{} {path}{severity} {versions}{}", paint.strong(&format!("{place}:")), diagnostic.message);
    output::line(&line).into_owned()
}

/// Returns the word for a severity, with a colon.
pub(crate) fn painted(severity: Severity, paint: Paint) -> String {
    match severity {
        Severity::Error => paint.error("error:"),
        Severity::Warning => paint.warning("warning:"),
        Severity::Note => paint.faint("note:"),
    }
}
