//! Parsers for the values of `serve`'s flags. Other commands share [`duration`] and [`namespace`].

use crate::webhook::Limits;
use kube_unions_core::names::{is_dns_label, is_dns_subdomain};
use std::time::Duration;

/// Parses `10s`, `500ms`, `1m30s`, `2h`, or `0`.
pub(in crate::cli) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(text)
        .map_err(|_| format!("invalid duration {text:?}: use a number and a unit, for example 10s"))
}

/// Parses `64Mi`, `512Ki`, `1Gi`, or a number of bytes. The budget must hold one body at least.
pub(super) fn budget(text: &str) -> Result<usize, String> {
    let (number, unit) = text.split_at(text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len()));
    let factor: Option<usize> = match unit {
        "" => Some(1),
        "Ki" => Some(1 << 10),
        "Mi" => Some(1 << 20),
        "Gi" => Some(1 << 30),
        _ => None,
    };
    let (Ok(number), Some(factor)) = (number.parse::<usize>(), factor) else {
        return Err(format!("invalid size {text:?}: use a number and Ki, Mi or Gi, for example 64Mi"));
    };
    let (least, most) = (Limits::default().body, tokio::sync::Semaphore::MAX_PERMITS);
    match number.checked_mul(factor) {
        Some(size) if size < least => Err(format!("invalid size {text:?}: use {least} bytes or more, for one request")),
        Some(size) if size <= most => Ok(size),
        Some(_) | None => Err(format!("invalid size {text:?}: use {most} bytes or less")),
    }
}

/// Parses the name of a namespace. The API server refuses a whole selector for one invalid name.
pub(in crate::cli) fn namespace(text: &str) -> Result<String, String> {
    accept(text, is_dns_label(text), "namespace", "use one name of lower-case letters, digits and `-`")
}

/// Parses the beginning of the names of policies. A hash and a suffix follow it.
pub(super) fn name_prefix(text: &str) -> Result<String, String> {
    let valid = text.len() <= 40 && is_dns_subdomain(&format!("{text}a"));
    accept(
        text,
        valid,
        "prefix",
        "use at most 40 lower-case letters, digits, `-` and `.`, beginning with a letter or digit",
    )
}

/// Parses NAMESPACE/NAME.
pub(super) fn certificate_name(text: &str) -> Result<String, String> {
    let parts = text.split_once('/');
    let valid =
        parts.is_some_and(|(namespace, name)| is_dns_label(namespace) && !name.is_empty() && !name.contains('/'));
    accept(text, valid, "Certificate", "use NAMESPACE/NAME")
}

/// Parses the name of a Secret, which is a DNS subdomain (RFC 1123).
pub(super) fn secret_name(text: &str) -> Result<String, String> {
    accept(text, is_dns_subdomain(text), "Secret name", "use lower-case letters, digits, `-` and `.`")
}

/// Parses the name of a `ClusterRole`, which is any one segment of a path.
pub(super) fn cluster_role_name(text: &str) -> Result<String, String> {
    let allowed = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | ':' | '_');
    let valid = (1..=253).contains(&text.len()) && text != "." && text != ".." && text.chars().all(allowed);
    accept(text, valid, "ClusterRole name", "use letters, digits, `-`, `.`, `:` and `_`")
}

/// Parses a number of connections.
pub(super) fn connections(text: &str) -> Result<usize, String> {
    const MOST: usize = 1_000_000;
    match text.parse() {
        Ok(count) if (1..=MOST).contains(&count) => Ok(count),
        Ok(_) | Err(_) => Err(format!("invalid number {text:?}: use a number from 1 to {MOST}")),
    }
}

fn accept(text: &str, valid: bool, what: &str, hint: &str) -> Result<String, String> {
    if valid { Ok(text.to_owned()) } else { Err(format!("invalid {what} {text:?}: {hint}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that the parser refuses each text and names it.
    fn assert_refused<T: std::fmt::Debug>(parse: fn(&str) -> Result<T, String>, texts: &[&str]) {
        for text in texts {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with("invalid ") && error.contains(&format!("{text:?}: use ")), "{error}");
        }
    }

    #[test]
    fn a_duration_has_a_unit() {
        for (text, want) in [
            ("10s", 10_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("0", 0),
            ("0s", 0),
            ("007s", 7_000),
            ("2h", 7_200_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(want)), "{text}");
        }
        assert_eq!(duration("18446744073709551615s"), Ok(Duration::from_secs(u64::MAX)));
        assert_refused(duration, &["", "10", "s", "-1s", "5q", "18446744073709551615m", "99999999999999999999s"]);
    }

    #[test]
    fn a_budget_holds_at_least_one_request() {
        for (text, want) in [("64Mi", 64 << 20), ("7340032", 7 << 20), ("8192Ki", 8 << 20), ("1Gi", 1 << 30)] {
            assert_eq!(budget(text), Ok(want), "{text}");
        }
        let refused = ["", "6Mi", "64MB", "64M", "64m", "-1", "17179869184Gi", "9007199254740992Ki"];
        assert_refused(budget, &refused);
    }

    #[test]
    fn a_name_that_the_api_server_would_refuse_is_refused() {
        assert_eq!(namespace("team-a1"), Ok("team-a1".to_owned()));
        assert_refused(namespace, &["", "A", "-a", "a-", "a,b", "a/b", "a.b", &"a".repeat(64)]);
        assert_eq!(certificate_name("a/b.c"), Ok("a/b.c".to_owned()));
        assert_refused(certificate_name, &["", "a", "a/", "/b", "a/b/c", "A/b"]);
        assert_eq!(cluster_role_name("system:a_b.c-d"), Ok("system:a_b.c-d".to_owned()));
        assert_refused(cluster_role_name, &["", ".", "..", "a/b", "a b", &"a".repeat(254)]);
    }

    #[test]
    fn a_secret_has_the_name_of_an_object() {
        for text in ["a", "kube-unions-tls", "a.b-c.0"] {
            assert_eq!(secret_name(text).as_deref(), Ok(text));
        }
        assert_refused(secret_name, &["", "A", "a_b", "-a", "a-", "a..b", "a/b", &"a".repeat(254)]);
    }

    #[test]
    fn there_is_room_for_at_least_one_connection() {
        assert_eq!(connections("1"), Ok(1));
        assert_refused(connections, &["0", "-1", "x", "1000001"]);
    }
}
