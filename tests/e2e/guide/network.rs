//! The networks of pods, Services and nodes, on loopback: a proxy through which the API server reaches all three, as it does through
//! konnectivity (`--egress-selector-config-file`). An address of these networks is a name for a port of loopback.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixListener, UnixStream};

use crate::support::background::Servers;
use crate::support::process::Workspace;

/// The network of Services. Every Service has the same pods behind it.
const SERVICES: [u8; 3] = [10, 0, 0];

/// More than the head of a `CONNECT` needs.
const LONGEST_HEAD: usize = 8 * 1024;

/// A running proxy. Dropping it ends its connections.
pub(super) struct Network {
    routes: Arc<Mutex<Routes>>,
    /// Other servers on these networks use it, too.
    pub(super) runtime: Servers,
    configuration: PathBuf,
}

#[derive(Default)]
struct Routes {
    /// The port of loopback behind each address.
    ports: BTreeMap<(Ipv4Addr, u16), u16>,
    /// The ports of loopback behind each Service.
    backends: Vec<u16>,
    opened: usize,
}

impl Network {
    /// Starts the proxy, whose socket and configuration are in `folder`.
    pub(super) fn start(folder: &Workspace) -> Self {
        let runtime = Servers::start("network");
        let socket = folder.path().join("egress.sock");
        let configuration = folder.write("egress.json", &egress_through(&socket));
        let routes = Arc::<Mutex<Routes>>::default();
        let listener = {
            let _context = runtime.enter();
            UnixListener::bind(&socket).expect("a socket can be made")
        };
        runtime.spawn(accept(listener, Arc::clone(&routes)));
        Self { routes, runtime, configuration }
    }

    /// Returns the flag with which the API server uses the proxy.
    pub(super) fn flag(&self) -> String {
        format!("--egress-selector-config-file={}", self.configuration.display())
    }

    /// Leads an address to a port of loopback.
    pub(super) fn route(&self, address: (Ipv4Addr, u16), port: u16) {
        self.routes.lock().unwrap().ports.insert(address, port);
    }

    /// Sets the ports of loopback to which new connections to a Service go in turn.
    pub(super) fn set_backends(&self, backends: Vec<u16>) {
        self.routes.lock().unwrap().backends = backends;
    }
}

impl Routes {
    /// Returns the port of loopback for a new connection.
    fn port(&mut self, host: Ipv4Addr, port: u16) -> Option<u16> {
        if host.octets().starts_with(&SERVICES) {
            let turn = self.opened.checked_rem(self.backends.len())?;
            self.opened += 1;
            return self.backends.get(turn).copied();
        }
        self.ports.get(&(host, port)).copied()
    }
}

/// Returns the configuration of an API server that reaches pods, Services and nodes through a socket.
fn egress_through(socket: &Path) -> String {
    let connection = json!({"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": socket}}});
    json!({
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    })
    .to_string()
}

async fn accept(listener: UnixListener, routes: Arc<Mutex<Routes>>) {
    loop {
        let (client, _) = listener.accept().await.expect("the network accepts connections");
        let routes = Arc::clone(&routes);
        tokio::spawn(async move {
            // The API server sees the end of the connection.
            let _ = pass_on(client, &routes).await;
        });
    }
}

/// Reads a `CONNECT`, and copies bytes both ways until both ends are done.
async fn pass_on(mut client: UnixStream, routes: &Mutex<Routes>) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == LONGEST_HEAD {
            return Err(ErrorKind::InvalidData.into());
        }
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split_once(' ')).map_or("", |(target, _)| target);
    let (host, port) = target.rsplit_once(':').unwrap_or_default();
    let address = host.parse().ok().zip(port.parse().ok());
    let Some(port) = address.and_then(|(host, port)| routes.lock().unwrap().port(host, port)) else {
        return client.write_all(b"HTTP/1.1 503 no route to host\r\n\r\n").await;
    };
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    server.set_nodelay(true)?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
