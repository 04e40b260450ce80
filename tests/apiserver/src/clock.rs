//! Times as the API server writes them.

use k8s_openapi::jiff::Timestamp;
use std::time::SystemTime;

/// The clock of the API servers.
pub(crate) type Clock = std::sync::Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Returns a time as metadata has it: `2026-01-02T03:04:05Z`.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    formatted(time, "%Y-%m-%dT%H:%M:%SZ")
}

/// Returns a time as the header `Date` has it.
pub(crate) fn http_date(time: SystemTime) -> String {
    formatted(time, "%a, %d %b %Y %H:%M:%S GMT")
}

fn formatted(time: SystemTime, format: &str) -> String {
    Timestamp::try_from(time).unwrap_or_default().strftime(format).to_string()
}
