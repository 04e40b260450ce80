//! A TLS connection to the webhook without an HTTP client, for behaviour that a client does not show.

use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::webhook::Webhook;

/// Longer than every time limit of the webhook but the one for an idle connection.
const LIMIT: Duration = Duration::from_secs(30);

/// A connection over which requests are written byte by byte.
pub(crate) struct Connection {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
}

/// The head of an answer.
#[derive(Debug)]
pub(crate) struct RawAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
}

impl Connection {
    /// Connects and shakes hands.
    pub(crate) fn open(webhook: &Webhook) -> Self {
        Self::try_open(webhook.port(), webhook.ca(), LIMIT).expect("the webhook accepts connections")
    }

    /// Connects like a client that may be turned away. No step takes longer than `limit`.
    pub(crate) fn try_open(port: u16, ca: &str, limit: Duration) -> io::Result<Self> {
        Self::try_open_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), "127.0.0.1", ca, limit)
    }

    /// Connects to a server at another address, whose certificate has this name.
    pub(crate) fn try_open_at(address: SocketAddr, name: &str, ca: &str, limit: Duration) -> io::Result<Self> {
        let tcp = TcpStream::connect(address)?;
        tcp.set_read_timeout(Some(limit))?;
        tcp.set_write_timeout(Some(limit))?;
        let mut stream = StreamOwned::new(client(name, ca), tcp);
        stream.flush()?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Leaves the webhook little room for answers that are not read.
    pub(crate) fn narrow(&self) {
        let socket = &self.stream.get_ref().sock;
        rustix::net::sockopt::set_socket_recv_buffer_size(socket, 64 * 1024).expect("a buffer has a size");
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(bytes)?;
        stream.flush()
    }

    /// Writes a whole POST of JSON.
    pub(crate) fn post(&mut self, path: &str, body: &str) {
        self.try_post(path, body).expect("a request can be written");
    }

    pub(crate) fn try_post(&mut self, path: &str, body: &str) -> io::Result<()> {
        self.write(format!("{}{body}", Self::head(path, body.len())).as_bytes())
    }

    /// The head of a POST whose body has `length` bytes.
    pub(crate) fn head(path: &str, length: usize) -> String {
        format!(
            "POST {path} HTTP/1.1\r\nhost: webhook\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )
    }

    /// Reads an answer with a `content-length`; an error when the connection ends before or within it.
    pub(crate) fn answer(&mut self) -> io::Result<RawAnswer> {
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("not a status line: `{status_line}`")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let length =
            headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(RawAnswer { status, headers })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

/// Returns the certificate that a server on loopback shows to a client that asks for `name` and trusts the CAs in `bundle` (PEM), or
/// the reason why such a client refuses the server.
pub(crate) fn served(port: u16, name: &str, bundle: &str) -> Result<CertificateDer<'static>, String> {
    served_at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), name, bundle)
}

/// The same of a server at another address.
pub(crate) fn served_at(address: SocketAddr, name: &str, bundle: &str) -> Result<CertificateDer<'static>, String> {
    let mut client = client(name, bundle);
    let mut stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    while client.is_handshaking() {
        client.complete_io(&mut stream).map_err(|error| error.to_string())?;
    }
    Ok(client.peer_certificates().unwrap()[0].clone().into_owned())
}

impl RawAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

/// A client of the server `name`, whose certificate one of `authorities` (PEM) has signed.
fn client(name: &str, authorities: &str) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(authority.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_owned()).unwrap()).unwrap()
}
