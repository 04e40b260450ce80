//! A proxy between webhook and API server that injects faults.
//!
//! The webhook speaks plain HTTP to it, and it speaks TLS to the API server. A [`Fault`] is set and lifted while the webhook
//! runs, and each request that it hits is counted, so that a test waits for the count. As with a real network, an
//! answer that came to a halt, or dripped, goes on like that when the fault is lifted.

mod answers;
mod passage;

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use futures::stream;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::CONTENT_LENGTH;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use crate::support::background::Servers;
use crate::support::control_plane::ControlPlane;
use fixtures::api_server::DEFINITIONS;
use passage::Passage;

/// The answer to the requests that a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// None: the connection was accepted, and is silent.
    Silence,
    /// The headers, and nothing more.
    HeadersOnly,
    /// A byte in each second.
    Drip,
    /// A TCP reset.
    Reset,
    /// To the first request: a list of one object, or an event, that is all but endless.
    Endless,
    /// The first half, as if it were all of it.
    Truncated,
    /// An error with `Retry-After`.
    Status(u16),
    /// A page for browsers, with status 200.
    Page,
    /// A watch with a bookmark in each second, always of the same `resourceVersion`, and never an event.
    Stale,
    /// The request reaches the API server with the second word, which is as long, in place of the first.
    Misspelt(&'static str, &'static str),
}

/// The requests that a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requests {
    All,
    /// Lists of CRDs.
    Definitions,
    Watches,
    Documents,
    /// Writes of objects whose names begin like this.
    Writes(&'static str),
}

/// A fault of the API server.
#[derive(Debug, Clone, Copy)]
struct Fault {
    requests: Requests,
    effect: Effect,
}

/// A running proxy. Dropping it ends its connections.
pub(crate) struct Proxy {
    kubeconfig: PathBuf,
    shared: Arc<Shared>,
    _runtime: Servers,
}

struct Shared {
    /// A client of the API server with the rights of the webhook.
    upstream: kube::Client,
    fault: watch::Sender<Option<Fault>>,
    /// The paths of the requests that the present fault has hit.
    hits: Mutex<Vec<String>>,
    /// The answers that were read to the end, although they are all but endless.
    swallowed: AtomicUsize,
}

/// A request.
#[derive(Debug)]
struct Asked {
    method: Method,
    path: String,
    query: String,
    /// The socket that it came by.
    socket: Arc<OwnedFd>,
}

impl Proxy {
    /// Starts it in front of an API server, with no fault.
    pub(crate) fn start(control_plane: &ControlPlane) -> Self {
        let runtime = Servers::start("proxy");
        let path = control_plane.webhook_kubeconfig();
        let (listener, upstream) = runtime.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has a free port");
            let file = Kubeconfig::read_from(&path).expect("the kubeconfig can be read");
            let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
            let mut config = config.expect("the kubeconfig can be used");
            config.proxy_url = None;
            (listener, kube::Client::try_from(config).expect("a client can be built"))
        });
        let port = listener.local_addr().expect("a listener has an address").port();
        let kubeconfig = path.with_file_name(format!("proxy-{port}.kubeconfig"));
        fs::write(&kubeconfig, kubeconfig_of(&path, port)).expect("a kubeconfig can be written");
        let (fault, hits, swallowed) = (watch::Sender::new(None), Mutex::default(), AtomicUsize::new(0));
        let shared = Arc::new(Shared { upstream, fault, hits, swallowed });
        runtime.spawn(accept(listener, Arc::clone(&shared)));
        Self { kubeconfig, shared, _runtime: runtime }
    }

    /// Returns the kubeconfig that leads to it, with the rights of the webhook.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone()
    }

    /// Injects a fault from now on, and into the watches that are open. If it hits lists, the watch expires.
    pub(crate) fn inject(&self, requests: Requests, effect: Effect) {
        self.shared.hits.lock().unwrap().clear();
        self.shared.fault.send_replace(Some(Fault { requests, effect }));
    }

    pub(crate) fn lift(&self) {
        self.shared.fault.send_replace(None);
    }

    /// Returns how many requests the last fault has hit whose path begins like this.
    pub(crate) fn hits(&self, path: &str) -> usize {
        self.shared.hits.lock().unwrap().iter().filter(|hit| hit.starts_with(path)).count()
    }

    /// Returns the number of endless answers that the webhook has read to their end.
    pub(crate) fn swallowed(&self) -> usize {
        self.shared.swallowed.load(Ordering::Relaxed)
    }
}

