//! The decision what to write into the Secret, as a table.
//!
//! It knows neither the network, nor a clock, nor a key: facts and times go in, a [`CertificatePlan`] comes out.
//! [`super::contents`] carries a plan out; [`super::in_force`] decides what to serve and trust.
//!
//! Two invariants keep every client's verification working. A leaf is not served before the webhook configurations hold its
//! CA. A CA stays in the bundle while any leaf that it signed may be valid. So a rotation takes three steps, and any replica
//! may take each of them:
//!
//! 1. A new CA joins the bundle and its key replaces the old CA's. Replicas keep serving the old leaf.
//! 2. After the configurations have held the new CA for [`Lifetimes::settle`], it signs a leaf.
//! 3. The old CA leaves the bundle at its [last leaf's expiry](StoredAuthority::last_leaf_expiry).
//!
//! A replica with a stale view of the Secret may put the old bundle into the configurations once more. `settle` is longer
//! than any view can be stale, so step 2 is safe.
//!
//! | stored CA key | action |
//! |---|---|
//! | missing, not yet valid, or past two thirds of its CA's lifetime | make a CA; it is *pending* |
//! | usable, but the configurations have held its CA for less than `settle` | none; the CA is *pending* |
//! | usable, and settled | none; the CA is *settled* |
//!
//! | stored leaf | CA | leaf of an older CA is served | action |
//! |---|---|---|---|
//! | signed by the CA, in its first two thirds | – | – | keep |
//! | signed by the CA, in its last third | – | – | issue |
//! | signed by an older CA | pending | – | keep |
//! | signed by an older CA | settled | – | issue |
//! | missing or unusable | pending | yes | restore the served leaf |
//! | missing or unusable | otherwise | | issue |

use super::in_force::trusted;
use super::state::{
    CertificateState, Lifetimes, RenewalCause, SKEW, Seconds, StoredAuthority, StoredLeaf, find, make_room,
};

/// The next contents of the Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CertificatePlan {
    /// Reason to make a new CA. It goes before the others.
    pub(super) new_authority: Option<RenewalCause>,
    /// CAs that stay in the bundle.
    pub(super) keep: Vec<StoredAuthority>,
    pub(super) leaf: LeafAction,
    /// Time of the next decision if nothing changes before.
    pub(super) next_check: Seconds,
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

/// The stored leaf, seen from the CA whose key is stored.
#[derive(Debug, Clone, Copy)]
enum LeafStatus {
    /// The CA signed it, and it is not due.
    Current,
    /// The CA signed it, and two thirds of its lifetime have passed.
    Due,
    /// A CA of the bundle signed it that is not, or will not be, the one whose key is stored.
    OfOlderAuthority,
    /// It is missing, or clients refuse it.
    Unusable(RenewalCause),
}

