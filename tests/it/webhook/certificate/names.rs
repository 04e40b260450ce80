//! Certificates are held against the name that the API server asks for: a Go program, which ignores the common name.

use super::{EXPIRY, Mounted, authority, expire, failed_to_reload, now};
use crate::webhook::wire::{Running, config, trusting, until};
use fixtures::certificates::TestAuthority;
use kube_unions_webhook::authority::CertificatePair;
use kube_unions_webhook::webhook::{CertificateSource, Config};
use rcgen::{DnType, ExtendedKeyUsagePurpose, SanType};
use rustls::pki_types::ServerName;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;

/// The name that the API server asks for.
const NAME: &str = "hook.team.svc";

const FAILURES: &str = "kube_unions_certificate_reload_failures_total";

/// The reason why a server refuses a certificate for another name.
const REFUSED: &str =
    "not for `hook.team.svc`, the name that the API server asks for: issue one with this alternative name";

fn asks_for_name(config: &mut Config) {
    config.server_name = Some(ServerName::try_from(NAME).unwrap());
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

/// Signs a serving certificate with the common name [`NAME`] and these alternative names.
fn named(authority: &TestAuthority, names: &[SanType], seconds: i64) -> (String, String) {
    authority.sign(&[], |params| {
        params.subject_alt_names = names.to_vec();
        params.distinguished_name.push(DnType::CommonName, NAME);
        expire(params, seconds);
    })
}

/// Returns true if a client that asks for [`NAME`] accepts the certificate that is served.
async fn is_accepted(server: &Running) -> bool {
    let stream = TcpStream::connect(server.addresses.webhook).await.unwrap();
    let connector = TlsConnector::from(Arc::clone(&server.tls));
    connector.connect(ServerName::try_from(NAME).unwrap(), stream).await.is_ok()
}

async fn serves_until(server: &Running, expires: u64) {
    let expires = expires.to_string().parse::<f64>().unwrap();
    // The second may have passed between signing and this call.
    until(async || server.metric(EXPIRY).await.is_some_and(|it| (it - expires).abs() < 100.0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pair_that_fits_is_served_and_one_for_another_name_is_refused_as_an_expired_one_is() {
    let other = || dns("other.example");
    // The certificate that is served fits after each row.
    let rows: [(&str, Vec<SanType>, bool); 18] = [
        ("another name", vec![other()], false),
        ("upper case", vec![dns("HOOK.Team.SVC")], true),
        ("no alternative name", vec![], false),
        ("the last of many names", vec![other(), SanType::IpAddress([10, 0, 0, 1].into()), dns(NAME)], true),
        ("an IP address", vec![SanType::IpAddress([127, 0, 0, 1].into())], false),
        ("a wildcard for the namespace", vec![dns("*.team.svc")], true),
        ("a wildcard for every namespace", vec![dns("*.svc")], false),
        ("a wildcard below the name", vec![dns("*.hook.team.svc")], false),
        ("a wildcard in the middle", vec![dns("hook.*.svc")], false),
        ("a wildcard for a part of a label", vec![dns("h*.team.svc"), dns("*k.team.svc")], false),
        ("only a wildcard", vec![dns("*")], false),
        ("a trailing dot", vec![dns("hook.team.svc.")], false),
        ("a trailing dot beside the name", vec![dns("hook.team.svc."), dns(NAME)], true),
        ("the name in the cluster's domain", vec![dns("hook.team.svc.cluster.local"), dns("hook.team")], false),
        ("another namespace", vec![dns("hook.teams.svc")], false),
        ("another Service", vec![dns("ook.team.svc"), dns("a-hook.team.svc")], false),
        ("a mailbox", vec![SanType::Rfc822Name(NAME.try_into().unwrap())], false),
        ("a URI", vec![SanType::URI("https://hook.team.svc".try_into().unwrap())], false),
    ];
    let authority = authority();
    let mounted = Mounted::new(&named(&authority, &[dns(NAME)], 1_000), "");
    let server = mounted.serve_with(&authority, asks_for_name).await;
    server.until_ready().await;
    assert_eq!(server.metric(FAILURES).await, Some(0.0));
    let mut expires = server.metric(EXPIRY).await;
    for (row, (what, names, fits)) in rows.into_iter().enumerate() {
        let seconds = 2_000 + i64::try_from(row).unwrap() * 1_000;
        mounted.write(&named(&authority, &names, seconds), "");
        if fits {
            serves_until(&server, now() + u64::try_from(seconds).unwrap()).await;
            expires = server.metric(EXPIRY).await;
        } else {
            failed_to_reload(&server).await;
            assert_eq!(server.metric(EXPIRY).await, expires, "{what}");
        }
        assert!(is_accepted(&server).await, "{what}");
        assert_eq!(server.ops("/readyz").await.code, 200, "{what}");
        let refused =
            format!("[+]certificate ok: not reloaded: the new certificate is {REFUSED}; the previous one is valid\n");
        let line = if fits { "[+]certificate ok\n" } else { &refused };
        until(async || server.ops("/readyz?verbose").await.body.contains(line)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_whose_use_is_another_one_is_refused() {
    use ExtendedKeyUsagePurpose::{Any, ClientAuth, CodeSigning, ServerAuth};
    let authority = authority();
    let used_for = |usages: &[ExtendedKeyUsagePurpose], seconds: i64| {
        authority.sign(&[], |params| {
            params.subject_alt_names = vec![dns(NAME)];
            params.extended_key_usages = usages.to_vec();
            expire(params, seconds);
        })
    };
    let mounted = Mounted::new(&used_for(&[ServerAuth], 1_000), "");
    let server = mounted.serve_with(&authority, asks_for_name).await;
    server.until_ready().await;
    let mut seconds = 1_000;
    for (usages, fits) in [
        (vec![ClientAuth], false),
        (vec![ClientAuth, ServerAuth], true),
        (vec![CodeSigning, ClientAuth], false),
        (vec![], true),
        (vec![CodeSigning], false),
    ] {
        let before = server.metric(EXPIRY).await;
        seconds += 1_000;
        mounted.write(&used_for(&usages, seconds), "");
        if fits {
            serves_until(&server, now() + u64::try_from(seconds).unwrap()).await;
        } else {
            failed_to_reload(&server).await;
            assert_eq!(server.metric(EXPIRY).await, before, "{usages:?}");
            until(async || server.ops("/readyz?verbose").await.body.contains("not for servers")).await;
        }
        assert!(is_accepted(&server).await, "{usages:?}");
        assert_eq!(server.ops("/readyz").await.code, 200, "{usages:?}");
    }
    // Go takes any use for this one; rustls does not.
    mounted.write(&used_for(&[Any], 9_000), "");
    serves_until(&server, now() + 9_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_better_one_a_certificate_for_another_name_is_served_unready_as_an_expired_one_is() {
    let authority = authority();
    for (what, names, seconds, says) in [
        ("another name", vec![dns("other.example")], 1_000, REFUSED),
        ("only a common name", vec![], 1_000, REFUSED),
        ("a trailing dot", vec![dns("hook.team.svc.")], 1_000, REFUSED),
        ("expired, with another name", vec![dns("other.example")], -60, "expired"),
    ] {
        let mounted = Mounted::new(&named(&authority, &names, seconds), "");
        let server = mounted.serve_with(&authority, asks_for_name).await;
        let line = format!("[-]certificate failed: {says}\n");
        until(async || server.ops("/readyz").await.body.contains(&line)).await;
        assert_eq!(server.metric(FAILURES).await, Some(1.0), "{what}");
        assert!(!is_accepted(&server).await, "{what}");

        // The next one is no better than this one, and no worse.
        mounted.write(&named(&authority, &[dns("third.example")], 7_000), "");
        serves_until(&server, now() + 7_000).await;
        assert!(server.ops("/readyz").await.body.contains(REFUSED), "{what}");
        assert_eq!(server.metric(FAILURES).await, Some(2.0), "{what}");

        mounted.write(&named(&authority, &[dns(NAME)], 3_000), "");
        server.until_ready().await;
        assert!(is_accepted(&server).await, "{what}");
        assert_eq!(server.metric(FAILURES).await, Some(2.0), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offered_pair_is_held_against_the_name_as_well() {
    let authority = authority();
    let pair = |names: &[SanType], seconds: i64| {
        let (chain, key) = named(&authority, names, seconds);
        Ok(Arc::new(CertificatePair { chain, key }))
    };
    let (offers, offered) = watch::channel(pair(&[dns(NAME)], 1_000));
    let change = |config: &mut Config| {
        config.certificate = CertificateSource::Offered(offered);
        asks_for_name(config);
    };
    let mut server = Running::without_catalog(change).await;
    server.tls = trusting(authority.pem(), None);
    let before = server.metric(EXPIRY).await;
    offers.send_modify(|it| *it = pair(&[dns("other.team.svc")], 2_000));
    until(async || server.metric(FAILURES).await.is_some_and(|it| it >= 1.0)).await;
    assert_eq!(server.metric(EXPIRY).await, before);
    assert!(is_accepted(&server).await);
    offers.send_modify(|it| *it = pair(&[dns("other.team.svc"), dns(NAME)], 3_000));
    serves_until(&server, now() + 3_000).await;
    assert!(is_accepted(&server).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn if_no_name_is_known_every_name_is_served() {
    assert_eq!(config(CertificateSource::Directory("x".into())).server_name, None);
    let authority = authority();
    let mounted = Mounted::new(&named(&authority, &[dns(NAME)], 1_000), "");
    let server = mounted.serve(&authority, None).await;
    server.until_ready().await;
    for (names, seconds) in [(vec![dns("other.example")], 2_000), (vec![], 3_000), (vec![dns("a.")], 4_000)] {
        mounted.write(&named(&authority, &names, seconds), "");
        serves_until(&server, now() + u64::try_from(seconds).unwrap()).await;
    }
    assert_eq!(server.metric(FAILURES).await, Some(0.0));
    assert_eq!(server.ops("/readyz").await.code, 200);
}
