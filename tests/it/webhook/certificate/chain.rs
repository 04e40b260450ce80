//! Each certificate of a chain is held against the rules of the API server, if Go would use it on a path to a CA.

use super::strength::{RSA, with_algorithm};
use super::{EXPIRY, Mounted, authority, expire, failed_to_reload, now, serving};
use crate::webhook::wire::{Request, Running, review, until};
use fixtures::certificates::TestAuthority;
use rcgen::{CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

/// No certificate, between the lines of one.
const JUNK: &str = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";

/// A name that is as long as names of certificates are: lengths have two bytes.
const INNER: &str = "an intermediate whose name is as long as those of others are";

/// The files of a serving certificate in front of others.
struct Row {
    what: &'static str,
    leaf: (String, String),
    /// Everything behind the certificate in `tls.crt`.
    behind: String,
    authorities: String,
    /// The reason why the API server refuses it.
    refused: Option<&'static str>,
}

/// Makes rows: each has a serving certificate that expires later than those before.
struct Rows {
    root: TestAuthority,
    rows: Vec<Row>,
}

impl Rows {
    fn seconds(&self) -> i64 {
        5_000 + 1_000 * i64::try_from(self.rows.len()).unwrap()
    }

    fn add(
        &mut self,
        what: &'static str,
        issuer: &TestAuthority,
        behind: &[&str],
        refused: impl Into<Option<&'static str>>,
    ) -> &mut Row {
        let leaf = serving(issuer, self.seconds());
        let (behind, refused) = (behind.concat(), refused.into());
        self.rows.push(Row { what, leaf, behind, authorities: String::new(), refused });
        self.rows.last_mut().unwrap()
    }

    /// Adds a row whose only intermediate is changed.
    fn intermediate(
        &mut self,
        what: &'static str,
        change: impl FnOnce(&mut CertificateParams),
        refused: impl Into<Option<&'static str>>,
    ) {
        let inner = self.root.intermediate(INNER, None, change);
        self.add(what, &inner, &[inner.pem()], refused);
    }
}

fn expired(params: &mut CertificateParams) {
    expire(params, -60);
}

fn later(params: &mut CertificateParams) {
    params.not_before = (SystemTime::now() + Duration::from_hours(2)).into();
}

fn unknown_extension(params: &mut CertificateParams) {
    let mut extension = CustomExtension::from_oid_content(&[1, 2, 3, 4, 5], b"\x0c\x01x".to_vec());
    extension.set_criticality(true);
    params.custom_extensions = vec![extension];
}

fn rsa(last: u8) -> Vec<u8> {
    [RSA, &[last, 0x05, 0x00]].concat()
}

/// Chains that Go accepts. Each was given to `crypto/x509` as well.
fn accepted(rows: &mut Rows) {
    rows.intermediate("an intermediate", |_| (), None);
    rows.intermediate("any use", |it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any], None);
    let outer = rows.root.intermediate("outer", None, |_| ());
    let inner = outer.intermediate("inner", None, |_| ());
    rows.add("the wrong order", &inner, &[outer.pem(), inner.pem()], None);
    let leaf_twice = rows.add("the serving certificate twice", &inner, &[], None);
    leaf_twice.behind = [&leaf_twice.leaf.0, inner.pem(), outer.pem()].concat();
    let root = rows.root.pem().to_owned();
    rows.add("the root", &inner, &[inner.pem(), outer.pem(), &root], None);

    let other = TestAuthority::new("another CA");
    let (ended, _) = other.sign(&["a.example"], expired);
    let unrelated = [
        other.pem().to_owned(),
        ended,
        with_algorithm(other.intermediate(INNER, None, |_| ()).pem(), &rsa(5)),
        other.intermediate("neither", None, unknown_extension).pem().to_owned(),
    ];
    let unrelated: Vec<&str> = unrelated.iter().map(String::as_str).collect();
    rows.add("unrelated ones", &inner, &[&unrelated[..], &[inner.pem(), outer.pem()]].concat(), None);
    let namesake = rows.root.intermediate("inner", None, expired);
    rows.add(
        "an expired one of the same name with another key",
        &inner,
        &[namesake.pem(), inner.pem(), outer.pem()],
        None,
    );

    let key = KeyPair::generate().unwrap();
    let same_key = || Some(KeyPair::from_pem(&key.serialize_pem()).unwrap());
    let renewed = rows.root.intermediate(INNER, same_key(), |_| ());
    let old = rows.root.intermediate(INNER, same_key(), expired);
    rows.add("an expired one beside the renewed one", &renewed, &[old.pem(), renewed.pem()], None);
    rows.add("an expired one behind the renewed one", &renewed, &[renewed.pem(), old.pem()], None);
    let row = rows.add("an expired one whose CA is in `ca.crt`", &renewed, &[old.pem()], None);
    row.authorities.push_str(renewed.pem());
    let sha1 = with_algorithm(renewed.pem(), &rsa(5));
    let row = rows.add("one signed with SHA-1 that is in `ca.crt` itself", &renewed, &[&sha1], None);
    row.authorities.push_str(&sha1);

    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, INNER);
    expired(&mut params);
    let ended = params.self_signed(&key).unwrap().pem();
    rows.add("an expired root", &renewed, &[renewed.pem(), &ended], None);
    rows.add("a root signed with SHA-1", &renewed, &[&with_algorithm(&ended, &rsa(5)), renewed.pem()], None);
}

