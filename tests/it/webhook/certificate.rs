//! The serving certificate: its reload, its expiry, and the verification of clients.

mod chain;
mod files;
mod names;
mod strength;

use super::wire::{Request, Running, Wire, review, trusting, until};
use fixtures::certificates::TestAuthority;
use futures::FutureExt;
use kube_unions_webhook::authority::{CertificatePair, ServingCertificate};
use kube_unions_webhook::webhook::{Announcer, CertificateSource, ClientPolicy, Config};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot, watch};

fn authority() -> TestAuthority {
    TestAuthority::new("test CA")
}

/// Signs a serving certificate that expires `seconds` after the current whole second.
fn serving(authority: &TestAuthority, seconds: i64) -> (String, String) {
    authority.sign(&["localhost"], |params| expire(params, seconds))
}

/// Lets a certificate expire `seconds` after the current whole second.
fn expire(params: &mut CertificateParams, seconds: i64) {
    let expires = u64::try_from(i64::try_from(now()).unwrap() + seconds).unwrap();
    params.not_before = (SystemTime::now() - Duration::from_hours(48)).into();
    params.not_after = (UNIX_EPOCH + Duration::from_secs(expires)).into();
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

/// A directory as a kubelet mounts a Secret: the files are links through `..data`, a link that an update replaces.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(pair: &(String, String), authorities: &str) -> Self {
        let this = Self(tempfile::tempdir().unwrap());
        this.write(pair, authorities);
        for name in ["tls.crt", "tls.key", "ca.crt"] {
            symlink(format!("..data/{name}"), this.0.path().join(name)).unwrap();
        }
        this
    }

    /// Replaces the files. What is empty has no file.
    fn write(&self, (chain, key): &(String, String), authorities: &str) {
        self.fill(|version| {
            let files = [("tls.crt", &**chain), ("tls.key", key), ("ca.crt", authorities)];
            for (name, text) in files.into_iter().filter(|(_, text)| !text.is_empty()) {
                fs::write(version.join(name), text).unwrap();
            }
        });
    }

    /// Replaces the files by those that `fill` puts into a directory.
    fn fill(&self, fill: impl FnOnce(&Path)) {
        let version = tempfile::tempdir_in(&self.0).unwrap().keep();
        fill(&version);
        symlink(&version, self.0.path().join("..data_tmp")).unwrap();
        fs::rename(self.0.path().join("..data_tmp"), self.0.path().join("..data")).unwrap();
    }

    async fn serve(&self, trusted: &TestAuthority, announcer: Option<Announcer>) -> Running {
        self.serve_with(trusted, |config| config.announcer = announcer).await
    }

    async fn serve_with(&self, trusted: &TestAuthority, change: impl FnOnce(&mut Config)) -> Running {
        let change = |config: &mut Config| {
            config.certificate = CertificateSource::Directory(self.0.path().to_owned());
            config.certificate_poll = Duration::from_millis(5);
            change(config);
        };
        let mut server = Running::without_catalog(change).await;
        server.tls = trusting(trusted.pem(), None);
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
    let mounted = Mounted::new(&first, "");
    let server = mounted.serve(&authority, None).await;
    server.until_ready().await;
    let ends = server.metric(EXPIRY).await.unwrap();
    let mut kept = server.connect().await;

    let broken = [
        // The previous pair's key: writers replace one file after the other.
        ("no PEM", ("nonsense".to_owned(), first.1.clone())),
        ("a key that is not the chain's", (second.0.clone(), first.1.clone())),
        ("half a key", (second.0.clone(), second.1[..80].to_owned())),
        ("no key", (first.0.clone(), String::new())),
        ("nothing", (String::new(), String::new())),
    ];
    for (what, pair) in broken {
        mounted.write(&pair, "");
        failed_to_reload(&server).await;
        assert_eq!(server.metric(EXPIRY).await, Some(ends), "{what}");
        assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200, "{what}");
    }
    mounted.write(&second, "");
    until(async || server.metric(EXPIRY).await.is_some_and(|it| it > ends + 900.0)).await;
    assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200);
    assert_eq!(kept.exchange(&Request::post("/mutate", review("u"))).await.code, 200, "no connection is dropped");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_certificate_makes_the_webhook_unready() {
    let authority = authority();
    let mounted = Mounted::new(&serving(&authority, -60), "");
    let server = mounted.serve(&authority, None).await;
    until(async || server.ops("/readyz").await.body.contains("[-]certificate failed: expired\n")).await;
    mounted.write(&serving(&authority, 60), "");
    server.until_ready().await;
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
    let mounted = Mounted::new(&first, old.pem());
    let (announcer, mut calls) = announcer();
    let mut server = mounted.serve(&old, Some(announcer)).await;
    // The first certificate is served at once and announced.
    server.until_ready().await;
    let ends = server.metric(EXPIRY).await.unwrap();
    let (authorities, held) = calls.recv().await.unwrap();
    assert_eq!(authorities, old.pem());
    held.send(()).unwrap();

    mounted.write(&second, new.pem());
    let (authorities, held) = calls.recv().await.unwrap();
    assert_eq!(authorities, new.pem());
    for _ in 0..20 {
        assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200);
    }
    assert_eq!(server.metric(EXPIRY).await, Some(ends), "the new certificate waits");
    held.send(()).unwrap();
    until(async || server.metric(EXPIRY).await.is_some_and(|it| it > ends + 900.0)).await;
    server.tls = trusting(new.pem(), None);
    assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200);

    // A certificate of the same CA needs no announcement.
    mounted.write(&serving(&new, 7_000), new.pem());
    until(async || server.metric(EXPIRY).await.is_some_and(|it| it > ends + 1900.0)).await;
    assert!(calls.try_recv().is_err());

    // An unusable `ca.crt` is not announced, and its pair is not served.
    mounted.write(&second, "rubbish");
    failed_to_reload(&server).await;
    assert!(calls.try_recv().is_err());
    assert!(server.metric(EXPIRY).await.is_some_and(|it| it > ends + 1900.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_certificate_in_force_expires_the_waiting_one_is_served() {
    let (old, new) = (authority(), authority());
    let mounted = Mounted::new(&serving(&old, 3), old.pem());
    let (announcer, mut calls) = announcer();
    let server = mounted.serve(&old, Some(announcer)).await;
    let (_, _never) = calls.recv().await.unwrap();
    mounted.write(&serving(&new, 5_000), new.pem());
    let (_, _nor_this) = calls.recv().await.unwrap();
    let soon = f64::from(u32::try_from(now()).unwrap()) + 4_000.0;
    until(async || server.metric(EXPIRY).await.is_some_and(|it| it > soon)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_offer_connections_are_refused_and_readiness_has_the_reason() {
    let authority = authority();
    let (offers, offered) = watch::channel::<ServingCertificate>(Err("no pair yet".into()));
    let change = |config: &mut Config| config.certificate = CertificateSource::Offered(offered);
    let mut server = Running::without_catalog(change).await;
    server.catalogs.send_replace(Some(Arc::default()));
    let says = async |line: &str| server.ops("/readyz?verbose").await.body.contains(line);
    until(async || says("[+]catalog ok\n").await).await;
    assert!(says("[-]certificate failed: none yet: no pair yet\n").await);
    assert!(!(server.ready)());
    assert_eq!(server.metric(EXPIRY).await, Some(0.0));
    assert!(Wire::tls(server.addresses.webhook, Arc::clone(&server.tls)).await.is_err());
    offers.send_modify(|it| *it = Err("still no pair".into()));
    assert!(says("[-]certificate failed: none yet: still no pair\n").await);

    let offer =
        |(chain, key): &(String, String)| Ok(Arc::new(CertificatePair { chain: chain.clone(), key: key.clone() }));
    offers.send_modify(|it| *it = offer(&serving(&authority, 5_000)));
    until(async || server.metric(EXPIRY).await.is_some_and(|it| it > 0.0)).await;
    let ends = server.metric(EXPIRY).await;
    assert!((server.ready)());
    server.tls = trusting(authority.pem(), None);
    assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200);

    // Neither an unusable pair nor a closed channel changes the certificate in force.
    let failures = "kube_unions_certificate_reload_failures_total";
    let mismatched = (serving(&authority, 6_000).0, serving(&authority, 6_000).1);
    offers.send_modify(|it| *it = offer(&mismatched));
    until(async || server.metric(failures).await.is_some_and(|it| it >= 1.0)).await;
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
    let ca_file = directory.path().join("clients.crt");
    fs::write(&ca_file, authority.pem()).unwrap();
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
        let names = names.iter().map(|&it| it.to_owned()).collect();
        let clients = ClientPolicy { ca_file: ca_file.clone(), names };
        let server = Running::with(|config| config.clients = Some(clients)).await;
        let tls = trusting(&server.authority, identity);
        // With TLS 1.3 a client learns with the first answer whether it was let in.
        let answer = match Wire::tls(server.addresses.webhook, tls).await {
            Ok(mut wire) => wire.try_exchange(&Request::post("/mutate", review("u"))).await,
            Err(_) => None,
        };
        assert_eq!(answer.map(|it| it.code), let_in.then_some(200), "row {row}");
    }
}