impl Asked {
    fn of(request: &Request<Incoming>, socket: Arc<OwnedFd>) -> Self {
        let (method, uri) = (request.method().clone(), request.uri());
        Self { method, path: uri.path().to_owned(), query: uri.query().unwrap_or_default().to_owned(), socket }
    }

    fn is_watch(&self) -> bool {
        self.parameter("watch").is_some()
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.query.split('&').find_map(|parameter| parameter.strip_prefix(name)?.strip_prefix('='))
    }

    fn is_one_of(&self, requests: Requests) -> bool {
        match requests {
            Requests::All => true,
            Requests::Definitions => !self.is_watch() && self.path == DEFINITIONS,
            Requests::Watches => self.is_watch(),
            Requests::Documents => self.path.starts_with("/openapi"),
            Requests::Writes(name) => {
                self.method != Method::GET && self.path.split('/').any(|part| part.starts_with(name))
            }
        }
    }

    /// Ends the connection by a reset instead of in order, as soon as it is closed.
    fn reset(&self) -> io::Error {
        let _ = rustix::net::sockopt::set_socket_linger(&*self.socket, Some(Duration::ZERO));
        io::ErrorKind::ConnectionReset.into()
    }
}

impl Shared {
    /// Returns what happens to a request, and counts it.
    fn hit(&self, asked: &Asked) -> Option<Effect> {
        let mut hits = self.hits.lock().unwrap();
        let fault = (*self.fault.borrow()).filter(|fault| asked.is_one_of(fault.requests))?;
        if fault.effect == Effect::Endless && !hits.is_empty() {
            return None;
        }
        hits.push(asked.path.clone());
        Some(fault.effect)
    }

    async fn answer(self: Arc<Self>, asked: Asked, request: Request<Incoming>) -> io::Result<Response<Body>> {
        let faults = self.fault.subscribe();
        let effect = self.hit(&asked);
        match effect {
            Some(Effect::Silence) => return std::future::pending().await,
            Some(Effect::Reset) => return Err(asked.reset()),
            Some(Effect::Status(code)) => return Ok(answers::failure(code)),
            Some(Effect::Page) => return Ok(answers::page()),
            Some(Effect::Endless) => return Ok(answers::endless(self)),
            None
            | Some(Effect::HeadersOnly | Effect::Drip | Effect::Truncated | Effect::Stale | Effect::Misspelt(..)) => {}
        }
        let (head, body) = request.into_parts();
        let mut body = body.collect().await.map_err(io::Error::other)?.to_bytes().to_vec();
        if let Some(Effect::Misspelt(word, other)) = effect {
            body = String::from_utf8(body).map_err(io::Error::other)?.replace(word, other).into_bytes();
        }
        let answered = self.upstream.send(Request::from_parts(head, body.into())).await;
        let (mut head, body) = answered.map_err(io::Error::other)?.into_parts();
        if effect == Some(Effect::Truncated) {
            head.headers.remove(CONTENT_LENGTH);
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(Passage { shared: self, asked, faults, sender }.run(Body::new(body), effect));
        let chunks = stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)));
        Ok(Response::from_parts(head, Body::from_stream(chunks)))
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let (stream, _) = listener.accept().await.expect("the proxy accepts connections");
        tokio::spawn(serve(stream, Arc::clone(&shared)));
    }
}

/// Answers the requests of a connection.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // The same socket twice: what a reset does must be set when the connection is over.
    let stream = stream.into_std().expect("a stream has a socket");
    let socket = Arc::new(OwnedFd::from(stream.try_clone().expect("a socket can be named twice")));
    let stream = TcpStream::from_std(stream).expect("a socket is a stream");
    let service = service_fn(move |request| {
        let asked = Asked::of(&request, Arc::clone(&socket));
        Arc::clone(&shared).answer(asked, request)
    });
    // An error is what the webhook has seen, too.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Returns a kubeconfig that leads to the proxy instead.
fn kubeconfig_of(path: &Path, port: u16) -> String {
    let text = fs::read_to_string(path).expect("the kubeconfig can be read");
    let mut config: Value = serde_json::from_str(&text).expect("the kubeconfig is JSON");
    config["clusters"][0]["cluster"] = json!({"server": format!("http://127.0.0.1:{port}")});
    config.to_string()
}
