//! Names as Kubernetes defines them: kinds with their group and version, DNS labels and subdomains.

use serde::Deserialize;
use std::cmp::Reverse;
use std::fmt;

/// A kind in all its versions. Displays as `Kind.group`, for example `Deployment.apps`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind {
    /// The API group, empty for the core group.
    pub group: Box<str>,
    /// The kind.
    pub kind: Box<str>,
}

/// A kind at one version. Displays as `group/version, Kind=Kind`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(expecting = "a group, version and kind")]
pub struct GroupVersionKind {
    /// The API group, empty for the core group.
    #[serde(default)]
    pub group: Box<str>,
    /// The version.
    pub version: Box<str>,
    /// The kind.
    pub kind: Box<str>,
}

impl GroupKind {
    /// Returns the kind of this name in this group.
    pub fn new(group: impl Into<Box<str>>, kind: impl Into<Box<str>>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// Returns the kind at a version.
    pub fn at(&self, version: &str) -> GroupVersionKind {
        GroupVersionKind { group: self.group.clone(), version: version.into(), kind: self.kind.clone() }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, kind } = self;
        let dot = if group.is_empty() { "" } else { "." };
        write!(f, "{kind}{dot}{group}")
    }
}

impl GroupVersionKind {
    /// Returns the kind without its version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }

    /// Returns group and version as an object has them in `apiVersion`, for example `apps/v1`.
    pub fn api_version(&self) -> String {
        let slash = if self.group.is_empty() { "" } else { "/" };
        format!("{}{slash}{}", self.group, self.version)
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}

/// Returns true for a DNS label (RFC 1123): the form of the names of namespaces and Services.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_label_of_any_length(text)
}

/// Returns true for a DNS subdomain (RFC 1123): the form of the names of most objects. As in the API server, only the whole
/// name has a greatest length, not each label.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label_of_any_length)
}

fn is_label_of_any_length(text: &str) -> bool {
    let inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// The priority of a version, as Kubernetes orders the versions of a kind: stable versions before beta before alpha, newer before older,
/// and names of another form last, in reverse alphabetical order. The greatest one comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionPriority {
    /// Stage, major and minor.
    parsed: Option<(u8, u32, u32)>,
    name: Reverse<Box<str>>,
}

impl VersionPriority {
    /// Returns the priority of a version. Different versions have different ones.
    pub fn of(version: &str) -> Self {
        let parsed = version.strip_prefix('v').and_then(|rest| {
            let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
            let (major, rest) = rest.split_at_checked(end)?;
            let stage = |name, rank: u8| Some((rank, rest.strip_prefix(name)?.parse::<u32>().ok()?));
            let (rank, minor) =
                if rest.is_empty() { (2, 0) } else { stage("beta", 1).or_else(|| stage("alpha", 0))? };
            Some((rank, major.parse::<u32>().ok()?, minor))
        });
        Self { parsed, name: Reverse(version.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_and_newer_versions_come_first() {
        let order = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];
        for pair in order.windows(2) {
            assert!(VersionPriority::of(pair[0]) > VersionPriority::of(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn kinds_display_as_kubectl_and_the_api_machinery_write_them() {
        assert_eq!(GroupKind::new("apps", "Deployment").to_string(), "Deployment.apps");
        assert_eq!(GroupKind::new("", "Pod").to_string(), "Pod");
        let kind = |group: &str| GroupVersionKind { group: group.into(), version: "v1".into(), kind: "Thing".into() };
        assert_eq!((kind("").to_string(), kind("g").to_string()), ("v1, Kind=Thing".into(), "g/v1, Kind=Thing".into()));
        assert_eq!((kind("").api_version(), kind("g").api_version()), ("v1".into(), "g/v1".into()));
    }

    #[test]
    fn labels_have_at_most_63_characters_and_subdomains_253() {
        for good in ["a", "a-b", "0", &"a".repeat(63)] {
            assert!(is_dns_label(good) && is_dns_subdomain(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a_b", "ä", "a b"] {
            assert!(!is_dns_label(bad) && !is_dns_subdomain(bad), "{bad}");
        }
        assert!(is_dns_subdomain("a.b") && !is_dns_label("a.b"));
        assert!(is_dns_subdomain(&"a".repeat(64)) && !is_dns_label(&"a".repeat(64)));
        assert!(!is_dns_subdomain(&"a".repeat(254)) && !is_dns_subdomain("a..b") && !is_dns_subdomain(".a"));
    }
}
