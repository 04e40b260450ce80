//! Reloading goes on after a special file or an endless one was in the place of a certificate's file.

use super::{EXPIRY, Mounted, authority, client, failed_to_reload, now, serving};
use crate::webhook::wire::{Request, Running, Wire, review, trusting, until};
use fixtures::certificates::TestAuthority;
use futures::FutureExt;
use kube_unions_webhook::webhook::{Announcer, ClientPolicy};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

const NOT_REGULAR: &str = "it is not a regular file";

/// Something at the path of a file, and what is said of it.
type Obstacle = (&'static str, fn(&Path), &'static str);

/// Obstacles that cannot be read as a file.
const OBSTACLES: [Obstacle; 13] = [
    ("a named pipe", named_pipe, NOT_REGULAR),
    ("a named pipe whose writer writes nothing", silent_pipe, NOT_REGULAR),
    (
        "a link to a named pipe",
        |path| {
            named_pipe(&path.with_extension("pipe"));
            symlink(path.with_extension("pipe"), path).unwrap();
        },
        NOT_REGULAR,
    ),
    ("a device without end", |path| symlink("/dev/zero", path).unwrap(), NOT_REGULAR),
    ("a device that is empty", |path| symlink("/dev/null", path).unwrap(), NOT_REGULAR),
    ("a terminal", |path| symlink("/dev/ptmx", path).unwrap(), NOT_REGULAR),
    ("a socket", |path| drop(UnixListener::bind(path).unwrap()), "No such device or address"),
    ("a directory", |path| fs::create_dir(path).unwrap(), NOT_REGULAR),
    ("a link to a directory", |path| symlink("/", path).unwrap(), NOT_REGULAR),
    ("one byte too many", |path| long_file(path, (1 << 20) + 1), "it has more than 1048576 bytes"),
    ("a tebibyte", |path| long_file(path, 1 << 40), "it has more than 1048576 bytes"),
    ("a link to itself", |path| symlink(path.file_name().unwrap(), path).unwrap(), "Too many levels of symbolic links"),
    ("no permission", unreadable, ""),
];

fn named_pipe(path: &Path) {
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
}

fn silent_pipe(path: &Path) {
    named_pipe(path);
    // It stays open until the tests end.
    std::mem::forget(OpenOptions::new().read(true).write(true).open(path).unwrap());
}

fn long_file(path: &Path, length: u64) {
    File::create(path).unwrap().set_len(length).unwrap();
}

/// Writes a file that only root can read, and that is no certificate.
fn unreadable(path: &Path) {
    fs::write(path, "nonsense").unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
}

