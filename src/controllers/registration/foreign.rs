//! Foreign CAs: certificates in the webhook configurations that this replica did not put there.
//!
//! Replicas with a mounted certificate may see a new CA at different times. A foreign CA therefore stays for some minutes.

use crate::authority::{since_1970, valid_seconds};
use crate::controllers::handover::CaBundle;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Time for which a foreign CA stays. By then every replica has the new mounted Secret.
const STAYS: Duration = Duration::from_mins(10);

/// The foreign CAs, DER, each with the time at which it was first seen.
#[derive(Debug, Default)]
pub(super) struct ForeignAuthorities(BTreeMap<Box<[u8]>, Instant>);

impl ForeignAuthorities {
    /// Returns the bundle to register: `ours`, and the CAs of `found` that have neither expired by `clock` nor been foreign for long.
    pub(super) fn beside(&mut self, ours: &CaBundle, found: &CaBundle, now: Instant, clock: SystemTime) -> CaBundle {
        self.0.retain(|certificate, _| found.contains(certificate) && !ours.contains(certificate));
        let foreign = found.difference(ours).filter(|certificate| !has_expired(certificate, clock));
        let stay = foreign.filter(|certificate| {
            let seen = *self.0.entry(Box::clone(certificate)).or_insert(now);
            now.saturating_duration_since(seen) < STAYS
        });
        stay.chain(ours.iter()).cloned().collect()
    }
}

/// Returns true if a certificate, DER, has expired or cannot be parsed.
fn has_expired(certificate: &[u8], clock: SystemTime) -> bool {
    let Ok(validity) = valid_seconds(certificate) else { return true };
    *validity.end() < since_1970(clock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::handover::ca_bundle;
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
    fn a_foreign_ca_stays_for_ten_minutes_and_an_expired_one_goes_at_once() {
        let (ours, foreign) = (ca(), ca());
        let found = ca_bundle(format!("{foreign}{}", ca_until(2020)));
        let both = ca_bundle(format!("{ours}{foreign}"));
        let ours = ca_bundle(ours);
        let mut authorities = ForeignAuthorities::default();
        let start = Instant::now();
        assert_eq!(authorities.beside(&ours, &found, start, SystemTime::now()), both);
        assert_eq!(authorities.beside(&ours, &both, start + STAYS * 9 / 10, SystemTime::now()), both);
        assert_eq!(authorities.beside(&ours, &both, start + STAYS, SystemTime::now()), ours);
        // A CA that was gone and comes back stays for another ten minutes.
        assert_eq!(authorities.beside(&ours, &ours, start + STAYS, SystemTime::now()), ours);
        assert_eq!(authorities.beside(&ours, &both, start + STAYS, SystemTime::now()), both);
    }

    #[test]
    fn a_ca_of_ours_becomes_foreign_when_it_is_replaced() {
        let (old, new) = (ca(), ca());
        let both = ca_bundle(format!("{old}{new}"));
        let (old, new) = (ca_bundle(old), ca_bundle(new));
        let mut authorities = ForeignAuthorities::default();
        let start = Instant::now();
        assert_eq!(authorities.beside(&old, &old, start, SystemTime::now()), old);
        let replaced = start + STAYS * 3;
        assert_eq!(authorities.beside(&new, &old, replaced, SystemTime::now()), both);
        assert_eq!(authorities.beside(&new, &both, replaced + STAYS, SystemTime::now()), new);
    }
}
