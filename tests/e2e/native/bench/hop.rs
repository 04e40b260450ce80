//! A hop like that of a Service: what a client sends arrives [`DELAY`] later.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The time that a hop adds to a round trip.
const DELAY: Duration = Duration::from_millis(1);

/// Starts a hop to `port` of 127.0.0.1, which lasts as long as the process. Returns its own port.
pub(super) fn start(port: u16) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
    let own = listener.local_addr().expect("a listener has an address").port();
    thread::spawn(move || {
        for client in listener.incoming() {
            client.and_then(|client| pass_on(client, port)).expect("the hop connects");
        }
    });
    own
}

fn pass_on(client: TcpStream, port: u16) -> io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    copy(client.try_clone()?, server.try_clone()?, DELAY);
    copy(server, client, Duration::ZERO);
    Ok(())
}

/// Forwards each part after a delay, until one side ends.
fn copy(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (parts, delayed) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if parts.send((Instant::now() + delay, buffer[..length].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, part) in delayed {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&part).is_err() {
                break;
            }
        }
        // The other direction ends by it.
        let _ = to.shutdown(Shutdown::Both);
    });
}
