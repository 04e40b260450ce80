//! The certificates of a Secret as facts, and those that a replica serves and trusts.
//!
//! It knows neither PEM nor X.509, neither the network nor a clock. [`super::contents`] reads a Secret, and [`super::plan`] decides
//! what to write.

use crate::authority::CertificatePair;
use std::sync::Arc;
use std::time::Duration;

/// A certificate, DER.
pub(super) type Certificate = Arc<[u8]>;

/// A time in seconds since 1970, or a number of seconds.
pub(super) type Seconds = i64;

/// Greatest difference between two clocks. Certificates are valid from this long before they are made, and are not relied
/// on for this long before they expire.
pub(super) const SKEW: Seconds = 3600;

const DAY: Seconds = 24 * 3600;

/// Lifetime of a CA: ten years. One that replicas make is replaced only after six of them, or if its key is lost.
pub(super) const AUTHORITY_LIFETIME: Seconds = 3650 * DAY;

/// Lifetime of a serving certificate.
pub(super) const LEAF_LIFETIME: Seconds = 90 * DAY;

/// Most CAs.
pub(super) const MOST: usize = 32;

/// Most bytes of all CAs, DER. Each entry of the webhook configurations holds all of them.
pub(super) const MOST_BYTES: usize = 64 * 1024;

/// Most bytes of one CA, DER.
pub(super) const LONGEST: usize = 16 * 1024;

/// A CA in the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredAuthority {
    pub(super) certificate: Certificate,
    pub(super) not_before: Seconds,
    pub(super) not_after: Seconds,
    /// True if a replica made it. The lifetimes of a foreign CA's leaves are unknown.
    pub(super) own: bool,
}

/// A serving certificate whose key is in the Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredLeaf {
    /// Certificate of the CA that signed it; empty if that CA is not in the bundle.
    pub(super) issuer: Certificate,
    pub(super) not_before: Seconds,
    pub(super) not_after: Seconds,
    /// True if it has the name by which the API server calls.
    pub(super) fits: bool,
    pub(super) pair: Arc<CertificatePair>,
}

/// The certificates of a Secret, or those that a replica serves and trusts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CertificateState {
    /// CAs to trust, the newest first.
    pub(super) authorities: Vec<StoredAuthority>,
    /// Certificate of the CA whose key is in the Secret.
    pub(super) signer: Option<Certificate>,
    pub(super) leaf: Option<StoredLeaf>,
}

/// Reason to replace a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum RenewalCause {
    #[error("there was none")]
    Missing,
    #[error("two thirds of its lifetime have passed")]
    Due,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    NotYetValid,
    #[error("it is for another Service")]
    OtherService,
    #[error("its CA is not in the bundle")]
    UnknownAuthority,
    #[error("there is a new CA")]
    NewAuthority,
}

impl StoredAuthority {
    pub(super) fn is_valid(&self, now: Seconds) -> bool {
        (self.not_before..self.not_after).contains(&now)
    }

    pub(super) fn made_at(&self) -> Seconds {
        self.not_before + SKEW
    }

    /// Returns when to replace it.
    pub(super) fn due(&self) -> Seconds {
        two_thirds(self.not_before, self.not_after)
    }

    /// Returns the latest possible expiry of any leaf that this CA signed.
    ///
    /// A CA signs nothing after the next one is made. `all`: the CAs of the bundle, the newest first. Their order tells which of two is
    /// newer if the clocks of the replicas that made them do not.
    pub(super) fn last_leaf_expiry(&self, all: &[Self]) -> Seconds {
        if !self.own {
            return self.not_after;
        }
        let position = all.iter().position(|it| it.certificate == self.certificate).unwrap_or(all.len());
        let newer = all.iter().enumerate().filter(|(at, it)| {
            let later = it.made_at().saturating_sub(self.made_at());
            it.own && (later > SKEW || *at < position && later >= -SKEW)
        });
        let next = newer.map(|(_, it)| it.made_at().max(self.made_at())).min();
        next.map_or(self.not_after, |made| self.not_after.min(made + LEAF_LIFETIME + SKEW))
    }
}

