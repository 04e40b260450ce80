//! What a user asks of a cluster: one object, read and patched, or all objects of a kind, read page by page. Which resource
//! is meant, what describes it, and the API server's answers in kubectl's words.

mod discovery;
mod learn;
mod list;
mod refusal;

pub use discovery::{Resource, find};
pub use learn::Learnt;
pub use list::{Object, Page, Pages};
pub use refusal::Refusal;

use super::BuiltinUnions;
use super::connection::{self, ConnectError};
use super::schemas::{SchemaError, Schemas};
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

/// Where `UnionDeclaration`s are.
const DECLARATIONS: &str = "/apis/kube-unions.dev/v1alpha1/uniondeclarations";

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The API server says no.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The API server was not reached, or what it sent is no answer.
    #[error("cannot talk to the API server")]
    Transport(#[source] Box<kube::Error>),
    /// The API server sent something else than what was asked for.
    #[error("the API server's answer can't be read")]
    Malformed(#[from] serde_json::Error),
    /// It takes too long.
    #[error("the API server does not answer within {0} s")]
    Slow(u64),
    /// A list could not be read to its end.
    #[error("the list expires faster than it can be read; the objects behind `{0}` were not seen")]
    Expired(Box<str>),
    /// Nothing of this name.
    #[error("the server doesn't have a resource type `{0}`")]
    NoResource(Box<str>),
    /// Something else than the name of an object.
    #[error("`{0}` can't be the name of an object")]
    Name(Box<str>),
    /// The schema could not be had.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The CRD can't be read.
    #[error("the definition `{name}` can't be used: {message}")]
    Definition {
        /// Its name.
        name: Box<str>,
        /// What is wrong with it.
        message: String,
    },
    /// The kind is described nowhere.
    #[error("the server does not describe {0}: neither by a CustomResourceDefinition nor in its OpenAPI documents")]
    NotDescribed(Box<Resource>),
}

impl From<kube::Error> for LiveError {
    fn from(error: kube::Error) -> Self {
        if let kube::Error::Api(status) = error {
            Self::Refused(Box::new(Refusal::new(*status)))
        } else {
            Self::Transport(Box::new(error))
        }
    }
}

/// What describes a kind.
#[derive(Debug)]
pub enum Described {
    /// Its CRD, with the unions of `UnionDeclaration`s.
    Custom(Definition),
    /// The API server's own document, and the same with the unions of `UnionDeclaration`s.
    BuiltIn(Arc<OpenApi>, Definition),
}

/// Where an object is.
#[derive(Debug, Clone)]
pub struct Place {
    path: String,
}

/// What the API server sent.
#[derive(Debug)]
pub struct Answer {
    /// JSON text.
    pub text: String,
    /// What it warns of.
    pub warnings: Vec<String>,
}

/// A cluster, asked about single objects.
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
    /// The cluster of a context of a kubeconfig. Nothing is sent yet.
    pub async fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Self, ConnectError> {
        Ok(Self { client: connection::client(kubeconfig, context).await? })
    }

    /// The namespace of the context, `default` if it has none.
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// The resource that is meant by a plural, singular, short name or kind, alone or with `.group` or `.version.group`.
    pub async fn resource(&self, asked: &str) -> Result<Resource, LiveError> {
        let all = discovery::resources(&self.client).await?;
        find(&all, asked).cloned().ok_or_else(|| LiveError::NoResource(asked.into()))
    }

    /// All resources, those of preferred versions first.
    pub async fn resources(&self) -> Result<Vec<Resource>, LiveError> {
        discovery::resources(&self.client).await
    }

    /// The unions that the webhook would know here. Tells of each definition that it is read.
    pub async fn learn(&self, unions: BuiltinUnions, read: impl Fn()) -> Result<Learnt, LiveError> {
        learn::learn(&self.client, unions, read).await
    }

    /// The objects of a resource as they are stored, of one namespace or of all; the namespace counts only where the resource
    /// has some. Nothing is sent yet.
    pub fn list(&self, resource: &Resource, namespace: Option<&str>) -> Result<Pages, LiveError> {
        Ok(Pages::new(self.client.clone(), collection(resource, namespace)?))
    }

    /// What describes a resource: its CRD, or the OpenAPI document of a built-in type.
    pub async fn described(&self, resource: &Resource) -> Result<Described, LiveError> {
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
            return Ok(Described::Custom(declare(definition)));
        }
        let kind = GroupKind { group: resource.group.clone(), kind: resource.kind.clone() };
        let version = BTreeSet::from([resource.version.to_string()]);
        let edition = schemas.documents(&schemas.index().await?, &kind, Some(&version)).await?;
        let not_described = || LiveError::NotDescribed(Box::new(resource.clone()));
        let document = edition.documents.into_iter().next().ok_or_else(not_described)?;
        match Definition::from_openapi([&*document], &kind.group, &kind.kind, false) {
            Ok(definition) => Ok(Described::BuiltIn(document, declare(definition))),
            Err(DefinitionError::NotDescribed(_)) => Err(not_described()),
            Err(error) => Err(LiveError::Definition { name: kind.to_string().into(), message: error.to_string() }),
        }
    }

    /// An object as it is stored now, as JSON text.
    pub async fn read(&self, place: &Place) -> Result<String, LiveError> {
        Ok(self.client.request_text(request("GET", &place.path, None)?).await?)
    }

    /// Sends a JSON Patch. A dry run answers what would be stored, and stores nothing.
    pub async fn patch(
        &self,
        place: &Place,
        patch: String,
        field_manager: &str,
        dry_run: bool,
    ) -> Result<Answer, LiveError> {
        let mut uri = format!("{}?fieldManager={}", place.path, utf8_percent_encode(field_manager, RESERVED));
        if dry_run {
            uri.push_str("&dryRun=All");
        }
        let request = request("PATCH", &uri, Some(patch))?;
        let answer = self.client.send(request.map(Body::from)).await?;
        let warnings = warnings(answer.headers());
        let text = text(answer).await?;
        Ok(Answer { text, warnings })
    }

    /// All `UnionDeclaration`s, in the order of their names. None where the cluster has no such kind, or does not show them.
    async fn declarations(&self) -> Result<Vec<Declaration>, LiveError> {
        #[derive(Deserialize)]
        struct List {
            items: Vec<Box<RawValue>>,
        }
        let list = match self.client.request_text(request("GET", DECLARATIONS, None)?).await {
            Ok(text) => serde_json::from_str::<List>(&text)?,
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_forbidden() => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        // One that can't be read is nobody's union; its status says why.
        let read = list.items.iter().filter_map(|item| Declaration::from_json(item.get()).ok());
        let mut declarations: Vec<_> = read.map(|(declaration, _)| declaration).collect();
        declarations.sort_by(|one, other| one.name().cmp(other.name()));
        Ok(declarations)
    }
}

