//! An API server that is behind a proxy.

use super::{ApiServer, WIDGETS, every_fifth, invalid, page};
use serde_json::json;
use std::io::{BufRead, BufReader, Write, copy};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A name that nobody else resolves.
const BEHIND: &str = "cluster.invalid:6443";

/// A proxy on loopback that leads everywhere to `target`; it ends with the tests. Gives its URL, and what it was asked to connect to.
fn proxy(target: SocketAddr) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&asked);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, log) = (client.unwrap(), Arc::clone(&log));
            thread::spawn(move || tunnel(client, target, &log));
        }
    });
    (url, asked)
}

/// Reads the head of a request to connect, and passes bytes both ways.
fn tunnel(mut client: TcpStream, target: SocketAddr, log: &Mutex<Vec<String>>) {
    // Nothing follows the head before it is answered.
    let mut head = BufReader::new(client.try_clone().unwrap()).lines().map_while(Result::ok);
    log.lock().unwrap().push(head.next().unwrap_or_default());
    while head.next().is_some_and(|line| !line.is_empty()) {}
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let server = TcpStream::connect(target).unwrap();
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let up = thread::spawn(move || {
        copy(&mut from, &mut to).ok();
        to.shutdown(Shutdown::Write).ok();
    });
    copy(&mut &server, &mut client).ok();
    client.shutdown(Shutdown::Write).ok();
    up.join().unwrap();
}

/// The proxy of a kubeconfig is about its cluster alone, wherever that is, and comes before that of the environment.
#[test]
fn a_proxy_is_that_of_the_kubeconfig_or_of_the_environment_which_is_not_for_this_machine() {
    let server = ApiServer::start(|asked| asked.is(WIDGETS).then(|| page(asked, 20)));
    let (url, asked) = proxy(server.address());
    let [here, localhost] = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{}", server.address().port()));
    let elsewhere = "http://elsewhere.invalid:3128";
    for (host, in_kubeconfig, variable, through) in [
        (BEHIND, None, ("HTTPS_PROXY", &*url), true),
        (BEHIND, None, ("https_proxy", &url), true),
        (&here, None, ("HTTPS_PROXY", &url), false),
        (&localhost, None, ("HTTPS_PROXY", &url), false),
        (BEHIND, Some(&url), ("HTTPS_PROXY", elsewhere), true),
        (&here, Some(&url), ("HTTPS_PROXY", elsewhere), true),
    ] {
        server.folder.kubeconfig(&json!({"server": format!("http://{host}"), "proxy-url": in_kubeconfig}));
        let mut command = server.command(&["-A", "-o", "json"]);
        let run = super::run(command.env(variable.0, variable.1), b"").code(1);
        assert_eq!(invalid(&run), every_fifth(20), "{host}");
        let requests: Vec<String> = asked.lock().unwrap().drain(..).collect();
        assert_eq!(!requests.is_empty(), through, "{host}: {requests:?}");
        assert!(requests.iter().all(|it| *it == format!("CONNECT {host} HTTP/1.1")), "{requests:?}");
    }
    server.folder.kubeconfig(&json!({"server": format!("http://{BEHIND}")}));
    let mut command = server.command(&["-A"]);
    super::run(command.env("HTTPS_PROXY", &url).env("NO_PROXY", "cluster.invalid"), b"").code(2);
    assert_eq!(*asked.lock().unwrap(), [""; 0], "it is not for what it is said not to be for");
}