/// Chains that Go refuses, with the reason.
fn refused(rows: &mut Rows) {
    use ExtendedKeyUsagePurpose::{ClientAuth, CodeSigning};
    rows.intermediate("expired", expired, "in a chain whose certificate 2 in tls.crt is expired");
    rows.intermediate("not yet valid", later, "in a chain whose certificate 2 in tls.crt is not valid yet");
    rows.intermediate(
        "for clients",
        |it| it.extended_key_usages = vec![ClientAuth, CodeSigning],
        "in a chain whose certificate 2 in tls.crt is not for servers: issue one with",
    );
    let no_authority = "in a chain whose certificate 2 in tls.crt is no CA: issue one with the basic constraint";
    rows.intermediate("no CA", |it| it.is_ca = IsCa::ExplicitNoCa, no_authority);
    rows.intermediate("without basic constraints", |it| it.is_ca = IsCa::NoCa, no_authority);
    rows.intermediate("for lists only", |it| it.key_usages = vec![KeyUsagePurpose::CrlSign], no_authority);
    rows.intermediate(
        "an extension that nobody knows",
        unknown_extension,
        "in a chain whose certificate 2 in tls.crt is of no use to the API server, which does not read its critical extension \
         1.2.3.4.5: issue one without it",
    );

    let inner = rows.root.intermediate(INNER, None, |_| ());
    for (what, algorithm, says) in [
        (
            "SHA-1",
            rsa(5),
            "in a chain whose certificate 2 in tls.crt is signed with SHA-1, which the API server refuses",
        ),
        ("MD5", rsa(4), "in a chain whose certificate 2 in tls.crt is signed with MD5, which the API server refuses"),
    ] {
        rows.add(what, &inner, &[&with_algorithm(inner.pem(), &algorithm)], says);
    }
    let outer = rows.root.intermediate("outer", None, expired);
    let below = outer.intermediate("inner", None, |_| ());
    let third = "in a chain whose certificate 3 in tls.crt is expired";
    rows.add("an expired one above another", &below, &[below.pem(), outer.pem()], third);
    rows.add("an expired one below another", &outer, &[inner.pem(), outer.pem()], third);

    rows.add("no certificate", &inner, &[JUNK], "certificate 2 in `");
    rows.add("no certificate behind those of use", &inner, &[inner.pem(), JUNK], "certificate 3 in `");
    rows.add(
        "half a certificate",
        &inner,
        &[&inner.pem()[..200]],
        "its line `-----END …` is missing; was the file cut?",
    );
    rows.add("no base64", &inner, &[&JUNK.replace("aGVs", "?{]:")], "between its lines `-----` it is not base64");
    let curve = include_str!("keys/secp256k1.crt");
    rows.add(
        "an unrelated one with a curve that Go does not read",
        &inner,
        &[inner.pem(), curve],
        "in a chain whose certificate 3 in tls.crt is of a key that the API server refuses: use RSA",
    );
    let mut namesakes = String::new();
    for _ in 0..101 {
        write!(namesakes, "{}", rows.root.intermediate(INNER, None, |_| ()).pem()).unwrap();
    }
    let gives_up = "in a chain with so many issuers of the same name that the API server gives up";
    rows.add("101 of one name", &inner, &[&namesakes, inner.pem()], gives_up);
    let many = rows.root.pem().repeat(720);
    rows.add("more than 256 KiB", &inner, &[inner.pem(), &many], "holds more than 256 KiB of certificates");
}

async fn is_served(server: &Running) -> bool {
    server.send(&Request::post("/mutate", review("u"))).await.code == 200
}