impl Place {
    /// Where an object of a resource is; the namespace counts only where the resource has some.
    pub fn new(resource: &Resource, namespace: &str, name: &str) -> Result<Self, LiveError> {
        let mut path = collection(resource, Some(namespace))?;
        let _ = write!(path, "/{}", checked(name)?);
        Ok(Self { path })
    }
}

/// The path of all objects of a resource, in one namespace or in all.
fn collection(resource: &Resource, namespace: Option<&str>) -> Result<String, LiveError> {
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

/// A name as a part of a path. What can be no name would lead to another path.
fn checked(name: &str) -> Result<String, LiveError> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '%']) {
        return Err(LiveError::Name(name.into()));
    }
    Ok(utf8_percent_encode(name, RESERVED).to_string())
}

/// A request, with a JSON Patch as its body if there is one.
fn request(method: &str, uri: &str, patch: Option<String>) -> Result<Request<Vec<u8>>, LiveError> {
    let mut request = Request::builder().method(method).uri(uri).header(ACCEPT, "application/json");
    if patch.is_some() {
        request = request.header(CONTENT_TYPE, "application/json-patch+json");
    }
    let body = patch.map(String::into_bytes).unwrap_or_default();
    request.body(body).map_err(|error| kube::Error::HttpError(error).into())
}

/// The text of a good answer.
async fn text(answer: Response<Body>) -> Result<String, LiveError> {
    let code = answer.status();
    let bytes = answer.into_body().collect().await?.to_bytes();
    let text = String::from_utf8(bytes.to_vec()).map_err(kube::Error::FromUtf8)?;
    if code.is_success() { Ok(text) } else { Err(LiveError::Refused(Box::new(Refusal::read(code.as_u16(), &text)))) }
}

/// The API server's warnings, each once: `299 - "text"` (RFC 7234, section 5.5).
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
    fn warnings_are_unquoted_and_said_once() {
        let mut headers = HeaderMap::new();
        for value in [r#"299 - "unknown field \"spec.x\"""#, r#"299 - "b""#, r#"299 - "b""#, "299"] {
            headers.append("warning", value.parse().unwrap());
        }
        assert_eq!(warnings(&headers), [r#"unknown field "spec.x""#, "b"]);
    }

    #[test]
    fn a_name_never_leads_to_another_path() {
        let resource = Resource { namespaced: true, ..Resource::named("example.com", "v1", "Widget", "widgets") };
        let place = |namespace: &str, name: &str| Place::new(&resource, namespace, name).map(|place| place.path);
        assert_eq!(place("a", "b c?d").unwrap(), "/apis/example.com/v1/namespaces/a/widgets/b%20c%3Fd");
        for name in ["", ".", "..", "a/b", "a%2Fb"] {
            assert!(matches!(place("a", name), Err(LiveError::Name(_))), "{name}");
            assert!(matches!(place(name, "a"), Err(LiveError::Name(_))), "{name}");
        }
    }
}
