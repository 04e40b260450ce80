use super::*;
use fixtures::wait::{SOON, eventually};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs::{File, read_to_string, remove_file, write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;

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

/// Something at the path of a file.
type Obstacle = (&'static str, fn(&Path));

#[test]
fn a_file_of_a_service_account_that_has_no_end_is_an_error_before_kube_reads_it() {
    let account = tempfile::tempdir().unwrap();
    assert!(bounded(account.path()).is_ok(), "kube says what is missing");
    for name in ["ca.crt", "namespace"] {
        let path = account.path().join(name);
        let obstacles: [Obstacle; 3] = [
            ("a device without end", |path| symlink("/dev/zero", path).unwrap()),
            ("a named pipe", |path| mkfifoat(CWD, path, Mode::RUSR).unwrap()),
            ("a tebibyte", |path| File::create(path).unwrap().set_len(1 << 40).unwrap()),
        ];
        for (what, put) in obstacles {
            put(&path);
            let says = fault::no_pod(&bounded(account.path()).expect_err(what));
            assert!(says.contains("it is not a regular file") || says.contains("it has more than"), "{what}: {says}");
            remove_file(&path).unwrap();
        }
        write(&path, "x").unwrap();
        assert!(bounded(account.path()).is_ok());
    }
}
