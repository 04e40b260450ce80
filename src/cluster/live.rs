//! Requests of the command line: finds a resource and its schema, reads and patches one object, and lists all objects page by
//! page. Errors of the API server are printed as kubectl prints them.
//!
//! Knows nothing of watches. `learn` reads the unions of a cluster once, with the code that the webhook uses.

mod discovery;
mod learn;
mod list;
mod refusal;

pub use discovery::{DiscoveredResource, find, no_resource};
pub use learn::Learnt;
pub use list::{ListedObject, Page, Pages};
pub use refusal::StatusError;

use super::BuiltinUnions;
use super::schemas::{SchemaFetchError, Schemas};
use crate::api::{self, ConnectError};
use http_body_util::BodyExt;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use hyper::{Request, Response};
use kube::Client;
use kube::client::Body;
use kube_unions_core::declaration::{BuiltinGroups, Declaration, Definition, DefinitionError, OpenApi};
use kube_unions_core::names::GroupKind;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Every character but the unreserved ones (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path of `UnionDeclaration`s.
const DECLARATIONS: &str = "/apis/kube-unions.dev/v1alpha1/uniondeclarations";

/// An error of a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The API server refused the request.
    #[error("{0}")]
    Refused(Box<StatusError>),
    /// The API server was not reached, or its answer is not HTTP.
    #[error("cannot talk to the API server")]
    Transport(#[source] Box<kube::Error>),
    /// The answer is malformed.
    #[error("the API server sent a malformed answer")]
    Malformed(#[from] serde_json::Error),
    /// A list expired several times in a row; the name of the last object read.
    #[error("the list expires faster than it can be read; the objects behind `{0}` were not seen")]
    Expired(Box<str>),
    /// No resource has this name.
    #[error("the server doesn't have a resource type `{asked}`{}", near.as_deref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    NoResource {
        /// The name that was asked for.
        asked: Box<str>,
        /// A name that it resembles.
        near: Option<Box<str>>,
    },
    /// Not a name of an object or a namespace.
    #[error("invalid name `{0}`: it must not be empty, `.` or `..`, or contain `/` or `%`")]
    Name(Box<str>),
    /// The schema cannot be read.
    #[error(transparent)]
    Schema(#[from] SchemaFetchError),
    /// The CRD, or the OpenAPI document, is malformed.
    #[error("cannot use the definition `{name}`: {message}")]
    Definition {
        /// The name of the CRD or the kind.
        name: Box<str>,
        message: String,
    },
    /// Neither a CRD nor a document describes the kind.
    #[error("the server does not describe {0}: neither by a CustomResourceDefinition nor in its OpenAPI documents")]
    NotDescribed(Box<DiscoveredResource>),
}

impl From<kube::Error> for LiveError {
    fn from(error: kube::Error) -> Self {
        if let kube::Error::Api(status) = error {
            Self::Refused(Box::new(StatusError::new(*status)))
        } else {
            Self::Transport(Box::new(error))
        }
    }
}

/// The schema of a kind.
#[derive(Debug)]
pub enum KindDescription {
    /// From its CRD, with the unions of `UnionDeclaration`s.
    Custom(Definition),
    /// From the API server's own document: the document, and the definition with the unions of `UnionDeclaration`s.
    BuiltIn(Arc<OpenApi>, Definition),
}

/// The path of an object on the API server.
#[derive(Debug, Clone)]
pub struct ObjectPath {
    path: String,
}

/// The answer to a patch.
#[derive(Debug)]
pub struct PatchResponse {
    /// The object, as JSON text.
    pub text: String,
    /// The API server's warnings, each once.
    pub warnings: Vec<String>,
}

/// A client of a cluster for the command line.
#[derive(Clone)]
pub struct Live {
    client: Client,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

impl Live {
    /// Returns a client for a context of a kubeconfig. Sends nothing.
    pub async fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Self, ConnectError> {
        Ok(Self { client: api::client(kubeconfig, context).await? })
    }

    /// Returns the namespace of the context, `default` if it has none.
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// Returns the version of the API server, for example `v1.36.4`.
    pub async fn version(&self) -> Result<String, LiveError> {
        Ok(self.client.apiserver_version().await?.git_version)
    }

    /// Finds a resource by plural, singular, short name or kind, alone or with `.group` or `.version.group`.
    pub async fn resource(&self, asked: &str) -> Result<DiscoveredResource, LiveError> {
        let all = discovery::resources(&self.client).await?;
        find(&all, asked).cloned().ok_or_else(|| no_resource(&all, asked))
    }

    /// Returns all resources, preferred versions first.
    pub async fn resources(&self) -> Result<Vec<DiscoveredResource>, LiveError> {
        discovery::resources(&self.client).await
    }

    /// Returns the unions that the webhook would enforce on this cluster. Calls `read` for each CRD.
    pub async fn learn(&self, unions: BuiltinUnions, read: impl Fn()) -> Result<Learnt, LiveError> {
        learn::learn(&self.client, unions, read).await
    }

    /// Returns the objects of a resource as they are stored, in one namespace or in all. The namespace of a cluster-scoped
    /// resource is ignored. Sends nothing.
    pub fn list(&self, resource: &DiscoveredResource, namespace: Option<&str>) -> Result<Pages, LiveError> {
        Ok(Pages::new(self.client.clone(), collection(resource, namespace)?))
    }

    /// Returns the schema of a resource, from its CRD or from the OpenAPI document of a built-in type.
    pub async fn described(&self, resource: &DiscoveredResource) -> Result<KindDescription, LiveError> {
        let schemas = Schemas::new(self.client.clone());
        let declarations = self.declarations().await?;
        let declare = |mut definition: Definition| {
            for declaration in &declarations {
                definition.declare(declaration);
            }
            definition
        };
        let name = format!("{}.{}", resource.plural, resource.group);
        let raw = if resource.group.is_empty() { None } else { schemas.definition(&name).await? };
        // Anybody who may create CRDs may name one as a built-in resource.
        let reserved = BuiltinGroups::Guessed.has(&resource.group);
        let raw = if raw.is_some() && reserved && schemas.is_own(&resource.group, &resource.version).await {
            None
        } else {
            raw
        };
        if let Some(raw) = raw {
            let fail = |message: String| LiveError::Definition { name: name.as_str().into(), message };
            let parts = raw.parts().map_err(|message| fail(message.to_owned()))?;
            let definition = Definition::from_parts(raw.name(), &parts.annotations, parts.spec.get())
                .map_err(|error| fail(error.to_string()))?;
            return Ok(KindDescription::Custom(declare(definition)));
        }
        let kind = GroupKind { group: resource.group.clone(), kind: resource.kind.clone() };
        let version = BTreeSet::from([resource.version.to_string()]);
        let edition = schemas.documents(&schemas.index().await?, &kind, Some(&version)).await?;
        let not_described = || LiveError::NotDescribed(Box::new(resource.clone()));
        let document = edition.documents.into_iter().next().ok_or_else(not_described)?;
        match Definition::from_openapi([&*document], &kind.group, &kind.kind, false) {
            Ok(definition) => Ok(KindDescription::BuiltIn(document, declare(definition))),
            Err(DefinitionError::NotDescribed(_)) => Err(not_described()),
            Err(error) => Err(LiveError::Definition { name: kind.to_string().into(), message: error.to_string() }),
        }
    }

    /// Returns an object as it is stored now, as JSON text.
    pub async fn read(&self, place: &ObjectPath) -> Result<String, LiveError> {
        Ok(self.client.request_text(request("GET", &place.path, None)?).await?)
    }

    /// Sends a JSON Patch. A dry run returns the object that would be stored, and stores nothing.
    pub async fn patch(
        &self,
        place: &ObjectPath,
        patch: String,
        field_manager: &str,
        dry_run: bool,
    ) -> Result<PatchResponse, LiveError> {
        let mut uri = format!("{}?fieldManager={}", place.path, utf8_percent_encode(field_manager, RESERVED));
        if dry_run {
            uri.push_str("&dryRun=All");
        }
        let request = request("PATCH", &uri, Some(patch))?;
        let answer = self.client.send(request.map(Body::from)).await?;
        let warnings = warnings(answer.headers());
        let text = text(answer).await?;
        Ok(PatchResponse { text, warnings })
    }

    /// Returns all `UnionDeclaration`s, ordered by name; none if the cluster lacks their CRD, or the user may not list them.
    async fn declarations(&self) -> Result<Vec<Declaration>, LiveError> {
        #[derive(Deserialize)]
        struct DeclarationList {
            items: Vec<Box<RawValue>>,
        }
        let list = match self.client.request_text(request("GET", DECLARATIONS, None)?).await {
            Ok(text) => serde_json::from_str::<DeclarationList>(&text)?,
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_forbidden() => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        // A malformed declaration declares nothing; its status has the reason.
        let read = list.items.iter().filter_map(|item| Declaration::from_json(item.get()).ok());
        let mut declarations: Vec<_> = read.map(|(declaration, _)| declaration).collect();
        declarations.sort_by(|one, other| one.name().cmp(other.name()));
        Ok(declarations)
    }
}

impl ObjectPath {
    /// Returns the path of an object. The namespace of a cluster-scoped resource is ignored.
    pub fn new(resource: &DiscoveredResource, namespace: &str, name: &str) -> Result<Self, LiveError> {
        let mut path = collection(resource, Some(namespace))?;
        let _ = write!(path, "/{}", checked(name)?);
        Ok(Self { path })
    }

    /// Returns the path of a subresource of the object, for example `status`.
    #[must_use]
    pub fn with_subresource(self, subresource: &str) -> Self {
        Self { path: format!("{}/{subresource}", self.path) }
    }
}

/// Returns the path of all objects of a resource, in one namespace or in all.
fn collection(resource: &DiscoveredResource, namespace: Option<&str>) -> Result<String, LiveError> {
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

/// Returns a request whose body is the JSON Patch, if any.
fn request(method: &str, uri: &str, patch: Option<String>) -> Result<Request<Vec<u8>>, LiveError> {
    let mut request = Request::builder().method(method).uri(uri).header(ACCEPT, "application/json");
    if patch.is_some() {
        request = request.header(CONTENT_TYPE, "application/json-patch+json");
    }
    let body = patch.map(String::into_bytes).unwrap_or_default();
    request.body(body).map_err(|error| kube::Error::HttpError(error).into())
}

/// Returns the text of a successful answer.
async fn text(answer: Response<Body>) -> Result<String, LiveError> {
    let code = answer.status();
    let bytes = answer.into_body().collect().await?.to_bytes();
    let text = String::from_utf8(bytes.to_vec()).map_err(kube::Error::FromUtf8)?;
    if code.is_success() {
        Ok(text)
    } else {
        Err(LiveError::Refused(Box::new(StatusError::read(code.as_u16(), &text))))
    }
}

/// Returns the API server's warnings, each once: `299 - "text"` (RFC 7234, section 5.5).
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let mut warnings = Vec::new();
    for value in headers.get_all("warning").iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok()) {
        let Some((_, quoted)) = value.split_once('"') else { continue };
        let mut text = String::new();
        let mut characters = quoted.chars();
        while let Some(character) = characters.next() {
            match character {
                '"' => break,
                '\\' => text.extend(characters.next()),
                other => text.push(other),
            }
        }
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_unquoted_and_listed_once() {
        let mut headers = HeaderMap::new();
        for value in [r#"299 - "unknown field \"spec.x\"""#, r#"299 - "b""#, r#"299 - "b""#, "299"] {
            headers.append("warning", value.parse().unwrap());
        }
        assert_eq!(warnings(&headers), [r#"unknown field "spec.x""#, "b"]);
    }

    #[test]
    fn a_name_never_leads_to_another_path() {
        let resource = DiscoveredResource {
            namespaced: true,
            ..DiscoveredResource::named("example.com", "v1", "Widget", "widgets")
        };
        let place = |namespace: &str, name: &str| ObjectPath::new(&resource, namespace, name).map(|place| place.path);
        assert_eq!(place("a", "b c?d").unwrap(), "/apis/example.com/v1/namespaces/a/widgets/b%20c%3Fd");
        for name in ["", ".", "..", "a/b", "a%2Fb"] {
            assert!(matches!(place("a", name), Err(LiveError::Name(_))), "{name}");
            assert!(matches!(place(name, "a"), Err(LiveError::Name(_))), "{name}");
        }
    }
}