/// The CA that signs the next leaf.
#[derive(Debug, Clone, Copy)]
enum SignerStatus {
    /// The configurations have held it for [`Lifetimes::settle`].
    Settled,
    /// Clients may not trust it yet.
    Pending,
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
/// `in_force`: the certificates that this replica serves and trusts. `held_for`: how long the configurations have held the
/// CA whose key is stored; `None` if they do not hold it or that is unknown.
pub(super) fn plan(
    stored: &CertificateState,
    in_force: &CertificateState,
    held_for: Option<Seconds>,
    now: Seconds,
    lifetimes: Lifetimes,
) -> CertificatePlan {
    let known = trusted(stored, in_force, now);
    let signer = stored.signer.as_ref().and_then(|it| find(&known, it));
    let new_authority = signer_fault(signer, now);
    let signer = signer.filter(|_| new_authority.is_none());
    let signer_status = match held_for {
        Some(held) if signer.is_some() && held >= lifetimes.settle => SignerStatus::Settled,
        _ => SignerStatus::Pending,
    };
    let usable = stored.leaf.as_ref().filter(|leaf| leaf.fault(&known, now).is_none());
    let served = in_force.usable_leaf(now);
    let serves_older = served.is_some_and(|leaf| !is_signed_by(leaf, signer));
    let leaf = leaf_action(leaf_status(stored.leaf.as_ref(), &known, signer, now), signer_status, serves_older);

    let is_in_use =
        |it: &StoredAuthority| [usable, served].into_iter().flatten().any(|leaf| is_signed_by(leaf, Some(it)));
    let leaves_at = |it: &StoredAuthority| {
        if is_in_use(it) { it.not_after } else { it.last_leaf_expiry(&known, lifetimes) }
    };
    let mut keep: Vec<_> = known.iter().filter(|it| now < leaves_at(it)).cloned().collect();
    // More CAs than are read would be written again and again. Each deletion of the Secret adds one.
    make_room(&mut keep, new_authority.is_some().into(), |it| is_in_use(it) || signer == Some(it));
    let waits = usable.is_some_and(|leaf| signer.is_some() && !is_signed_by(leaf, signer));
    let settled_at = held_for.filter(|_| waits).map(|held| now + lifetimes.settle - held);
    let next_check = keep
        .iter()
        .flat_map(|it| [leaves_at(it), it.due()])
        .chain(usable.into_iter().flat_map(|it| [it.due(), it.last_use()]))
        .chain(settled_at)
        .filter(|at| *at > now)
        .min();
    CertificatePlan { new_authority, keep, leaf, next_check: next_check.unwrap_or(now + SKEW) }
}

/// The first table of the module's documentation.
fn signer_fault(signer: Option<&StoredAuthority>, now: Seconds) -> Option<RenewalCause> {
    match signer {
        None => Some(RenewalCause::Missing),
        Some(it) if now < it.not_before => Some(RenewalCause::NotYetValid),
        Some(it) if now >= it.due() => Some(RenewalCause::Due),
        Some(_) => None,
    }
}

/// The second table of the module's documentation.
fn leaf_action(leaf: LeafStatus, signer: SignerStatus, serves_older: bool) -> LeafAction {
    match (leaf, signer, serves_older) {
        (LeafStatus::Current, _, _) | (LeafStatus::OfOlderAuthority, SignerStatus::Pending, _) => LeafAction::Keep,
        (LeafStatus::Due, _, _) => LeafAction::Issue(RenewalCause::Due),
        (LeafStatus::OfOlderAuthority, SignerStatus::Settled, _) => LeafAction::Issue(RenewalCause::NewAuthority),
        (LeafStatus::Unusable(_), SignerStatus::Pending, true) => LeafAction::Restore,
        (LeafStatus::Unusable(cause), _, _) => LeafAction::Issue(cause),
    }
}

fn leaf_status(
    leaf: Option<&StoredLeaf>,
    known: &[StoredAuthority],
    signer: Option<&StoredAuthority>,
    now: Seconds,
) -> LeafStatus {
    let Some(leaf) = leaf else { return LeafStatus::Unusable(RenewalCause::Missing) };
    match leaf.fault(known, now) {
        Some(fault) => LeafStatus::Unusable(fault),
        None if !is_signed_by(leaf, signer) => LeafStatus::OfOlderAuthority,
        None if now >= leaf.due() => LeafStatus::Due,
        None => LeafStatus::Current,
    }
}

fn is_signed_by(leaf: &StoredLeaf, authority: Option<&StoredAuthority>) -> bool {
    authority.is_some_and(|it| it.certificate == leaf.issuer)
}

#[cfg(test)]
mod simulation;

#[cfg(test)]
pub(super) mod tests {
    use super::super::state::Certificate;
    use super::*;

    pub(in super::super) const DAY: Seconds = 24 * 3600;
    pub(in super::super) const LIFETIMES: Lifetimes = Lifetimes { authority: 365 * DAY, leaf: 90 * DAY, settle: 60 };
    pub(in super::super) const NOW: Seconds = 1_800_000_000;

    pub(in super::super) fn id(name: &str) -> Certificate {
        name.as_bytes().into()
    }

    /// A CA that a replica made `days` ago.
    pub(in super::super) fn authority(name: &str, days: Seconds) -> StoredAuthority {
        made(id(name), NOW - days * DAY)
    }

    pub(in super::super) fn made(certificate: Certificate, at: Seconds) -> StoredAuthority {
        StoredAuthority { certificate, not_before: at - SKEW, not_after: at + LIFETIMES.authority, own: true }
    }

    /// A leaf that `issuer` signed `days` ago.
    pub(in super::super) fn leaf(issuer: &str, days: Seconds) -> StoredLeaf {
        signed(&id(issuer), NOW - days * DAY, Seconds::MAX)
    }

