//! The Service before the replicas, as the API server calls it: TLS by what is served and what is trusted, and one of the replicas that
//! are ready. A replica that ends leaves the Service at once.

use crate::trace::Trace;
use fixtures::dice::Dice;
use futures::FutureExt;
use futures::future::BoxFuture;
use kube_unions_core::admission::{Exhausted, Meter, Phase};
use kube_unions_webhook::webhook::ServerState;
use parking_lot::Mutex;
use rustls::client::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ServerConfig;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConnection, RootCertStore, ServerConnection};
use serde_json::{Value, json};
use simulated_apiserver::{CallError, WebhookCall, Webhooks};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::sleep;

/// The Service and the replicas behind it.
pub struct ReplicaService {
    endpoints: Mutex<Vec<Option<Endpoint>>>,
    dice: Mutex<Dice>,
    trace: Arc<Trace>,
    /// The clock of the API server.
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// Results of handshakes: a real API server keeps its connections.
    handshakes: Mutex<BTreeMap<HandshakeKey, Handshake>>,
}

/// The CAs that are trusted, and the address of what is served.
type HandshakeKey = (Vec<u8>, usize);

/// The served configuration, which keeps its address from being used again, and the reason of a refusal.
type Handshake = (Arc<ServerConfig>, Result<(), String>);

/// A replica as the Service sees it.
#[derive(Clone)]
pub struct Endpoint {
    /// The state of its server.
    pub state: Arc<ServerState>,
    /// Returns true while it is ready.
    pub is_ready: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl ReplicaService {
    /// Returns a Service without replicas.
    pub fn new(
        replicas: usize,
        seed: u64,
        trace: Arc<Trace>,
        clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            endpoints: Mutex::new(vec![None; replicas]),
            dice: Mutex::new(Dice(seed ^ 0x5e41)),
            trace,
            clock,
            handshakes: Mutex::default(),
        })
    }

    /// Adds or removes a replica.
    pub fn set(&self, replica: usize, endpoint: Option<Endpoint>) {
        if let Some(slot) = self.endpoints.lock().get_mut(replica) {
            *slot = endpoint;
        }
        self.handshakes.lock().clear();
    }

    /// Returns the replicas that are ready.
    pub fn ready(&self) -> Vec<usize> {
        let endpoints = self.endpoints.lock().clone();
        let ready = |endpoint: &Option<Endpoint>| endpoint.as_ref().is_some_and(|it| (it.is_ready)());
        endpoints.iter().enumerate().filter(|(_, it)| ready(it)).map(|(replica, _)| replica).collect()
    }

    /// Returns the replica's side, if it runs.
    pub fn endpoint(&self, replica: usize) -> Option<Endpoint> {
        self.endpoints.lock().get(replica).cloned().flatten()
    }

    /// Returns the reason why the API server refuses what a replica serves, if it trusts these CAs, PEM.
    pub fn refusal(&self, endpoint: &Endpoint, name: &str, authorities: &[u8]) -> Result<(), String> {
        let Some(tls) = endpoint.state.tls() else { return Err("it has no certificate".to_owned()) };
        let key = (authorities.to_vec(), Arc::as_ptr(&tls) as usize);
        if let Some((_, known)) = self.handshakes.lock().get(&key) {
            return known.clone();
        }
        let result = handshake(Arc::clone(&tls), name, authorities, (self.clock)());
        self.handshakes.lock().insert(key, (tls, result.clone()));
        result
    }
}

impl Webhooks for ReplicaService {
    fn call(&self, call: WebhookCall) -> BoxFuture<'static, Result<Value, CallError>> {
        let service = call.client_config.service.unwrap_or_default();
        let ready = self.ready();
        let chosen = (!ready.is_empty()).then(|| *self.dice.lock().pick(&ready));
        let answer = chosen.and_then(|replica| Some((replica, self.endpoint(replica)?)));
        let answer =
            answer.ok_or_else(|| "no endpoints available for the Service".to_owned()).and_then(|(replica, it)| {
                let name = format!("{}.{}.svc", service.name, service.namespace);
                let answer = self.refusal(&it, &name, &call.client_config.ca_bundle);
                let answer = answer.and_then(|()| answer_review(&it.state, &service.path, &call.review));
                answer.map_err(|reason| format!("replica {replica}: {reason}"))
            });
        if let Err(reason) = &answer {
            self.trace.note(format!("call {}: {reason}", call.entry));
        }
        async move {
            sleep(Duration::from_millis(1)).await;
            answer.map_err(CallError::Connection)
        }
        .boxed()
    }
}

/// Answers a review. Inspections of CRDs and declarations are not simulated: they are allowed.
fn answer_review(state: &ServerState, path: &str, review: &Value) -> Result<Value, String> {
    let phase = match path {
        "/mutate" => Phase::Mutate,
        "/validate" => Phase::Validate,
        _ => {
            let response = json!({"uid": review["request"]["uid"], "allowed": true});
            return Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}));
        }
    };
    let answer = state.answer(phase, review.to_string().as_bytes(), &AnyMemory);
    let answer = answer.ok_or("503: no catalog")?.map_err(|error| format!("400: {error}"))?;
    serde_json::from_slice(&answer).map_err(|error| error.to_string())
}

/// Does a TLS handshake in memory.
fn handshake(server: Arc<ServerConfig>, name: &str, authorities: &[u8], now: SystemTime) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(authorities).filter_map(Result::ok));
    let now = now.duration_since(SystemTime::UNIX_EPOCH).map_err(|error| error.to_string())?;
    let clock = Arc::new(FixedTime(UnixTime::since_unix_epoch(now)));
    let shown = |error: &dyn std::fmt::Display| error.to_string();
    let client = ClientConfig::builder_with_details(Arc::new(default_provider()), clock)
        .with_safe_default_protocol_versions()
        .map_err(|error| shown(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).map_err(|error| shown(&error))?;
    let mut client = ClientConnection::new(Arc::new(client), name).map_err(|error| shown(&error))?;
    let mut server = ServerConnection::new(server).map_err(|error| shown(&error))?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut sent = Vec::new();
        client.write_tls(&mut sent).map_err(|error| shown(&error))?;
        server.read_tls(&mut &*sent).map_err(|error| shown(&error))?;
        server.process_new_packets().map_err(|error| shown(&error))?;
        let mut returned = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut returned).map_err(|error| shown(&error))?;
        }
        let mut unread = &*returned;
        while !unread.is_empty() {
            client.read_tls(&mut unread).map_err(|error| shown(&error))?;
            client.process_new_packets().map_err(|error| shown(&error))?;
        }
        if sent.is_empty() && returned.is_empty() {
            return Err("the handshake does not end".to_owned());
        }
    }
    Ok(())
}

#[derive(Debug)]
struct FixedTime(UnixTime);

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.0)
    }
}

#[derive(Debug)]
struct AnyMemory;

impl Meter for AnyMemory {
    fn charge(&self, _bytes: usize) -> Result<(), Exhausted> {
        Ok(())
    }

    fn release(&self, _bytes: usize) {}
}