impl StoredLeaf {
    /// Returns the reason not to serve this leaf as an error, given the CAs that may have signed it.
    pub(super) fn check(&self, authorities: &[StoredAuthority], now: Seconds) -> Result<&Self, RenewalCause> {
        let authority = find(authorities, &self.issuer);
        match authority {
            _ if !self.fits => Err(RenewalCause::OtherService),
            _ if now < self.not_before => Err(RenewalCause::NotYetValid),
            // Any other leaf is better in the last hour, even one whose CA may not be trusted yet.
            _ if now >= self.not_after - SKEW => Err(RenewalCause::Expired),
            None => Err(RenewalCause::UnknownAuthority),
            // A leaf may outlast a foreign CA. Clients refuse it then.
            Some(authority) if !authority.is_valid(now) => Err(RenewalCause::Expired),
            Some(_) => Ok(self),
        }
    }

    /// Returns when to replace it.
    pub(super) fn due(&self) -> Seconds {
        two_thirds(self.not_before, self.not_after)
    }
}

impl CertificateState {
    /// Returns the leaf if it has no fault.
    pub(super) fn usable_leaf(&self, now: Seconds) -> Option<&StoredLeaf> {
        self.leaf.as_ref()?.check(&self.authorities, now).ok()
    }

    /// Serves and trusts the stored certificates where they are better than these. Returns true if the leaf was replaced.
    ///
    /// `holds` tells whether the webhook configurations hold a CA.
    pub(super) fn adopt(&mut self, stored: &Self, holds: impl Fn(&Certificate) -> bool, now: Seconds) -> bool {
        let replaced = self.leaf != stored.leaf && self.gives_way_to(stored, holds, now);
        if replaced {
            self.leaf.clone_from(&stored.leaf);
        }
        self.authorities = self.trusted(stored, now);
        replaced
    }

    /// Returns true if the stored leaf is better than the served one.
    fn gives_way_to(&self, stored: &Self, holds: impl Fn(&Certificate) -> bool, now: Seconds) -> bool {
        let (Some(new), Some(current)) = (&stored.leaf, &self.leaf) else { return stored.leaf.is_some() };
        match (stored.usable_leaf(now), self.usable_leaf(now)) {
            (Some(_), Some(_)) => new.issuer == current.issuer || holds(&new.issuer),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => new.not_after > current.not_after,
        }
    }

    /// Returns the CAs to trust: the stored ones, and the CA of the served leaf.
    ///
    /// CAs that have expired are left out. If the Secret holds no CA, because it was deleted or damaged, the CAs of before stay.
    pub(super) fn trusted(&self, stored: &Self, now: Seconds) -> Vec<StoredAuthority> {
        let unexpired =
            |state: &Self| state.authorities.iter().filter(|it| now < it.not_after).cloned().collect::<Vec<_>>();
        let stored = unexpired(stored);
        let mut authorities = if stored.is_empty() { unexpired(self) } else { stored };
        let issuer = self.usable_leaf(now).and_then(|leaf| find(&self.authorities, &leaf.issuer));
        authorities.extend(issuer.filter(|it| find(&authorities, &it.certificate).is_none()).cloned());
        authorities
    }
}

/// The time since which the webhook configurations have held the CA whose key is stored.
#[derive(Debug, Clone, Default)]
pub(super) struct Settling {
    since: Option<(Certificate, Duration)>,
}

impl Settling {
    /// Returns true if the configurations have held `signer` for `settle`.
    ///
    /// `holds` tells whether they hold a CA, and `now` is the time of a monotonic clock.
    pub(super) fn is_over(
        &mut self,
        signer: Option<&Certificate>,
        holds: impl Fn(&Certificate) -> bool,
        now: Duration,
        settle: Duration,
    ) -> bool {
        let before = self.since.take();
        let Some(signer) = signer.filter(|it| holds(it)) else { return false };
        let since = before.filter(|(held, _)| held == signer).map_or(now, |(_, since)| since);
        self.since = Some((Certificate::clone(signer), since));
        now.saturating_sub(since) >= settle
    }
}

