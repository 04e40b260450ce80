//! The certificates that a replica serves and trusts: when a stored leaf takes over, and which CAs to publish.
//!
//! It knows neither the network nor a clock. [`super::plan`] decides what to write.

use super::state::{Certificate, CertificateState, Seconds, StoredAuthority, find};

/// Returns true if the stored leaf replaces the served one.
///
/// `holds` tells whether the webhook configurations hold a CA.
pub(super) fn takes_over(
    stored: &CertificateState,
    in_force: &CertificateState,
    holds: impl Fn(&Certificate) -> bool,
    now: Seconds,
) -> bool {
    let (Some(new), Some(current)) = (&stored.leaf, &in_force.leaf) else { return stored.leaf.is_some() };
    match (stored.usable_leaf(now), in_force.usable_leaf(now)) {
        (Some(_), Some(_)) => new.issuer == current.issuer || holds(&new.issuer),
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => new.not_after > current.not_after,
    }
}

/// Returns the CAs to trust: the stored ones, and the CA of the served leaf.
///
/// CAs that have expired are left out. If the Secret holds no CA, because it was deleted or damaged, the CAs of before stay.
pub(super) fn trusted(stored: &CertificateState, in_force: &CertificateState, now: Seconds) -> Vec<StoredAuthority> {
    let unexpired = |state: &CertificateState| {
        state.authorities.iter().filter(|it| now < it.not_after).cloned().collect::<Vec<_>>()
    };
    let stored = unexpired(stored);
    let mut authorities = if stored.is_empty() { unexpired(in_force) } else { stored };
    let issuer = in_force.usable_leaf(now).and_then(|leaf| find(&in_force.authorities, &leaf.issuer));
    authorities.extend(issuer.filter(|it| find(&authorities, &it.certificate).is_none()).cloned());
    authorities
}

/// The time since which the webhook configurations have held the CA whose key is stored.
#[derive(Debug, Default)]
pub(super) struct Settling {
    since: Option<(Certificate, Seconds)>,
}

impl Settling {
    /// Returns how long the configurations have held `signer`; `None` if they do not hold it or that is unknown.
    ///
    /// `now` is the time of a monotonic clock.
    pub(super) fn held_for(
        &mut self,
        signer: Option<&Certificate>,
        holds: impl Fn(&Certificate) -> bool,
        now: Seconds,
    ) -> Option<Seconds> {
        let signer = signer.filter(|it| holds(it));
        let since = match (signer, self.since.take()) {
            (None, _) => return None,
            (Some(signer), Some((held, since))) if *signer == held => (held, since),
            (Some(signer), _) => (Certificate::clone(signer), now),
        };
        Some(now - self.since.insert(since).1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{NOW, authority, id, leaf, state};
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
        for (row, stored, in_force, held, want) in rows {
            assert_eq!(takes_over(&stored, &in_force, |_| held, NOW), want, "{row}");
        }
    }

    #[test]
    fn settling_starts_again_when_the_ca_changes_or_is_no_longer_held() {
        let (a, b) = (id("a"), id("b"));
        let mut settling = Settling::default();
        let rows = [
            (Some(&a), true, 10, Some(0)),
            (Some(&a), true, 40, Some(30)),
            (Some(&a), false, 50, None),
            (Some(&a), true, 60, Some(0)),
            (Some(&b), true, 90, Some(0)),
            (Some(&b), true, 95, Some(5)),
            (None, true, 99, None),
        ];
        for (signer, holds, now, want) in rows {
            assert_eq!(settling.held_for(signer, |_| holds, now), want, "at {now}");
        }
    }
}
