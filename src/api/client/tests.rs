use super::*;
use fixtures::wait::{SOON, eventually};
use std::fs::read_to_string;
use std::net::TcpListener;

/// The state of an established connection, and its timer while it is idle, as the kernel prints them.
const ESTABLISHED: &str = "01";
const KEEP_ALIVE: &str = "02";

/// Ticks of the kernel's timers in a second.
const HERTZ: u64 = 100;

#[tokio::test(flavor = "multi_thread")]
async fn each_way_to_the_api_server_is_kept_alive() {
    for proxy in [None, Some("http"), Some("https"), Some("socks5")] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = Config::new(format!("http://{address}").parse().unwrap());
        config.proxy_url = proxy.map(|scheme| format!("{scheme}://{address}").parse().unwrap());
        let client = connected(&config, ChangingTokens::default(), &ServerClock::default()).unwrap();
        let asked = tokio::spawn(async move { client.apiserver_version().await });
        let remote = format!("0100007F:{:04X}", address.port());
        let is_kept_alive = || {
            read_to_string("/proc/self/net/tcp").unwrap().lines().skip(1).any(|line| {
                let columns: Vec<_> = line.split_whitespace().collect();
                let (timer, ticks) = columns[5].split_once(':').unwrap();
                columns[2..4] == [&*remote, ESTABLISHED]
                    && timer == KEEP_ALIVE
                    && u64::from_str_radix(ticks, 16).unwrap() <= IDLE.as_secs() * HERTZ
            })
        };
        assert!(eventually(SOON, is_kept_alive), "{proxy:?}");
        asked.abort();
    }
}
