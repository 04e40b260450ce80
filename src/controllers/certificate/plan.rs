//! The decision what to write into the Secret, as a table.
//!
//! It knows neither the network, nor a clock, nor a key: facts and times go in, a [`CertificatePlan`] comes out.
//! [`super::contents`] carries a plan out; [`super::state`] decides what to serve and trust.
//!
//! Two invariants keep every client's verification working. A leaf is not served before the webhook configurations hold its
//! CA. A CA stays in the bundle while any leaf that it signed may be valid. So a rotation takes three steps, and any replica
//! may take each of them:
//!
//! 1. A new CA joins the bundle and its key replaces the old CA's. Replicas keep serving the old leaf.
//! 2. After the configurations have held the new CA for a while, it is *settled*, and signs a leaf.
//! 3. The old CA leaves the bundle at its [last leaf's expiry](StoredAuthority::last_leaf_expiry).
//!
//! A replica with a stale view of the Secret may put the old bundle into the configurations once more. A CA settles for longer
//! than any view can be stale, so step 2 is safe.
//!
//! A new CA is made if the stored CA key is missing, not yet valid, or past two thirds of its CA's lifetime. It is the signer at
//! once, and not settled.
//!
//! | stored leaf | signer is settled | action |
//! |---|---|---|
//! | of the signer, in its first two thirds | – | keep |
//! | of the signer, in its last third | – | issue |
//! | of another CA | no | keep |
//! | of another CA | yes | issue |
//! | missing or unusable | no, and a leaf of another CA is served | restore the served leaf |
//! | missing or unusable | otherwise | issue |

use super::state::{CertificateState, RenewalCause, Seconds, StoredAuthority, StoredLeaf, find, make_room};

/// The next contents of the Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CertificatePlan {
    /// Reason to make a new CA. It goes before the others.
    pub(super) new_authority: Option<RenewalCause>,
    /// CAs that stay in the bundle.
    pub(super) keep: Vec<StoredAuthority>,
    pub(super) leaf: LeafAction,
}

/// Fate of the leaf in the Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafAction {
    Keep,
    /// Put the leaf that this replica serves back into the Secret.
    Restore,
    /// Sign a new leaf with the newest CA.
    Issue(RenewalCause),
}

impl CertificatePlan {
    /// Returns true if the Secret has to be written.
    pub(super) fn changes(&self, stored: &CertificateState) -> bool {
        let kept = self.keep.iter().map(|it| &it.certificate);
        self.new_authority.is_some()
            || self.leaf != LeafAction::Keep
            || !kept.eq(stored.authorities.iter().map(|it| &it.certificate))
    }
}

/// Returns the next contents of the Secret.
///
/// `in_force`: the certificates that this replica serves and trusts. `settled`: the configurations have held the CA whose key is
/// stored for long enough.
pub(super) fn plan(
    stored: &CertificateState,
    in_force: &CertificateState,
    settled: bool,
    now: Seconds,
) -> CertificatePlan {
    let known = in_force.trusted(stored, now);
    let signer = stored.signer.as_ref().and_then(|it| find(&known, it)).ok_or(RenewalCause::Missing);
    let signer = signer.and_then(|it| match it {
        _ if now < it.not_before => Err(RenewalCause::NotYetValid),
        _ if now >= it.due() => Err(RenewalCause::Due),
        _ => Ok(it),
    });
    let new_authority = signer.err();
    let settled = settled && signer.is_ok();
    let is_of = |leaf: &StoredLeaf, authority: &StoredAuthority| leaf.issuer == authority.certificate;
    let is_of_signer = |leaf: &StoredLeaf| signer.is_ok_and(|it| is_of(leaf, it));

    let usable = stored.leaf.as_ref().ok_or(RenewalCause::Missing).and_then(|leaf| leaf.check(&known, now));
    let served = in_force.usable_leaf(now);
    let leaf = match usable {
        Ok(leaf) if is_of_signer(leaf) && now >= leaf.due() => LeafAction::Issue(RenewalCause::Due),
        Ok(leaf) if !is_of_signer(leaf) && settled => LeafAction::Issue(RenewalCause::NewAuthority),
        Ok(_) => LeafAction::Keep,
        Err(_) if !settled && served.is_some_and(|it| !is_of_signer(it)) => LeafAction::Restore,
        Err(cause) => LeafAction::Issue(cause),
    };

    let is_in_use = |it: &StoredAuthority| usable.ok().into_iter().chain(served).any(|leaf| is_of(leaf, it));
    let may_be_served = |it: &StoredAuthority| is_in_use(it) || now < it.last_leaf_expiry(&known);
    let mut keep: Vec<_> = known.iter().filter(|it| may_be_served(it)).cloned().collect();
    // More CAs than are read would be written again and again. Each deletion of the Secret adds one.
    make_room(&mut keep, new_authority.is_some().into(), |it| is_in_use(it) || signer == Ok(it));
    CertificatePlan { new_authority, keep, leaf }
}

