//! Texts, separated by NUL, as the certificate, key, CAs and CA key of the Secret that replicas share. Replicas agree on a
//! certificate within a few writes and then stop writing.
//!
//! `@1`, `@2`: two CAs. `@leaf1`, `@leaf2`: their certificates. `@key…` before any of these: the private key.
#![no_main]

use k8s_openapi::ByteString;
use kube_unions_webhook::authority::{CertificateAuthority, Validity};
use kube_unions_webhook::controllers::{RegisteredBundle, ca_bundle, renewed};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NAME: &str = "kube-unions.kube-unions.svc";
/// Writes after which a replica pauses.
const MOST_WRITES: usize = 8;

static NOW: LazyLock<SystemTime> = LazyLock::new(|| UNIX_EPOCH + Duration::from_secs(1_767_225_600));

/// Words of a text, each with the PEM that replaces it.
static WORDS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let validity = Validity::new(*NOW, Duration::from_secs(30 * 24 * 3600));
    let words = ["1", "2"].iter().flat_map(|number| {
        let authority = CertificateAuthority::unique("kube-unions CA", validity).unwrap();
        let leaf = authority.issue(NAME, &[NAME.to_owned()], validity).unwrap();
        [
            (format!("@keyleaf{number}"), leaf.key),
            (format!("@leaf{number}"), leaf.chain),
            (format!("@key{number}"), authority.key()),
            (format!("@{number}"), authority.certificate().to_owned()),
        ]
    });
    words.collect()
});

libfuzzer_sys::fuzz_target!(|text: &str| {
    let text = WORDS.iter().fold(text.to_owned(), |text, (word, pem)| text.replace(word, pem));
    let values = text.split('\0').map(|value| ByteString(value.as_bytes().to_vec()));
    let keys = ["tls.crt", "tls.key", "ca.crt", "ca.key", "foreign"].map(str::to_owned);
    let mut data: BTreeMap<String, ByteString> = keys.into_iter().zip(values).collect();
    let foreign = data.get("foreign").cloned();
    let mut writes = 0;
    while let Some(written) = renewed(&data, &[NAME.to_owned()], *NOW).expect("a certificate can be issued") {
        data.extend(written);
        writes += 1;
        assert!(writes <= MOST_WRITES, "the replicas agree");
    }
    assert_eq!(data.get("foreign"), foreign.as_ref());
    let pem = |key: &str| String::from_utf8(data[key].0.clone()).expect("PEM is text");
    let (served, bundle) = (pem("tls.crt"), ca_bundle(pem("ca.crt")));
    assert!(served.contains("BEGIN CERTIFICATE") && !pem("ca.key").is_empty() && !pem("tls.key").is_empty());
    assert!(RegisteredBundle::Bundle(bundle.clone()).holds(&bundle));
});
