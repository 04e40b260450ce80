//! Bundles of CAs: what an entry holds, and what it is to hold.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use x509_parser::parse_x509_certificate;

/// A CA that somebody else has put there stays for so long: as long as it may take until all replicas have been given the
/// same.
const STAYS: Duration = Duration::from_mins(10);

/// Certificates, each once and in a fixed order, so that two replicas write the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bundle(BTreeSet<Box<[u8]>>);

impl Bundle {
    /// The certificates of a PEM text. What is none is left out.
    pub(super) fn read(pem: &[u8]) -> Self {
        let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
        Self(certificates.map(|certificate| certificate.as_ref().into()).collect())
    }

    /// As PEM.
    pub(super) fn to_pem(&self) -> String {
        const LINE: usize = 64;
        let mut text = String::new();
        for certificate in &self.0 {
            text.push_str("-----BEGIN CERTIFICATE-----\n");
            for line in BASE64_STANDARD.encode(certificate).as_bytes().chunks(LINE) {
                text.extend(line.iter().copied().map(char::from));
                text.push('\n');
            }
            text.push_str("-----END CERTIFICATE-----\n");
        }
        text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn includes(&self, other: &Self) -> bool {
        other.0.is_subset(&self.0)
    }

    pub(super) fn union(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }
}

/// CAs that are there and not ours, each with when it was first seen.
#[derive(Debug, Default)]
pub(super) struct Strangers(BTreeMap<Box<[u8]>, Instant>);

impl Strangers {
    /// What is to be held where these are ours and those are found: ours, and of the others those that have not ended and
    /// not been there for long.
    pub(super) fn beside(&mut self, ours: &Bundle, found: &Bundle, now: Instant) -> Bundle {
        self.0.retain(|certificate, _| found.0.contains(certificate) && !ours.0.contains(certificate));
        let mut all = ours.clone();
        for certificate in found.0.difference(&ours.0).filter(|certificate| !has_ended(certificate)) {
            let seen = *self.0.entry(certificate.clone()).or_insert(now);
            if now.saturating_duration_since(seen) < STAYS {
                all.0.insert(certificate.clone());
            }
        }
        all
    }
}

/// What is no certificate has ended, too.
fn has_ended(certificate: &[u8]) -> bool {
    let Ok((_, certificate)) = parse_x509_certificate(certificate) else { return true };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(now).is_ok_and(|now| certificate.validity().not_after.timestamp() < now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    fn ca_until(last_year: i32) -> String {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_after = date_time_ymd(last_year, 1, 1);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    fn ca() -> String {
        ca_until(4096)
    }

    #[test]
    fn a_bundle_is_the_same_whatever_the_order_and_the_line_ends() {
        let (one, other) = (ca(), ca());
        let bundle = Bundle::read(format!("{one}{other}").as_bytes());
        assert_eq!(
            bundle,
            Bundle::read(format!("# a comment\n{other}\n{one}{other}").replace('\n', "\r\n").as_bytes())
        );
        assert_eq!(bundle.to_pem().matches("BEGIN").count(), 2);
        assert_eq!(Bundle::read(bundle.to_pem().as_bytes()), bundle);
        assert_eq!(bundle.intersection(&Bundle::read(one.as_bytes())), Bundle::read(one.as_bytes()));
        assert!(Bundle::read(b"nonsense").is_empty());
    }

    #[test]
    fn a_strange_ca_stays_for_ten_minutes_and_one_that_has_ended_goes_at_once() {
        let read = |pem: &str| Bundle::read(pem.as_bytes());
        let (ours, strange) = (ca(), ca());
        let found = read(&format!("{strange}{}", ca_until(2020)));
        let both = read(&format!("{ours}{strange}"));
        let mut strangers = Strangers::default();
        let start = Instant::now();
        assert_eq!(strangers.beside(&read(&ours), &found, start), both);
        assert_eq!(strangers.beside(&read(&ours), &both, start + STAYS * 9 / 10), both);
        assert_eq!(strangers.beside(&read(&ours), &both, start + STAYS), read(&ours));
        // Whoever puts it back means it.
        assert_eq!(strangers.beside(&read(&ours), &read(&ours), start + STAYS), read(&ours));
        assert_eq!(strangers.beside(&read(&ours), &both, start + STAYS), both);
    }

    #[test]
    fn what_was_ours_is_strange_from_when_it_is_no_longer() {
        let read = |pem: &str| Bundle::read(pem.as_bytes());
        let (old, new) = (ca(), ca());
        let mut strangers = Strangers::default();
        let start = Instant::now();
        assert_eq!(strangers.beside(&read(&old), &read(&old), start), read(&old));
        let both = read(&format!("{old}{new}"));
        let turned = start + STAYS * 3;
        assert_eq!(strangers.beside(&read(&new), &read(&old), turned), both);
        assert_eq!(strangers.beside(&read(&new), &both, turned + STAYS), read(&new));
    }
}
