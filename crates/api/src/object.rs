//! Requests for one object: its path, reading and writing it.
//!
//! It knows nothing of the content of objects. Any JSON may be stored, so nothing here assumes a shape.

use super::discovery::DiscoveredResource;
use super::refusal::LiveError;
use super::request::{APPLY, ApiAnswer, JSON, JSON_PATCH, RequestError, exchange, send, text, write};
use hyper::Method;
use kube::Client;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::fmt::Write;

/// Field manager of the objects that the program keeps.
pub const MANAGER: &str = "kube-unions";

/// Every character but the unreserved ones (RFC 3986, section 2.3).
pub(super) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The paths of an object and of its collection on the API server.
#[derive(Debug, Clone)]
pub struct ObjectPath {
    collection: String,
    path: String,
}

impl ObjectPath {
    /// Returns the paths of an object whose name needs no escape.
    pub fn new(collection: impl Into<String>, name: &str) -> Self {
        let collection = collection.into();
        Self { path: format!("{collection}/{name}"), collection }
    }

    /// Returns the paths of an object. The namespace of a cluster-scoped resource is ignored.
    pub fn of(resource: &DiscoveredResource, namespace: &str, name: &str) -> Result<Self, LiveError> {
        Ok(Self::new(collection(resource, Some(namespace))?, &checked(name)?))
    }

    /// Returns the path of a subresource of the object, for example `status`.
    #[must_use]
    pub fn with_subresource(self, subresource: &str) -> Self {
        Self { path: format!("{}/{subresource}", self.path), ..self }
    }

    /// Returns the object as it is stored now, as JSON text.
    pub async fn text(&self, client: &Client) -> Result<String, RequestError> {
        text(client, &self.path).await
    }

    /// Returns the stored object, `None` if there is none.
    pub async fn read(&self, client: &Client) -> Result<Option<Value>, RequestError> {
        found(send(client, Method::GET, &self.path).await)
    }

    /// Creates the object and returns it as it is stored.
    pub async fn create(&self, client: &Client, object: &Value) -> Result<Value, RequestError> {
        write(client, Method::POST, &format!("{}?fieldManager={MANAGER}", self.collection), JSON, object).await
    }

    /// Replaces an object whose `resourceVersion` is still that of `object`, and returns it as it is stored.
    pub async fn replace(&self, client: &Client, object: &Value) -> Result<Value, RequestError> {
        write(client, Method::PUT, &format!("{}?fieldManager={MANAGER}", self.path), JSON, object).await
    }

    /// Creates or changes the object by server-side apply, and returns it as it is stored. `force`: takes over the fields of
    /// other managers.
    ///
    /// An apply names the object, so the right to create it by name is enough.
    pub async fn apply(
        &self,
        client: &Client,
        object: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, RequestError> {
        let force = if force { "&force=true" } else { "" };
        write(client, Method::PATCH, &format!("{}?fieldManager={manager}{force}", self.path), APPLY, object).await
    }

    /// Deletes the object, if it still has the `resourceVersion`, where one is given. Returns false if there is none.
    pub async fn delete(&self, client: &Client, resource_version: Option<&str>) -> Result<bool, RequestError> {
        let deleted = match resource_version {
            None => send(client, Method::DELETE, &self.path).await,
            Some(version) => {
                let conditions = json!({"resourceVersion": version});
                let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions});
                write(client, Method::DELETE, &self.path, JSON, &options).await
            }
        };
        Ok(found(deleted)?.is_some())
    }

    /// Sends a JSON Patch. A dry run returns the object that would be stored, and stores nothing.
    pub async fn patch(
        &self,
        client: &Client,
        patch: String,
        field_manager: &str,
        dry_run: bool,
    ) -> Result<ApiAnswer, RequestError> {
        let dry_run = if dry_run { "&dryRun=All" } else { "" };
        let manager = utf8_percent_encode(field_manager, RESERVED);
        let uri = format!("{}?fieldManager={manager}{dry_run}", self.path);
        exchange(client, Method::PATCH, &uri, Some((JSON_PATCH, patch))).await
    }
}

/// Returns an answer, `None` if what was asked for does not exist.
pub fn found<T>(answer: Result<T, RequestError>) -> Result<Option<T>, RequestError> {
    match answer {
        Err(error) if error.is_not_found() => Ok(None),
        answer => answer.map(Some),
    }
}

/// Returns the path of all objects of a resource, in one namespace or in all.
pub(super) fn collection(resource: &DiscoveredResource, namespace: Option<&str>) -> Result<String, LiveError> {
    let mut path = match &*resource.group {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    if let Some(namespace) = namespace.filter(|_| resource.namespaced) {
        let _ = write!(path, "/namespaces/{}", checked(namespace)?);
    }
    let _ = write!(path, "/{}", resource.plural);
    Ok(path)
}

/// Returns a name as a segment of a path. Rejects names that would lead to another path.
fn checked(name: &str) -> Result<String, LiveError> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '%']) {
        return Err(LiveError::Name(name.into()));
    }
    Ok(utf8_percent_encode(name, RESERVED).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leads_to_another_path() {
        let resource = DiscoveredResource {
            namespaced: true,
            ..DiscoveredResource::named("example.com", "v1", "Widget", "widgets")
        };
        let place = |namespace: &str, name: &str| ObjectPath::of(&resource, namespace, name).map(|place| place.path);
        assert_eq!(place("a", "b c?d").unwrap(), "/apis/example.com/v1/namespaces/a/widgets/b%20c%3Fd");
        for name in ["", ".", "..", "a/b", "a%2Fb"] {
            assert!(matches!(place("a", name), Err(LiveError::Name(_))), "{name}");
            assert!(matches!(place(name, "a"), Err(LiveError::Name(_))), "{name}");
        }
    }
}