    pub(in super::super) fn signed(issuer: &Certificate, at: Seconds, latest: Seconds) -> StoredLeaf {
        let not_after = latest.min(at + LIFETIMES.leaf);
        StoredLeaf { issuer: Certificate::clone(issuer), not_before: at - SKEW, not_after, fits: true }
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
        state(&[authority("new", 0), authority("old", 244)], "new", leaf("old", 30))
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

    /// A test for each row: the stored and the served certificates, how long the stored CA has been held, and the plan.
    macro_rules! transitions {
        ($($name:ident: $stored:expr, $in_force:expr, $held_for:expr => $want:expr;)*) => {$(
            #[test]
            fn $name() {
                let stored = $stored;
                let plan = plan(&stored, &$in_force, $held_for, NOW, LIFETIMES);
                assert_eq!(summary(&plan), $want);
                assert!(plan.next_check > NOW);
                let is_unchanged =
                    plan.new_authority.is_none() && plan.leaf == LeafAction::Keep && plan.keep == stored.authorities;
                assert_eq!(plan.changes(&stored), !is_unchanged);
            }
        )*};
    }

    transitions! {
        an_empty_secret_gets_a_ca_and_a_leaf:
            nothing(), nothing(), None => "+ (there was none) : issue (there was none)";
        certificates_in_their_first_two_thirds_stay:
            simple(100, 10), nothing(), None => "a: keep";
        a_leaf_in_its_last_third_is_renewed:
            simple(100, 61), nothing(), None => "a: issue (two thirds of its lifetime have passed)";
        a_ca_in_its_last_third_is_replaced_and_its_leaf_stays:
            simple(244, 10), simple(244, 10), Some(900) => "+ (two thirds of its lifetime have passed) a: keep";
        a_new_ca_that_is_not_held_does_not_sign:
            rotating(), rotating(), None => "new old: keep";
        a_new_ca_that_has_not_settled_does_not_sign:
            rotating(), rotating(), Some(59) => "new old: keep";
        a_new_ca_that_has_settled_signs:
            rotating(), rotating(), Some(60) => "new old: issue (there is a new CA)";
        a_new_ca_signs_when_the_old_leaf_expires:
            state(&[authority("new", 0), authority("old", 244)], "new", leaf("old", 90)), nothing(), None
                => "new old: issue (it has expired)";
        an_old_ca_leaves_when_its_leaves_have_expired:
            state(&[authority("a", 91), authority("b", 335)], "a", leaf("a", 31)), nothing(), None => "a: keep";
        an_old_ca_stays_while_its_leaves_may_be_valid:
            state(&[authority("a", 90), authority("b", 334)], "a", leaf("a", 31)), nothing(), None => "a b: keep";
        a_foreign_ca_stays_until_it_expires:
            state(&[authority("a", 200), StoredAuthority { own: false, ..authority("b", 300) }], "a", leaf("a", 31)),
            nothing(), None => "a b: keep";
        after_a_deletion_the_served_leaf_is_restored:
            nothing(), simple(100, 10), None => "+ (there was none) a: restore";
        after_a_deletion_an_expired_ca_is_not_restored:
            nothing(), simple(365, 10), None => "+ (there was none) : issue (there was none)";
        a_lost_ca_key_is_replaced_and_the_leaf_stays:
            without_key(simple(100, 10)), nothing(), None => "+ (there was none) a: keep";
        a_lost_leaf_is_issued_by_the_ca_of_the_served_one:
            without_leaf(simple(9, 1)), simple(9, 1), None => "a: issue (there was none)";
        a_leaf_lost_during_a_rotation_is_restored:
            without_leaf(rotating()), rotating(), None => "new old: restore";
        a_leaf_lost_after_the_new_ca_settled_is_issued:
            without_leaf(rotating()), rotating(), Some(60) => "new old: issue (there was none)";
        a_leaf_lost_while_its_ca_is_replaced_is_restored:
            without_leaf(simple(244, 10)), simple(244, 10), Some(900)
                => "+ (two thirds of its lifetime have passed) a: restore";
        a_leaf_for_another_service_is_replaced:
            for_another_service(simple(9, 1)), nothing(), None => "a: issue (it is for another Service)";
        the_ca_of_the_served_leaf_joins_the_bundle_of_a_replaced_secret:
            state(&[authority("new", 0)], "new", leaf("new", 0)), simple(100, 10), None => "new a: keep";
        certificates_from_the_future_are_replaced:
            simple(-2, -2), nothing(), None => "+ (it is not valid yet) a: issue (it is not valid yet)";
    }
}
