//! Certificates: their reload, their expiry, and those of clients.

use super::wire::{Request, Running, Wire, config, review, trusting, until};
use kube_unions::admission;
use kube_unions::server::{CertificateSource, ClientPolicy, Config, Server};
use kube_unions::telemetry::Metrics;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A CA that signs what a test needs.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test CA");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn sign(&self, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// A serving certificate that ends so many seconds from now, less what is below a second.
    fn serving(&self, seconds: i64) -> (String, String) {
        self.sign(|params| {
            params.not_before = (SystemTime::now() - Duration::from_hours(48)).into();
            let ends = i64::try_from(now()).unwrap() + seconds;
            params.not_after = (UNIX_EPOCH + Duration::from_secs(u64::try_from(ends).unwrap())).into();
        })
    }

    fn client(&self, name: &str, alternative: &str) -> (String, String) {
        self.sign(|params| {
            *params = CertificateParams::new([alternative.to_owned()]).unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        })
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A folder as a Secret is mounted, and the CA beside it.
struct Mounted {
    directory: tempfile::TempDir,
    ca_file: PathBuf,
}

impl Mounted {
    fn new(authority: &Authority, pair: &(String, String)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ca_file = directory.path().join("test-ca.crt");
        fs::write(&ca_file, &authority.pem).unwrap();
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
        let mut server = Running::without_catalog(
            |config| {
                config.certificate = CertificateSource::Directory(self.path().to_owned());
                config.certificate_poll = Duration::from_millis(5);
            },
            Arc::new(admission::review),
        )
        .await;
        server.tls = trusting(&self.ca_file, None);
        server.catalogs.send_replace(Some(Arc::default()));
        server
    }
}

const EXPIRY: &str = "kube_unions_certificate_expiry_timestamp_seconds";

/// Waits for a look at the files that began after this.
async fn failed_to_reload(server: &Running) {
    let failures = "kube_unions_certificate_reload_failures_total";
    let before = server.metric(failures).await.unwrap();
    until(async || server.metric(failures).await.unwrap() > before + 1.0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pair_is_served_without_a_restart_and_a_broken_one_is_not() {
    let authority = Authority::new();
    let (first, second) = (authority.serving(5_000), authority.serving(6_000));
    let mounted = Mounted::new(&authority, &first);
    let server = mounted.serve().await;
    server.until_ready().await;
    let ends = server.metric(EXPIRY).await.unwrap();
    let mut kept = server.connect().await;

    let broken = [
        ("no PEM", ("nonsense".to_owned(), second.1.clone())),
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
async fn it_is_not_ready_with_a_certificate_that_has_expired() {
    let authority = Authority::new();
    let mounted = Mounted::new(&authority, &authority.serving(-60));
    let server = mounted.serve().await;
    until(async || server.ops("/readyz").await.body.contains("[-]certificate failed: expired\n")).await;
    mounted.write(&authority.serving(60));
    server.until_ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_cannot_be_read_is_named_at_the_start() {
    let authority = Authority::new();
    let mounted = Mounted::new(&authority, &authority.serving(60));
    let start = || async {
        let config = config(CertificateSource::Directory(mounted.path().to_owned()));
        let error: Box<dyn std::error::Error> = Server::bind(config, Metrics::new()).await.unwrap_err().into();
        error.source().unwrap().to_string()
    };
    let path = |name| mounted.path().join(name).display().to_string();
    fs::write(mounted.path().join("tls.crt"), "").unwrap();
    assert!(start().await.starts_with(&format!("`{}` holds no certificate", path("tls.crt"))));
    fs::write(mounted.path().join("tls.crt"), authority.serving(60).0).unwrap();
    assert_eq!(start().await, "the certificate and its key cannot be used together");
    fs::write(mounted.path().join("tls.key"), "nonsense").unwrap();
    assert_eq!(start().await, format!("`{}` holds no usable PEM private key", path("tls.key")));
    fs::remove_file(mounted.path().join("tls.crt")).unwrap();
    assert_eq!(start().await, format!("cannot read `{}`", path("tls.crt")));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_speaks_http_1_1_and_nothing_else() {
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
async fn clients_are_let_in_by_authority_and_name() {
    let (authority, other) = (Authority::new(), Authority::new());
    let directory = tempfile::tempdir().unwrap();
    let (ca_file, serving_ca) = (directory.path().join("clients.crt"), directory.path().join("ca.crt"));
    fs::write(&ca_file, &authority.pem).unwrap();
    let clients = |names: &[&str]| {
        let policy = ClientPolicy { ca_file: ca_file.clone(), names: names.iter().map(|&it| it.to_owned()).collect() };
        let certificate = CertificateSource::SelfSigned { ca_file: serving_ca.clone() };
        move |config: &mut Config| {
            config.clients = Some(policy);
            config.certificate = certificate;
        }
    };
    let by_name = authority.client("kube-apiserver", "somewhere.example");
    let by_alternative = authority.client("front-proxy", "kube-apiserver");
    let by_neither = authority.client("somebody", "somewhere.example");
    let by_another = other.client("kube-apiserver", "kube-apiserver");
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
