//! Secrets with foreign, huge or unusable data, and Secrets that cannot be written: the log says what is wrong in one line, and
//! the replica serves as soon as it can.

use super::store::{IMMUTABLE, LONGEST, Store, TOO_LONG};
use super::*;

/// Most bytes of CAs, DER, that go into the webhook configurations.
const MOST_BYTES: usize = 64 * 1024;

/// Who makes the Secret usable again.
enum Repair {
    Automatic,
    Deletion,
    Replacement,
}
use Repair::{Automatic, Deletion, Replacement};

/// Returns a CA certificate, PEM, with this many bytes of DER at least. No two are the same.
fn authority_of(key: &rcgen::KeyPair, bytes: usize) -> String {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.custom_extensions =
        vec![rcgen::CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 9999], vec![4; bytes])];
    params.self_signed(key).unwrap().pem()
}

/// Lets the replica read the Secret some times more, whatever it waits for.
async fn reads_again(store: &Store, replica: &Replica) {
    for _ in 0..8 {
        let before = store.reads(replica.number);
        replica.held.send_replace(RegisteredBundle::Unknown);
        until("the replica reads the Secret", async || store.reads(replica.number) > before).await;
    }
}

/// A stored Secret: its description, the texts in the one line of the log, true if the CA stays, true if the leaf stays, and who makes it
/// usable.
type DamagedSecret = (&'static str, Value, &'static [&'static str], bool, bool, Repair);

/// The Secrets around a CA and a good leaf of it, both of this validity.
fn damaged_secrets(
    one: &CertificateAuthority,
    good: &CertificatePair,
    validity: Validity,
    now: SystemTime,
) -> [DamagedSecret; 18] {
    const BEYOND: &str = "`ca.crt` holds more than 32 CAs, more than 64 KiB, or a CA of more than 16 KiB";
    const NO_AUTHORITY: &str = "`ca.crt` holds data that is not a CA";
    const OF_LEAF: &str = "`tls.crt` and `tls.key` cannot be used together";
    let other = CertificateAuthority::new("other", validity).unwrap();
    let issue = |name: &str, validity| one.issue("x", &[name.to_owned()], validity).unwrap();
    let renamed = issue("old.team.svc", validity);
    let ended = Validity { not_before: validity.not_before, not_after: now - Duration::from_secs(1) };
    let ended = issue("hook.team.svc", ended);
    let half = CertificatePair { key: good.key[..good.key.len() / 2].to_owned(), ..good.clone() };
    let foreign = CertificatePair { chain: "foreign".to_owned(), key: "foreign".to_owned() };
    let none = CertificatePair { chain: String::new(), key: String::new() };
    let (ca, ca_key) = (one.certificate(), one.key());
    let with = |mut secret: Value, pointer: &str, value: Value| {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        secret.pointer_mut(parent).unwrap()[key] = value;
        secret
    };
    let data = |leaf: &CertificatePair, bundle: &str, key: &str| {
        let data = [("tls.crt", &*leaf.chain), ("tls.key", &leaf.key), ("ca.crt", bundle), ("ca.key", key)];
        let data: Vec<_> = data.into_iter().filter(|(_, text)| !text.is_empty()).collect();
        let foreign = with(secret(&data), "/data/foreign", json!("a2VwdA=="));
        with(foreign, "/metadata/labels", json!({"team": "x"}))
    };
    let bundle = |bundle: &str| data(good, bundle, &ca_key);
    let immutable = |secret: Value| with(secret, "/immutable", json!(true));
    let key = rcgen::KeyPair::generate().unwrap();
    let small = authority_of(&key, 0);
    let many: String = (0..900 * 1024 / small.len()).map(|_| authority_of(&key, 0)).collect();
    let garbage = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", "QUJD".repeat(200));
    let garbage = garbage.repeat(900 * 1024 / garbage.len());
    let huge = authority_of(&key, 600 * 1024);
    let huge_chain = CertificatePair { chain: format!("{}{huge}", good.chain), ..good.clone() };
    let filled = STANDARD.encode(vec![0; LONGEST - 100]);
    let spoilt = format!("rubbish\n{ca}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    [
        ("all", data(good, ca, &ca_key), &[], true, true, Automatic),
        ("no data, Opaque", secret(&[]), &[], false, false, Automatic),
        ("a foreign type", with(secret(&[]), "/type", json!("example.com/foreign")), &[], false, false, Automatic),
        ("blanks", data(&none, "\n", " "), &[], false, false, Automatic),
        ("no PEM", data(&foreign, "foreign", "foreign"), &["`ca.crt` holds no CA", OF_LEAF], false, false, Automatic),
        ("no key of the CA", data(good, ca, ""), &[], true, true, Automatic),
        (
            "the key of another CA",
            data(good, ca, &other.key()),
            &["`ca.key` is not the key of a CA in `ca.crt`"],
            true,
            true,
            Automatic,
        ),
        ("the leaf of another CA", data(good, other.certificate(), &other.key()), &[], false, false, Automatic),
        ("half a key", data(&half, ca, &ca_key), &[OF_LEAF], true, false, Automatic),
        ("a leaf for another Service", data(&renamed, ca, &ca_key), &[], true, false, Automatic),
        ("an expired certificate", data(&ended, ca, &ca_key), &[], true, false, Automatic),
        ("a bundle with rubbish in it", bundle(&spoilt), &[NO_AUTHORITY], true, true, Automatic),
        ("much garbage before the CA", bundle(&format!("{garbage}{ca}")), &[NO_AUTHORITY], true, true, Automatic),
        ("many CAs before the CA", bundle(&format!("{many}{ca}")), &[BEYOND], true, true, Automatic),
        ("a huge CA before the CA", bundle(&format!("{huge}{ca}")), &[BEYOND], true, true, Automatic),
        ("a huge chain", data(&huge_chain, ca, &ca_key), &["`tls.crt`"], true, false, Automatic),
        (
            "a huge foreign key",
            with(secret(&[]), "/data/foreign", json!(filled)),
            &[TOO_LONG, "delete"],
            false,
            false,
            Replacement,
        ),
        ("immutable, expired", immutable(data(&ended, ca, &ca_key)), &[IMMUTABLE, "delete"], false, false, Deletion),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_of_the_secret_is_logged_once_and_the_replica_serves_when_it_is_mended() {
    let clock = Clock::new();
    let validity = Validity::new(clock.now(), Duration::from_secs(50 * DAY));
    let one = CertificateAuthority::new("one", validity).unwrap();
    let good = one.issue("x", &["hook.team.svc".to_owned()], validity).unwrap();
    let ca = one.certificate();
    let rows = damaged_secrets(&one, &good, validity, clock.now());
    for (what, before, says, ca_stays, leaf_stays, repair) in rows {
        let store = Store::new();
        store.put(before.clone());
        let replica = Replica::start(&store, &clock);
        let serves = || {
            let pair = replica.offers.borrow().as_ref().ok().cloned();
            let is_trusted = |it: &Arc<CertificatePair>| accepts(&replica.trusted(), it, clock.now()).is_ok();
            pair.filter(|it| replica.trust.borrow().is_some() && is_trusted(it))
        };
        until("the replica reads the Secret", async || store.reads(replica.number) > 0).await;
        if let Automatic = repair {
            until(&format!("{what}: the replica serves"), async || serves().is_some()).await;
        }
        reads_again(&store, &replica).await;
        assert!(store.attempts() <= 6, "{what}: {} writes", store.attempts());
        let lines = replica.log.warnings();
        assert_eq!(lines.len(), usize::from(!says.is_empty()), "{what}: {lines:#?}");
        for part in says {
            let part = part.replace('"', "\\\"");
            assert!(lines[0].contains(&part), "{what}: {part}: {}", lines[0]);
        }
        for line in &lines {
            assert!(line.contains("team/cert") && line.len() < 1000, "{what}: {line}");
        }
        match repair {
            Automatic => {
                let stored = store.secret().unwrap();
                for kept in ["/data/foreign", "/metadata/labels/team", "/type"] {
                    assert_eq!(stored.pointer(kept), before.pointer(kept), "{what}: {kept}");
                }
                assert_eq!(*serves().unwrap(), pair_of(&stored), "{what}");
                let bundle = certificates(&value(&stored, "ca.crt"));
                assert_eq!(bundle.contains(&certificates(ca)[0]), ca_stays, "{what}");
                let key = rcgen::KeyPair::from_pem(&value(&stored, "ca.key")).unwrap();
                let is_of_key = |ca: &CertificateDer<'_>| {
                    let ca = x509_parser::parse_x509_certificate(ca).unwrap().1;
                    *ca.public_key().subject_public_key.data == *rcgen::PublicKeyData::der_bytes(&key)
                };
                assert!(certificates(&replica.trusted()).iter().any(is_of_key), "{what}");
                assert!(store.versions() <= 3, "{what}: {} versions", store.versions());
            }
            Deletion => store.delete(),
            Replacement => store.put(secret(&[])),
        }
        clock.pass(61);
        replica.held.send_replace(RegisteredBundle::Unknown);
        until(&format!("{what}: the replica serves"), async || serves().is_some()).await;
        assert_eq!(serves().unwrap().chain == good.chain, leaf_stays, "{what}");
        let trusted: usize = certificates(&replica.trusted()).iter().map(|it| it.len()).sum();
        assert!(trusted <= MOST_BYTES, "{what}: {trusted} bytes are trusted");
        assert_eq!(replica.log.warnings(), lines, "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_writer_that_reverts_every_write_is_answered_six_times_a_minute_and_logged_once() {
    let (store, clock) = (Store::new(), Clock::new());
    let replica = Replica::start(&store, &clock);
    reads_again(&store, &replica).await;
    clock.pass(61);
    for episode in 1..3 {
        store.overwrite_each_write_with(secret(&[("tls.crt", "mine")]));
        store.put(secret(&[("tls.crt", "mine")]));
        for minute in 1..5 {
            let before = store.attempts();
            reads_again(&store, &replica).await;
            assert_eq!(store.attempts(), before + 6, "minute {minute}");
            clock.pass(61);
        }
        let lines = replica.log.warnings();
        for part in ["`tls.crt` and `tls.key` cannot be used together", "keeps changing: find the other writer"] {
            assert_eq!(lines.iter().filter(|it| it.contains(part)).count(), episode, "{part}: {lines:#?}");
        }
        assert_eq!(lines.len(), 2 * episode, "{lines:#?}");
        assert_eq!(replica.log.lines("is in order again").len(), episode - 1);

        store.overwrite_each_write_with(None);
        clock.pass(61);
        reads_again(&store, &replica).await;
        clock.pass(61);
        until("the episode ends", async || replica.log.lines("is in order again").len() == episode).await;
    }
}
