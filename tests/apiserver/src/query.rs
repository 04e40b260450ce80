//! The path and the parameters of a request.

use crate::error::ApiError;
use percent_encoding::percent_decode_str;

/// The parameters of a request. The first of a name counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
                })
                .collect(),
        )
    }

    /// Returns a parameter, empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// Returns true for a flag: `true`, `1`, and a flag without a value.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.iter().find(|(key, _)| key == name).is_some_and(|(_, value)| value != "false" && value != "0")
    }

    /// Returns a number; `None` if the parameter is absent or empty.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let text = self.text(name);
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse::<i64>();
        let number = number
            .map_err(|_| ApiError::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax")))?;
        Ok(Some(u64::try_from(number).unwrap_or_default()))
    }
}

/// The resource, namespace, name and subresource of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObjectRoute {
    pub(crate) group: String,
    pub(crate) version: String,
    /// Empty for a cluster-scoped resource and for all namespaces.
    pub(crate) namespace: String,
    pub(crate) plural: String,
    /// Empty for a collection.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
}

impl ObjectRoute {
    /// Reads a path. Returns `None` if it is none of objects.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let segments: Vec<String> = path.trim_matches('/').split('/').map(decoded).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let is_core = group.is_empty();
        let (namespace, rest) = match rest {
            // A namespace is an object, too, with subresources of its own.
            ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] if is_core => ("", rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, "", ""),
            [plural, name] => (*plural, *name, ""),
            [plural, name, subresource] => (*plural, *name, *subresource),
            _ => return None,
        };
        Some(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            plural: plural.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        })
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_an_object() {
        let route = |path| {
            let it = ObjectRoute::parse(path).unwrap();
            [it.group, it.version, it.namespace, it.plural, it.name, it.subresource].join("|")
        };
        assert_eq!(route("/api/v1/namespaces"), "|v1||namespaces||");
        assert_eq!(route("/api/v1/namespaces/a"), "|v1||namespaces|a|");
        assert_eq!(route("/api/v1/namespaces/a/status"), "|v1||namespaces|a|status");
        assert_eq!(route("/api/v1/namespaces/a/secrets"), "|v1|a|secrets||");
        assert_eq!(route("/apis/apps/v1/namespaces/a/deployments/b/scale"), "apps|v1|a|deployments|b|scale");
        assert_eq!(route("/apis/g.example/v1/things/a%20b"), "g.example|v1||things|a b|");
        assert_eq!(ObjectRoute::parse("/apis/g.example/v1"), None);
        assert_eq!(ObjectRoute::parse("/version"), None);
    }
}
