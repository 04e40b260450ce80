//! The serving certificate: its reload, its expiry, and the verification of clients.

use super::wire::{Request, Running, Wire, review, trusting, until};
use fixtures::certificates::TestAuthority;
use futures::FutureExt;
use kube_unions::authority::{CertificatePair, ServingCertificate};
use kube_unions::webhook::{Announcer, CertificateSource, ClientPolicy, Config};
use kube_unions_core::admission;
use rcgen::{DnType, ExtendedKeyUsagePurpose};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot, watch};

fn authority() -> TestAuthority {
    TestAuthority::new("test CA")
}

/// Signs a serving certificate that expires `seconds` after the current whole second.
fn serving(authority: &TestAuthority, seconds: i64) -> (String, String) {
    authority.sign(&["localhost"], |params| {
        params.not_before = (SystemTime::now() - Duration::from_hours(48)).into();
        let expires = i64::try_from(now()).unwrap() + seconds;
        params.not_after = (UNIX_EPOCH + Duration::from_secs(u64::try_from(expires).unwrap())).into();
    })
}

/// Signs a client certificate with a common name and an alternative name.
fn client(authority: &TestAuthority, name: &str, alternative: &str) -> (String, String) {
    authority.sign(&[alternative], |params| {
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A directory with a serving certificate, and the file of its CA.
struct Mounted {
    directory: tempfile::TempDir,
    ca_file: PathBuf,
}

impl Mounted {
    fn new(authority: &TestAuthority, pair: &(String, String)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ca_file = directory.path().join("test-ca.crt");
        fs::write(&ca_file, authority.pem()).unwrap();
        let this = Self { directory, ca_file };
        this.write(pair);
        this
    }

    fn write(&self, (chain, key): &(String, String)) {
        fs::write(self.path().join("tls.crt"), chain).unwrap();
        fs::write(self.path().join("tls.key"), key).unwrap();
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    async fn serve(&self) -> Running {
        self.serve_with(None).await
    }

    async fn serve_with(&self, announcer: Option<Announcer>) -> Running {
        let change = |config: &mut Config| {
            config.certificate = CertificateSource::Directory(self.path().to_owned());
            config.certificate_poll = Duration::from_millis(5);
            config.announcer = announcer;
        };
        let mut server = Running::without_catalog(change, Arc::new(admission::review_within)).await;
        server.tls = trusting(&self.ca_file, None);
        server.catalogs.send_replace(Some(Arc::default()));
        server
    }
}

const EXPIRY: &str = "kube_unions_certificate_expiry_timestamp_seconds";

/// Waits for a failed reload that began after this call.
async fn failed_to_reload(server: &Running) {
    let failures = "kube_unions_certificate_reload_failures_total";
    let before = server.metric(failures).await.unwrap();
    until(async || server.metric(failures).await.unwrap() > before + 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pair_is_served_without_a_restart_and_a_broken_one_is_not() {
    let authority = authority();
    let (first, second) = (serving(&authority, 5_000), serving(&authority, 6_000));
    let mounted = Mounted::new(&authority, &first);
    let server = mounted.serve().await;
    server.until_ready().await;
    let ends = server.metric(EXPIRY).await.unwrap();
    let mut kept = server.connect().await;

    let broken = [
        // The previous pair's key: writers replace one file after the other.
        ("no PEM", ("nonsense".to_owned(), first.1.clone())),
        ("a key that is not the chain's", (second.0.clone(), first.1.clone())),
        ("half a key", (second.0.clone(), second.1[..80].to_owned())),
        ("nothing", (String::new(), String::new())),
    ];
    for (what, pair) in broken {
        mounted.write(&pair);
        failed_to_reload(&server).await;
        assert_eq!(server.metric(EXPIRY).await, Some(ends), "{what}");
        assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200, "{what}");
    }
    fs::remove_file(mounted.path().join("tls.key")).unwrap();
    failed_to_reload(&server).await;
    assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200);

    mounted.write(&second);
    until(async || server.metric(EXPIRY).await.is_some_and(|it| it > ends + 900.0)).await;
    assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200);
    assert_eq!(kept.exchange(&Request::post("/mutate", review("u"))).await.code, 200, "no connection is dropped");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_certificate_makes_the_webhook_unready() {
    let authority = authority();
    let mounted = Mounted::new(&authority, &serving(&authority, -60));
    let server = mounted.serve().await;
    until(async || server.ops("/readyz").await.body.contains("[-]certificate failed: expired\n")).await;
    mounted.write(&serving(&authority, 60));
    server.until_ready().await;
}

/// A directory as a kubelet mounts a Secret: the files are links through `..data`, a link that an update replaces.
struct Projected {
    folder: tempfile::TempDir,
}

impl Projected {
    fn new(files: &[(&str, String)]) -> Self {
        let this = Self { folder: tempfile::tempdir().unwrap() };
        this.swap("first", files);
        for (name, _) in files {
            std::os::unix::fs::symlink(format!("..data/{name}"), this.folder.path().join(name)).unwrap();
        }
        this
    }

    fn swap(&self, version: &str, files: &[(&str, String)]) {
        let folder = self.folder.path();
        fs::create_dir(folder.join(version)).unwrap();
        for (name, text) in files {
            fs::write(folder.join(version).join(name), text).unwrap();
        }
        std::os::unix::fs::symlink(version, folder.join("..data_tmp")).unwrap();
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
    }
}

/// Returns an announcer and its calls. A call resolves when the test sends to it.
fn announcer() -> (Announcer, mpsc::UnboundedReceiver<(String, oneshot::Sender<()>)>) {
    let (sender, calls) = mpsc::unbounded_channel();
    let announcer: Announcer = Arc::new(move |authorities| {
        let (held, holds) = oneshot::channel();
        sender.send((authorities, held)).unwrap();
        async { holds.await.unwrap_or_default() }.boxed()
    });
    (announcer, calls)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_ca_is_announced_before_its_certificate_is_served() {
    let (old, new) = (authority(), authority());
    let (first, second) = (serving(&old, 5_000), serving(&new, 6_000));
    let files = |authority: &TestAuthority, (chain, key): &(String, String)| {
        [("tls.crt", chain.clone()), ("tls.key", key.clone()), ("ca.crt", authority.pem().to_owned())]
    };
    let projected = Projected::new(&files(&old, &first));
    let (announcer, mut calls) = announcer();
    let mut server = Running::without_catalog(
        |config| {
            config.certificate = CertificateSource::Directory(projected.folder.path().to_owned());
            config.certificate_poll = Duration::from_millis(5);
            config.announcer = Some(announcer);
        },
        Arc::new(admission::review_within),
    )
    .await;
    server.catalogs.send_replace(Some(Arc::default()));
    // The first certificate is served at once and announced.
    server.until_ready().await;
    let ends = server.metric(EXPIRY).await.unwrap();
    let (authorities, held) = calls.recv().await.unwrap();
    assert_eq!(authorities, old.pem());
    held.send(()).unwrap();

    projected.swap("second", &files(&new, &second));
    let (authorities, held) = calls.recv().await.unwrap();
    assert_eq!(authorities, new.pem());
    let ca_files = tempfile::tempdir().unwrap();
    let trusting_only = |authority: &TestAuthority, name: &str| {
        let path = ca_files.path().join(name);
        fs::write(&path, authority.pem()).unwrap();
        trusting(&path, None)
    };
    server.tls = trusting_only(&old, "old.crt");
    for _ in 0..20 {
        assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200);
    }
    assert_eq!(server.metric(EXPIRY).await, Some(ends), "the new certificate waits");
    held.send(()).unwrap();
    until(async || server.metric(EXPIRY).await.is_some_and(|it| it > ends + 900.0)).await;
    server.tls = trusting_only(&new, "new.crt");
    assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200);

    // A certificate of the same CA needs no announcement.
    projected.swap("third", &files(&new, &serving(&new, 7_000)));
    until(async || server.metric(EXPIRY).await.is_some_and(|it| it > ends + 1900.0)).await;
    assert!(calls.try_recv().is_err());

    // An unusable `ca.crt` is not announced, and its pair is not served.
    let mut fourth = files(&new, &second);
    fourth[2].1 = "rubbish".to_owned();
    projected.swap("fourth", &fourth);
    failed_to_reload(&server).await;
    assert!(calls.try_recv().is_err());
    assert!(server.metric(EXPIRY).await.is_some_and(|it| it > ends + 1900.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_certificate_in_force_expires_the_waiting_one_is_served() {
    let (old, new) = (authority(), authority());
    let mounted = Mounted::new(&old, &serving(&old, 3));
    fs::write(mounted.path().join("ca.crt"), old.pem()).unwrap();
    let (announcer, mut calls) = announcer();
    let server = mounted.serve_with(Some(announcer)).await;
    let (_, _never) = calls.recv().await.unwrap();
    fs::write(mounted.path().join("ca.crt"), new.pem()).unwrap();
    mounted.write(&serving(&new, 5_000));
    let (_, _nor_this) = calls.recv().await.unwrap();
    let soon = f64::from(u32::try_from(now()).unwrap()) + 4_000.0;
    until(async || server.metric(EXPIRY).await.is_some_and(|it| it > soon)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_offer_connections_are_refused_and_readiness_has_the_reason() {
    let authority = authority();
    let (offers, offered) = watch::channel::<ServingCertificate>(Err("no pair yet".into()));
    let change = |config: &mut Config| config.certificate = CertificateSource::Offered(offered);
    let mut ready = None;
    let mut server = Running::new(change, Arc::new(admission::review_within), |it| {
        ready = Some(it.readiness());
        it
    })
    .await;
    let ready = ready.unwrap();
    server.catalogs.send_replace(Some(Arc::default()));
    let says = async |line: &str| server.ops("/readyz?verbose").await.body.contains(line);
    until(async || says("[+]catalog ok\n").await).await;
    assert!(says("[-]certificate failed: none yet: no pair yet\n").await);
    assert!(!ready());
    assert_eq!(server.metric(EXPIRY).await, Some(0.0));
    assert!(Wire::tls(server.addresses.webhook, Arc::clone(&server.tls)).await.is_err());
    offers.send_modify(|it| *it = Err("still no pair".into()));
    assert!(says("[-]certificate failed: none yet: still no pair\n").await);

    let offer =
        |(chain, key): &(String, String)| Ok(Arc::new(CertificatePair { chain: chain.clone(), key: key.clone() }));
    let ca = tempfile::tempdir().unwrap();
    let path = ca.path().join("ca.crt");
    fs::write(&path, authority.pem()).unwrap();
    offers.send_modify(|it| *it = offer(&serving(&authority, 5_000)));
    until(async || server.metric(EXPIRY).await.is_some_and(|it| it > 0.0)).await;
    let ends = server.metric(EXPIRY).await;
    assert!(ready());
    server.tls = trusting(&path, None);
    assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200);

    // Neither an unusable pair nor a closed channel changes the certificate in force.
    let failures = "kube_unions_certificate_reload_failures_total";
    let mismatched = (serving(&authority, 6_000).0, serving(&authority, 6_000).1);
    offers.send_modify(|it| *it = offer(&mismatched));
    until(async || server.metric(failures).await == Some(1.0)).await;
    offers.send_modify(|it| *it = Err("gone".into()));
    drop(offers);
    assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200);
    assert_eq!(server.metric(EXPIRY).await, ends);
}

#[tokio::test(flavor = "multi_thread")]
async fn http_1_1_is_the_only_protocol() {
    let server = Running::start().await;
    let offering = |protocols: &[&str]| {
        let mut tls = rustls::ClientConfig::clone(&server.tls);
        tls.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        Arc::new(tls)
    };
    let mut wire = Wire::tls(server.addresses.webhook, offering(&["h2", "http/1.1"])).await.unwrap();
    assert_eq!(wire.exchange(&Request::post("/mutate", review("u"))).await.code, 200);
    assert!(Wire::tls(server.addresses.webhook, offering(&["h2"])).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_accepted_by_ca_and_name() {
    let (authority, other) = (authority(), authority());
    let directory = tempfile::tempdir().unwrap();
    let (ca_file, serving_ca) = (directory.path().join("clients.crt"), directory.path().join("ca.crt"));
    fs::write(&ca_file, authority.pem()).unwrap();
    let clients = |names: &[&str]| {
        let policy = ClientPolicy { ca_file: ca_file.clone(), names: names.iter().map(|&it| it.to_owned()).collect() };
        let certificate = CertificateSource::SelfSigned { ca_file: serving_ca.clone() };
        move |config: &mut Config| {
            config.clients = Some(policy);
            config.certificate = certificate;
        }
    };
    let by_name = client(&authority, "kube-apiserver", "somewhere.example");
    let by_alternative = client(&authority, "front-proxy", "kube-apiserver");
    let by_neither = client(&authority, "somebody", "somewhere.example");
    let by_another = client(&other, "kube-apiserver", "kube-apiserver");
    let rows = [
        (&["kube-apiserver"][..], Some(&by_name), true),
        (&["else", "kube-apiserver"], Some(&by_alternative), true),
        (&["kube-apiserver"], Some(&by_neither), false),
        (&["kube-apiserver"], Some(&by_another), false),
        (&["kube-apiserver"], None, false),
        (&[], Some(&by_neither), true),
        (&[], Some(&by_another), false),
        (&[], None, false),
    ];
    for (row, (names, identity, let_in)) in rows.into_iter().enumerate() {
        let server = Running::with(clients(names)).await;
        let tls = trusting(&serving_ca, identity.map(|(chain, key)| (chain.as_str(), key.as_str())));
        // With TLS 1.3 a client learns with the first answer whether it was let in.
        let answer = match Wire::tls(server.addresses.webhook, tls).await {
            Ok(mut wire) => wire.try_exchange(&Request::post("/mutate", review("u"))).await,
            Err(_) => None,
        };
        assert_eq!(answer.map(|it| it.code), let_in.then_some(200), "row {row}");
    }
}
