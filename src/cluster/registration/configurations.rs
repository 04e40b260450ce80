//! The two configurations on the API server: read, written, and watched for a reason to read them again.

use super::entries::{NAME, Phase};
use super::stored::{Stored, Write};
use crate::cluster::schemas::is_not_found;
use crate::cluster::watch::persistent;
use futures::StreamExt;
use futures::stream::{BoxStream, select};
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::time::Duration;

/// A watch is asked for anew after so long.
const WATCH_SECONDS: u32 = 120;

/// For one request. The API server answers these at once or not at all.
const LIMIT: Duration = Duration::from_secs(10);

/// Why a configuration could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigurationError {
    #[error("cannot read {}/{NAME}", .0.kind())]
    Read(Phase, #[source] kube::Error),
    #[error("cannot write {}/{NAME}", .0.kind())]
    Write(Phase, #[source] kube::Error),
    #[error("cannot reach the API server about {}/{NAME}: no answer within {LIMIT:?}", .0.kind())]
    TimedOut(Phase),
    #[error("{}/{NAME} is not kept as it was applied: {}; another admission webhook or policy may change it", .0.kind(), .1)]
    NotKept(Phase, String),
    #[error("the CA that is to be registered holds no certificate; nothing is registered before it does")]
    NoCa,
}

impl ConfigurationError {
    /// Whether the API server has answered, and not that it is itself in trouble.
    pub(super) fn is_answer(&self) -> bool {
        match self {
            Self::Read(_, error) | Self::Write(_, error) => {
                matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && status.code != 429)
            }
            Self::NotKept(..) | Self::NoCa => true,
            Self::TimedOut(_) => false,
        }
    }

    /// Whether what was looked at has changed since.
    pub(super) fn is_conflict(&self) -> bool {
        match self {
            // A patch of what is gone is one, too.
            Self::Write(_, kube::Error::Api(status)) => matches!(status.code, 404 | 409),
            Self::Write(..) | Self::Read(..) | Self::TimedOut(_) | Self::NotKept(..) | Self::NoCa => false,
        }
    }
}

/// Reads and writes the configurations.
#[derive(Clone)]
pub(super) struct Configurations {
    client: Client,
}

impl Configurations {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// As it is stored, `None` if it is not there.
    pub(super) async fn read(&self, phase: Phase) -> Result<Option<Stored>, ConfigurationError> {
        let request = Request::get(path(phase)).body(Vec::new());
        match self.send(phase, request).await? {
            Ok(object) => Ok(Some(Stored::new(object))),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(ConfigurationError::Read(phase, error)),
        }
    }

    /// Writes, and gives what is stored then.
    pub(super) async fn write(&self, phase: Phase, write: &Write, manager: &str) -> Result<Stored, ConfigurationError> {
        let (path, content_type, body) = match write {
            Write::Apply(object) => {
                (format!("{}?fieldManager={manager}&force=true", path(phase)), "application/apply-patch+yaml", object)
            }
            Write::Patch(operations) => {
                (format!("{}?fieldManager={manager}", path(phase)), "application/json-patch+json", operations)
            }
        };
        let request = Request::patch(path).header(CONTENT_TYPE, content_type).body(body.to_string().into_bytes());
        self.send(phase, request).await?.map(Stored::new).map_err(|error| ConfigurationError::Write(phase, error))
    }

    async fn send(
        &self,
        phase: Phase,
        request: Result<Request<Vec<u8>>, hyper::http::Error>,
    ) -> Result<kube::Result<Value>, ConfigurationError> {
        let request = match request {
            Ok(request) => request,
            Err(error) => return Ok(Err(kube::Error::HttpError(error))),
        };
        let answer = tokio::time::timeout(LIMIT, self.client.request::<Value>(request));
        answer.await.map_err(|_| ConfigurationError::TimedOut(phase))
    }

    /// An item for each reason to look again: a change of either, or (an error) that changes may go unnoticed.
    pub(super) fn changes(&self) -> BoxStream<'static, watcher::Result<()>> {
        let mutating = changes_of(Api::<PartialObjectMeta<MutatingWebhookConfiguration>>::all(self.client.clone()));
        let validating = changes_of(Api::<PartialObjectMeta<ValidatingWebhookConfiguration>>::all(self.client.clone()));
        select(mutating, validating).boxed()
    }
}

fn changes_of<K>(api: Api<K>) -> BoxStream<'static, watcher::Result<()>>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    // With the name in the selector a right by name is enough.
    let config = watcher::Config::default().timeout(WATCH_SECONDS).fields(&format!("metadata.name={NAME}"));
    persistent(watcher(api, config))
        .filter_map(|event| async {
            match event {
                Ok(Event::Init | Event::InitApply(_)) => None,
                Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => Some(Ok(())),
                Err(error) => Some(Err(error)),
            }
        })
        .boxed()
}

fn path(phase: Phase) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/{}/{NAME}", phase.plural())
}