#[tokio::test(flavor = "multi_thread")]
async fn each_certificate_of_a_chain_is_held_against_the_rules_of_the_api_server() {
    let mut rows = Rows { root: authority(), rows: Vec::new() };
    let first = Mounted::new(&serving(&rows.root, 1_000), "");
    // The client of this test trusts whatever the chain ends in.
    let server = first.serve(&rows.root, None).await;
    server.until_ready().await;
    accepted(&mut rows);
    let fit = rows.rows.len();
    refused(&mut rows);
    assert_eq!((fit, rows.rows.len() - fit), (13, 18));
    for (row, it) in rows.rows.iter().enumerate() {
        let before = server.metric(EXPIRY).await;
        let (leaf, key) = &it.leaf;
        first.write(&(format!("{leaf}{}", it.behind), key.clone()), &it.authorities);
        if let Some(reason) = it.refused {
            failed_to_reload(&server).await;
            until(async || server.ops("/readyz?verbose").await.body.contains(reason)).await;
            let line = "[+]certificate ok: not reloaded: ";
            assert!(server.ops("/readyz?verbose").await.body.contains(line), "{}", it.what);
            assert_eq!(server.metric(EXPIRY).await, before, "{}", it.what);
        } else {
            let ends = f64::from(u32::try_from(now() + 4_500 + 1_000 * row as u64).unwrap());
            until(async || server.metric(EXPIRY).await.is_some_and(|it| it > ends)).await;
            until(async || server.ops("/readyz?verbose").await.body.contains("[+]certificate ok\n")).await;
        }
        assert_eq!(server.ops("/readyz").await.code, 200, "{}", it.what);
    }
    first.write(&serving(&rows.root, 100_000), "");
    let ends = f64::from(u32::try_from(now() + 99_000).unwrap());
    until(async || server.metric(EXPIRY).await.is_some_and(|it| it > ends)).await;
    assert!(is_served(&server).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_ends_with_the_first_of_its_certificates() {
    let root = authority();
    let inner = root.intermediate("inner", None, |params| expire(params, 500));
    let leaf = serving(&inner, 5_000);
    let mounted = Mounted::new(&(format!("{}{}", leaf.0, inner.pem()), leaf.1), "");
    let server = mounted.serve(&root, None).await;
    server.until_ready().await;
    let ends = server.metric(EXPIRY).await.unwrap() - f64::from(u32::try_from(now()).unwrap());
    assert!((400.0..=500.0).contains(&ends), "{ends}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_better_one_a_chain_with_a_fault_is_served_unready() {
    let root = authority();
    for (what, change, says) in [
        ("expired", expired as fn(&mut CertificateParams), "expired"),
        ("not yet valid", later, "not valid yet"),
        (
            "unknown",
            unknown_extension,
            "of no use to the API server, which does not read its critical extension 1.2.3.4.5",
        ),
        ("no CA", |it| it.is_ca = IsCa::NoCa, "no CA: issue one with the basic constraint"),
    ] {
        let inner = root.intermediate("inner", None, change);
        let (leaf, key) = serving(&inner, 5_000);
        let mounted = Mounted::new(&(leaf + inner.pem(), key), "");
        let server = mounted.serve(&root, None).await;
        let line = format!("[-]certificate failed: in a chain whose certificate 2 in tls.crt is {says}");
        until(async || server.ops("/readyz").await.body.contains(&line)).await;
        mounted.write(&serving(&root, 6_000), "");
        server.until_ready().await;
        assert!(is_served(&server).await, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_name_the_file_and_quote_nothing_of_it() {
    let root = authority();
    let good = serving(&root, 1_000);
    let mounted = Mounted::new(&good, "");
    let server = mounted.serve(&root, None).await;
    server.until_ready().await;
    let unknown = root.sign(&["localhost"], |params| {
        unknown_extension(params);
        expire(params, 2_000);
    });
    let (chain, key) = serving(&root, 3_000);
    let cut = |text: &str| text[..text.len() - 20].to_owned();
    let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let has_extension = "`DIRECTORY/tls.crt` cannot be served: it has the critical extension 1.2.3.4.5, which is not read here: issue \
                         one without it\n";
    let is_cut = "its line `-----END …` is missing; was the file cut?\n";
    let no_base64 = "between its lines `-----` it is not base64\n";
    for (what, chain, key, says) in [
        ("a critical extension", &unknown.0, &unknown.1, has_extension.to_owned()),
        (
            "no certificate behind it",
            &(chain.clone() + JUNK),
            &key,
            "[+]certificate ok: not reloaded: certificate 2 in `DIRECTORY/tls.crt` cannot be parsed as X.509\n".to_owned(),
        ),
        ("half a certificate", &cut(&chain), &key, format!("`DIRECTORY/tls.crt` holds no usable PEM certificate: {is_cut}")),
        ("half a key", &chain, &cut(&key), format!("`DIRECTORY/tls.key` holds no usable PEM private key: {is_cut}")),
        ("no base64", &chain, &key.replace("MI", "?{"), format!("`DIRECTORY/tls.key` holds no usable PEM private key: {no_base64}")),
        (
            "an open line",
            &chain.replacen("BEGIN CERTIFICATE-----", "BEGIN CERTIFICATE", 1),
            &key,
            "`DIRECTORY/tls.crt` holds no usable PEM certificate: a line that begins with `-----` ends without `-----`\n".to_owned(),
        ),
        (
            "an encrypted key",
            &chain,
            &encrypted,
            "`DIRECTORY/tls.key` holds no usable PEM private key: it has none that is not encrypted\n".to_owned(),
        ),
    ] {
        mounted.write(&(chain.clone(), key.clone()), "");
        failed_to_reload(&server).await;
        let says = says.replace("DIRECTORY", mounted.0.path().to_str().unwrap());
        until(async || server.ops("/readyz?verbose").await.body.contains(&says)).await;
        assert_eq!(server.ops("/readyz").await.code, 200, "{what}");
    }
}
