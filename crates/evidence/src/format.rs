//! The formats of texts.

/// Returns a value of a format that the API server checks.
pub(crate) fn value(format: &str) -> Option<&'static str> {
    Some(match format {
        "byte" => "eA==",
        "cidr" => "192.0.2.0/24",
        "date" => "2020-01-01",
        "date-time" | "datetime" => "2020-01-01T00:00:00Z",
        "duration" => "1s",
        "email" => "a@example.com",
        "hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "mac" => "02:00:00:00:00:01",
        "uri" => "https://example.com",
        "uuid" => "123e4567-e89b-42d3-a456-426614174000",
        _ => return None,
    })
}
