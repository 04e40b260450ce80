//! A stand-in for a Service: one address on loopback in front of the ready replicas.
//!
//! This control plane has no kubelet, no endpoint controller and no kube-proxy. The balancer plays all three of them
//! in this process: it asks each replica's `/readyz` every [`PERIOD`]. The result takes effect [`LAG`] later,
//! and until then new connections still go to a replica that is about to leave. A drain exists for that
//! delay. As with kube-proxy, existing connections stay with their replica, and a connection that its
//! replica refuses is cut off at once. Unlike kube-proxy it terminates connections and opens others, which makes a race
//! longer, and never shorter.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::support::background::Servers;

/// The period of probes. A kubelet under the shipped manifests probes every two seconds.
const PERIOD: Duration = Duration::from_millis(500);
/// A kubelet's default.
const PROBE_LIMIT: Duration = Duration::from_secs(1);
/// The time from a probe's result to its effect, by way of a Pod's status, an `EndpointSlice` and the rules of a node.
pub(crate) const LAG: Duration = Duration::from_millis(1500);

/// The ports of 127.0.0.1 on which a replica listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backend {
    pub(crate) port: u16,
    pub(crate) ops_port: u16,
}

/// A running balancer. Dropping it ends its connections.
pub(crate) struct Balancer {
    port: u16,
    rotation: Arc<Rotation>,
    runtime: Servers,
}

/// The replicas that new connections go to.
#[derive(Default)]
struct Rotation {
    backends: Mutex<Vec<Backend>>,
    /// The number of connections so far.
    opened: AtomicUsize,
}

impl Balancer {
    /// Starts it, with no replica.
    pub(crate) fn start() -> Self {
        let runtime = Servers::start("balancer");
        let rotation = Arc::<Rotation>::default();
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("loopback has a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        runtime.spawn(accept(listener, Arc::clone(&rotation)));
        Self { port, rotation, runtime }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Adds a replica, which is in rotation while probes find it ready.
    pub(crate) fn add(&self, backend: Backend) {
        self.runtime.spawn(watch(backend, Arc::clone(&self.rotation)));
    }

    /// Returns true if new connections go to a replica on `port` of 127.0.0.1.
    pub(crate) fn has(&self, port: u16) -> bool {
        self.rotation.backends.lock().unwrap().iter().any(|backend| backend.port == port)
    }

    /// Returns the number of connections so far.
    pub(crate) fn opened(&self) -> usize {
        self.rotation.opened.load(Ordering::Relaxed)
    }
}

impl Rotation {
    fn set(&self, backend: Backend, ready: bool) {
        let mut backends = self.backends.lock().unwrap();
        backends.retain(|other| *other != backend);
        if ready {
            backends.push(backend);
        }
    }

    /// Each replica in its turn.
    fn next(&self) -> Option<Backend> {
        let backends = self.backends.lock().unwrap();
        let turn = self.opened.fetch_add(1, Ordering::Relaxed).checked_rem(backends.len())?;
        backends.get(turn).copied()
    }
}

/// Probes a replica. A result counts after [`LAG`].
async fn watch(backend: Backend, rotation: Arc<Rotation>) {
    let mut last = false;
    let mut ticks = tokio::time::interval(PERIOD);
    loop {
        ticks.tick().await;
        let ready = matches!(tokio::time::timeout(PROBE_LIMIT, is_ready(backend)).await, Ok(Ok(true)));
        if ready != last {
            last = ready;
            let rotation = Arc::clone(&rotation);
            tokio::spawn(async move {
                tokio::time::sleep(LAG).await;
                rotation.set(backend, ready);
            });
        }
    }
}

async fn is_ready(backend: Backend) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, backend.ops_port)).await?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer.starts_with(b"HTTP/1.1 200 "))
}

async fn accept(listener: TcpListener, rotation: Arc<Rotation>) {
    loop {
        let (client, _) = listener.accept().await.expect("the balancer accepts connections");
        tokio::spawn(pass_on(client, rotation.next()));
    }
}

/// Copies bytes both ways until both ends are done. Cuts the other side off if one is cut off.
async fn pass_on(mut client: TcpStream, backend: Option<Backend>) {
    let passed = async {
        let backend = backend.ok_or(std::io::ErrorKind::ConnectionRefused)?;
        let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, backend.port)).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let passed = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        if passed.is_err() {
            server.set_zero_linger()?;
        }
        passed
    };
    if passed.await.is_err() {
        // The client must not take it for an orderly end.
        let _ = client.set_zero_linger();
    }
}
