//! Certificates are held against the strength that the API server asks for, and keys against what TLS can use.

use super::{EXPIRY, Mounted, authority, expire, failed_to_reload, now, serving};
use crate::webhook::wire::{Request, review, until};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fixtures::certificates::TestAuthority;
use rcgen::{CertificateParams, DnType, KeyPair};

/// The algorithm of the signatures of [`TestAuthority`]: ECDSA with SHA-256, DER.
const ECDSA_SHA256: &[u8] = b"\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02";

/// Signs a serving certificate, and replaces the algorithm of its signature.
fn signed_by(authority: &TestAuthority, algorithm: &[u8], seconds: i64) -> (String, String) {
    let (chain, key) = authority.sign(&["localhost"], |params| {
        // A length of two bytes.
        params.distinguished_name.push(DnType::CommonName, "a name that is as long as names of certificates are");
        expire(params, seconds);
    });
    (with_algorithm(&chain, algorithm), key)
}

/// Replaces the algorithm of the signature of a certificate, PEM. It is no shorter than ECDSA with SHA-256.
pub(super) fn with_algorithm(certificate: &str, algorithm: &[u8]) -> String {
    let text: String = certificate.lines().filter(|line| !line.starts_with('-')).collect();
    let mut der = STANDARD.decode(text).unwrap();
    for _ in 0..2 {
        let at = der.windows(ECDSA_SHA256.len()).position(|it| it == ECDSA_SHA256).unwrap();
        der.splice(at..at + ECDSA_SHA256.len(), algorithm.iter().copied());
    }
    let longer = algorithm.len() - ECDSA_SHA256.len();
    // The certificate has the algorithm twice, and the part that is signed once. Both lengths are of two bytes.
    for (at, times) in [(0, 2), (4, 1)] {
        assert_eq!(der[at..at + 2], [0x30, 0x82]);
        let length = u16::from_be_bytes([der[at + 2], der[at + 3]]) + u16::try_from(longer * times).unwrap();
        der[at + 2..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(der))
}

/// The beginning of an algorithm of RSA, DER.
pub(super) const RSA: &[u8] = b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01";

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_whose_signature_has_a_broken_hash_function_is_refused() {
    let rsa = |last: u8| [RSA, &[last, 0x05, 0x00]].concat();
    let (md2, md5, sha1, sha256, sha512) = (rsa(2), rsa(4), rsa(5), rsa(11), rsa(13));
    // RSASSA-PSS, whose default is SHA-1; and with SHA-256.
    let pss: &[u8] = b"\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a\x30\x00";
    let rows = [
        ("RSA with SHA-1", &*sha1, Some("SHA-1")),
        ("RSA with SHA-256", &sha256, None),
        ("RSA with MD5", &md5, Some("MD5")),
        ("RSA with MD2", &md2, Some("MD2")),
        ("RSA with SHA-512", &sha512, None),
        ("RSASSA-PSS without a hash function", pss, Some("SHA-1")),
        ("ECDSA with SHA-1", b"\x30\x0b\x06\x07\x2a\x86\x48\xce\x3d\x04\x01\x05\x00", Some("SHA-1")),
        ("ECDSA with SHA-512", b"\x30\x0c\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x04\x05\x00", None),
    ];
    let authority = authority();
    let mounted = Mounted::new(&serving(&authority, 1_000), "");
    let server = mounted.serve(&authority, None).await;
    server.until_ready().await;
    let mut seconds = 1_000;
    for (what, algorithm, broken) in rows {
        let before = server.metric(EXPIRY).await;
        seconds += 1_000;
        mounted.write(&signed_by(&authority, algorithm, seconds), "");
        if let Some(hash) = broken {
            failed_to_reload(&server).await;
            assert_eq!(server.metric(EXPIRY).await, before, "{what}");
            let says = format!("the new certificate is signed with {hash}, which the API server refuses");
            until(async || server.ops("/readyz?verbose").await.body.contains(&says)).await;
        } else {
            until(async || server.metric(EXPIRY).await.is_some_and(|it| Some(it - 500.0) > before)).await;
        }
        assert_eq!(server.ops("/readyz").await.code, 200, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_better_one_a_certificate_with_a_broken_hash_function_is_served_unready() {
    let authority = authority();
    let sha1 = [RSA, &[5, 0x05, 0x00]].concat();
    let mounted = Mounted::new(&signed_by(&authority, &sha1, 1_000), "");
    let server = mounted.serve(&authority, None).await;
    let line = "[-]certificate failed: signed with SHA-1, which the API server refuses: issue one with SHA-256\n";
    until(async || server.ops("/readyz").await.body.contains(line)).await;
    mounted.write(&serving(&authority, 2_000), "");
    server.until_ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_signs_itself_is_trusted_whatever_its_signature_is() {
    let own = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    expire(&mut params, 1_000);
    let text = params.self_signed(&own).unwrap().pem();
    let sha1 = [RSA, &[5, 0x05, 0x00]].concat();
    let mounted = Mounted::new(&(with_algorithm(&text, &sha1), own.serialize_pem()), "");
    let server = mounted.serve(&authority(), None).await;
    server.until_ready().await;
    assert!(server.metric(EXPIRY).await.is_some_and(|it| it > now().to_string().parse::<f64>().unwrap()));
}

/// Keys that TLS of this program cannot use.
const KEYS: [(&str, &str); 4] = [
    ("RSA of 1024 bits", include_str!("keys/rsa-1024.pem")),
    ("RSA of 1024 bits, PKCS #1", include_str!("keys/rsa-1024-pkcs1.pem")),
    ("ECDSA on P-521", include_str!("keys/p-521.pem")),
    ("Ed448", include_str!("keys/ed448.pem")),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_used_is_not_taken_for_the_key_of_another_certificate() {
    let authority = authority();
    let (first, second) = (serving(&authority, 1_000), serving(&authority, 2_000));
    let mounted = Mounted::new(&first, "");
    let server = mounted.serve(&authority, None).await;
    server.until_ready().await;
    let says = async |line: &str| server.ops("/readyz?verbose").await.body.contains(line);
    for (what, key) in KEYS {
        mounted.write(&(second.0.clone(), key.to_owned()), "");
        failed_to_reload(&server).await;
        until(async || says("not reloaded: tls.key cannot be used: use RSA of 2048 to 4096 bits, ECDSA on").await)
            .await;
        assert!(!says("must belong to the first certificate").await, "{what}");
        assert_eq!(server.send(&Request::post("/mutate", review("u"))).await.code, 200, "{what}");
    }
    mounted.write(&(second.0.clone(), first.1), "");
    until(async || says("tls.key must belong to the first certificate").await).await;
    mounted.write(&(include_str!("keys/rsa-1024.crt").to_owned(), KEYS[0].1.to_owned()), "");
    until(async || says("; the certificate's key is RSA of 1024 bits").await).await;
}