/// Writes a pair that expires `seconds` from now, and waits until it is served.
async fn recovers(server: &Running, mounted: &Mounted, authority: &TestAuthority, seconds: u32) {
    mounted.write(&serving(authority, seconds.into()), authority.pem());
    // A pair from before may be served for a moment, if it was read just before the swap and its CAs just after.
    let expires = f64::from(u32::try_from(now()).unwrap() + seconds);
    until(async || server.metric(EXPIRY).await.is_some_and(|it| (it - expires).abs() < 100.0)).await;
    until(async || server.ops("/readyz?verbose").await.body.contains("[+]certificate ok\n")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_takes_the_place_of_a_file_the_next_good_pair_is_served() {
    let authority = authority();
    let announcer: Announcer = Arc::new(|_| async {}.boxed());
    let mounted = Mounted::new(&serving(&authority, 1_000), authority.pem());
    let server = mounted.serve(&authority, Some(announcer)).await;
    server.until_ready().await;
    let mut seconds = 1_000;
    let empty: Obstacle = ("an empty file", |path| drop(File::create(path).unwrap()), "");
    let dangling: Obstacle = ("a dangling link", |path| symlink("nowhere", path).unwrap(), "No such file");
    let missing: Obstacle = ("nothing", |_| {}, "No such file");
    for name in ["tls.crt", "tls.key", "ca.crt"] {
        // A `ca.crt` may be missing.
        let more = [empty, dangling, missing].into_iter().filter(|_| name != "ca.crt");
        for (what, put, says) in OBSTACLES.into_iter().chain(more) {
            let before = server.metric(EXPIRY).await;
            // The rest is a good pair, so that the obstacle alone is at fault.
            let (chain, key) = serving(&authority, 500_000);
            mounted.fill(|version| {
                let files = [("tls.crt", &*chain), ("tls.key", &*key), ("ca.crt", authority.pem())];
                for (file, text) in files.into_iter().filter(|(file, _)| *file != name) {
                    fs::write(version.join(file), text).unwrap();
                }
                put(&version.join(name));
            });
            failed_to_reload(&server).await;
            let checks = server.ops("/readyz?verbose").await;
            assert_eq!(checks.code, 200, "{what} as {name}: {checks:?}");
            let said = checks.body.lines().find(|line| line.starts_with("[+]certificate ok: not reloaded: "));
            let said = said.unwrap_or_else(|| panic!("{what} as {name}: {checks:?}"));
            assert!(said.contains(name) && said.contains(says), "{what} as {name}: {said}");
            assert_eq!(server.metric(EXPIRY).await, before, "{what} as {name}");
            assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200, "{what} as {name}");
            seconds += 1_000;
            recovers(&server, &mounted, &authority, seconds).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_become_files_and_directories_again() {
    let authority = authority();
    let mounted = Mounted::new(&serving(&authority, 1_000), "");
    let server = mounted.serve(&authority, None).await;
    server.until_ready().await;
    let (root, data) = (mounted.0.path().to_owned(), mounted.0.path().join("..data"));
    let away = root.with_extension("away");

    // The link to the files of a mounted Secret.
    fs::remove_file(&data).unwrap();
    failed_to_reload(&server).await;
    fs::write(&data, "").unwrap();
    failed_to_reload(&server).await;
    recovers(&server, &mounted, &authority, 2_000).await;
    fs::remove_file(&data).unwrap();
    named_pipe(&data);
    failed_to_reload(&server).await;
    recovers(&server, &mounted, &authority, 3_000).await;

    // The directory itself.
    let obstacles: [fn(&Path); 3] =
        [|path| fs::write(path, "").unwrap(), named_pipe, |path| symlink("/dev/zero", path).unwrap()];
    for put in obstacles {
        fs::rename(&root, &away).unwrap();
        put(&root);
        failed_to_reload(&server).await;
        fs::remove_file(&root).unwrap();
        failed_to_reload(&server).await;
        fs::rename(&away, &root).unwrap();
    }
    recovers(&server, &mounted, &authority, 4_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_of_many_swaps_is_served_whatever_the_others_were() {
    let authority = authority();
    let mounted = Mounted::new(&serving(&authority, 1_000), "");
    let server = mounted.serve(&authority, None).await;
    server.until_ready().await;
    let pairs = [serving(&authority, 2_000), serving(&authority, 3_000)];
    for round in 0..10 {
        for (_, put, _) in OBSTACLES {
            mounted.fill(|version| {
                put(&version.join("tls.crt"));
                fs::write(version.join("tls.key"), &pairs[0].1).unwrap();
            });
            mounted.write(&pairs[round % 2], "");
        }
        assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200, "round {round}");
    }
    recovers(&server, &mounted, &authority, 4_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ca_of_clients_is_read_as_carefully() {
    let (old, new) = (authority(), authority());
    let directory = tempfile::tempdir().unwrap();
    let ca_file = directory.path().join("clients.crt");
    fs::write(&ca_file, old.pem()).unwrap();
    let mounted = Mounted::new(&serving(&old, 1_000), "");
    let clients = ClientPolicy { ca_file: ca_file.clone(), names: Vec::new() };
    let server = mounted.serve_with(&old, |config| config.clients = Some(clients)).await;
    server.until_ready().await;
    let answers = async |authority: &TestAuthority| {
        let identity = client(authority, "kube-apiserver", "somewhere.example");
        let mut wire = Wire::tls(server.addresses.webhook, trusting(old.pem(), Some(&identity))).await.ok()?;
        wire.try_exchange(&Request::post("/mutate", review("u"))).await
    };
    for (row, (what, put, says)) in OBSTACLES.into_iter().enumerate() {
        let (before, next) = if row % 2 == 0 { (&old, &new) } else { (&new, &old) };
        fs::remove_file(&ca_file).unwrap();
        put(&ca_file);
        failed_to_reload(&server).await;
        let checks = server.ops("/readyz?verbose").await.body;
        assert!(checks.contains("[+]certificate ok: not reloaded: ") && checks.contains(says), "{what}: {checks}");
        assert_eq!(answers(before).await.map(|it| it.code), Some(200), "{what}");
        if ca_file.is_dir() && !ca_file.is_symlink() {
            fs::remove_dir(&ca_file).unwrap();
        } else {
            fs::remove_file(&ca_file).unwrap();
        }
        fs::write(&ca_file, next.pem()).unwrap();
        until(async || answers(next).await.is_some_and(|it| it.code == 200)).await;
    }
}