#[cfg(test)]
mod simulation;

#[cfg(test)]
pub(super) mod tests {
    use super::super::state::{AUTHORITY_LIFETIME, Certificate, LEAF_LIFETIME, SKEW};
    use super::*;
    use crate::authority::CertificatePair;
    use std::sync::Arc;

    pub(in super::super) const DAY: Seconds = 24 * 3600;
    pub(in super::super) const NOW: Seconds = 1_800_000_000;

    pub(in super::super) fn id(name: &str) -> Certificate {
        name.as_bytes().into()
    }

    /// A CA that a replica made `days` ago.
    pub(in super::super) fn authority(name: &str, days: Seconds) -> StoredAuthority {
        made(id(name), NOW - days * DAY)
    }

    pub(in super::super) fn made(certificate: Certificate, at: Seconds) -> StoredAuthority {
        StoredAuthority { certificate, not_before: at - SKEW, not_after: at + AUTHORITY_LIFETIME, own: true }
    }

    /// A leaf that `issuer` signed `days` ago.
    pub(in super::super) fn leaf(issuer: &str, days: Seconds) -> StoredLeaf {
        signed(&id(issuer), NOW - days * DAY)
    }

    pub(in super::super) fn signed(issuer: &Certificate, at: Seconds) -> StoredLeaf {
        let pair = Arc::new(CertificatePair { chain: at.to_string(), key: String::new() });
        let (not_before, not_after) = (at - SKEW, at + LEAF_LIFETIME);
        StoredLeaf { issuer: Certificate::clone(issuer), not_before, not_after, fits: true, pair }
    }

    pub(in super::super) fn state(authorities: &[StoredAuthority], signer: &str, leaf: StoredLeaf) -> CertificateState {
        let signer = find(authorities, &id(signer)).map(|it| Certificate::clone(&it.certificate));
        CertificateState { authorities: authorities.to_vec(), signer, leaf: Some(leaf) }
    }

    fn nothing() -> CertificateState {
        CertificateState::default()
    }

    /// One CA with its key, made `days` ago, and a leaf of it.
    fn simple(days: Seconds, leaf_days: Seconds) -> CertificateState {
        state(&[authority("a", days)], "a", leaf("a", leaf_days))
    }

    /// A new CA with its key, beside the CA that signed the leaf.
    fn rotating() -> CertificateState {
        state(&[authority("new", 0), authority("old", 2434)], "new", leaf("old", 30))
    }

    /// One CA with its key, made `days` ago for one year, and a leaf of it.
    fn of_earlier_release(days: Seconds) -> CertificateState {
        let not_after = NOW + (365 - days) * DAY;
        state(&[StoredAuthority { not_after, ..authority("a", days) }], "a", leaf("a", 10))
    }

    fn without_leaf(state: CertificateState) -> CertificateState {
        CertificateState { leaf: None, ..state }
    }

    fn without_key(state: CertificateState) -> CertificateState {
        CertificateState { signer: None, ..state }
    }

    fn for_another_service(state: CertificateState) -> CertificateState {
        CertificateState { leaf: state.leaf.map(|leaf| StoredLeaf { fits: false, ..leaf }), ..state }
    }

    /// The plan in short: `+` for a new CA, the CAs that stay, and the fate of the leaf.
    fn summary(plan: &CertificatePlan) -> String {
        let new = plan.new_authority.map(|cause| format!("+ ({cause}) ")).unwrap_or_default();
        let keep: Vec<_> = plan.keep.iter().map(|it| String::from_utf8_lossy(&it.certificate).into_owned()).collect();
        let leaf = match plan.leaf {
            LeafAction::Keep => "keep".to_owned(),
            LeafAction::Restore => "restore".to_owned(),
            LeafAction::Issue(cause) => format!("issue ({cause})"),
        };
        format!("{new}{}: {leaf}", keep.join(" "))
    }