/// Removes CAs that are not in use, the last first, until there is room for `new` more. Returns true if it removes any.
pub(super) fn make_room(
    authorities: &mut Vec<StoredAuthority>,
    new: usize,
    is_in_use: impl Fn(&StoredAuthority) -> bool,
) -> bool {
    let before = authorities.len();
    let mut bytes: usize = authorities.iter().map(|it| it.certificate.len()).sum();
    while (authorities.len() + new > MOST || bytes + new * LONGEST > MOST_BYTES)
        && let Some(last) = authorities.iter().rposition(|it| !is_in_use(it))
    {
        bytes -= authorities.remove(last).certificate.len();
    }
    authorities.len() < before
}

pub(super) fn find<'a>(authorities: &'a [StoredAuthority], certificate: &Certificate) -> Option<&'a StoredAuthority> {
    authorities.iter().find(|it| it.certificate == *certificate)
}

fn two_thirds(from: Seconds, to: Seconds) -> Seconds {
    from + (to - from) / 3 * 2
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{NOW, authority, id, leaf, made, state};
    use super::*;

    /// A replica that serves a leaf of the CA `a`.
    fn serving(leaf_days: Seconds) -> CertificateState {
        state(&[authority("a", 100)], "a", leaf("a", leaf_days))
    }

    /// A Secret with a leaf of the new CA `b`.
    fn rotated() -> CertificateState {
        state(&[authority("b", 0), authority("a", 100)], "b", leaf("b", 0))
    }

    #[test]
    fn a_stored_leaf_takes_over_when_its_ca_is_held_or_the_served_leaf_is_unusable() {
        let rows = [
            ("the first leaf", serving(1), CertificateState::default(), false, true),
            ("a leaf renewed by the same CA", serving(0), serving(60), false, true),
            ("a leaf of a new CA that is not held", rotated(), serving(9), false, false),
            ("a leaf of a new CA that is held", rotated(), serving(9), true, true),
            ("a leaf of a new CA after the served one expired", rotated(), serving(90), false, true),
            ("an expired leaf", serving(90), serving(9), true, false),
            ("both expired, the stored one first", serving(91), serving(90), true, false),
            ("no stored leaf", CertificateState::default(), serving(9), true, false),
        ];
        for (row, stored, mut in_force, held, want) in rows {
            assert_eq!(CertificateState::adopt(&mut in_force, &stored, |_| held, NOW), want, "{row}");
        }
    }

    #[test]
    fn a_ca_signs_until_the_next_one_in_the_bundle_is_made_whatever_the_clock_of_its_replica() {
        let at = |name: &str, seconds: Seconds| made(id(name), NOW + seconds);
        let (early, late) = (at("early", -26), at("late", 0));
        let ends = |made_at: Seconds| made_at + LEAF_LIFETIME + SKEW;
        // The replica whose clock is behind made the newer CA.
        let bundle = [early.clone(), late.clone()];
        assert_eq!(early.last_leaf_expiry(&bundle), early.not_after);
        assert_eq!(late.last_leaf_expiry(&bundle), ends(NOW));
        let bundle = [at("next", 9 * SKEW), early.clone(), late.clone()];
        assert_eq!(early.last_leaf_expiry(&bundle), ends(NOW + 9 * SKEW));
        assert_eq!(late.last_leaf_expiry(&bundle), ends(NOW));
        // The CA of the served leaf is the last of the bundle, whenever it was made.
        let bundle = [late.clone(), at("served", 9 * SKEW)];
        assert_eq!(bundle[1].last_leaf_expiry(&bundle), bundle[1].not_after);
        assert_eq!(late.last_leaf_expiry(&bundle), ends(NOW + 9 * SKEW));
    }

    #[test]
    fn settling_starts_again_when_the_ca_changes_or_is_no_longer_held() {
        let (a, b) = (id("a"), id("b"));
        let mut settling = Settling::default();
        let settle = Duration::from_mins(1);
        let rows = [
            (Some(&a), true, 10, false),
            (Some(&a), true, 69, false),
            (Some(&a), true, 70, true),
            (Some(&a), false, 80, false),
            (Some(&a), true, 90, false),
            (Some(&b), true, 150, false),
            (Some(&b), true, 209, false),
            (Some(&b), true, 210, true),
            (None, true, 300, false),
        ];
        for (signer, holds, now, want) in rows {
            let now = Duration::from_secs(now);
            assert_eq!(settling.is_over(signer, |_| holds, now, settle), want, "at {now:?}");
        }
    }
}
