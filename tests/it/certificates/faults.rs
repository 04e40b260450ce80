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

/// Returns a CA certificate, PEM, with this many bytes of DER at least.
fn authority_of(bytes: usize) -> String {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.custom_extensions =
        vec![rcgen::CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 9999], vec![4; bytes])];
    params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
}

/// Lets the replica read the Secret some times more, whatever it waits for.
async fn reads_again(store: &Store, replica: &Replica) {
    for _ in 0..8 {
        let before = store.reads(replica.number);
        replica.held.send_replace(RegisteredBundle::Unknown);
        until("the replica reads the Secret", async || store.reads(replica.number) > before).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_of_the_secret_is_logged_once_and_the_replica_serves_when_it_is_mended() {
    let clock = Clock::new();
    let validity = Validity::new(clock.now(), Duration::from_secs(50 * DAY));
    let authority = CertificateAuthority::new("one", validity).unwrap();
    let names = ["hook.team.svc".to_owned()];
    let good = authority.issue("x", &names, validity).unwrap();
    let ended = Validity { not_before: validity.not_before, not_after: clock.now() - Duration::from_secs(1) };
    let ended = authority.issue("x", &names, ended).unwrap();
    let (ca, ca_key) = (authority.certificate(), authority.key());
    let data = |chain: &str, key: &str, bundle: &str| {
        secret(&[("tls.crt", chain), ("tls.key", key), ("ca.crt", bundle), ("ca.key", &ca_key)])
    };
    let with = |mut secret: Value, pointer: &str, value: Value| {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        secret.pointer_mut(parent).unwrap()[key] = value;
        secret
    };
    let bundle = |bundle: &str| data(&good.chain, &good.key, bundle);
    let immutable = |secret: Value| with(secret, "/immutable", json!(true));
    let small = authority_of(0);
    let many: String = (0..900 * 1024 / small.len()).map(|_| authority_of(0)).collect();
    let garbage = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", "QUJD".repeat(200));
    let garbage = garbage.repeat(900 * 1024 / garbage.len());
    let one = authority_of(600 * 1024);
    let filled = STANDARD.encode(vec![0; LONGEST - 100]);
    let beyond = "`ca.crt` holds more than 32 CAs, more than 64 KiB, or a CA of more than 16 KiB";
    let no_authority = "`ca.crt` holds data that is not a CA";
    let of_leaf = "`tls.crt` and `tls.key` cannot be used together";
    // The Secret, the texts in the one line, if the stored leaf is served, and who makes the Secret usable.
    let rows: [(&str, Value, &[&str], bool, Repair); 14] = [
        ("foreign keys", with(bundle(ca), "/data/foreign", json!("a2VwdA==")), &[], true, Automatic),
        ("no data, Opaque", secret(&[]), &[], false, Automatic),
        ("a foreign type", with(secret(&[]), "/type", json!("example.com/foreign")), &[], false, Automatic),
        ("an expired certificate", data(&ended.chain, &ended.key, ca), &[], false, Automatic),
        ("no PEM", data("foreign", "foreign", "foreign"), &["`ca.crt` holds no CA", of_leaf], false, Automatic),
        ("much garbage", bundle(&garbage), &[no_authority], false, Automatic),
        ("much garbage before the CA", bundle(&format!("{garbage}{ca}")), &[no_authority], true, Automatic),
        ("many CAs before the CA", bundle(&format!("{many}{ca}")), &[beyond], true, Automatic),
        ("a huge CA before the CA", bundle(&format!("{one}{ca}")), &[beyond], true, Automatic),
        ("a huge CA", bundle(&one), &[beyond], false, Automatic),
        ("a huge chain", data(&format!("{}{one}", good.chain), &good.key, ca), &["`tls.crt`"], false, Automatic),
        (
            "a huge foreign key",
            with(secret(&[]), "/data/foreign", json!(filled)),
            &[TOO_LONG, "delete"],
            false,
            Replacement,
        ),
        ("immutable, expired", immutable(data(&ended.chain, &ended.key, ca)), &[IMMUTABLE, "delete"], false, Deletion),
        ("immutable, no PEM", immutable(bundle("foreign")), &[IMMUTABLE, "`ca.crt` holds no CA"], false, Deletion),
    ];
    for (what, before, says, leaf_stays, repair) in rows {
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
                assert_eq!(stored["data"]["foreign"], before["data"]["foreign"], "{what}");
                assert_eq!(stored["type"], before["type"], "{what}");
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
async fn another_writer_that_reverts_every_write_is_logged_once_until_it_stops() {
    let (store, clock) = (Store::new(), Clock::new());
    let replica = Replica::start(&store, &clock);
    for episode in 1..3 {
        store.overwrite_each_write_with(secret(&[("tls.crt", "mine")]));
        store.put(secret(&[("tls.crt", "mine")]));
        for _ in 0..4 {
            clock.pass(61);
            reads_again(&store, &replica).await;
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