    /// A test for each row: the stored and the served certificates, true if the stored CA is settled, and the plan.
    macro_rules! transitions {
        ($($name:ident: $stored:expr, $in_force:expr, $settled:expr => $want:expr;)*) => {$(
            #[test]
            fn $name() {
                let stored = $stored;
                let plan = plan(&stored, &$in_force, $settled, NOW);
                assert_eq!(summary(&plan), $want);
                let is_unchanged =
                    plan.new_authority.is_none() && plan.leaf == LeafAction::Keep && plan.keep == stored.authorities;
                assert_eq!(plan.changes(&stored), !is_unchanged);
            }
        )*};
    }

    transitions! {
        an_empty_secret_gets_a_ca_and_a_leaf:
            nothing(), nothing(), false => "+ (there was none) : issue (there was none)";
        certificates_in_their_first_two_thirds_stay:
            simple(2000, 10), nothing(), false => "a: keep";
        a_leaf_in_its_last_third_is_renewed:
            simple(2000, 61), nothing(), false => "a: issue (two thirds of its lifetime have passed)";
        a_ca_in_its_last_third_is_replaced_and_its_leaf_stays:
            simple(2434, 10), simple(2434, 10), true => "+ (two thirds of its lifetime have passed) a: keep";
        a_ca_for_one_year_of_an_earlier_release_is_replaced_and_its_leaf_stays:
            of_earlier_release(244), of_earlier_release(244), true
                => "+ (two thirds of its lifetime have passed) a: keep";
        a_ca_for_one_year_of_an_earlier_release_stays_for_two_thirds_of_it:
            of_earlier_release(243), of_earlier_release(243), true => "a: keep";
        a_new_ca_that_has_not_settled_does_not_sign:
            rotating(), rotating(), false => "new old: keep";
        a_new_ca_that_has_settled_signs:
            rotating(), rotating(), true => "new old: issue (there is a new CA)";
        a_new_ca_signs_when_the_old_leaf_expires:
            state(&[authority("new", 0), authority("old", 2434)], "new", leaf("old", 90)), nothing(), false
                => "new old: issue (it has expired)";
        an_old_ca_leaves_when_its_leaves_have_expired:
            state(&[authority("a", 91), authority("b", 335)], "a", leaf("a", 31)), nothing(), false => "a: keep";
        an_old_ca_stays_while_its_leaves_may_be_valid:
            state(&[authority("a", 90), authority("b", 334)], "a", leaf("a", 31)), nothing(), false => "a b: keep";
        a_foreign_ca_stays_until_it_expires:
            state(&[authority("a", 200), StoredAuthority { own: false, ..authority("b", 300) }], "a", leaf("a", 31)),
            nothing(), false => "a b: keep";
        after_a_deletion_the_served_leaf_is_restored:
            nothing(), simple(2000, 10), false => "+ (there was none) a: restore";
        after_a_deletion_an_expired_ca_is_not_restored:
            nothing(), simple(3650, 10), false => "+ (there was none) : issue (there was none)";
        a_lost_ca_key_is_replaced_and_the_leaf_stays:
            without_key(simple(2000, 10)), nothing(), false => "+ (there was none) a: keep";
        a_lost_leaf_is_issued_by_the_ca_of_the_served_one:
            without_leaf(simple(9, 1)), simple(9, 1), false => "a: issue (there was none)";
        a_leaf_lost_during_a_rotation_is_restored:
            without_leaf(rotating()), rotating(), false => "new old: restore";
        a_leaf_lost_after_the_new_ca_settled_is_issued:
            without_leaf(rotating()), rotating(), true => "new old: issue (there was none)";
        a_leaf_lost_while_its_ca_is_replaced_is_restored:
            without_leaf(simple(2434, 10)), simple(2434, 10), true
                => "+ (two thirds of its lifetime have passed) a: restore";
        a_leaf_for_another_service_is_replaced:
            for_another_service(simple(9, 1)), nothing(), false => "a: issue (it is for another Service)";
        the_ca_of_the_served_leaf_joins_the_bundle_of_a_replaced_secret:
            state(&[authority("new", 0)], "new", leaf("new", 0)), simple(100, 10), false => "new a: keep";
        certificates_from_the_future_are_replaced:
            simple(-2, -2), nothing(), false => "+ (it is not valid yet) a: issue (it is not valid yet)";
    }
}
